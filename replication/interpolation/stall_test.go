package interpolation_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// TestAStallIsForgotten: a network that stood still, and delivers in order what waited, at once or at some pace, is no
// longer path, and no jitter that a delay could cover. TCP connections, modems and changes of a Wi-Fi cell do that.
func TestAStallIsForgotten(t *testing.T) {
	replicationtest.OneGoroutine(t)
	r := newRand(t)
	for _, rate := range []float64{10, 20, 60, 128} {
		for _, length := range []float64{1, 2, 2.5, 3, 4, 6} {
			for _, pace := range []float64{1.3, 1.7, 3, 100} { // times that at which it was sent
				g := newGame(t, r.Uint64(), profile{oneWay: 0.075, jitter: 0.004}, rate)
				v := newView(g)
				e := g.spawn(place{})
				stall := math.Inf(1)
				g.onTick = func(n int) {
					g.place(e).X = float32(n%1000) * 0.1
					g.profile.oneWay, g.profile.jitter = 0.075, 0.004
					if late := stall + length + (g.now-stall)/pace - g.now; g.now >= stall && late > 0 {
						g.profile.oneWay, g.profile.jitter = 0.075+late, 0
					}
				}
				g.run(20)
				before := v.delay()
				stall = g.now
				g.run(length*pace/(pace-1) + 10)
				require.Less(t, v.delay(), before+0.1, "%v ticks/s, a stall of %v s, then %v times the pace", rate, length, pace)
			}
		}
	}
}

// TestTwoPathsInTurns: what alternates is jitter. The delay covers it, and does not swing.
func TestTwoPathsInTurns(t *testing.T) {
	replicationtest.OneGoroutine(t)
	r := newRand(t)
	for _, period := range []float64{0.4, 0.5, 0.7, 1, 0 /* at random */} {
		g := newGame(t, r.Uint64(), profile{oneWay: 0.05, jitter: 0.003}, 20)
		v := newView(g)
		e := g.spawn(place{})
		g.onTick = func(n int) {
			g.place(e).X = float32(n%1000) * 0.1
			slow := math.Mod(g.now, 2*period) >= period
			if period == 0 {
				slow = g.rand.IntN(2) == 0
			}
			g.profile.oneWay = 0.05
			if slow {
				g.profile.oneWay = 0.1
			}
		}
		g.run(60)
		odd, frames, most, sum := 0., 0., 0., 0.
		v.after = func(float64) {
			if frames++; math.Abs(v.Stats().Speed-1) > 0.01 {
				odd++
			}
			most, sum = max(most, v.delay()), sum+v.delay()
		}
		g.run(100)
		t.Logf("turns of %v s: delay %.0f ms, at most %.0f ms, another speed in %.0f %% of frames", period, 1000*sum/frames, 1000*most, 100*odd/frames)
		require.Less(t, odd, 0.3*frames)  // turns of 1 s: mostly 2 to 14 %, up to 24 % in 60 seeds
		require.Less(t, sum/frames, 0.25) // up to 0.23 in 60 seeds
	}
}

// TestAGameThatBecomesSlow: after a while at a usual rate, all frames are too long to know when packets came.
func TestAGameThatBecomesSlow(t *testing.T) {
	r := newRand(t)
	for _, frames := range []float64{9, 5} {
		g := newGame(t, r.Uint64(), profile{oneWay: 0.275, jitter: 0.004}, 20)
		v := newView(g)
		e := g.spawn(place{})
		g.onTick = func(n int) { g.place(e).X = float32(n%1000) * 0.1 }
		g.run(30)
		g.frames = frames
		g.run(5)
		g.profile.oneWay += 0.25
		g.run(25)
		before := v.Stats()
		g.run(30)
		after := v.Stats()
		require.Less(t, float64(after.Starved-before.Starved)/float64(after.Frames-before.Frames), 0.05, "%v frames/s", frames)
	}
}
