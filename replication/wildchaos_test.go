package replication

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// A wildConfig adds unusual events to a chaos game: callbacks that panic, world resets, and all
// settings changed to anything during the game.
type wildConfig struct {
	panics, resets, groups, weights bool
	restless                        bool // send intervals change all the time
	coding                          int  // 0: Packed, 1: both, 2: Compact
	far                             int  // ticks of delay beyond the window
}

func wildChaosConfig(seed uint64) chaosConfig {
	c := randomChaosConfig(seed)
	r := rand.New(rand.NewPCG(seed, 78))
	c.toggles = r.IntN(4) > 0
	c.ends = pick(r, 1, 2, 3, 4)
	c.n = min(c.n, 130)
	c.ticks = pick(r, 150, 300)
	c.wild = &wildConfig{
		panics: r.IntN(3) == 0, resets: r.IntN(4) == 0, groups: r.IntN(3) == 0, weights: r.IntN(2) == 0,
		coding: pick(r, 0, 0, 0, 1, 2), far: pick(r, 0, 0, 0, 10, 33, 45),
		restless: r.IntN(2) == 0,
	}
	c.delay = min(c.delay+c.wild.far, 56-c.jitter)
	return c
}

type wildPanic struct{}

// wildVisible returns a Visible function that panics at times.
func (a *chaosGame) wildVisible(m int) func(e ecs.Entity) bool {
	return func(e ecs.Entity) bool {
		if a.cfg.wild.panics && a.armed && a.rng.IntN(400) == 0 {
			panic(wildPanic{})
		}
		return int(e.ID())%4 != m
	}
}

// everything returns an interest in all entities; in games with views by a function of its own.
func (a *chaosGame) everything() Interest {
	if a.cfg.views {
		return Interest{Visible: a.wildVisible(4)}
	}
	return Interest{}
}

// wildEvents plays the additional events of a tick.
func (a *chaosGame) wildEvents() {
	r, x := a.rng, a.cfg.wild
	for _, e := range a.ends {
		if x.restless && r.IntN(6) == 0 {
			e.peer.SetSendInterval(pick(r, 1, 1, 1, 2, 3, 4, 7, 8, 8, 9, 16, 60))
		}
		if r.IntN(20) != 0 || !a.cfg.toggles {
			continue
		}
		p := e.peer
		switch r.IntN(9) {
		case 0:
			p.SetSendInterval(pick(r, 1, 2, 3, 5, 8, 9, 16, 31, 33, 60))
		case 1:
			p.SetSendInterval(1)
		case 2:
			p.SetInterest(Interest{Keep: r.IntN(2) == 0, Visible: a.wildVisible(r.IntN(5))})
		case 3:
			p.SetBudget(pick(r, 300, 2000, 20000, 100000, 1000000))
		case 4:
			p.SetBudget(0)
		case 5:
			p.SetInterest(a.everything())
		case 6:
			p.SetInterest(Interest{Keep: r.IntN(2) == 0, Sets: []*EntitySet{a.set}})
		case 7:
			if x.weights {
				p.SetPriorityFunc(func(_ []ecs.Entity, w []float32) {
					if x.panics && a.armed && a.rng.IntN(10) == 0 {
						panic(wildPanic{})
					}
					for i := range w {
						w[i] *= float32(i % 7)
					}
				})
			}
		case 8:
			p.SetPriorityFunc(nil)
		}
	}
	if x.groups && r.IntN(6) == 0 {
		if len(a.bonds) == 0 || r.IntN(10) == 0 && len(a.bonds) < 4 {
			a.bonds = append(a.bonds, a.server.NewGroup())
		}
		g := a.bonds[r.IntN(len(a.bonds))]
		if y := &a.ents[r.IntN(len(a.ents))]; y.live {
			for _, other := range a.bonds {
				other.Remove(y.e)
			}
			if r.IntN(2) == 0 && g.Len() < 6 {
				g.Add(y.e)
			}
		}
	}
	if r.IntN(10) == 0 {
		if y := &a.ents[r.IntN(len(a.ents))]; y.live {
			if r.IntN(2) == 0 {
				a.set.Add(y.e)
			} else {
				a.set.Remove(y.e)
			}
		}
	}
	if x.resets && r.IntN(80) == 0 {
		a.world.Reset()
		for i := range a.ents {
			if r.IntN(8) > 0 {
				a.spawn(i)
			} else {
				a.ents[i].live = false
			}
		}
	}
}

