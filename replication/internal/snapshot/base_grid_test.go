package snapshot

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// newOpenGrid returns a grid after a while in which all peers saw everything.
func newOpenGrid() (g BaseGrid) {
	for range openTicks {
		g.Choose(8, true)
	}
	return g
}

// choose plays a tick in which as many peers have base ticks of each of these ages.
func (g *BaseGrid) choose(now delta.Tick, peers, most int, ages ...delta.Tick) delta.Tick {
	for _, age := range ages {
		for range peers {
			g.Want(now - age)
		}
	}
	g.Choose(most, true)
	return g.Step()
}

func ages(from, n delta.Tick) (ages []delta.Tick) {
	for age := range n {
		ages = append(ages, from+age)
	}
	return ages
}

// TestBaseGridBoundsTheBaseTicks: whatever peers want, there are no more base ticks than the limit, and the step
// is the least that does it.
func TestBaseGridBoundsTheBaseTicks(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 1))
	for range 2000 {
		g := newOpenGrid()
		now, most := delta.Tick(rng.Uint32()), 5+rng.IntN(8)
		var wanted []delta.Tick
		for range 1 + rng.IntN(40) {
			wanted = append(wanted, delta.Tick(rng.IntN(gridTicks-1<<mostShift)))
		}
		step := g.choose(now, fewPeers*most, most, wanted...)
		count := func(step delta.Tick) int {
			of := map[delta.Tick]bool{}
			for _, age := range wanted {
				of[(now-age)/step] = true
			}
			return len(of)
		}
		require.LessOrEqual(t, count(step), most)
		if step > 1 {
			require.Greater(t, count(step/2), most)
		}
	}
}

// TestBaseGridIsSlowToShrink: the step grows at once, and shrinks only after a while in which clearly fewer base
// ticks were wanted.
func TestBaseGridIsSlowToShrink(t *testing.T) {
	g := newOpenGrid()
	now := ^delta.Tick(100)
	play := func(ticks int, wanted ...delta.Tick) (step delta.Tick) {
		for range ticks {
			now++
			step = g.choose(now, 8, 8, wanted...)
		}
		return step
	}
	require.EqualValues(t, 1, play(100, ages(4, 8)...))
	require.EqualValues(t, 2, play(1, ages(4, 9)...))
	require.EqualValues(t, 2, play(1000, ages(4, 8)...), "one more would be too many again")
	require.EqualValues(t, 2, play(shrinkTicks-1, ages(4, 5)...))
	require.EqualValues(t, 2, play(1, ages(4, 8)...), "a tick like before")
	require.EqualValues(t, 2, play(shrinkTicks-1, ages(4, 5)...))
	require.EqualValues(t, 1, play(1, ages(4, 5)...))
	require.EqualValues(t, 4, play(1, ages(2, 30)...))
	require.EqualValues(t, 1, play(2*shrinkTicks, ages(4, 5)...))
}

// TestBaseGridKeepsToFewPeers: where encoding costs little, bytes count more, however many base ticks there are.
func TestBaseGridKeepsToFewPeers(t *testing.T) {
	g := newOpenGrid()
	require.EqualValues(t, 1, g.choose(1000, 1, 8, ages(0, 31)...))
	require.EqualValues(t, 4, g.choose(1000, 2, 8, ages(0, 31)...))
	for range 2 * shrinkTicks { // half of them have left
		g.choose(1000, 1, 8, ages(0, 31)...)
	}
	require.EqualValues(t, 1, g.Step())
}

// TestBaseGridIsOpen: while something is hidden from a peer, and for a while after it, the step is 1.
func TestBaseGridIsOpen(t *testing.T) {
	g := newOpenGrid()
	require.EqualValues(t, 4, g.choose(1000, 8, 8, ages(0, 31)...))
	g.Choose(8, false)
	require.EqualValues(t, 1, g.Step())
	for range openTicks - 1 {
		require.EqualValues(t, 1, g.choose(1000, 8, 8, ages(0, 31)...))
	}
	require.EqualValues(t, 4, g.choose(1000, 8, 8, ages(0, 31)...))
}

// TestBaseGridCanBeFixed: by the option of a server.
func TestBaseGridCanBeFixed(t *testing.T) {
	for _, step := range []delta.Tick{1, 2, 4, 8} {
		var g BaseGrid
		g.choose(1000, 8, 8, ages(0, 31)...)
		g.Fix(step)
		require.Equal(t, step, g.Step())
	}
}
