package snapshot

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestSamplesOfWidths: a sample is good enough in any tick, whether entities of several kinds spawned by
// turns or one kind after the other.
func TestSamplesOfWidths(t *testing.T) {
	var s SlotTable
	s.InitClasses(0, 0)
	for range 128 {
		s.Add(ecs.Entity{}, 1)
	}
	for run := 1; run <= 32; run *= 2 {
		for kinds := 1; kinds <= 16 && (run == 1 || run*kinds <= 64); kinds++ {
			sum := 0
			for slot := range 64 {
				s.Widths[64+slot] = int32(100 + 200*(slot/run%kinds))
				sum += int(s.Widths[64+slot])
			}
			for tick := range delta.Tick(64) {
				require.InEpsilon(t, sum, s.EstimateWidths(1, ^uint64(0), tick), 0.25, "%d kinds, runs of %d, tick %d", kinds, run, tick)
				few := uint64(0b1011) << (tick % 61)
				want := 0
				for slot := range bitset.Slots(1, few) {
					want += int(s.Widths[slot])
				}
				require.Equal(t, want, s.EstimateWidths(1, few, tick), "of few, all count")
			}
		}
	}
	require.Zero(t, s.EstimateWidths(1, 0, 1))
}
