package netsim

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChanceIsExactAtItsEnds(t *testing.T) {
	for _, draw := range []uint64{0, 1, 2, 1 << 62, 1 << 63, math.MaxUint64} {
		require.False(t, chanceOf(0).holds(draw), "never, for %#x", draw)
		require.True(t, chanceOf(1).holds(draw), "always, for %#x", draw)
		require.Equal(t, draw < 1<<63, chanceOf(0.5).holds(draw), "half, for %#x", draw)
	}
}

func TestDelayReachesBothEndsOfItsRange(t *testing.T) {
	const last = math.MaxUint64
	for _, c := range []struct {
		cfg  Config
		die  uint64
		want float64 // ticks
	}{
		{Config{Latency: 5, Jitter: 2}, 0, 3},
		{Config{Latency: 5, Jitter: 2}, last, 7},
		{Config{Latency: 5, Jitter: 2}, 1 << 63, 5},
		{Config{Latency: 1, Jitter: 2}, 0, 0}, // not -1
		{Config{Latency: 1.5}, last, 1.5},
		{Config{Latency: 1, Reorder: 1, ReorderBy: 4}, 0, 2},
		{Config{Latency: 1, Reorder: 1, ReorderBy: 4}, last, 5},
		// Held back from zero, not from below it.
		{Config{Latency: 1, Jitter: 2, Reorder: 1, ReorderBy: 1}, 0, 1},
	} {
		o := c.cfg.compile()
		got := o.delay(&copyDice{jitter: c.die, reorderBy: c.die})
		require.Equal(t, instantOf(c.want), got, "%+v, die %#x", c.cfg, c.die)
	}
}
