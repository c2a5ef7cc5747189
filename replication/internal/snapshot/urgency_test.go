package snapshot

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/stretchr/testify/require"
)

// urgencyOf returns the urgency of a slot as a number.
func urgencyOf(u *Urgency, slot int) (n int) {
	for i := range UrgencyBits {
		n |= int(u.Plane(i)[slot>>6]>>(slot&63)&1) << i
	}
	return n
}

// TestUrgencyAddsUp: sums of 64 bit-sliced numbers equal those of plain numbers, up to the largest
// that fits.
func TestUrgencyAddsUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 0))
	var u Urgency
	u.Grow(64)
	var plain [64]int
	for round := range 2000 {
		var w SlicedWeights
		w.Reset()
		var weights [64]int
		for slot := range weights {
			if round%100 < 2 {
				continue // weights of 0, at first as well
			}
			weights[slot] = rng.IntN(1 << rng.IntN(weightBits+1))
			w.Put(slot, float32(weights[slot])/WeightUnit, rng.Uint32())
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
			plain[slot] = min(plain[slot]+weights[slot], 1<<UrgencyBits-1)
			require.Equal(t, plain[slot], urgencyOf(&u, slot), "slot %d", slot)
		}
		gone := rng.Uint64() & rng.Uint64() & rng.Uint64() & rng.Uint64()
		used := u.Used
		u.Wait(bitset.Set{^gone})
		for slot := range plain {
			if gone>>slot&1 != 0 {
				plain[slot] = 0
			}
		}
		most := slices.Max(plain[:])
		require.Less(t, most, 1<<u.Used)
		require.True(t, most >= 1<<u.Used>>1 || u.Used < used, "a bit that no slot has is dropped")
	}
}
