package snapshot

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSamplesAreRarerOnceTheyFindTheSame: one of sixteen ticks instead of one of four.
func TestSamplesAreRarerOnceTheyFindTheSame(t *testing.T) {
	for same, want := range map[uint8]int{0: 1024, stableSamples - 1: 1024, stableSamples: 256} {
		m, taken := Steadiness{same: same}, 0
		for i := range uint64(4096) {
			if m.samplesAt(i << 52) {
				taken++
			}
		}
		require.Equal(t, want, taken, "%d samples found the same", same)
	}
}
