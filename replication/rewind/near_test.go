package rewind

import (
	"math"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// A nearGame has entities that come, go, jump, get their place and lose it, and views that change.
type nearGame struct {
	*game
	all []ecs.Entity
	set *replication.EntitySet
}

// TestNearFindsWhatGetShows: everything that Get shows in a box, and nothing that it does not show.
func TestNearFindsWhatGetShows(t *testing.T) {
	t.Parallel()
	replicationtest.OneGoroutine(t)
	seed := replicationtest.Seed(t)
	for i, loss := range []float64{0, 0.1, 0.3} {
		g := &nearGame{game: newGameOf(t, seed+uint64(i), 30, loss, newSchema(replication.Snap(3)))}
		for range 40 {
			g.all = append(g.all, g.spawn(g.rng.Float32()*50))
		}
		g.set = g.server.NewEntitySet()
		g.tick = g.step
		require.Greater(t, g.eachView(40, g.compare), 500)
	}
}

// step changes the world.
func (g *nearGame) step() {
	for i, e := range g.all {
		has := g.world.Has(e, g.position)
		switch n := g.rng.IntN(200); {
		case n == 0:
			g.world.RemoveEntity(e)
			g.all[i] = g.spawn(g.rng.Float32() * 50)
			continue
		case n == 1 && has:
			g.world.Remove(e, g.position)
			continue
		case n < 12 && !has:
			g.world.Add(e, g.position)
		case n == 12:
			g.set.Add(e)
		case n == 13:
			g.set.Remove(e)
		}
		if g.world.Has(e, g.position) && i%3 != 0 {
			g.at(e).X += g.rng.Float32() - 0.5
			g.at(e).Y += g.rng.Float32() - 0.5
		}
	}
	switch g.server.Tick() % 100 {
	case 50:
		g.peer.SetInterest(replication.Interest{Sets: []*replication.EntitySet{g.set}, Keep: g.rng.IntN(2) == 0})
	case 0:
		g.peer.SetInterest(replication.Interest{})
	}
}

// compare asks for what is in a box, in a view and in later ones.
func (g *nearGame) compare(v View) {
	low := [3]float64{g.rng.Float64() * 50, g.rng.Float64()*10 - 5, math.NaN()} // the third axis does not count
	high := [3]float64{low[0] + 10, low[1] + 10, 0}
	for later := 0; later < 5; later++ {
		w, ok := v.Later(later)
		if !ok {
			return
		}
		near := map[ecs.Entity]bool{}
		g.history.Near(w, low, high, func(e ecs.Entity) {
			require.False(g.t, near[e], "twice")
			near[e] = true
		})
		for _, e := range g.all {
			var p Position
			shown := Get(w, e, &p)
			require.True(g.t, shown || !near[e], "Get does not show it")
			x, y := float64(p.X), float64(p.Y)
			if inside := x > low[0]+0.001 && x < high[0]-0.001 && y > low[1]+0.001 && y < high[1]-0.001; shown && inside {
				require.True(g.t, near[e], "at %v, it has its place still: %v", p, g.world.Has(e, g.position))
			}
		}
	}
}
