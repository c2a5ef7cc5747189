package interpolation_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/timetest"
)

// TestFigures measures how well time is kept and entities are shown, with a real client and server on simulated paths
// and fixed seeds. Each line "figure NAME VALUE" is the worst over the seeds, but for shares and means of frames,
// which are of the frames of all seeds together: the least time that is measured then is more than an hour.
func TestFigures(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	backwards := max(pathFigures(t, "d", profileD), pathFigures(t, "b", profileB), changeFigures(t))
	figure("backwards_ms", 1000*backwards)

	errors, smears := 0., 0.
	for seed := range uint64(5) {
		for _, p := range []profile{profileB, profileD} {
			g := newGame(t, seed, p, 20)
			v := newView(g)
			errors = max(errors, watchMotion(t, g, v, 60).error)
		}
		smears = max(smears, smear(t, seed, profileB, true), smear(t, seed, profileB, false))
	}
	figure("motion_error_quanta", errors)
	figure("rest_smear_intervals", smears)
	require.LessOrEqual(t, errors, 1.)
	require.LessOrEqual(t, smears, 1.)
	of := timetest.Play(t, timetest.Seed)
	figure("clock_error_ticks_after_2s", of.ClockErrorTicks)
	figure("lead_settled_s", of.DelaySettledSeconds)
	costFigures(t)
}

func figure(name string, value float64) { fmt.Printf("figure %s %.3f\n", name, value) }

// An outcome is how play-outs did: sums over frames.
type outcome struct {
	frames, starved, ones, delay, squares float64
	backwards                             float64 // seconds, the largest step
}

// watch measures a play-out of one moving entity for so many seconds, after a warm-up.
func watch(t testing.TB, seed uint64, p profile, seconds float64) (o outcome) {
	g := newGame(t, seed, p, 20)
	e := g.spawn(place{})
	g.onTick = func(n int) { g.place(e).X = float32(n%1000) * 0.1 }
	v := newView(g)
	g.run(10)
	before := v.Stats()
	v.after = func(float64) {
		o.frames++
		o.delay += v.delay()
		o.backwards = max(o.backwards, (v.before-v.time)/g.rate)
		speed := v.Stats().Speed
		o.squares += (speed - 1) * (speed - 1)
		if math.Abs(speed-1) < 1e-9 {
			o.ones++
		}
	}
	g.run(seconds)
	o.starved = float64(v.Stats().Starved - before.Starved)
	return o
}

// pathFigures are those of a path that stays as it is. It returns the largest step backwards.
func pathFigures(t *testing.T, name string, p profile) float64 {
	var all outcome
	for seed := range uint64(5) {
		o := watch(t, seed, p, 2500)
		t.Logf("%s, seed %d: %.3f %% starved, %.1f ms delay, %.3f %% RMS of speed, 1 in %.2f %%", name, seed,
			100*o.starved/o.frames, 1000*o.delay/o.frames, 100*math.Sqrt(o.squares/o.frames), 100*o.ones/o.frames)
		all = outcome{
			frames: all.frames + o.frames, starved: all.starved + o.starved, ones: all.ones + o.ones,
			delay: all.delay + o.delay, squares: all.squares + o.squares, backwards: max(all.backwards, o.backwards),
		}
	}
	starved, delay := 100*all.starved/all.frames, 1000*all.delay/all.frames
	rms, ones := 100*math.Sqrt(all.squares/all.frames), 100*all.ones/all.frames
	figure("starved_"+name+"_percent", starved)
	figure("delay_"+name+"_ms", delay)
	figure("speed_rms_"+name+"_percent", rms)
	figure("speed_one_"+name+"_percent", ones)
	return all.backwards
}

// changeFigures are those of a path on which all packets begin to take 80 ms longer.
func changeFigures(t *testing.T) (backwards float64) {
	starved, settled := 0., 0.
	for seed := range uint64(5) {
		g := newGame(t, seed, profileB, 20)
		e := g.spawn(place{})
		g.onTick = func(n int) { g.place(e).X = float32(n%1000) * 0.1 }
		v := newView(g)
		g.run(60)
		changed, before := g.now, v.Stats()
		g.profile.oneWay += 0.08
		var times, delays []float64
		v.after = func(float64) {
			times, delays = append(times, g.now-changed), append(delays, v.delay())
			backwards = max(backwards, (v.before-v.time)/g.rate)
		}
		g.run(3)
		starved = max(starved, float64(v.Stats().Starved-before.Starved)/144)
		g.run(7)
		final := delays[len(delays)-1]
		for i, d := range delays {
			if math.Abs(d-final) > 0.3*0.05 {
				settled = max(settled, times[i])
			}
		}
	}
	figure("path_change_starved_ms", 1000*starved)
	figure("path_change_settled_ms", 1000*settled)
	return backwards
}

// costFigures are how long an entity takes in a frame.
func costFigures(t *testing.T) {
	if replicationtest.RaceDetector {
		return
	}
	const n = 2000
	fixed, quats, hand := newCrowd(t, n, moveFixed), newCrowd(t, n, moveTurning), byHand(n)
	ns := fastest(2000, n, func() { _ = fixed.client.Frame(time.Nanosecond) })
	turning := fastest(1000, n, func() { _ = quats.client.Frame(time.Nanosecond) })
	byHand := fastest(2000, n, hand)
	figure("ns_per_entity_fixed3", ns)
	figure("ns_per_entity_quat", turning)
	figure("ns_per_entity_by_hand", byHand)
	const frames = 7 // for each state
	least := math.Inf(1)
	for range 100 {
		fixed.tick(t)
		least = min(least, fastest(1, n*frames, func() {
			for range frames {
				_ = fixed.client.Frame(time.Second / 20 / frames)
			}
		}))
	}
	figure("ns_per_entity_fixed3_with_new_states", least)
}
