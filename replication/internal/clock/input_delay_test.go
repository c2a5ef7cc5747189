package clock

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A drawing moves on the time of predictions, with a delay that the test sets.
type drawing struct {
	clock Ticks
	delay InputDelay
	step  float64 // ticks in a frame
	ahead uint32  // of the client's full ticks, the tick of an input
}

// frames plays frames and returns the least and the most ticks by which the time went on in one.
func (d *drawing) frames(n int) (least, most float64) {
	c, l := &d.clock, &d.delay
	for i := range n {
		before := l.drawn
		c.pace.pass(uint64(d.step * float64(tickParts)))
		l.tick = c.Base + c.Now + d.ahead
		l.draw(c, d.step)
		went := l.drawn - before
		if i == 0 || went < least {
			least = went
		}
		most = max(most, went)
	}
	return least, most
}

// behind returns how far the time is behind the tick of an input and the client's way to the next tick.
func (d *drawing) behind() float64 {
	return float64(int32(d.delay.tick-d.clock.Base)) + d.clock.fraction() - d.delay.drawn
}

// TestPredictionsFollowTheDelay evenly, however it changes, at all frame rates.
func TestPredictionsFollowTheDelay(t *testing.T) {
	for _, step := range []float64{0.25, 0.3, 1, 1.2, 7.5, 20} {
		d := &drawing{step: step, ahead: 9}
		d.clock.Begin(1<<32-100, 60)
		d.frames(3)
		require.InDelta(t, 1, d.behind(), 1e-6, "at the beginning it follows at once")
		d.ahead = 4
		d.frames(1)
		require.InDelta(t, 1-5+step, d.behind()+max(step-5, 0), 1e-6, "but it does not go back")
		d.delay.steady = true
		least, _ := d.frames(int(100/step) + 20)
		require.GreaterOrEqual(t, least, 0.)
		require.InDelta(t, 1, d.behind(), 0.01)

		for _, by := range []int32{1, -1, 2, -2, 4, 12, -8} {
			d.ahead += uint32(by)
			least, most := d.frames(int(100/step) + 20)
			require.InDelta(t, 1, d.behind(), 0.01, "by %d, frames of %v ticks", by, step)
			switch {
			case by < -2:
				require.GreaterOrEqual(t, least, 0.)
				require.LessOrEqual(t, most, step*1.001)
			case by < 0:
				require.GreaterOrEqual(t, least, step*0.72)
				require.LessOrEqual(t, most, step*1.001)
			case by <= 4:
				require.GreaterOrEqual(t, least, step*0.999)
				require.LessOrEqual(t, most, step*1.251)
				require.Greater(t, most, step*1.01)
			default:
				require.GreaterOrEqual(t, least, step*0.999)
				require.LessOrEqual(t, most, 2*step)
				require.Greater(t, most, step*1.3)
			}
		}
		for n := uint32(1); n < 100; n++ { // the server is silent
			now := d.clock.Now
			d.frames(1)
			d.ahead -= d.clock.Now - now
		}
		require.Less(t, -d.behind(), 4+step, "frames of %v ticks", step)

		d.ahead += 300
		d.frames(1)
		require.InDelta(t, 1, d.behind(), 1e-6, "it jumps when it is far behind")
	}
}
