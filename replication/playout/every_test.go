package playout_test

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/playout"
)

// TestEveryStutters pins what docs/interpolation.md has on components with Every: where packets come in the ticks
// between, they stand still and cover all of the distance in one tick. What is shown lies on the way, up to n ticks late.
func TestEveryStutters(t *testing.T) {
	type slow struct {
		X float32 `repl:"range=-10000:10000,step=0.01"`
	}
	const n = 4
	g := &game{t: t, rand: newRand(t), profile: profile{oneWay: 0.05}, rate: 20, frames: 144, wobble: 0.1}
	g.prepare(replicationtest.Seed(t), func() { replication.Register[slow](g.schema, replication.Every(n)) })
	e := g.spawn(place{})
	id := ecs.ComponentID[slow](&g.world)
	g.world.Add(e, id)
	v := newView(g)
	playout.Interpolate[slow](v.Playout)
	playout.Interpolate[place](v.Playout)
	g.onTick = func(tick int) {
		g.place(e).X = float32(tick)
		(*slow)(g.world.Get(e, id)).X = float32(tick)
	}
	g.run(3)
	local := ecs.ComponentID[slow](&g.local)
	still, moved, last := 0, 0, float32(0)
	v.after = func(float64) {
		own, ok := g.mirror(e)
		require.True(t, ok)
		x := (*slow)(g.local.Get(own, local)).X
		require.LessOrEqual(t, float64(x), v.time+quantum)
		require.GreaterOrEqual(t, float64(x), v.time-n-quantum)
		if x == last {
			still++
		} else {
			moved++
		}
		last = x
		at, _ := g.shown(e)
		require.InDelta(t, min(v.time, g.newest()), at.X, quantum, "others move evenly")
	}
	g.run(30)
	share := float64(still) / float64(still+moved)
	require.InDelta(t, float64(n-1)/n, share, 0.05)
}
