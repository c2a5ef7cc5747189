package clock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSlowFramesAreNoHitches: the delay of inputs has room for the length of frames, also where all frames are long.
// A frame now and then that is longer than the others does not count.
func TestSlowFramesAreNoHitches(t *testing.T) {
	const rate = 20
	for _, fps := range []time.Duration{4, 5, 7, 9, 30} {
		for _, again := range []bool{false, true} {
			var c Ticks
			c.Begin(1000, rate)
			frame := func(dt time.Duration) {
				c.Advance(dt)
				c.StartApply()
				c.EndApply()
				if again { // at the same time
					c.Advance(0)
					c.StartApply()
					c.EndApply()
				}
			}
			for range 400 {
				frame(time.Second / fps)
			}
			if again {
				require.True(t, c.long.Usual() == (fps < 8), "%d frames per second", fps)
				continue
			}
			require.InDelta(t, rate/float64(fps), c.frame, 0.2, "%d frames per second", fps)
			frame(2 * time.Second)
			require.InDelta(t, rate/float64(fps), c.frame, 0.2, "%d frames per second, one of 2 s", fps)
		}
	}
}

// TestLongFrames: it takes a few long frames more than others until long ones are usual, and a second at 60 of them to
// find out that they are no more.
func TestLongFrames(t *testing.T) {
	var l LongFrames
	for range 200 {
		l.Note(false)
	}
	note := func(n int, long bool) {
		for range n {
			l.Note(long)
		}
	}
	note(lately+fewFrames, true)
	require.False(t, l.Usual())
	note(1, true)
	require.True(t, l.Usual())
	note(1000, true)
	note(lately-fewFrames-1, false)
	require.True(t, l.Usual())
	note(1, false)
	require.False(t, l.Usual())
}
