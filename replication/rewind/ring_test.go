package rewind

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

type pose struct{ Bone float32 }

// TestValuesOfBeforeAResetAreGone: a reset of the server's world gives handles out anew. What is kept of a component that
// is not replicated was of other entities before.
func TestValuesOfBeforeAResetAreGone(t *testing.T) {
	g := newGame(t, 5, 20, 0)
	Keep[pose](g.history)
	id := ecs.ComponentID[pose](g.world)
	var e ecs.Entity
	spawn := func(v float32) {
		g.mover = ecs.Entity{}
		e = g.spawn(v)
		g.world.Add(e, id)
		(*pose)(g.world.Get(e, id)).Bone = v
	}
	reset, views, found := uint32(0), 0, 0
	g.tick = func() {
		n := g.server.Tick()
		if e.IsZero() {
			spawn(1)
		}
		if n == 60 {
			was := e
			g.world.Reset()
			spawn(500)
			require.Equal(t, was, e)
			reset = uint32(n)
		}
		v, err := g.history.View(g.peer, n+1)
		if reset == 0 || err != nil {
			return
		}
		views++
		var p pose
		if Get(v, e, &p) {
			found++
			require.Equal(t, float32(500), p.Bone)
		}
	}
	g.run(8)
	require.Greater(t, views, 50)
	require.Greater(t, found, 50)
}

// TestKeptValuesWhereTicksWrap: the places of values go on there.
func TestKeptValuesWhereTicksWrap(t *testing.T) {
	const first = 1<<32 - 100
	for _, rate := range []float64{20, 60} {
		g := newGame(t, 5, rate, 0, replicationtest.FirstTick(first))
		g.startAt(first)
		g.delay = 0.45
		Keep[pose](g.history)
		id := ecs.ComponentID[pose](g.world)
		e := g.world.NewEntity(id)
		views := 0
		g.tick = func() {
			n := g.server.Tick()
			(*pose)(g.world.Get(e, id)).Bone = float32(int32(n + 1)) // of the tick that this one makes
			v, err := g.history.View(g.peer, n+1)
			if err != nil || n-first < 40 {
				return
			}
			views++
			var p pose
			at := uint32(v.Time().Tick)
			require.True(t, Get(v, e, &p), "in tick %d, as of %d ticks ago", n, uint32(n)-at)
			require.Equal(t, float32(int32(at)), p.Bone)
		}
		g.run(200 / rate)
		require.Greater(t, views, 100)
	}
}
