package quantize

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestQuatHoldsNoRotationFarAway: a turning rotation, whose code is kept as long as Holds allows it, is never farther
// from what the code shows than Holds states, also where another component becomes the largest.
func TestQuatHoldsNoRotationFarAway(t *testing.T) {
	const seed = 3
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		q, err := NewQuat(uint(5 + r.IntN(12)))
		require.NoError(t, err)
		reach := 0.5 + 0.4*r.Float64()
		var from, to [4]float64
		for i := range from {
			if r.IntN(2) == 0 || i == 0 {
				from[i] = r.NormFloat64()
			}
			if r.IntN(2) == 0 || i == 1 {
				to[i] = r.NormFloat64()
			}
		}
		code, _ := q.Encode(from)
		kept := 0
		for s := range 200 {
			at := 2 * math.Pi * float64(s) / 200
			var v [4]float64
			norm := 0.0
			for i := range v {
				v[i] = from[i]*math.Cos(at) + to[i]*math.Sin(at)
				norm += v[i] * v[i]
			}
			norm = math.Sqrt(norm)
			if norm < 1e-3 {
				continue
			}
			if q.Holds(v, code, reach) {
				kept++
			} else {
				code, _ = q.Encode(v)
			}
			shown, ok := q.Decode(code)
			require.True(t, ok)
			plus, minus := 0.0, 0.0
			for i := range v {
				plus, minus = max(plus, math.Abs(shown[i]-v[i]/norm)), max(minus, math.Abs(shown[i]+v[i]/norm))
			}
			require.LessOrEqual(t, min(plus, minus), 2*reach*q.MaxError()+1e-9, "%d bits, reach %v: %v shows %v", q.Bits(), reach, code, v)
		}
	}
}
