package replication

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/sender"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// urgencyOf returns the urgency of a slot as a number.
func urgencyOf(u *sender.Urgency, slot int) (n int) {
	for i, plane := range u.Blocks[slot>>6] {
		n |= int(plane>>(slot&63)&1) << i
	}
	return n
}

// TestUrgencyAddsUp: sums of 64 bit-sliced numbers equal those of plain numbers, up to the largest
// that fits.
func TestUrgencyAddsUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOf(t), 0))
	var u sender.Urgency
	u.Grow(64)
	var plain [64]int
	for range 2000 {
		var w snapshot.SlicedWeights
		w.Reset()
		var weights [64]int
		for slot := range weights {
			weights[slot] = rng.IntN(1 << rng.IntN(snapshot.WeightBits+1))
			w.Put(slot, float32(weights[slot])/snapshot.WeightUnit, rng.Uint32())
		}
		send, double := rng.Uint64()|rng.Uint64()|rng.Uint64(), rng.Uint64()
		if rng.IntN(200) == 0 {
			send = 0
		}
		u.Gain(0, send, &w, double)
		for slot := range plain {
			switch {
			case send>>slot&1 == 0:
				plain[slot] = 0
				continue
			case double>>slot&1 != 0:
				plain[slot] += weights[slot]
			}
			plain[slot] = min(plain[slot]+weights[slot], 1<<sender.UrgencyBits-1)
			require.Equal(t, plain[slot], urgencyOf(&u, slot), "slot %d", slot)
		}
		gone := rng.Uint64() & rng.Uint64() & rng.Uint64() & rng.Uint64()
		u.Wait(bitset.Set{^gone})
		for slot := range plain {
			if gone>>slot&1 != 0 {
				plain[slot] = 0
			}
		}
	}
}

// TestWeightsBetweenUnits: a weight that is not a multiple of the unit is right on average.
func TestWeightsBetweenUnits(t *testing.T) {
	oneGoroutine(t)
	for _, weight := range []float32{0, -1, float32(math.NaN()), 0.001, 0.01, 0.3, 1, 1.03, 7.77, 255, 1e9, float32(math.Inf(1))} {
		sum := 0
		const ticks = 1 << 16
		for tick := range uint32(ticks) {
			var w snapshot.SlicedWeights
			w.Reset()
			w.Put(5, weight, snapshot.ChanceOf(5, tick))
			for i, plane := range w.Planes {
				require.Zero(t, plane&^(1<<5))
				sum += int(plane>>5) << i
			}
		}
		want := 0.0
		if weight > 0 {
			want = min(float64(weight), snapshot.MaxWeight/float64(snapshot.WeightUnit))
		}
		require.InDelta(t, want, float64(sum)/ticks/snapshot.WeightUnit, want/20+1e-9, "weight %v", weight)
	}
}

// TestChooserTakesTheMostUrgent: the chosen slots are the first in a sort by urgency, as many as
// fit, and equal ones take turns.
func TestChooserTakesTheMostUrgent(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOf(t), 0))
	for range 300 {
		n := 1 + rng.IntN(1000)
		var u sender.Urgency
		u.Grow(n)
		u.Used = sender.UrgencyBits
		values, limit := make([]int, n), 1<<rng.IntN(sender.UrgencyBits+1)
		for slot := range values {
			values[slot] = rng.IntN(limit)
			for i := range sender.UrgencyBits {
				u.Blocks[slot>>6][i] |= uint64(values[slot]>>i&1) << (slot & 63)
			}
		}
		u.First = rng.IntN(n + 64)
		cost := sender.Prices{Cheap: 1 + rng.IntN(100), Dear: 1 + rng.IntN(500)}
		room := rng.IntN(cost.Cheap * n)
		var c sender.Chooser
		c.Begin(n)
		var order []int
		dear := make([]uint64, len(u.Blocks))
		for b := range u.Blocks {
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
	var u sender.Urgency
	u.Grow(n)
	var c sender.Chooser
	seen := make([]int, n)
	for range n * 2 / some {
		c.Begin(n)
		for b := range u.Blocks {
			c.Add(b, ^uint64(0), 0)
		}
		c.Choose(&u, some*10, sender.Prices{Cheap: 10})
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

// TestWeightsAreThoseOfNow: weights are read again for each budget, if they changed while no peer
// had one.
func TestWeightsAreThoseOfNow(t *testing.T) {
	schema := NewSchema()
	Register[tPosition](schema)
	Register[tHealth](schema, Priority(8))
	c := newLoadWorld(t, 100, schema)
	m := c.join(5, 0)
	m.peer.SetBudget(100_000)
	for range 5 {
		c.tickAll()
	}
	m.peer.SetBudget(0)
	c.replicate()
	c.world.Add(c.entities[7], ecs.ComponentID[tHealth](&c.world))
	c.replicate()
	m.peer.SetBudget(100_000)
	c.replicate()
	for slot := range c.server.snap.Slots.Len() {
		weight := 0
		for i, plane := range c.server.snap.Slots.Weights.Blocks[slot>>6].Planes {
			weight |= int(plane>>(slot&63)&1) << i
		}
		require.Equal(t, int(c.server.snap.Slots.Weight(slot)*snapshot.WeightUnit), weight, "slot %d", slot)
	}
	id, _ := c.server.NetID(c.entities[7])
	require.EqualValues(t, 8, c.server.snap.Slots.Weight(int(id.Slot)))
}
