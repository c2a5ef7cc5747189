package snapshot

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Byte copies of a block that always changes are made less and less often, and soon again once it
// is idle.
func TestBlocksThatAlwaysChangeAreSeldomKept(t *testing.T) {
	var b MemberBlock
	kept := 0
	for range 1000 {
		if b.keep(64) {
			kept++
		}
	}
	require.InDelta(t, 1000/16, kept, 6)
	for kept := false; !kept; {
		kept = b.keep(64)
	}
	require.True(t, b.rest(1))
	require.True(t, b.rest(1))
	require.True(t, b.keep(64), "changed once")
	require.False(t, b.rest(3))
	require.False(t, b.rest(3))
	require.True(t, b.rest(3), "every row had its turn")
}