// replicateWildly calls Replicate, in which callbacks may panic.
func (a *chaosGame) replicateWildly() {
	defer func() {
		a.armed = false
		if r := recover(); r != nil {
			if _, ok := r.(wildPanic); !ok {
				panic(r)
			}
			a.panicked++
		}
	}()
	a.unfinished = true
	a.armed = a.cfg.wild != nil && a.now < a.cfg.ticks
	if a.cfg.grid == 0 {
		a.server.opts.Grid = 1 << a.grids.IntN(4)
	}
	a.server.Replicate()
	a.unfinished = false
}

// heldBy returns a false claim of the server about the states that a client holds, or "".
func heldBy(s *Server, p *Peer, client *Client) string {
	if p.conn.State != session.Connected || !client.session.Open() || !client.session.InForce || client.session.ID != p.conn.Session.ID {
		return ""
	}
	t := &p.acked.Acks
	claim := func(slot int, at delta.Tick) string {
		began, known := s.snap.Slots.ChangedBy(slot, at)
		m := client.recv.Replicas.At(uint32(slot))
		if m == nil {
			return fmt.Sprintf("slot %d: held as of tick %d, but unknown", slot, at)
		}
		state := m.Held.Find(at)
		if state == nil || known && state.Tick.Before(began) || state.Generation != s.snap.Slots.Info[slot].Generation {
			return fmt.Sprintf("slot %d: not held as of tick %d (now %d, through %d, began %d): %+v", slot, at, s.snap.Tick, t.Through, began, state)
		}
		return ""
	}
	for b := range p.acked.Dirty {
		seen := p.sight.View.Sees(b, s.snap.Slots.Alive[b]) &^ (t.None[b] | s.snap.Slots.Churned[b])
		for at := t.Through; t.Recent(at) && s.snap.Fresh(at); at-- {
			for slot := range bitset.Slots(b, seen&^t.Lacks(at, b)) {
				if msg := claim(slot, at); msg != "" {
					return msg
				}
			}
		}
		for slot := range bitset.Slots(b, seen&t.Lacks(t.Through, b)) {
			if at, _ := t.Holds(slot); s.snap.Fresh(at) {
				if msg := claim(slot, at); msg != "" {
					return "since: " + msg
				}
			}
		}
	}
	return ""
}

// TestWildChaos: the server's claims about the states that clients hold are true, whatever happens.
func TestWildChaos(t *testing.T) {
	t.Parallel()
	n, seed := roundsOf(40, 8, 2), seedOf(t)
	panicked := 0
	for i := range uint64(n) {
		c := wildChaosConfig(seed + i)
		msg, a := runChaos(t, c)
		require.Empty(t, msg, "seed %d: %+v %+v", seed+i, c, c.wild)
		panicked += a.panicked
	}
	t.Logf("%d ticks did not end", panicked)
}

