package interpolation_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
)

// TestTimeDoesNotSwing: once the delay is right after a change of the path, time passes at a speed of 1, however long the
// frames are. A correction that lasted for a frame was larger than the error.
func TestTimeDoesNotSwing(t *testing.T) {
	replicationtest.OneGoroutine(t)
	r := newRand(t)
	for _, c := range []struct {
		frames float64
		opts   []interpolation.Option
	}{{144, nil}, {11, nil}, {5, nil}, {11, []interpolation.Option{interpolation.Speed(0.25, 2)}}, {4, []interpolation.Option{interpolation.Speed(0.25, 2)}}} {
		g := newGame(t, r.Uint64(), profile{oneWay: 0.04, jitter: 0.002}, 128)
		g.frames, g.wobble = c.frames, 0.05
		v := newView(g, c.opts...)
		e := g.spawn(place{})
		g.onTick = func(n int) { g.place(e).X = float32(n) * 0.1 }
		g.run(20)
		g.profile.oneWay = 0.14
		g.run(40)
		odd, frames := 0, 0
		v.after = func(float64) {
			if frames++; math.Abs(v.Stats().Speed-1) > 0.03 {
				odd++
			}
		}
		g.run(30)
		t.Logf("%v frames/s, %d options: another speed in %d of %d", c.frames, len(c.opts), odd, frames)
		require.LessOrEqual(t, odd, frames/20)
	}
}

// TestNothingThatIsShownIsDropped: however long the delay is, the states at the time that is shown are held.
func TestNothingThatIsShownIsDropped(t *testing.T) {
	replicationtest.OneGoroutine(t)
	r := newRand(t)
	for _, c := range []struct {
		rate           float64
		interval, then int
		path           profile
		others         int
	}{
		{60, 24, 24, profile{oneWay: 0.03, loss: 0.4}, 60},
		{60, 24, 24, profile{oneWay: 0.03, loss: 0.5}, 60},
		{60, 6, 6, profile{oneWay: 0.03, loss: 0.5}, 60},
		{60, 1, 1, profile{oneWay: 0.03, loss: 0.5}, 60},
		{128, 4, 30, profile{oneWay: 0.03, loss: 0.5}, 0},
		{60, 4, 4, profile{oneWay: 0.4, jitter: 0.2, loss: 0.6}, 60},
		{60, 2, 2, profile{oneWay: 0.4, jitter: 0.2, loss: 0.8}, 60},
		{60, 2, 2, profile{oneWay: 0.4, jitter: 0.2, loss: 0.8}, 0},
	} {
		g := newGame(t, r.Uint64(), c.path, c.rate, replication.WithMTU(200))
		g.peer.SetSendInterval(c.interval)
		v := newView(g)
		e := g.spawn(place{})
		others := g.spawnMany(c.others) // with so many, ticks take several packets
		g.onTick = func(n int) {
			g.place(e).X = float32(n)
			for _, other := range others {
				g.place(other).Y = 100 * g.rand.Float32()
			}
		}
		g.run(60)
		worst, most := 0., 0.
		v.after = func(float64) {
			if at, ok := g.shown(e); ok && v.ok {
				worst, most = max(worst, float64(at.X)-v.time), max(most, v.delay())
			}
		}
		g.peer.SetSendInterval(c.then)
		g.run(60)
		t.Logf("interval %d, %+v: delay up to %.2f s, set to %v; %.2f ticks ahead of the time shown", c.interval, c.path, most, v.Stats().Delay, worst)
		require.Less(t, worst, 0.1)
	}
}
