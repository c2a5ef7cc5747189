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
				c.StartFrame(dt)
				c.Passed()
				c.EndFrame()
				if again { // at the same time
					c.StartFrame(0)
					c.Passed()
					c.EndFrame()
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

// TestLongFrames: it takes more than a few long frames until they are usual, after others half of their time, and some
// seconds of others to find out that they are no more. Those among short ones are usual if they take most of the time.
func TestLongFrames(t *testing.T) {
	var l LongFrames
	for range 1000 {
		l.Note(1. / 8)
	}
	note := func(n int, share float64) {
		for range n {
			l.Note(share)
		}
	}
	note(lately+fewFrames, 9)
	require.False(t, l.Usual())
	note(1, 1.01)
	require.True(t, l.Usual())
	note(1000, 2)
	note(8*(lately-fewFrames)-1, 1./8)
	require.True(t, l.Usual())
	note(1, 1./8)
	require.False(t, l.Usual())
	for range 100 {
		note(1, 9)
		note(9, 1./8)
	}
	require.False(t, l.Usual())
	for range 200 {
		note(1, 1.1)
		note(7, 1./8)
	}
	require.True(t, l.Usual())
}
