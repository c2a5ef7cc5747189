package replication

import (
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestATeleportCostsNoMoreThanAnAbsoluteState: moving entities that are put elsewhere, all of them
// or one, take hardly more bits than a newcomer.
func TestATeleportCostsNoMoreThanAnAbsoluteState(t *testing.T) {
	oneGoroutine(t)
	type body struct {
		X, Y, Z float32    `repl:"range=-1000:1000,step=0.01"`
		Turn    [4]float32 `repl:"quat,bits=9"`
	}
	for name, opts := range map[string][]ServerOption{
		"shared": nil, "not shared": {config.ServerFunc(func(o *config.ServerOptions) { o.NoSharedPackets = true })}, "compact": {withCoding(Compact)},
	} {
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
			require.Less(t, bits, absolute+27., "a jump of %d with %s", n, name)
			require.LessOrEqual(t, e.peer.Stats().Updates-updates, uint64(n/2+1), "most are sent in full") // a single one may end up near by
			require.Equal(t, uint64(n), e.peer.Stats().Updates-updates+e.peer.Stats().KeyframeFallbacks)
			for range 20 {
				tick()
			}
			require.Nil(t, e.client.Verify())
			for id, mirror := range e.client.Entities() {
				info := &s.snap.Slots.Info[id.Slot]
				require.Equal(t, recordedOf(s, info.Entity), stateOf(schema, e.world, mirror))
			}
		}
	}
}

// TestJumpsOfAnyDistance: with Compact, which has to guess when to try a full state, an entity that
// jumps by any distance among others takes few bits more than its full state, even if nothing like
// that was learnt before.
func TestJumpsOfAnyDistance(t *testing.T) {
	oneGoroutine(t)
	type body struct {
		X, Y, Z float32 `repl:"range=-1000:1000,step=0.01"`
		Yaw     float32 `repl:"angle,bits=12"`
	}
	const absolute = 3*18 + 12
	fallbacks := uint64(0)
	for axes := 1; axes <= 4; axes++ {
		for far := float32(0.01); far < 1000; far *= 2 {
			w := ecs.NewWorld()
			schema := NewSchema()
			Register[body](schema)
			s := NewServer(&w, schema, withCoding(Compact), WithSeed(1))
			e := connect(s, 1, netsim.Config{Latency: 2})
			id := ecs.ComponentID[body](&w)
			var bodies []ecs.Entity
			for range 12 {
				bodies = append(bodies, w.NewEntity(id, ReplicatedID(&w)))
			}
			tick := func() float64 {
				for _, b := range bodies {
					b := (*body)(w.Get(b, id))
					b.X, b.Y, b.Z = b.X+0.3, b.Y-0.2, b.Z+0.1
				}
				before := e.peer.Stats().EntityBits
				s.Replicate()
				e.step(t)
				return float64(e.peer.Stats().EntityBits - before)
			}
			var usual float64
			for range 60 {
				usual = tick()
			}
			b := (*body)(w.Get(bodies[5], id))
			for i, x := range []*float32{&b.X, &b.Y, &b.Z, &b.Yaw}[:axes] {
				*x += far / float32(1+i)
			}
			bits := tick()
			require.Less(t, bits-usual, absolute+40., "%v along %d axes", far, axes) // packets end at bytes
			fallbacks += e.peer.Stats().KeyframeFallbacks
			for range 10 {
				tick()
			}
			require.Nil(t, e.client.Verify())
		}
	}
	require.NotZero(t, fallbacks)
}
