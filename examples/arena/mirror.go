package main

import (
	"fmt"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// mirror is a client: a world of its own that follows the server's.
type mirror struct {
	world  ecs.World
	client *replication.Client
	line   *line
	pilot  *pilot

	reader  *reader
	scratch []uint64

	bytes uint64 // of all received datagrams

	checks     int    // comparisons of an entity with the record
	mismatches int    // comparisons that found a difference
	tooOld     int    // entities older than the record
	checked    uint32 // the newest tick at which an entity was compared
}

func newMirror(name string, l *line) *mirror {
	m := &mirror{world: ecs.NewWorld(1024), line: l}
	schema := NewSchema()
	m.client = replication.NewClient(&m.world, schema)
	m.client.SetSend(l.send)
	m.pilot = newPilot(name, &m.world, m.client)
	m.reader = newReader(&m.world, schema)
	return m
}

// step is one iteration of the client's loop: receive packets, and show a frame. A real client would draw its world
// now.
func (m *mirror) step(t *truth) error {
	m.line.step()
	m.line.receive(func(packet []byte) {
		m.bytes += uint64(len(packet))
		_ = m.client.Receive(packet) // refused packets are counted in its Stats
	})
	if m.client.Status() == replication.StatusConnected {
		m.pilot.comeAndGo()
	}
	if err := m.client.Frame(m.tick()); err != nil {
		return fmt.Errorf("the server does not want this client: %w", err)
	}
	m.line.flush()
	m.check(t)
	return nil
}

// tick returns how long a tick takes, which is a frame here.
func (m *mirror) tick() time.Duration {
	rate := m.client.TickRate()
	if rate == 0 { // not known yet
		rate = 60
	}
	return time.Second / time.Duration(rate)
}

// outlook returns the library's estimates, including the round trip that the arena prints.
func (m *mirror) outlook() outlook {
	stats, tick := m.client.Stats(), m.tick().Seconds()
	return outlook{stats.InputDelay.Seconds() / tick, stats.RoundTrip.Seconds() / tick}
}

// entities returns how many are shown.
func (m *mirror) entities() int {
	n := 0
	for range m.client.Entities() {
		n++
	}
	return n
}

// check compares every shown entity with the server's record of the tick that the client shows.
func (m *mirror) check(t *truth) {
	for id, e := range m.client.Entities() {
		tick, _ := m.client.StateTick(e)
		m.scratch = m.reader.codes(e, m.scratch[:0])
		switch t.check(id, uint32(tick), m.scratch) {
		case tooNew:
			// Datagrams may be faster than the record: checked later.
			continue
		case tooOld:
			m.tooOld++
			continue
		case wrong:
			m.mismatches++
		}
		if m.checks == 0 || newer(uint32(tick), m.checked) {
			m.checked = uint32(tick)
		}
		m.checks++
	}
}

// equal reports whether the world equals the server's latest one.
func (m *mirror) equal(t *truth) bool { return t.equal(m.client, m.reader) }
