package bitbuf

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestZigZagOrdersBySize(t *testing.T) {
	for u, v := range []int64{0, -1, 1, -2, 2, -3, 3} {
		require.Equal(t, uint64(u), ZigZag(v))
		require.Equal(t, v, UnZigZag(uint64(u)))
	}
	for _, v := range []int64{math.MaxInt64, math.MinInt64, math.MinInt64 + 1, 12345, -12345} {
		require.Equal(t, v, UnZigZag(ZigZag(v)))
	}
	require.Equal(t, uint64(math.MaxUint64), ZigZag(math.MinInt64))
	require.Equal(t, uint64(math.MaxUint64-1), ZigZag(math.MaxInt64))
}

func TestWidthHoldsItsLimit(t *testing.T) {
	require.Zero(t, Width(0))
	require.Equal(t, uint(64), Width(math.MaxUint64))
	for n := uint(1); n < 64; n++ {
		require.Equal(t, n, Width(1<<n-1))
		require.Equal(t, n+1, Width(1<<n))
	}
}
