package replication

import (
	"math/rand/v2"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// TestATeleportCostsNoMoreThanAnAbsoluteState: entities that move along and are put somewhere
// else, all of them or one, take hardly more bits than a newcomer is sent.
func TestATeleportCostsNoMoreThanAnAbsoluteState(t *testing.T) {
	type body struct {
		X, Y, Z float32    `repl:"range=-1000:1000,step=0.01"`
		Turn    [4]float32 `repl:"quat,bits=9"`
	}
	for name, opts := range map[string][]ServerOption{"streams": nil, "no streams": {func(o *serverOptions) { o.noStreams = true }}} {
		for _, n := range []int{1, 50, 700} {
			rng := rand.New(rand.NewPCG(seedOf(t), 1))
			w := ecs.NewWorld()
			schema := NewSchema()
			Register[body](schema)
			s := NewServer(&w, schema, append(opts, WithSeed(1))...)
			e := connect(s, 1, netsim.Config{Latency: 2})
			id := ecs.ComponentID[body](&w)
			var bodies []*body
			for range n {
				w.NewEntity(id, ReplicatedID(&w))
			}
			query := w.Query(ecs.All(id))
			for query.Next() {
				bodies = append(bodies, (*body)(query.Get(id)))
			}
			place := func() {
				for _, b := range bodies {
					b.X, b.Y, b.Z = 2000*rng.Float32()-1000, 2000*rng.Float32()-1000, 2000*rng.Float32()-1000
					for i := range b.Turn {
						b.Turn[i] = 2*rng.Float32() - 1
					}
				}
			}
			tick := func() uint64 {
				before := e.peer.Stats().EntityBits
				s.Replicate()
				e.step(t)
				return e.peer.Stats().EntityBits - before
			}
			place()
			var moving uint64
			for range 100 {
				for _, b := range bodies {
					b.X, b.Y, b.Z = b.X+0.3, b.Y-0.2, b.Z+0.1
				}
				moving = tick()
			}
			updates := e.peer.Stats().Updates
			place()
			bits := float64(tick()) / float64(n)
			const absolute = 3*18 + 2 + 3*9
			t.Logf("%s, %d entities: %.1f bits each when they move, %.1f when they jump, %d without baseline and head", name, n, float64(moving)/float64(n), bits, absolute)
			require.Less(t, bits, absolute+24., "a jump of %d with %s", n, name)
			require.Less(t, e.peer.Stats().Updates-updates, uint64(n/2+1), "most are sent whole")
			require.Equal(t, uint64(n), e.peer.Stats().Updates-updates+e.peer.Stats().Jumps)
			for range 20 {
				tick()
			}
			require.Nil(t, e.client.Verify())
			e.client.Each(func(id NetID, mirror ecs.Entity, _ uint32) {
				info := &s.slots.info[id.Slot]
				require.Equal(t, stateOf(schema, &w, info.entity), stateOf(schema, e.world, mirror))
			})
		}
	}
}
