package delta

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTicksCompareAcrossTheWrap(t *testing.T) {
	for _, c := range []struct {
		t, u          Tick
		after, before bool
	}{
		{5, 5, false, false},
		{6, 5, true, false},
		{0, 1<<32 - 1, true, false},
		{10, 1<<32 - 10, true, false},
		{1<<31 - 1, 0, true, false},
		{1<<31 + 1, 0, false, true},
	} {
		require.Equal(t, c.after, c.t.After(c.u), "%d after %d", c.t, c.u)
		require.Equal(t, c.before, c.t.Before(c.u), "%d before %d", c.t, c.u)
		require.Equal(t, c.after, c.u.Before(c.t), "%d before %d", c.u, c.t)
	}
}

func TestRatio(t *testing.T) {
	for _, c := range []struct {
		name        string
		now, a1, a2 Tick
		want        int64
	}{
		{"as far again", 20, 14, 8, 1 << 16},
		{"half as far", 23, 20, 14, 1 << 15},
		{"rounded down", 15, 14, 11, 1 << 16 / 3},
		{"as far as it goes", 100, 20, 10, 8 << 16},
		{"too far", 101, 20, 10, 0},
		{"across the wrap", 2, 1<<32 - 1, 1<<32 - 4, 1 << 16},
		{"baselines are one", 20, 10, 10, 0},
		{"baselines out of order", 20, 10, 14, 0},
		{"at the baseline", 14, 14, 10, 0},
		{"before the baseline", 12, 14, 10, 0},
		{"half the circle", 1<<31 + 14, 14, 10, 0},
		{"a long time each", 1<<31 - 2, 1<<30 - 1, 0, 1 << 16},
	} {
		require.Equal(t, c.want, Ratio(c.now, c.a1, c.a2), c.name)
	}
}
