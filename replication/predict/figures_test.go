package predict

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/spring"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
)

// figure prints a figure of the documentation.
func figure(t *testing.T, name string, value float64) {
	t.Helper()
	fmt.Printf("figure %s %.4g\n", name, value)
}

// TestFigures measures what the documentation states: 60 ticks a second, 75 ms each way. Seeds are fixed.
func TestFigures(t *testing.T) {
	replicationtest.OneGoroutine(t)
	t.Run("Motion", motionFigures)
	t.Run("Outages", outageFigures)
	t.Run("Costs", costFigures)
	t.Run("Shots", shotFigures)
	t.Run("Keys", keyFigures)
	t.Run("Switching", switchFigures)
	t.Run("SyncTest", findPlantedFaults)
}

// motionFigures counts rollbacks without loss, of a ship that the client learns of while it moves.
func motionFigures(t *testing.T) {
	rollbacks := func(damping float32, ticks int, states ...StateOption) (n uint64, furthest float64) {
		p := newPlay(t, setting{seed: 1, oneWay: 75}, &rules{damping: damping, states: states})
		*get[Velocity](&p.world, p.ship) = Velocity{7.13, 3.377}
		p.wander()
		if steer := p.input; damping == 1 { // neither too fast nor too far
			p.input = func() Move {
				in, own := steer(), p.own()
				if !own.IsZero() && p.mirror.Has(own, ecs.ComponentID[Velocity](&p.mirror)) {
					v, at := get[Velocity](&p.mirror, own), get[Position](&p.mirror, own)
					in.X, in.Y = back(in.X, v.X, at.X), back(in.Y, v.Y, at.Y)
				}
				return in
			}
		}
		p.run(0.7)
		require.NotZero(t, get[Velocity](&p.world, p.ship).X)
		begin := p.predict.Stats().Rollbacks
		p.watchRollbacks(func(from, to Position) {
			furthest = max(furthest, math.Hypot(float64(to.X-from.X), float64(to.Y-from.Y))/0.01)
		})
		p.run(float64(ticks) / 60)
		return p.predict.Stats().Rollbacks - begin, furthest
	}
	exact, _ := rollbacks(0.97, 100_000, Exact())
	figure(t, "rollbacks_exact", float64(exact))
	require.Zero(t, exact)
	all, furthest := uint64(0), 0.0
	for _, damping := range []float32{0.9, 0.97, 1} {
		n, far := rollbacks(damping, 33_400)
		t.Logf("damping %g: %d rollbacks, %.2f steps", damping, n, far)
		all, furthest = all+n, max(furthest, far)
	}
	figure(t, "rollbacks_default", float64(all))
	require.LessOrEqual(t, all, uint64(20))
	require.LessOrEqual(t, furthest, 3*math.Sqrt2+0.1) // 3 in each direction

	// The server's world does not depend on clients that predict.
	without, with := &rules{}, &rules{}
	a, b := newPlay(t, setting{seed: 1, oneWay: 75}, without), newPlay(t, setting{seed: 1, oneWay: 75, plain: true}, with)
	a.wander()
	b.wander()
	a.run(20)
	b.run(20)
	require.Equal(t, get[Position](&a.world, a.ship), get[Position](&b.world, b.ship))
}

// back returns what to do so that a ship without damping stays slow and near.
func back(in, v, x float32) float32 {
	switch {
	case v > 20 || x > 300 && v > -5:
		return -1
	case v < -20 || x < -300 && v < 5:
		return 1
	}
	return in
}

// watchRollbacks calls fn after each frame with a rollback, with where the ship was simulated for the newest tick
// before and after it.
func (p *play) watchRollbacks(fn func(from, to Position)) {
	s := p.predict.sim
	last, rollbacks, tick := Position{}, s.stats.Rollbacks, s.newest
	p.afterFrame = func() {
		row, ok := s.rowOf(p.own())
		if !ok {
			return
		}
		if s.stats.Rollbacks > rollbacks && !tick.Before(s.oldest()) {
			fn(last, *(*Position)(s.columns[0].at(tick, row)))
		}
		rollbacks, tick = s.stats.Rollbacks, s.newest
		last = *(*Position)(s.columns[0].at(tick, row))
	}
}

