package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// split divides a round trip into the latencies of the two directions, in ticks. In a tick,
// acknowledgements arrive before Replicate sends and packets arrive after it; so a packet sent at
// tick t arrives at t+down, and its acknowledgement, sent immediately, at t+down+up, in time for
// Replicate, provided that up is not 0.
func split(rtt int) (down, up int) {
	down = rtt / 2
	return down, rtt - down
}

// heldBack is the longest delay by -reorder, in ticks.
const heldBack = 8

// weather sets a link to what the flags select, or, healed, to the same latency without faults. The link is stepped so
// many times per tick.
func (c *config) weather(link *netsim.Link, healed bool, steps int) {
	var cfg netsim.Config
	if !healed {
		cfg = netsim.Config{Loss: c.loss, Duplicate: c.dup, Reorder: c.reorder, ReorderBy: heldBack * steps}
	}
	down, up := split(c.rtt)
	cfg.Latency = float64(down * steps)
	link.Down.SetConfig(cfg)
	cfg.Latency = float64(up * steps)
	link.Up.SetConfig(cfg)
}

// newMirror connects a client to the server, over a link that is still perfect.
func newMirror(
	index int, seed uint64, coding replication.Coding, server *replication.Server, schema *replication.Schema,
	components []component, faults *mismatches,
) *mirror {
	m := &mirror{
		index:  index,
		world:  ecs.NewWorld(),
		link:   netsim.NewLink(seed+uint64(index), netsim.Config{}),
		faults: faults,
	}
	m.types, m.ids = componentIDs(&m.world, components)
	m.references = referencesOf(components)
	m.client = replication.NewClient(&m.world, schema, replication.WithSeed(uint64(index)+1))
	m.client.SetSend(m.up.add)
	m.peer = server.Connect(m.down.add, replication.WithCoding(coding))
	return m
}

// tick is the time that a tick takes at the client if the trace does not matter.
const tick = time.Second / 60

// handshakeTicks are enough for a handshake over a perfect link.
const handshakeTicks = 16

// shakeHands connects all mirrors before the trace begins.
func shakeHands(server *replication.Server, mirrors []*mirror) error {
	for range handshakeTicks {
		connected := true
		for _, m := range mirrors {
			m.receive(0)
		}
		server.Replicate()
		for _, m := range mirrors {
			if _, err := m.see(0, tick); err != nil {
				return err
			}
			m.link.Step()
			connected = connected && m.peer.Connected() && m.client.Status() == replication.StatusConnected &&
				m.link.Up.Pending()+m.link.Down.Pending() == 0
		}
		if connected {
			return nil
		}
	}
	return fmt.Errorf("a client was not connected after %d ticks on a perfect link", handshakeTicks)
}

// queue holds packets on their way between an end and the link, so that the time of the link is not taken for that of
// the end.
type queue struct {
	bytes []byte
	ends  []int
}

func (q *queue) add(packet []byte) error {
	q.bytes = append(q.bytes, packet...)
	q.ends = append(q.ends, len(q.bytes))
	return nil
}

// drain calls fn with the packets.
func (q *queue) drain(fn func(packet []byte)) {
	begin := 0
	for _, end := range q.ends {
		fn(q.bytes[begin:end])
		begin = end
	}
	q.bytes, q.ends = q.bytes[:0], q.ends[:0]
}

// send gives the link the packets that the ends have sent.
func (m *mirror) send(now int64) {
	m.up.drain(func(packet []byte) { m.complain(now, "link up", m.link.Up.Send(packet)) })
	m.down.drain(func(packet []byte) { m.complain(now, "link down", m.link.Down.Send(packet)) })
}

// receive gives the peer the packets from its client. The link damages nothing, so every error
// except for late packets is a mismatch.
func (m *mirror) receive(now int64) {
	m.link.Up.Receive(func(packet []byte) {
		m.complain(now, "peer", m.peer.Receive(packet))
	})
	m.send(now)
}

// see gives the client the packets from the server, and lets it show a frame. It returns how long the client took.
func (m *mirror) see(now int64, dt time.Duration) (took time.Duration, err error) {
	m.send(now)
	m.link.Down.Receive(func(packet []byte) { _ = m.arrived.add(packet) })
	begin := time.Now()
	m.arrived.drain(func(packet []byte) {
		m.complain(now, "client", m.client.Receive(packet))
	})
	err = m.client.Frame(dt)
	took = time.Since(begin)
	m.send(now)
	return took, err
}

func (m *mirror) complain(now int64, who string, err error) {
	if err != nil && !errors.Is(err, replication.ErrStale) && !errors.Is(err, replication.ErrMissingBaseline) &&
		!errors.Is(err, replication.ErrMissingModel) {
		m.faults.add("tick %d, %s %d: refuses a sound packet: %v", now, who, m.index, err)
	}
}