// forgottenBy returns something that a peer lacks and that is neither dirty nor in flight, or "".
func forgottenBy(s *Server, p *Peer) string {
	t := &p.acked.Acks
	if p.out.Sending {
		return "" // a send function panicked, and the peer has been idle since: everything is found when it becomes active again
	}
	away := make([]uint64, len(p.acked.Dirty))
	for q := p.acked.Log.Oldest; q != p.acked.Log.Next; q++ {
		sent := p.acked.Log.At(q)
		if sent.Status != ackstate.SentInFlight && (sent.Status != ackstate.SentAcked || int32(q-p.acked.Followed) < 0) {
			continue
		}
		for i := range sent.Count {
			r := p.acked.Log.Record(sent, i)
			for slot := range bitset.Slots(int(r.Block), r.Mask) {
				if r.Kind != baseline.RecordState || !s.snap.Slots.ChangedAt[slot].After(sent.Tick) {
					away[r.Block] |= 1 << (slot & 63)
				}
			}
		}
	}
	if p.sight.View.Released {
		return "" // despawns of released entities become dirty at the next evaluation
	}
	for b := range p.acked.Dirty {
		lost := p.sight.View.Sees(b, s.snap.Slots.Alive[b]) & (t.Behind(b) | t.None[b])
		if !p.sight.View.Released { // otherwise kept entities are found at the next evaluation
			lost |= p.acked.Gone(b)
		}
		if lost &^= p.acked.Dirty[b] | away[b] | p.acked.Large.In(b); lost != 0 {
			slot := b<<6 + bits.TrailingZeros64(lost)
			return fmt.Sprintf("slot %d forgotten: none %v missing %v since %d changed %d large %v gone %v shown %v", slot,
				t.None.Has(slot), t.Lacks(t.Through, b)>>(slot&63)&1, t.Since[slot], s.snap.Slots.ChangedAt[slot], p.acked.Large.Of(slot) != nil, p.acked.Gone(b)>>(slot&63)&1, t.Shown.Has(slot))
		}
	}
	return ""
}

// TestWildChaosWithWorkersSendsTheSamePackets with callbacks that panic and settings that change
// during the game.
func TestWildChaosWithWorkersSendsTheSamePackets(t *testing.T) {
	t.Parallel()
	seed := seedOf(t)
	for i := range uint64(roundsOf(12, 4, 2)) {
		c := wildChaosConfig(seed + i)
		c.workers, c.ends = 1, max(c.ends, 3)
		d := c
		d.workers = 2 + int(i%3)
		requireSameChaosPackets(t, c, d)
	}
}

// TestChaosWithSharedPacketsSendsTheSamePackets: the packets of peers with filters do not depend on
// whether shared packets are used.
func TestChaosWithSharedPacketsSendsTheSamePackets(t *testing.T) {
	t.Parallel()
	seeds := []uint64{
		60006, // a keyframe fallback in a shared packet, whose update takes one bit more than the full state
		84,
		1795499702356075528, // two more slots take fewer bits than one, at the end of a packet
	}
	for i, seed := uint64(0), seedOf(t); i < uint64(roundsOf(12, 4, 2)); i++ {
		seeds = append(seeds, seed+i)
	}
	for i, seed := range seeds {
		c := randomChaosConfig(seed)
		if i == 1 { // peers with several intervals and shared packets against the same baseline
			c = chaosConfig{seed: seed, n: 130, mtu: 1200, window: 64, grid: 1, ends: 10, delay: 4, jitter: 2, loss: 0.01}
		}
		c.n, c.workers, c.ends, c.views, c.toggles, c.sharedPackets = min(c.n, 130), 1, max(c.ends, 3), true, false, false
		c.reconnect = false
		d := c
		d.workers, d.sharedPackets = 1+i%3, true
		requireSameChaosPackets(t, c, d)
	}
}

// TestWildChaosWithSharedPacketsSendsTheSamePackets with callbacks that panic and settings that
// change during the game.
func TestWildChaosWithSharedPacketsSendsTheSamePackets(t *testing.T) {
	t.Parallel()
	seed := seedOf(t)
	for i := range uint64(roundsOf(16, 6, 2)) {
		c := wildChaosConfig(seed + i)
		c.workers, c.ends, c.views, c.sharedPackets = 1, max(c.ends, 3), true, false
		d := c
		d.workers, d.sharedPackets = 1+int(i)%4, true
		requireSameChaosPackets(t, c, d)
	}
}
