package choice

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/stretchr/testify/require"
)

// TestChooserTakesTheMostUrgent: the chosen slots are the first in a sort by urgency, as many as
// fit, and equal ones take turns.
func TestChooserTakesTheMostUrgent(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 0))
	for range 300 {
		n := 1 + rng.IntN(1000)
		var u snapshot.Urgency
		u.Grow(n)
		u.Least, u.Used = 0, snapshot.UrgencyBits
		values, limit := make([]int, n), 1<<rng.IntN(snapshot.UrgencyBits+1)
		for slot := range values {
			values[slot] = rng.IntN(limit)
			for i := range snapshot.UrgencyBits {
				u.Plane(i)[slot>>6] |= uint64(values[slot]>>i&1) << (slot & 63)
			}
		}
		u.First = rng.Int32N(int32(n) + 64)
		cost := Prices{Cheap: 1 + rng.IntN(100), Dear: 1 + rng.IntN(500)}
		room := rng.IntN(cost.Cheap * n)
		var c Chooser
		c.Begin(n)
		var order []int
		dear := make([]uint64, len(u.Waiting))
		for b := range u.Waiting {
			mask := rng.Uint64() | rng.Uint64()
			if end := n - b<<6; end < 64 {
				mask &= 1<<end - 1
			}
			dear[b] = rng.Uint64() & rng.Uint64()
			c.Add(b, mask, dear[b])
			for slot := range bitset.Slots(b, mask) {
				order = append(order, slot)
			}
		}
		price := func(slot int) int {
			if dear[slot>>6]>>(slot&63)&1 != 0 {
				return cost.Dear
			}
			return cost.Cheap
		}
		used := c.Choose(&u, room, cost)
		slices.SortStableFunc(order, func(x, y int) int { return values[y] - values[x] })
		sum, least := 0, math.MaxInt
		for _, slot := range order {
			if c.Chosen.Has(slot) {
				sum, least = sum+price(slot), min(least, values[slot])
			}
		}
		require.Equal(t, sum, used)
		dearest := max(cost.Cheap, cost.Dear)
		require.Less(t, used, room+dearest, "no more than the last one is too much")
		if c.Chosen.Count() < len(order) {
			require.GreaterOrEqual(t, used, room, "what is left would have had room")
		}
		for _, slot := range order {
			if values[slot] > least {
				require.True(t, c.Chosen.Has(slot), "a more urgent one was left")
			}
		}
	}
}

// TestEquallyUrgentSlotsTakeTurns: every slot is chosen once before any is chosen twice, though
// only the turn distinguishes them.
func TestEquallyUrgentSlotsTakeTurns(t *testing.T) {
	const n, some = 640, 50
	var u snapshot.Urgency
	u.Grow(n)
	var c Chooser
	seen := make([]int, n)
	for range n * 2 / some {
		c.Begin(n)
		for b := range u.Waiting {
			c.Add(b, ^uint64(0), 0)
		}
		c.Choose(&u, some*10, Prices{Cheap: 10})
		require.Equal(t, some, c.Chosen.Count())
		for slot := range seen {
			if c.Chosen.Has(slot) {
				seen[slot]++
			}
		}
	}
	require.Equal(t, 1, slices.Min(seen))
	require.Equal(t, 2, slices.Max(seen))
}
