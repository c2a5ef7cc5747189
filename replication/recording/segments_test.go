package recording_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/recording"
)

func TestSegmentsAreWhatWasRecordedWhen(t *testing.T) {
	file, _ := record(t, 300, recording.WithSegment(time.Second))
	player, _, _ := newPlayer(t, file)
	segments := player.Segments()
	require.Len(t, segments, 5)
	sum := int64(0)
	for i, s := range segments {
		require.InDelta(t, float64(time.Duration(i)*time.Second), float64(s.At), float64(at(1)))
		require.Greater(t, s.Bytes, int64(1000))
		sum += s.Bytes
	}
	require.Less(t, sum, int64(len(file)), "header and index are no segments")
	require.Greater(t, sum, int64(len(file))*9/10)

	player, _, _ = newPlayer(t, file[:len(file)/2])
	require.Less(t, len(player.Segments()), 4, "of what is there")
}
