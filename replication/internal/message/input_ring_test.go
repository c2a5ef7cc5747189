package message

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/delta"
)

// TestReportsConsiderTheLatestInputs, and all of those to come, also where ticks wrap around: not those of long ago, for a
// client whose inputs have stopped.
func TestReportsConsiderTheLatestInputs(t *testing.T) {
	for _, first := range []delta.Tick{1, ^delta.Tick(0) - 100} {
		var r inputRing
		tick := first
		for range 200 { // four ticks early
			require.Equal(t, inputInTime, r.take(&inputRow{tick: tick, present: true}, tick-5))
			tick++
		}
		newest := tick - 1
		for ago := range delta.Tick(20) {
			margin, _, ok := r.worst(newest + ago)
			require.True(t, ok)
			require.EqualValues(t, 4, margin, "%d ticks after the newest input", ago)
		}
		now := newest - 2
		for ahead := range delta.Tick(24) { // a long frame
			require.Equal(t, inputInTime, r.take(&inputRow{tick: tick + ahead, present: true}, now))
		}
		margin, at, ok := r.worst(now)
		require.True(t, ok)
		require.EqualValues(t, 2, margin)
		require.Equal(t, tick, at)
	}
}
