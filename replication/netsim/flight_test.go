package netsim

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The oracle keeps all packets in order of entry and picks the earliest by
// looking at each.
func TestFlightPopsTheEarliestAndKeepsTies(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var f flight
		var naive []flying
		for step := range 500 {
			if rng.IntN(5) < 3 {
				due := instant(rng.IntN(20))
				p := packet{seq: uint64(step)}
				naive = append(naive, flying{p, due, f.entered})
				f.push(p, due)
			} else if len(naive) > 0 {
				first := 0
				for i := range naive {
					if naive[i].due < naive[first].due {
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
