package interpolation_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// TestServersWithAnotherPace: a server that is slower or faster than its rate is shown as well as an exact one, as soon
// as its pace is known, and so is one that becomes exact again.
func TestServersWithAnotherPace(t *testing.T) {
	replicationtest.OneGoroutine(t)
	r := newRand(t)
	for _, rate := range []float64{20, 60} {
		play := func(pace float64, lost int) (starved, delay float64) {
			g := newGame(t, r.Uint64(), profile{oneWay: 0.045, jitter: 0.005, loss: 0.02}, rate)
			v := newView(g)
			e := g.spawn(place{})
			g.rate = pace * rate
			g.onTick = func(n int) {
				g.place(e).X = float32(n) * 0.1
				if lost > 0 && n%lost == 0 {
					g.shift += 1 / rate
				}
			}
			measure := func(seconds float64) (starved, delay float64) {
				before, frames := v.Stats(), 0
				v.after = func(float64) { delay, frames = delay+v.delay(), frames+1 }
				g.run(seconds)
				v.after = nil
				now := v.Stats()
				return float64(now.Starved-before.Starved) / float64(now.Frames-before.Frames), delay / float64(frames)
			}
			g.run(20)
			starved, delay = measure(60)
			since := g.now
			g.rate, lost = rate, 0 // from now on
			g.shift = g.now - float64(g.ticked)/rate
			g.run(40)
			after, _ := measure(30)
			require.Less(t, after, 0.03, "%v ticks/s, exact again at %v", rate, since)
			return starved, delay
		}
		_, exact := play(1, 0)
		for _, c := range []struct {
			pace float64
			lost int // one tick in so many
		}{{0.95, 0}, {0.98, 0}, {0.99, 0}, {0.997, 0}, {1.01, 0}, {1.06, 0}, {1, 600}, {1, 120}, {1, 60}} {
			starved, delay := play(c.pace, c.lost)
			t.Logf("%v ticks/s, pace %v, one tick lost in %v: %.2f %% starved, delay %.0f ms, exact %.0f ms",
				rate, c.pace, c.lost, 100*starved, 1000*delay, 1000*exact)
			require.Less(t, starved, 0.01, "%v ticks/s, pace %v, one tick lost in %v", rate, c.pace, c.lost)
			require.InDelta(t, exact, delay, 0.25*exact, "%v ticks/s, pace %v, one tick lost in %v", rate, c.pace, c.lost)
		}
	}
}

// TestExactServersHaveTheirPace: jitter, loss, long frames, paths that change and frames that are nearly as long as
// ticks do not look like another pace.
func TestExactServersHaveTheirPace(t *testing.T) {
	replicationtest.OneGoroutine(t)
	r := newRand(t)
	for _, c := range []struct {
		rate, frames, wobble float64
		path                 profile
	}{
		{60, 144, 0.1, profileB},
		{60, 60, 0.1, profileD},
		{20, 60, 0.1, profileD},
		{60, 59.94, 0, profile{oneWay: 0.02}},
		{60, 59.5, 0, profile{oneWay: 0.02}},
		{60, 20, 0.2, profile{oneWay: 0.05, jitter: 0.03}},
		{10, 30, 0.1, profile{oneWay: 0.05, jitter: 0.02, loss: 0.1}},
	} {
		g := newGame(t, r.Uint64(), c.path, c.rate)
		g.frames, g.wobble = c.frames, c.wobble
		v := newView(g)
		e := g.spawn(place{})
		g.onTick = func(n int) { g.place(e).X = float32(n) * 0.1 }
		for i := range 5 {
			g.profile.oneWay = c.path.oneWay + 0.06*float64(i%2)
			g.run(30)
			require.InDelta(t, 1, v.Stats().Pace, 0.002, "%v", c)
		}
	}
}

