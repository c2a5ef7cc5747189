package snapshot

import (
	"math"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/stretchr/testify/require"
)

// TestWeightsBetweenUnits: a weight that is not a multiple of the unit is right on average.
func TestWeightsBetweenUnits(t *testing.T) {
	replicationtest.OneGoroutine(t)
	for _, weight := range []float32{0, -1, float32(math.NaN()), 0.001, 0.01, 0.3, 1, 1.03, 7.77, 255, 1e9, float32(math.Inf(1))} {
		sum := 0
		const ticks = 1 << 16
		for tick := range uint32(ticks) {
			var w SlicedWeights
			w.Reset()
			w.Put(5, weight, ChanceOf(5, tick))
			for i, plane := range w.Planes {
				if plane&^(1<<5) != 0 { // millions of times
					require.FailNow(t, "another slot has a weight", "plane %d: %x", i, plane)
				}
				sum += int(plane>>5) << i
			}
		}
		want := 0.0
		if weight > 0 {
			want = min(float64(weight), maxWeight/float64(WeightUnit))
		}
		require.InDelta(t, want, float64(sum)/ticks/WeightUnit, want/20+1e-9, "weight %v", weight)
	}
}
