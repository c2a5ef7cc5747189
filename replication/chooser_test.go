package replication

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRankClassesRise: the classes by which ranks are sorted roughly are in their order,
// and fine.
func TestRankClassesRise(t *testing.T) {
	last := rankClass(0)
	for rank := uint64(1); rank < 1<<32; rank += 1 + rank/100 {
		class := rankClass(uint32(rank))
		require.GreaterOrEqual(t, class, last)
		require.Less(t, class, rankClasses)
		if rank >= 16 && rank+rank/15+1 < 1<<32 {
			require.Greater(t, rankClass(uint32(rank+rank/15+1)), class)
		}
		last = class
	}
	require.Less(t, rankClass(math.MaxUint32), rankClasses)
}

// TestChooserKeepsTheBest: sorting in linear time leaves what a full sort has at the top,
// of every kind.
func TestChooserKeepsTheBest(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOf(t), 0))
	for range 300 {
		var all []candidate
		for slot := range rng.IntN(500) {
			all = append(all, candidate{int32(slot), candidateKind(rng.IntN(int(candidateKinds))), uint32(rng.Uint64() >> (32 + rng.IntN(32)))})
		}
		c := chooser{candidates: slices.Clone(all)}
		room := rng.IntN(2000)
		c.sort(room)
		slices.SortFunc(all, func(x, y candidate) int {
			return cmp.Or(cmp.Compare(y.rank, x.rank), cmp.Compare(x.slot, y.slot))
		})
		var taken [candidateKinds]int
		i := 0
		for _, want := range all {
			if taken[want.kind]++; taken[want.kind] > room/leastEntry {
				continue // need not be there
			}
			for i < len(c.candidates) && c.candidates[i] != want {
				i++
			}
			require.Less(t, i, len(c.candidates), "a good one was dropped")
		}
		require.True(t, slices.IsSortedFunc(c.candidates, func(x, y candidate) int {
			return cmp.Or(cmp.Compare(y.rank, x.rank), cmp.Compare(x.slot, y.slot))
		}))
	}
}
