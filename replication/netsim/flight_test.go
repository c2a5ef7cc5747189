package netsim

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The oracle keeps all packets in order of entry and searches for the earliest.
func TestFlightPopsTheEarliestAndKeepsTies(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var f flight
		var naive []inFlight
		for step := range 500 {
			if rng.IntN(5) < 3 {
				arrival := instant(rng.IntN(20))
				p := packet{seq: uint64(step)}
				naive = append(naive, inFlight{p, arrival, f.entered})
				f.push(p, arrival)
			} else if len(naive) > 0 {
				first := 0
				for i := range naive {
					if naive[i].arrival < naive[first].arrival {
						first = i
					}
				}
				require.Equal(t, naive[first], f.pop(), "seed %d, step %d", seed, step)
				naive = slices.Delete(naive, first, first+1)
			}
			require.Len(t, f.heap, len(naive))
		}
	}
}
