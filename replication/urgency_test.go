package replication

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// urgencyOf returns the urgency of a slot as a number.
func urgencyOf(u *urgency, slot int) (n int) {
	for i, plane := range u.blocks[slot>>6] {
		n |= int(plane>>(slot&63)&1) << i
	}
	return n
}

// TestUrgencyAddsUp: sums of 64 sliced numbers are those of plain ones, up to the largest there
// is room for.
func TestUrgencyAddsUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOf(t), 0))
	var u urgency
	u.grow(64)
	var plain [64]int
	for range 2000 {
		var w slicedWeights
		w.reset()
		var weights [64]int
		for slot := range weights {
			weights[slot] = rng.IntN(1 << rng.IntN(weightBits+1))
			w.set(slot, float32(weights[slot])/weightUnit, rng.Uint32())
		}
		due, double := rng.Uint64()|rng.Uint64()|rng.Uint64(), rng.Uint64()
		if rng.IntN(200) == 0 {
			due = 0
		}
		u.gain(0, due, &w, double)
		for slot := range plain {
			switch {
			case due>>slot&1 == 0:
				plain[slot] = 0
				continue
			case double>>slot&1 != 0:
				plain[slot] += weights[slot]
			}
			plain[slot] = min(plain[slot]+weights[slot], 1<<urgencyBits-1)
			require.Equal(t, plain[slot], urgencyOf(&u, slot), "slot %d", slot)
		}
		gone := rng.Uint64() & rng.Uint64() & rng.Uint64() & rng.Uint64()
		u.wait(bitset.Set{^gone})
		for slot := range plain {
			if gone>>slot&1 != 0 {
				plain[slot] = 0
			}
		}
	}
}

// TestWeightsBetweenUnits: a weight that is no multiple of the unit is right in the mean.
func TestWeightsBetweenUnits(t *testing.T) {
	oneGoroutine(t)
	for _, weight := range []float32{0, -1, float32(math.NaN()), 0.001, 0.01, 0.3, 1, 1.03, 7.77, 255, 1e9, float32(math.Inf(1))} {
		sum := 0
		const ticks = 1 << 16
		for tick := range uint32(ticks) {
			var w slicedWeights
			w.reset()
			w.set(5, weight, chanceOf(5, tick))
			for i, plane := range w.planes {
				require.Zero(t, plane&^(1<<5))
				sum += int(plane>>5) << i
			}
		}
		want := 0.0
		if weight > 0 {
			want = min(float64(weight), maxWeight/float64(weightUnit))
		}
		require.InDelta(t, want, float64(sum)/ticks/weightUnit, want/20+1e-9, "weight %v", weight)
	}
}

// TestChooserTakesTheMostUrgent: what is chosen is what a sort by urgency has at the top, as much
// as there is room for, and of equals all have their turn.
func TestChooserTakesTheMostUrgent(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOf(t), 0))
	for range 300 {
		n := 1 + rng.IntN(1000)
		var u urgency
		u.grow(n)
		u.used = urgencyBits
		values, limit := make([]int, n), 1<<rng.IntN(urgencyBits+1)
		for slot := range values {
			values[slot] = rng.IntN(limit)
			for i := range urgencyBits {
				u.blocks[slot>>6][i] |= uint64(values[slot]>>i&1) << (slot & 63)
			}
		}
		u.turn = rng.IntN(n + 64)
		cost := prices{cheap: 1 + rng.IntN(100), dear: 1 + rng.IntN(500)}
		room := rng.IntN(cost.cheap * n)
		var c chooser
		c.begin(n)
		var order []int
		dear := make([]uint64, len(u.blocks))
		for b := range u.blocks {
			mask := rng.Uint64() | rng.Uint64()
			if end := n - b<<6; end < 64 {
				mask &= 1<<end - 1
			}
			dear[b] = rng.Uint64() & rng.Uint64()
			c.add(b, mask, dear[b])
			for slot := range bitset.Slots(b, mask) {
				order = append(order, slot)
			}
		}
		price := func(slot int) int {
			if dear[slot>>6]>>(slot&63)&1 != 0 {
				return cost.dear
			}
			return cost.cheap
		}
		used := c.choose(&u, room, cost)
		slices.SortStableFunc(order, func(x, y int) int { return values[y] - values[x] })
		sum, least := 0, math.MaxInt
		for _, slot := range order {
			if c.chosen.Has(slot) {
				sum, least = sum+price(slot), min(least, values[slot])
			}
		}
		require.Equal(t, sum, used)
		dearest := max(cost.cheap, cost.dear)
		require.Less(t, used, room+dearest, "no more than the last one is too much")
		if c.chosen.Count() < len(order) {
			require.GreaterOrEqual(t, used, room, "what is left would have had room")
		}
		for _, slot := range order {
			if values[slot] > least {
				require.True(t, c.chosen.Has(slot), "a more urgent one was left")
			}
		}
	}
}

// TestEquallyUrgentSlotsTakeTurns: what is not chosen is chosen before others are for the second
// time, though nothing but the turn tells them apart.
func TestEquallyUrgentSlotsTakeTurns(t *testing.T) {
	const n, some = 640, 50
	var u urgency
	u.grow(n)
	var c chooser
	seen := make([]int, n)
	for range n * 2 / some {
		c.begin(n)
		for b := range u.blocks {
			c.add(b, ^uint64(0), 0)
		}
		c.choose(&u, some*10, prices{cheap: 10})
		require.Equal(t, some, c.chosen.Count())
		for slot := range seen {
			if c.chosen.Has(slot) {
				seen[slot]++
			}
		}
	}
	require.Equal(t, 1, slices.Min(seen))
	require.Equal(t, 2, slices.Max(seen))
}

// TestWeightsAreThoseOfNow: weights that were looked up for one budget are looked up again for the
// next, if entities got others in between, when nobody had one.
func TestWeightsAreThoseOfNow(t *testing.T) {
	schema := NewSchema()
	Register[tPosition](schema)
	Register[tHealth](schema, Priority(8))
	c := newThrong(t, 100, schema)
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
	for slot := range c.server.snap.slots.len() {
		weight := 0
		for i, plane := range c.server.snap.slots.weights.blocks[slot>>6].planes {
			weight |= int(plane>>(slot&63)&1) << i
		}
		require.Equal(t, int(c.server.snap.slots.weight(slot)*weightUnit), weight, "slot %d", slot)
	}
	id, _ := c.server.NetID(c.entities[7])
	require.EqualValues(t, 8, c.server.snap.slots.weight(int(id.Slot)))
}
