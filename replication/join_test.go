package replication

import (
	"maps"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/sender"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestCompleteMeansEverythingHasArrived: when Complete becomes true, the client has all entities
// that existed when the session began and still do, however late they arrived. It does become true,
// though new entities spawn all the time.
func TestCompleteMeansEverythingHasArrived(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	type visible = func(id NetID) bool
	for name, c := range map[string]struct {
		cfg   netsim.Config
		opts  []ServerOption
		limit func(p *Peer) visible
	}{
		"perfect":           {},
		"loss":              {cfg: netsim.Config{Latency: 4, Jitter: 3, Loss: 0.3, Duplicate: 0.1, Reorder: 0.2, ReorderBy: 9}},
		"spread over ticks": {opts: []ServerOption{joinWork(300)}},
		"spread over ticks, with loss": {
			cfg: netsim.Config{Latency: 2, Loss: 0.1}, opts: []ServerOption{joinWork(1000)},
		},
		"small packets, large entities": {
			cfg: netsim.Config{Latency: 2, Loss: 0.1}, opts: []ServerOption{WithMTU(100)},
		},
		"budget": {
			cfg: netsim.Config{Latency: 2, Loss: 0.1},
			limit: func(p *Peer) visible {
				p.SetBudget(6000)
				return nil
			},
		},
		"interest": {
			cfg: netsim.Config{Latency: 2, Loss: 0.1},
			limit: func(p *Peer) visible {
				own := p.server
				even := func(e ecs.Entity) bool { id, _ := own.NetID(e); return id.Slot%2 == 0 }
				p.SetInterest(Interest{Visible: even})
				return func(id NetID) bool { return id.Slot%2 == 0 }
			},
		},
		"out of sync": {opts: []ServerOption{withoutSharedPackets}, cfg: netsim.Config{Latency: 3, Loss: 0.1}},
	} {
		t.Run(name, func(t *testing.T) {
			seed := seedOf(t)
			w := ecs.NewWorld()
			s := NewServer(&w, testSchema(), append(c.opts, WithSeed(seed))...)
			g := newGame(seed, &w, faceOf(s.schema), 60)
			for range 150 { // many idle entities
				w.NewEntity(g.ids[0], g.ids[3], g.marker)
			}
			for range 4 {
				g.spawn(g.ids[5], g.ids[0])
			}
			o := newTruth()
			for range 5 {
				g.step()
				s.Replicate()
				o.record(s)
			}
			for n := range uint64(3) {
				e := connect(s, seed+n, c.cfg)
				sees := func(NetID) bool { return true }
				if c.limit != nil {
					if limited := c.limit(e.peer); limited != nil {
						sees = limited
					}
				}
				var awaited map[NetID]ecs.Entity
				missed := 0
				for tick := 0; !e.client.Complete(); tick++ {
					require.Less(t, tick, 1500, "%+v", e.peer.Stats())
					g.step()
					begun := e.peer.acked.Join.Begun
					tickAll(t, s, o, []*end{e})
					if e.peer.acked.Join.Begun && !begun {
						awaited = maps.Clone(o.live)
					}
					missed = 0
					for id := range awaited {
						if _, ok := e.client.Entity(id); !ok && !o.live[id].IsZero() && sees(id) {
							missed++
						}
					}
				}
				require.NotEmpty(t, awaited)
				require.Zero(t, missed)
				s.Disconnect(e.peer)
			}
		})
	}
}

// TestCompleteIsSentInAnIdleWorld without waiting for the next keep-alive, and not before
// everything has arrived.
func TestCompleteIsSentInAnIdleWorld(t *testing.T) {
	for _, entities := range []int{0, 1, 500} {
		x := newWire(t, testSchema(), WithMTU(200))
		for range entities {
			x.spawn(ecs.ComponentID[tPosition](x.world))
		}
		require.False(t, x.client.Complete())
		n := 0
		for ; !x.client.Complete(); n++ {
			x.round()
			require.LessOrEqual(t, n, sender.CompleteTicks+5)
			if x.client.Complete() {
				x.requireEqual("%d entities", entities)
			}
		}
		packets := x.peer.Stats().Packets
		x.rounds(50)
		require.Equal(t, packets, x.peer.Stats().Packets, "it is sent once")
	}
}

// TestCompleteIsSentAgain if its packet is lost.
func TestCompleteIsSentAgain(t *testing.T) {
	x := newWire(t, testSchema())
	for n := 0; !x.peer.out.KeepAlive.Complete; n++ {
		require.Less(t, n, 30)
		x.answer(x.apply()...)
		x.deliver(x.takeDown()...)
		x.replicate() // lost
	}
	require.False(t, x.client.Complete())
	x.rounds(61)
	require.True(t, x.client.Complete())
}

// TestCompleteDoesNotWaitForNewcomers: not even for one in the slot of an entity that existed when
// the session began, when the tick between them did not end.
func TestCompleteDoesNotWaitForNewcomers(t *testing.T) {
	for _, panics := range []bool{false, true} {
		x := newWire(t, testSchema())
		position := ecs.ComponentID[tPosition](x.world)
		upset := false
		x.peer.SetInterest(Interest{Visible: func(ecs.Entity) bool {
			if upset {
				panic("the user's")
			}
			return true
		}})
		first, gone := x.spawn(position), x.spawn(position)
		for i := 0; !x.peer.acked.Join.Begun; i++ {
			x.answer(x.apply()...)
			for _, p := range x.replicate() {
				if wire.OpenHandshake(p) != nil { // states are lost
					x.deliver(p)
				}
			}
			x.deliver(x.takeDown()...)
			require.Less(t, i, 10)
		}
		slot := x.slotOf(gone)
		x.world.RemoveEntity(gone)
		if upset = panics; upset {
			require.PanicsWithValue(t, "the user's", x.server.Replicate)
			upset = false
		} else {
			x.replicate()
		}
		newcomer := x.spawn(position)
		x.replicate()
		require.Equal(t, slot, x.slotOf(newcomer))
		for i := 0; !x.peer.acked.Join.Complete; i++ {
			require.Less(t, i, 60)
			(*tPosition)(x.world.Get(first, position)).X++
			_, others := x.split(x.replicate(), slot) // the newcomer never arrives
			x.deliver(others...)
			x.answer(x.apply()...)
		}
		x.requireSeen(first)
	}
}
