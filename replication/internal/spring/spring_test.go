package spring

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCorrectionsDoNotOvershoot: whatever is added on the way, an error fades, and never changes its sign by itself.
func TestCorrectionsDoNotOvershoot(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	r := New(1, 80*time.Millisecond)
	r.Grow(1)
	for range 2000 {
		r.Correct(0, []float64{r.Errors(0)[0] + rng.NormFloat64()})
		r.Fade(0, 16*time.Millisecond)
		for range rng.IntN(20) {
			before := r.Errors(0)[0]
			r.Fade(0, time.Duration(rng.IntN(30))*time.Millisecond)
			require.GreaterOrEqual(t, before*r.Errors(0)[0], 0.0)
		}
		require.Less(t, math.Abs(r.Errors(0)[0]), 20.0)
	}
}

// TestHalfIsLeftAfterItsTime: in steps of any length, and nothing at last.
func TestHalfIsLeftAfterItsTime(t *testing.T) {
	for _, step := range []time.Duration{time.Millisecond, 7 * time.Millisecond, 35 * time.Millisecond} {
		r := New(2, 70*time.Millisecond)
		r.Grow(3)
		require.False(t, r.Correct(1, []float64{0, 1e-7}))
		require.True(t, r.Correct(1, []float64{2, -4}))
		r.Fade(1, time.Second)
		require.Equal(t, []float64{2, -4}, r.Errors(1))
		for range 70 * time.Millisecond / step {
			r.Fade(1, step)
		}
		require.InDelta(t, 1, r.Errors(1)[0], 1e-4)
		require.InDelta(t, -2, r.Errors(1)[1], 2e-4)
		r.Fade(1, 3*time.Second)
		require.False(t, r.Active(1))
		require.False(t, r.Active(0) || r.Active(9))
	}
}