// outageFigures measures what a client shows whose inputs get lost.
func outageFigures(t *testing.T) {
	perMiss, step, half := 0.0, 0.0, []float64(nil)
	for _, loss := range []float64{0, 0.05, 0.2} {
		p := newPlay(t, setting{seed: 5, oneWay: 75, loss: loss, lossUp: loss}, &rules{})
		p.wander()
		p.run(3)
		begin, missed := p.predict.Stats(), p.host.Missed()
		w := &outageWatch{p: p}
		p.afterFrame = w.frame
		w.start()
		for p.host.Missed()-missed < 500 {
			p.run(1 + p.rng.Float64())
			p.blocked = true
			p.run(0.15 + 0.2*p.rng.Float64())
			p.blocked = false
		}
		rollbacks, misses := p.predict.Stats().Rollbacks-begin.Rollbacks, p.host.Missed()-missed
		t.Logf("%g: %d misses, %d rollbacks, %+v", loss, misses, rollbacks, p.predict.Stats())
		perMiss, step, half = max(perMiss, float64(rollbacks)/float64(misses)), max(step, w.worst), append(half, w.halves...)
	}
	figure(t, "rollbacks_per_miss", perMiss)
	require.LessOrEqual(t, perMiss, 1.0)
	figure(t, "visible_step_quanta", step)
	require.LessOrEqual(t, step, 1.0)
	slices.Sort(half)
	require.Greater(t, len(half), 20)
	figure(t, "error_half_ms", half[len(half)*95/100])
	require.LessOrEqual(t, half[len(half)*95/100], 100.0)
}

// An outageWatch watches the ship that is drawn.
type outageWatch struct {
	p         *play
	rollbacks uint64
	last      Position
	at        replication.Time
	fades     spring.Rows // what was left of corrections in the last frame
	frameAt   float64
	worst     float64 // step in the frame of a rollback, beyond motion and what was fading, in steps of the precision

	began, size float64 // of the present correction
	halves      []float64
}

func (w *outageWatch) start() { w.rollbacks = w.p.predict.Stats().Rollbacks }

func (w *outageWatch) frame() {
	p := w.p
	d, c := &p.predict.drawing, p.predict.sim.columns[0]
	row, _ := p.predict.sim.rowOf(p.own())
	drawn, now := *get[Position](&p.mirror, p.own()), p.client.PredictionTime()
	if newest := p.predict.sim.newest; !now.Tick.Before(newest) {
		now = replication.Time{Tick: newest}
	}
	var from, to Position // by what is simulated now
	d.value(c, row, w.at, unsafe.Pointer(&from))
	d.value(c, row, now, unsafe.Pointer(&to))
	size := math.Hypot(float64(drawn.X-to.X), float64(drawn.Y-to.Y))
	rollbacks := p.predict.Stats().Rollbacks
	require.LessOrEqual(p.t, rollbacks, w.rollbacks+1, "more than one in a frame")
	faded := [2]float64{} // by so much, what was left of corrections would have faded without this frame's rollback
	if w.fades.Active(0) {
		copy(faded[:], w.fades.Errors(0))
		w.fades.Fade(0, time.Duration((p.now-w.frameAt)*1e6))
		faded[0], faded[1] = w.fades.Errors(0)[0]-faded[0], w.fades.Errors(0)[1]-faded[1]
	}
	if rollbacks > w.rollbacks && w.frameAt > 0 {
		x := float64(drawn.X-w.last.X-to.X+from.X) - faded[0]
		y := float64(drawn.Y-w.last.Y-to.Y+from.Y) - faded[1]
		w.worst = max(w.worst, math.Hypot(x, y)/0.01)
		w.began, w.size = p.now, size
	} else if w.size > 0.05 && size <= w.size/2 { // five steps
		w.halves, w.size = append(w.halves, p.now-w.began), 0
	}
	w.rollbacks, w.last, w.at, w.frameAt = rollbacks, drawn, now, p.now
	w.fades = spring.Rows{}
	if f := &d.fades[0]; f.Active(row) {
		w.fades = f.Copy(row)
	}
}

