package interpolation_test

import (
	"math"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

type sight struct {
	Yaw float32 `repl:"range=-10000:10000,step=0.01"`
}

type turns struct {
	N uint8 `repl:"counter,cut"`
}

// TestConditionsHaveCountersOfTheirOwn: what comes under a condition is cut by a counter under the same condition, and
// by no other. A client that does not see the counter is shown everything else as if there were none.
func TestConditionsHaveCountersOfTheirOwn(t *testing.T) {
	replicationtest.OneGoroutine(t)
	for _, budget := range []int{0, 1500} {
		g := &game{t: t, rand: newRand(t), profile: profileB, rate: 20, frames: 144, wobble: 0.1}
		g.prepare(replicationtest.Seed(t), func() {
			replication.Register[sight](g.schema, replication.OwnerOnly())
			replication.Register[turns](g.schema, replication.OwnerOnly())
		})
		aim, count := ecs.ComponentID[sight](&g.world), ecs.ComponentID[turns](&g.world)
		var all []ecs.Entity
		for i := range 8 {
			e := g.spawn(place{})
			g.world.Add(e, aim, count)
			if i%2 == 0 {
				g.server.SetOwner(e, g.peer)
			}
			all = append(all, e)
		}
		v := newView(g)
		side := make([]float32, len(all))
		g.onTick = func(n int) {
			for i, e := range all {
				if (n+7*i)%60 == 0 {
					side[i] = 5000 - side[i]
					(*turns)(g.world.Get(e, count)).N++
				}
				(*sight)(g.world.Get(e, aim)).Yaw = side[i] + float32(n%600)
				g.place(e).X = float32(n)
			}
		}
		g.onTick(0)
		g.run(2)
		g.peer.SetBudget(budget)
		g.run(2)
		yaw := ecs.ComponentID[sight](&g.local)
		jumps, moved, unseen, last := 0, 0, 0, make([]float32, len(all))
		v.after = func(float64) {
			for i, e := range all {
				own, ok := g.mirror(e)
				require.True(t, ok)
				if p, _ := g.shown(e); budget == 0 && v.time <= g.newest() {
					require.InDelta(t, v.time, p.X, quantum, "the counter does not cut what is not under its condition")
				}
				at := (*sight)(g.local.Get(own, yaw))
				if require.Equal(t, i%2 == 0, at != nil); at == nil {
					unseen++
					continue
				}
				require.True(t, at.Yaw <= 600 || at.Yaw >= 5000, "budget %d: %v is in between", budget, at.Yaw)
				switch far := math.Abs(float64(at.Yaw - last[i])); {
				case far > 3000:
					jumps++
				case far > 0:
					moved++
				}
				last[i] = at.Yaw
			}
		}
		g.run(60)
		require.Greater(t, jumps, 50)
		require.Greater(t, moved, 10_000)
		require.Positive(t, unseen)
		if budget > 0 {
			require.Positive(t, g.peer.Stats().OverBudget, "the budget sufficed")
		}
	}
}

// TestTeleportsOfIntegersSnap: integers that move linearly count as floats do.
func TestTeleportsOfIntegersSnap(t *testing.T) {
	type tile struct {
		X int32 `repl:"range=-5000:5000,linear"`
		Y uint8
	}
	g := &game{t: t, rand: newRand(t), profile: quiet, rate: 20, frames: 144, wobble: 0.1}
	g.prepare(replicationtest.Seed(t), func() { replication.Register[tile](g.schema, replication.Snap(3)) })
	id, ownID := ecs.ComponentID[tile](&g.world), ecs.ComponentID[tile](&g.local)
	v := newView(g)
	e := g.world.NewEntity(ecs.ComponentID[replication.Replicated](&g.world), id)
	g.onTick = func(n int) { // two steps in each tick; and Y does not count
		*(*tile)(g.world.Get(e, id)) = tile{int32(2*n - n/40*1000), uint8(n * 100)}
	}
	g.run(2)
	between, jumps, before := 0, 0, v.Stats().Teleports
	last := int32(0)
	v.after = func(float64) {
		own, _ := g.mirror(e)
		x := (*tile)(g.local.Get(own, ownID)).X
		if step := x - last; last != 0 && step < -900 {
			jumps++
		} else if last != 0 && step < 0 {
			between++
		}
		last = x
	}
	g.run(6)
	require.Equal(t, 3, jumps)
	require.Zero(t, between)
	require.EqualValues(t, jumps, v.Stats().Teleports-before)
}

// TestTeleportsAreCounted: so a distance of Snap in another unit, and a cut on what moves, have a name.
func TestTeleportsAreCounted(t *testing.T) {
	type cuts struct {
		X float32 `repl:"range=-1000:1000,step=0.01,cut"`
	}
	type snaps struct {
		X float32 `repl:"range=-1000:1000,step=0.01"`
	}
	g := &game{t: t, rand: newRand(t), profile: quiet, rate: 20, frames: 144, wobble: 0.1}
	g.prepare(replicationtest.Seed(t), func() {
		replication.Register[cuts](g.schema)
		replication.Register[snaps](g.schema, replication.Snap(0.01))
	})
	cutID, snapID := ecs.ComponentID[cuts](&g.world), ecs.ComponentID[snaps](&g.world)
	marker := ecs.ComponentID[replication.Replicated](&g.world)
	a, b := g.world.NewEntity(marker, cutID), g.world.NewEntity(marker, snapID)
	v := newView(g)
	cut, snap := false, false
	g.onTick = func(int) {
		if cut {
			(*cuts)(g.world.Get(a, cutID)).X += 0.1
		}
		if snap {
			(*snaps)(g.world.Get(b, snapID)).X += 0.1
		}
	}
	g.run(5)
	require.Zero(t, v.Stats().Teleports)
	cut = true
	g.run(5)
	first := v.Stats().Teleports
	require.InDelta(t, 97, float64(first), 3, "one in each tick")
	cut, snap = false, true
	g.run(5)
	require.InDelta(t, 100, float64(v.Stats().Teleports-first), 3)
}
