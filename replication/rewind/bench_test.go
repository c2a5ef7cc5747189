package rewind

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/mlange-42/arche/ecs"
)

// Body is a component of three fixed fields.
type Body struct {
	X, Y, Z float32 `repl:"range=-1000:1000,step=0.01"`
}

// benchGame returns a game with entities, all of which move unless they rest, and a view.
func benchGame(tb testing.TB, entities int, rest bool) (g *game, all []ecs.Entity, v View) {
	schema := replication.NewSchema()
	replication.Register[Position](schema)
	replication.Register[Body](schema)
	replication.RegisterInput[Shot](schema)
	g = newGameOf(tb, 1, 60, 0.05, schema)
	g.delay = 0.2
	body := ecs.ComponentID[Body](g.world)
	for i := range entities {
		e := g.spawn(float32(i))
		g.world.Add(e, body)
		all = append(all, e)
	}
	g.tick = func() {
		for _, e := range all {
			if !rest {
				(*Body)(g.world.Get(e, body)).X += 0.1
				g.at(e).Y += 0.05
			}
		}
	}
	g.run(4)
	v, err := g.view()
	require.NoError(tb, err)
	return g, all, v
}

func BenchmarkGet(b *testing.B) {
	for _, name := range []string{"moving", "resting"} {
		b.Run(name, func(b *testing.B) {
			_, all, v := benchGame(b, 1000, name == "resting")
			var at Body
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if !Get(v, all[i], &at) {
					b.Fatal("not shown")
				}
				if i++; i == len(all) {
					i = 0
				}
			}
		})
	}
}

func BenchmarkView(b *testing.B) {
	g, _, _ := benchGame(b, 10, false)
	tick := g.server.Tick() + 1
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.history.View(g.peer, replication.Tick(uint32(tick))); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNear is for 1,000 entities, of which a few are near.
func BenchmarkNear(b *testing.B) {
	g, _, v := benchGame(b, 1000, false)
	b.ReportAllocs()
	for b.Loop() {
		g.history.Near(v, [3]float64{500, -100}, [3]float64{505, 100}, func(ecs.Entity) {})
	}
}

// TestViewsAllocateNothing, and neither do ticks with a component that is kept beside the schema's.
func TestViewsAllocateNothing(t *testing.T) {
	if replicationtest.RaceDetector {
		t.Skip("the race detector allocates")
	}
	g, all, v := benchGame(t, 100, false)
	var at Body
	tick := g.server.Tick() + 1
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = g.history.View(g.peer, replication.Tick(uint32(tick)))
		for _, e := range all {
			Get(v, e, &at)
		}
		g.history.Near(v, [3]float64{10, -100}, [3]float64{15, 100}, func(ecs.Entity) {})
	}))
	r := newRing[Position](g.history)
	for range len(r.ticks) {
		g.history.in.Snap.Tick++
		r.capture()
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { r.capture() }))
}

// TestReplicatedComponentsCostNothingPerTick: nothing is called and nothing copied.
func TestReplicatedComponentsCostNothingPerTick(t *testing.T) {
	g := newGame(t, 1, 60, 0)
	require.Empty(t, *g.history.in.Captured)
	Keep[Body](g.history) // not in this schema
	require.Len(t, *g.history.in.Captured, 1)
}
