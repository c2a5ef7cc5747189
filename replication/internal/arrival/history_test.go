package arrival

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/stretchr/testify/require"
)

// TestTimesAfterTheNewestTick: a view may be moved on to a time that is not yet; what ended has ended then.
func TestTimesAfterTheNewestTick(t *testing.T) {
	h := NewHistory(64, 100, bitset.Set{1})
	var r Around
	h.Around(&r, 0, 1, 105)
	require.True(t, r.Before)
	h.End(0, 1, 103)
	r = Around{}
	h.Around(&r, 0, 1, 105)
	require.False(t, r.Before)
}
