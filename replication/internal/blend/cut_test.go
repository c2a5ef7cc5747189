package blend

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCutsCompareTheNamedFields(t *testing.T) {
	type wheels struct {
		Mounted [2]uint8 `repl:"counter"`
		Dust    uint64
	}
	c := componentOf[wheels](t)
	a := rowOf(c, wheels{})
	mounted, dusty := rowOf(c, wheels{Mounted: [2]uint8{1: 1}}), rowOf(c, wheels{Dust: 1 << 40})
	named, missing := NewCut(c, []string{"Mounted"})
	require.Empty(t, missing)
	require.False(t, named.Between(a, a))
	require.True(t, named.Between(a, mounted))
	require.False(t, named.Between(a, dusty))
	all, missing := NewCut(c, nil)
	require.Empty(t, missing)
	require.True(t, all.Between(a, mounted))
	require.True(t, all.Between(a, dusty))
	_, missing = NewCut(c, []string{"Dust", "Rust"})
	require.Equal(t, "Rust", missing)
}
