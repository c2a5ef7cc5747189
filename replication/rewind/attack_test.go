package rewind

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// TestAnyClaimIsSafe: a client claims any times, gives inputs for any ticks, comes and goes, while entities do, too, and
// the server asks for any views, also old ones. Nothing panics, and views are within the limits.
func TestAnyClaimIsSafe(t *testing.T) {
	replicationtest.OneGoroutine(t)
	type Pose struct{ N uint32 }
	for i := range uint64(replicationtest.TicksOf(40, 6)) {
		seed := replicationtest.Seed(t) + i
		r := rand.New(rand.NewPCG(seed, 5))
		first := replicationtest.Pick[uint32](r, 1, 1<<31-100, 1<<32-100)
		g := newGameOf(t, seed, 20, 0.1, newSchema(replication.Snap(1)), replicationtest.FirstTick(first))
		Keep[Pose](g.history)
		pose := ecs.ComponentID[Pose](g.world)
		g.exact, g.playing = false, false
		claim := 0
		wild := func(near uint32) uint32 {
			return replicationtest.Pick(r, near, near-uint32(r.IntN(64)), near+uint32(r.IntN(64)), r.Uint32(), near+1<<31, near-1<<31+1)
		}
		g.frame = func() {
			if r.IntN(50) == 0 {
				claim = r.IntN(3)
			}
			at := g.inside.Recv.NearTick - 3
			if claim == 1 {
				at = wild(at)
			}
			g.inside.Messages.Shown = wire.Stamp{
				Tick: delta.Tick(at), Part: uint8(r.IntN(64)), Precision: uint8(replicationtest.Pick(r, 6, 6, r.IntN(7))),
				Valid: claim != 2 || r.IntN(2) == 0,
			}
			switch r.IntN(300) {
			case 0:
				g.client.Reconnect()
			case 1:
				g.mirror.Reset()
			}
		}
		g.input = func(tick uint32) {
			if r.IntN(10) == 0 {
				tick += uint32(r.IntN(60))
			}
			_ = replication.SetInput(g.client, replication.Tick(tick), Shot{})
		}
		var all, gone []ecs.Entity
		var views []View
		seen := 0
		g.tick = func() {
			for len(all) < 20 {
				e := g.spawn(float32(len(all)))
				g.world.Add(e, pose)
				all = append(all, e)
			}
			for range r.IntN(3) {
				k := r.IntN(len(all))
				gone = append(gone, all[k])
				g.world.RemoveEntity(all[k])
				all = append(all[:k], all[k+1:]...)
			}
			for _, e := range all {
				g.at(e).X += r.Float32()
			}
			if r.IntN(400) == 0 {
				g.world.Reset()
				all, g.mover = nil, ecs.Entity{}
			}
			now := g.server.Tick()
			v, err := g.history.View(g.peer, replication.Tick(wild(uint32(now)+1)))
			if err == nil {
				seen++
				tick, part := uint32(v.Time().Tick), v.Time().Fraction
				require.LessOrEqual(t, int32(replication.Tick(tick)-now), int32(0))
				require.True(t, part >= 0 && part < 1)
				views = append(views[max(0, len(views)-5):], v)
			}
			for _, v := range views {
				if later, ok := v.Later(replicationtest.Pick(r, 0, 1, -1, r.IntN(50)-25, r.Int(), -r.Int())); ok {
					v = later
				}
				for _, e := range append(all[:len(all):len(all)], gone[max(0, len(gone)-5):]...) {
					p, q := Position{X: float32(math.NaN())}, Pose{}
					if Get(v, e, &p) {
						require.True(t, p.X >= -1000 && p.X <= 1000)
					}
					Get(v, e, &q)
				}
				g.history.Near(v, [3]float64{0, -10}, [3]float64{10, 10}, func(e ecs.Entity) { require.True(t, g.world.Alive(e)) })
			}
		}
		g.run(30)
		require.Positive(t, seen, "seed %d", seed)
	}
}