// costFigures measures what an entity of three components and 40 bytes costs.
func costFigures(t *testing.T) {
	const n = 1000
	p := crowd(t, n)
	s := p.predict.sim
	s.inputs.advance(s.newest)
	least := func(fn func()) float64 { // nanoseconds, the median of 9 runs
		var runs []float64
		for range 9 {
			begin := time.Now()
			for range 20 {
				fn()
			}
			runs = append(runs, float64(time.Since(begin).Nanoseconds())/20)
		}
		slices.Sort(runs)
		return runs[len(runs)/2]
	}
	var from earliest
	figure(t, "save_ns", least(func() { s.save(s.newest) })/n)
	figure(t, "restore_ns", least(func() { s.load(s.newest) })/n)
	figure(t, "compare_ns", least(func() {
		for i := range s.known {
			s.known[i].any = false
		}
		s.judge(s.newest, &from)
	})/n)
	figure(t, "compare_ns_without", least(func() { s.judge(s.newest, &from) })/n)
	figure(t, "resim_ms_1000x24", least(func() {
		now := s.newest
		s.rewind(now - 24)
		s.simulate(now)
	})/1e6)
	require.Zero(t, testing.AllocsPerRun(20, func() {
		now := s.newest
		s.rewind(now - 24)
		s.simulate(now)
	}))
}

// shotFigures fires ten shots at once 88 times, some of them while the way up is down.
func shotFigures(t *testing.T) {
	matched := 100.0
	for _, loss := range []float64{0, 0.05, 0.2} {
		matched = min(matched, playShots(t, loss))
	}
	figure(t, "spawns_matched_percent", matched)
	require.EqualValues(t, 100, matched)
}

// playShots returns how many of the shots that the server has spawned became the client's own, in percent.
func playShots(t *testing.T, loss float64) float64 {
	r := &rules{}
	p := newPlay(t, setting{seed: 7, oneWay: 75, loss: loss, lossUp: loss}, r)
	fire := 0
	p.input = func() Move {
		if fire > 0 {
			fire--
			return Move{Fire: 10, X: 1}
		}
		return Move{}
	}
	p.run(3)
	began, cancelled, actual := map[Bang]int{}, map[Bang]int{}, map[Bang]int{}
	OnEffect(p.predict, func(b Bang, _ time.Duration) { began[b]++ }, func(b Bang) { cancelled[b]++ })
	r.bang = func(b Bang) { actual[b]++ }
	shots := func(w *ecs.World, marker ecs.ID) (n int) {
		for q := w.Query(ecs.All(ecs.ComponentID[Shot](w), marker)); q.Next(); {
			n++
		}
		return n
	}
	spawned := 0 // by the server, and seen by the client as such
	replication.OnSpawn(p.client, func(e ecs.Entity) {
		if p.mirror.Has(e, ecs.ComponentID[Shot](&p.mirror)) {
			if _, ok := p.predict.sim.rowOf(e); ok {
				spawned++
			}
		}
	})
	predicted := ecs.ComponentID[Predicted](&p.mirror)
	var hidden []float64 // ticks until refused shots were
	for i := range 88 {
		outage := i%8 == 3
		p.blocked = outage
		if outage {
			p.run(0.05)
		}
		fire = 1
		had, begin := shots(&p.mirror, predicted), 0.0
		p.afterFrame = func() {
			n := shots(&p.mirror, predicted)
			if outage && begin == 0 && n > had {
				begin = p.now
			} else if begin > 0 && n <= had {
				if ticks := (p.now - begin) / p.tickLength; ticks < 50 { // it was not one that ended
					hidden = append(hidden, ticks)
				}
				begin, outage = 0, false
			}
		}
		if outage {
			p.run(0.15)
			p.blocked = false
		}
		p.run(1.6)
	}
	p.afterFrame = nil
	p.run(6)
	slices.Sort(hidden)
	t.Logf("%g: refused shots were hidden after %.1f ticks; %+v", loss, hidden, p.predict.Stats())
	require.Zero(t, shots(&p.world, ecs.ComponentID[replication.Replicated](&p.world)))
	require.Zero(t, shots(&p.mirror, ecs.ComponentID[Position](&p.mirror)))
	for b, n := range began {
		require.LessOrEqual(t, n-cancelled[b], 1, "%v", b)
	}
	for _, b := range slices.Collect(func(yield func(Bang) bool) {
		for b := range began {
			yield(b)
		}
		for b := range actual {
			yield(b)
		}
	}) {
		if b.Kind == 2 { // the end of a shot has a place that may be rounded
			require.Equal(t, actual[b], began[b]-cancelled[b], "%v", b)
		}
	}
	require.GreaterOrEqual(t, len(hidden), 5)
	const trip = 9
	if loss < 0.2 {
		require.LessOrEqual(t, hidden[len(hidden)-1], trip+8.01)
	} else {
		require.LessOrEqual(t, hidden[len(hidden)*95/100-1], trip+12.01)
	}
	fired := 0
	for b := range actual {
		if b.Kind == 2 {
			fired++
		}
	}
	return 100 * float64(spawned) / float64(fired)
}

