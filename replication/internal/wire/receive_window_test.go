package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNothingBeforeTheFirstPacketIsFresh: a window begins with the first packet of its session.
func TestNothingBeforeTheFirstPacketIsFresh(t *testing.T) {
	for _, first := range []uint32{0, 5, 1 << 31, 1<<32 - 1} {
		w := NewReceiveWindow(first)
		before := []uint32{first - 1, first - 2, first - 63, first - 1000, first - 1025, first - 1<<15, first - 1<<31 + 10}
		for _, s := range before {
			require.False(t, w.Fresh(s))
		}
		require.Zero(t, w.History(first))
		w.Add(first+2, true)
		for _, s := range before {
			require.False(t, w.Fresh(s), "%d of %d", s, first)
		}
		require.True(t, w.Fresh(first))
		require.True(t, w.Fresh(first+1))
		require.False(t, w.Fresh(first+2))
		require.True(t, w.Fresh(first+3))
		require.Equal(t, uint32(1), w.History(first+2))
	}
}