// TestWhatIsNoOtherPace: queues that fill and drain, slow waves of the path and servers that stop for moments neither
// leave frames without states nor make the delay much longer than the path asks for.
func TestWhatIsNoOtherPace(t *testing.T) {
	replicationtest.OneGoroutine(t)
	r := newRand(t)
	ramp := func(now, period, rise, hold, fall float64) float64 { // from 0 to 1 and back
		at := math.Mod(now, period)
		return min(max(min(at/rise, (rise+hold+fall-at)/fall), 0), 1)
	}
	for _, c := range []struct {
		name           string
		rate           float64
		path           func(now float64) float64 // beyond the shortest
		stops, each    float64                   // the server stops for so many seconds, each so many
		starved, delay float64                   // limits
	}{
		{name: "queue of a second", rate: 10, path: func(now float64) float64 { return ramp(now, 45, 20, 10, 1) }, starved: 0.01, delay: 1.3},
		{name: "queue of half a second", rate: 60, path: func(now float64) float64 { return 0.5 * ramp(now, 30, 12, 6, 2) }, starved: 0.025, delay: 0.6},
		{name: "wave", rate: 60, path: func(now float64) float64 { return 0.1 + 0.1*math.Sin(2*math.Pi*now/20) }, starved: 0.04, delay: 0.35},
		{name: "catching up", rate: 20, path: func(now float64) float64 { return 3 * ramp(now, 40, 0.001, 0, 10) }, starved: 0.12, delay: 0.7},
		{name: "stops", rate: 60, stops: 0.3, each: 2, starved: 0.13, delay: 0.35},
	} {
		g := newGame(t, r.Uint64(), profile{oneWay: 0.05, jitter: 0.003, loss: 0.01}, c.rate)
		v := newView(g)
		e := g.spawn(place{})
		next := c.each
		g.onTick = func(n int) {
			g.place(e).X = float32(n%1000) * 0.1
			if c.path != nil {
				g.profile.oneWay = 0.05 + c.path(g.now)
			}
			if c.stops > 0 && g.now > next {
				g.shift, next = g.shift+c.stops, next+c.each
			}
		}
		g.run(60)
		before, delay, frames := v.Stats(), 0., 0
		v.after = func(float64) { delay, frames = delay+v.delay(), frames+1 }
		g.run(180)
		after := v.Stats()
		starved := float64(after.Starved-before.Starved) / float64(after.Frames-before.Frames)
		t.Logf("%s: starved %.3f, delay %.0f ms, jumps %d", c.name, starved, 1000*delay/float64(frames), after.Jumps-before.Jumps)
		require.Less(t, starved, c.starved, c.name)
		require.Less(t, delay/float64(frames), c.delay, c.name)
	}
}

// TestPacesThatPass: while a server ticks at another rate, few frames have nothing to show. Three seconds after it has
// its rate again, the delay is what it was before.
func TestPacesThatPass(t *testing.T) {
	replicationtest.OneGoroutine(t)
	r := newRand(t)
	const plays = 4
	for _, rate := range []float64{20, 60} {
		for _, path := range []profile{
			{oneWay: 0.045, jitter: 0.005, loss: 0.02},
			{oneWay: 0.075, jitter: 0.015, loss: 0.05, spikes: 0.01},
		} {
			for _, pace := range []float64{0.5, 0.75, 0.95, 0.98, 1.02, 1.05, 1.2} {
				var before, first, after, starved float64
				for range plays {
					g := newGame(t, r.Uint64(), path, rate)
					v := newView(g)
					e := g.spawn(place{})
					g.onTick = func(n int) { g.place(e).X = float32(n%10_000) * 0.1 }
					measure := func(seconds float64) (delay, starved float64) {
						was, frames := v.Stats(), 0
						v.after = func(float64) { delay, frames = delay+v.delay(), frames+1 }
						g.run(seconds)
						v.after = nil
						return delay / float64(frames) / plays, float64(v.Stats().Starved-was.Starved) / float64(frames) / plays
					}
					change := func(to float64) { // the next tick comes a tick after the last
						g.rate = to
						g.shift = g.tickedAt - float64(g.ticked-1)/to
					}
					add := func(seconds float64, delay, none *float64) {
						d, s := measure(seconds)
						*delay, *none = *delay+d, *none+s
					}
					var unused float64
					g.run(20)
					add(5, &before, &unused)
					change(pace * rate)
					g.run(6)
					add(4, &unused, &starved)
					change(rate)
					add(3, &first, &unused)
					add(5, &after, &unused)
				}
				what := fmt.Sprintf("%v ticks/s, jitter of %v s, pace %v", rate, path.jitter, pace)
				t.Logf("%s: %.1f %% starved, delay %.0f ms before, %.0f in the first 3 s after, %.0f then",
					what, 100*starved, 1000*before, 1000*first, 1000*after)
				require.Less(t, starved, 0.015, what)
				slack := 0.1*before + 0.5/rate
				if 3*rate*math.Abs(pace-1) < 1.5 {
					slack += 0.03 // in three seconds, so small a difference hardly shows
				}
				require.InDelta(t, before, after, slack, what)
			}
		}
	}
}

// TestClocksThatGoBack: tickers under load now and then give a time before the last one, by up to 6.9 ms. The time
// shown neither goes back nor stops.
func TestClocksThatGoBack(t *testing.T) {
	replicationtest.OneGoroutine(t)
	g := newGame(t, newRand(t).Uint64(), profile{oneWay: 0.045, jitter: 0.005}, 60)
	v := newView(g)
	e := g.spawn(place{})
	g.onTick = func(n int) { g.place(e).X = float32(n) * 0.1 }
	g.run(5)
	const steps = 39
	for range steps {
		at := v.time
		require.NoError(t, g.client.Frame(-6900*time.Microsecond))
		g.run(0.25)
		require.Greater(t, v.time, at)
		require.InDelta(t, 0.09, v.delay(), 0.05)
	}
	require.EqualValues(t, steps, g.client.Stats().ClockSteps)
	at := v.time
	require.NoError(t, g.client.Frame(-time.Hour))
	g.run(0.25)
	require.Greater(t, v.time, at)
}
