package bitset

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/stretchr/testify/require"
)

// TestSetMatchesTheNaiveOne: slots of a set are found, counted and listed in ascending order.
func TestSetMatchesTheNaiveOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 1))
	for range 200 {
		room := 1 + rng.IntN(300)
		set, plain := Set(nil).Grown(room), make([]bool, (room+63)/64*64)
		for range rng.IntN(1 + 2*room) {
			slot := rng.IntN(len(plain))
			if plain[slot] = rng.IntN(3) > 0; plain[slot] {
				set.Add(slot)
			} else {
				set.Remove(slot)
			}
		}
		var slots, want []int
		for b, word := range set {
			for slot := range Slots(b, word) {
				slots = append(slots, slot)
			}
		}
		next := len(plain)
		for slot := len(plain) - 1; slot >= 0; slot-- {
			if plain[slot] {
				want, next = append(want, slot), slot
			}
			require.Equal(t, plain[slot], set.Has(slot))
			require.Equal(t, plain[slot], set.Holds(uint32(slot)))
			require.Equal(t, next, set.next(slot), "from %d on", slot)
		}
		slices.Reverse(want)
		require.Equal(t, want, slots)
		require.Equal(t, want, slices.Collect(set.All()))
		from, to := rng.IntN(2*len(plain)), rng.IntN(2*len(plain))
		between := slices.DeleteFunc(slices.Clone(want), func(slot int) bool { return slot < from || slot >= to })
		require.Equal(t, len(between), len(slices.Collect(set.Between(from, to))), "from %d to %d", from, to)
		for slot := range set.Between(from, to) {
			require.Equal(t, between[0], slot)
			between = between[1:]
		}
		require.Equal(t, len(want), set.Count())
		blocks := set.Blocks(Set{1 << rng.IntN(64)})
		for b, word := range set {
			require.Equal(t, word != 0, blocks.Has(b))
		}
		require.LessOrEqual(t, blocks.Count(), len(set))
		require.False(t, set.Holds(uint32(len(plain))), "there is no room")
		require.Equal(t, len(plain), set.next(len(plain)))
	}
}
