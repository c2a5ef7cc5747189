package replication

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/arrival"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// TestIntervalsMayChangeAtAnyTime: no packet is refused, and what is settled is true.
func TestIntervalsMayChangeAtAnyTime(t *testing.T) {
	x := connectedWire(t, testSchema())
	oracle := newSettledOracle(x.server)
	position := ecs.ComponentID[tPosition](x.world)
	var all []ecs.Entity
	for range 40 {
		all = append(all, x.spawn(position))
	}
	r := rand.New(rand.NewPCG(seedOf(t), 1))
	for tick := range 1500 {
		if tick%37 == 36 {
			x.peer.SetSendInterval(pick(r, 1, 2, 3, 8, 10, 30))
		}
		for _, e := range all[1:] {
			if r.IntN(7) == 0 {
				(*tPosition)(x.world.Get(e, position)).X = float32(r.IntN(90))
			}
		}
		down := x.replicate()
		oracle.record()
		for _, p := range down {
			require.NoError(t, x.client.Receive(p), "tick %d", tick)
			require.Empty(t, oracle.received(x.peer, x.client), "tick %d", tick)
		}
		x.answer(x.apply()...)
	}
	require.Greater(t, oracle.claims, 50)
}

// TestServersKnowWhatClientsKnowToHaveRested: for rewind, the server finds out until when a client knew that an entity
// had rested before it moved, whatever the send intervals were.
func TestServersKnowWhatClientsKnowToHaveRested(t *testing.T) {
	for _, loss := range []float64{0, 0.1} {
		for _, intervals := range [][]int{{1}, {3}, {7}, {1, 30}, {2, 4, 8}} {
			t.Run(fmt.Sprintf("intervals of %d, %v lost", intervals, loss), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seedOf(t), 2))
				w := ecs.NewWorld()
				s := NewServer(&w, testSchema(), WithSeed(1), replicationtest.FirstTick(-uint32(r.IntN(300))),
					config.ServerFunc(func(o *config.ServerOptions) { o.KeepArrivals = true }))
				position := ecs.ComponentID[tPosition](&w)
				var all []ecs.Entity
				for range 20 {
					all = append(all, w.NewEntity(position, ReplicatedID(&w)))
				}
				e := connect(s, seedOf(t), netsim.Config{Latency: 2, Loss: loss}, WithSeed(2))
				e.peer.SetSendInterval(intervals[0])
				asked, rests := 0, 0
				for tick := range 1200 {
					if tick%40 == 39 {
						e.peer.SetSendInterval(intervals[tick/40%len(intervals)])
					}
					for i, entity := range all {
						if i%4 == 0 || i > 3 && r.IntN(8) == 0 {
							(*tPosition)(w.Get(entity, position)).X = float32(r.IntN(90))
						}
					}
					s.Replicate()
					e.step(t)
					if tick < 200 { // the server has to learn first what arrived
						continue
					}
					for slot := range s.snap.Slots.Len() {
						m := e.client.recv.Replicas.At(uint32(slot))
						if m == nil || !m.Any {
							continue
						}
						from, to := m.Held.Around(m.Newest - 1)
						if from == nil || to == nil || e.peer.acked.Recent.Before(to.Tick) {
							continue
						}
						var known arrival.Around
						e.peer.acked.Around(&known, slot, s.snap.Slots.Info[slot].Born, from.Tick)
						if !known.Before || !known.After || known.From != from.Tick || known.To != to.Tick {
							continue
						}
						rested, ok := to.Rested()
						if !ok {
							rested = from.Tick
						}
						require.Equal(t, rested, known.Rested, "tick %d, from %d to %d", s.Tick(), from.Tick, to.Tick)
						if asked++; rested != from.Tick {
							rests++
						}
					}
				}
				require.Greater(t, asked, 500)
				require.Greater(t, rests, 100)
			})
		}
	}
}