// keyFigures measures in which frame an input is seen.
func keyFigures(t *testing.T) {
	for _, fps := range []float64{30, 60, 144} {
		p := newPlay(t, setting{seed: 9, oneWay: 75, fps: fps}, &rules{})
		p.run(4)
		worst := 0.0
		for range 50 {
			p.run(4 + p.rng.Float64()/10) // it has come to rest
			p.input = func() Move { return Move{X: 1} }
			begin, seen := p.now, 0.0
			p.afterFrame = func() {
				if seen == 0 && math.Abs(float64(get[Velocity](&p.mirror, p.own()).X)) > 0.02 {
					seen = p.now
				}
			}
			p.run(0.2)
			p.afterFrame, p.input = nil, func() Move { return Move{} }
			require.NotZero(t, seen)
			worst = max(worst, seen-begin-1000/fps)
		}
		t.Logf("%g frames a second: seen %.1f ms after the first frame that could", fps, worst)
		require.LessOrEqual(t, worst, p.tickLength+1000/fps)
	}
}

// switchFigures measures how fast an entity moves that becomes predicted, and that no longer is.
func switchFigures(t *testing.T) {
	least, most := math.Inf(1), 0.0
	for _, fps := range []float64{30, 60, 144} {
		low, high := playSwitch(t, fps)
		least, most = min(least, low), max(most, high)
	}
	figure(t, "switch_speed_ratio", least)
	figure(t, "switch_speed_ratio", most)
	require.GreaterOrEqual(t, least, 0.5)
	require.LessOrEqual(t, most, 1.5)
}

func playSwitch(t *testing.T, fps float64) (least, most float64) {
	p, _, e := remote(t, setting{
		seed: 3, oneWay: 75, fps: fps, attach: func(c *replication.Client) { interpolation.Attach(c) },
	}, func(replication.Tick) Move { return Move{X: 1} })
	p.run(5) // up to its last speed
	least = math.Inf(1)
	last, before := float32(0), 0.0
	p.afterFrame = func() {
		x := get[Position](&p.mirror, e).X
		if before > 0 {
			ratio := float64(x-last) / (p.now - before) * 1000 / float64(get[Velocity](&p.mirror, e).X)
			least, most = min(least, ratio), max(most, ratio)
		}
		last, before = x, p.now
	}
	predicted := func() bool { return p.mirror.Has(e, ecs.ComponentID[Predicted](&p.mirror)) }
	p.predict.Predict(e, time.Second)
	p.run(2)
	require.True(t, predicted())
	p.predict.Release(e, time.Second)
	for i := 0; predicted() && i < 300; i++ {
		p.run(1. / 60)
	}
	require.False(t, predicted())
	p.run(2)
	return least, most
}
