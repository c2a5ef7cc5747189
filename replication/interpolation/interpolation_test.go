package interpolation_test

import (
	"math"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// newest returns the time of the newest state that the client has, as view counts.
func (g *game) newest() float64 {
	return float64(g.ticked-1) - float64(int32(replication.Tick(g.tick)-g.client.Tick()))
}

// A motion is how well a uniform motion is shown.
type motion struct {
	error float64 // largest, in quanta
	step  float64 // largest of a frame, less 1.06 times what it should be, in quanta
	jumps int     // frames that are not judged, since nothing newer had come
}

// watchMotion lets an entity move at 6 units per second, and compares what is shown with where it was at the time
// that is shown.
func watchMotion(t testing.TB, g *game, v *view, seconds float64) (m motion) {
	const speed = 6.
	e := g.spawn(place{})
	g.onTick = func(n int) { g.place(e).X = float32(math.Mod(float64(n)*speed/g.rate, 6000)) }
	g.run(5)
	last, starved := 0., true
	v.after = func(dt float64) {
		at, ok := g.shown(e)
		require.True(t, ok)
		was := starved
		if starved = v.time > g.newest(); starved || was {
			m.jumps++
			last = float64(at.X)
			return
		}
		m.error = max(m.error, math.Abs(float64(at.X)-v.time*speed/g.rate)/quantum)
		m.step = max(m.step, (math.Abs(float64(at.X)-last)-1.06*speed*dt)/quantum)
		last = float64(at.X)
	}
	g.run(seconds)
	return m
}

func TestUniformMotionIsShownToTheQuantum(t *testing.T) {
	for name, p := range map[string]profile{"B": profileB, "D": profileD} {
		for _, interval := range []int{1, 3} {
			g := newGame(t, replicationtest.Seed(t), p, 20*float64(interval))
			g.peer.SetSendInterval(interval)
			v := newView(g)
			m := watchMotion(t, g, v, 30)
			require.LessOrEqual(t, m.error, 1., "%s, every %d ticks", name, interval)
			require.LessOrEqual(t, m.step, 1., "%s, every %d ticks", name, interval)
			require.Less(t, m.jumps, 144, "too few frames were judged")
		}
	}
}

// TestTrap18FrameRates: smoothness must not break off 60 Hz, nor with hitches.
func TestTrap18FrameRates(t *testing.T) {
	replicationtest.OneGoroutine(t)
	for _, frames := range []float64{30, 59.94, 60, 75, 144, 240} {
		g := newGame(t, replicationtest.Seed(t), profileB, 20)
		g.frames = frames
		v := newView(g)
		m := watchMotion(t, g, v, 15)
		require.LessOrEqual(t, m.error, 1., "%v Hz", frames)
		require.LessOrEqual(t, m.step, 1., "%v Hz", frames)
		require.Less(t, m.jumps, 50, "%v Hz", frames)
		before := v.Stats()
		for _, hitch := range []float64{0.5, 2, 30} {
			g.nextFrame = g.now + hitch
			g.run(hitch + 3)
			require.Less(t, v.Stats().Delay, 350*time.Millisecond, "%v Hz, after a hitch of %v s", frames, hitch)
			require.Greater(t, v.Stats().Delay, 60*time.Millisecond, "%v Hz, after a hitch of %v s", frames, hitch)
		}
		require.Less(t, v.Stats().Starved-before.Starved, uint64(frames/4))
		require.Equal(t, before.Jumps, v.Stats().Jumps, "the client's clock went on in the hitch")
	}
}

// TestTrap4BackgroundedClient: a client that did not count the time of a pause must be back at once.
func TestTrap4BackgroundedClient(t *testing.T) {
	g := newGame(t, replicationtest.Seed(t), profile{oneWay: 0.075, jitter: 0.008}, 20, replication.WithTimeout(0))
	v := newView(g)
	watchMotion(t, g, v, 5)
	g.nextFrame = math.Inf(1)
	g.run(30)
	g.nextFrame, g.lastFrame = g.now, g.now-0.1 // all that the client believes has passed
	g.run(1)
	require.EqualValues(t, 1, v.Stats().Jumps, "once, not bit by bit")
	require.Less(t, g.now*20-v.time, 0.25*20, "still behind")
	starved := v.Stats().Starved
	g.run(5)
	require.EqualValues(t, 1, v.Stats().Jumps)
	require.Less(t, v.Stats().Starved-starved, uint64(8), "it must not overshoot")
}

// TestTrap5Jitter: 50 ms of jitter must not freeze the picture for half a second.
func TestTrap5Jitter(t *testing.T) {
	g := newGame(t, replicationtest.Seed(t), profile{oneWay: 0.1, jitter: 0.05}, 20)
	v := newView(g)
	e := g.spawn(place{})
	g.onTick = func(n int) { g.place(e).X = float32(n%2000) * 0.3 }
	g.run(10)
	still, longest, last := 0.0, 0.0, float32(-1)
	v.after = func(dt float64) {
		at, _ := g.shown(e)
		if still += dt; at.X != last {
			still = 0
		}
		longest, last = max(longest, still), at.X
	}
	g.run(60)
	require.Less(t, longest, 0.15)
}

// smear lets an entity rest for two seconds and then set out at 6 units per second, and returns the largest error of
// what is shown, as the time in intervals that the entity needs for it. If the world is busy, packets come meanwhile,
// but none about the entity.
func smear(t testing.TB, seed uint64, p profile, busy bool) (intervals float64) {
	const speed = 6. / 20
	g := newGame(t, seed, p, 20)
	e, other := g.spawn(place{}), g.spawn(place{})
	v := newView(g)
	x := func(tick, start float64) float64 { return max(0, tick-start) * speed }
	stop, start := math.Inf(1), math.Inf(1)
	g.onTick = func(n int) {
		g.place(e).X = float32(min(float64(n), stop)*speed + x(float64(n), start))
		if busy || float64(n) < stop {
			g.place(other).Y = float32(n)
		}
	}
	g.run(4)
	stop = float64(g.ticked)
	start = stop + 40
	v.after = func(float64) {
		at, _ := g.shown(e)
		if v.time > g.newest() {
			return
		}
		want := min(v.time, stop)*speed + x(v.time, start)
		intervals = max(intervals, (math.Abs(float64(at.X)-want)-quantum)/speed)
	}
	g.run(6)
	shown, _ := g.shown(e)
	require.Greater(t, shown.X, float32(stop*speed+5), "it never set out")
	return intervals
}

// TestTrap1RestThenMove: an entity that rested does not begin to move before it did, nor jump.
func TestTrap1RestThenMove(t *testing.T) {
	replicationtest.OneGoroutine(t)
	seed := replicationtest.Seed(t)
	for i := range uint64(5) {
		for _, busy := range []bool{true, false} {
			still := profile{oneWay: 0.075, jitter: 0.004} // with more, the first two packets may change places
			require.Zero(t, max(0, smear(t, seed+i, still, busy)), "busy: %v", busy)
			// If the first packets get lost, it may have set out at any time since it is known to have rested. That four
			// of profile B, or eight of profile D, get lost in a row does not happen.
			require.LessOrEqual(t, smear(t, seed+i, profileB, busy), 4., "busy: %v", busy)
			require.LessOrEqual(t, smear(t, seed+i, profileD, busy), 8., "busy: %v", busy)
		}
	}
}

// TestTrap2FirstStates: what is spawned appears at once, whether it moves or never does.
func TestTrap2FirstStates(t *testing.T) {
	g := newGame(t, replicationtest.Seed(t), profile{oneWay: 0.075, jitter: 0.008}, 20)
	v := newView(g)
	walker := g.spawn(place{})
	g.onTick = func(n int) { g.place(walker).X = float32(n%1000) * 0.1 }
	g.run(3)
	spawned := g.ticked
	bullet, box := g.spawn(place{X: 100}), g.spawn(place{X: 7, Y: 8, Z: 9})
	g.onTick = func(n int) {
		g.place(walker).X = float32(n%1000) * 0.1
		g.place(bullet).X = 100 + float32(n-spawned)*2
	}
	seen := 0
	v.after = func(float64) {
		if at, ok := g.shown(box); ok {
			seen++
			require.Equal(t, place{X: 7, Y: 8, Z: 9}, at)
		}
		at, ok := g.shown(bullet)
		switch {
		case !ok || v.time > g.newest():
		case v.time <= float64(spawned):
			require.InDelta(t, 100, at.X, quantum, "it waits where it was spawned")
		default:
			require.InDelta(t, 100+2*(v.time-float64(spawned)), at.X, quantum)
		}
	}
	g.run(2)
	require.Greater(t, seen, 200)
}

// TestTrap3Teleports: a teleport shows no place in between, also after a rest; a fast entity is not cut by a gap.
func TestTrap3Teleports(t *testing.T) {
	for name, counted := range map[string]bool{"a counter": true, "a distance": false} {
		g := newGame(t, replicationtest.Seed(t), profileB, 20)
		if !counted {
			g = newSnappingGame(t, replicationtest.Seed(t), profileB, 10)
		}
		e, counter := g.spawn(place{}), g.spawn(place{})
		if counted {
			counter = e
		}
		g.world.Add(counter, g.ids.teleports)
		v := newView(g)
		g.onTick = func(n int) {
			at := g.place(e)
			switch at.Y = float32(n%100) * 9; { // fast, but below 10 per tick
			case n%100 == 0:
				(*teleports)(g.world.Get(counter, g.ids.teleports)).N++
				fallthrough
			case n%100 < 50: // at rest
				at.Y = 0
			case n%100 == 70:
				at.X = 4000 - at.X
				(*teleports)(g.world.Get(counter, g.ids.teleports)).N++
			}
		}
		g.onTick(0)
		g.run(3)
		jumps, last := 0, float32(0)
		v.after = func(float64) {
			at, _ := g.shown(e)
			require.True(t, at.X == 0 || at.X == 4000, "%s: %v is in between", name, at.X)
			require.True(t, at.Y <= 891 && at.Y >= 0)
			if at.X != last {
				jumps, last = jumps+1, at.X
			}
		}
		g.run(60)
		require.GreaterOrEqual(t, jumps, 10)
	}
}

func TestAFastMoverIsNotCutByLoss(t *testing.T) {
	g := newSnappingGame(t, replicationtest.Seed(t), profile{oneWay: 0.075, jitter: 0.008}, 10)
	e := g.spawn(place{})
	v := newView(g)
	g.onTick = func(n int) { g.place(e).X = float32(n) * 9 }
	g.run(3)
	outage := g.now
	g.muted = func(now float64) bool { return now > outage && now < outage+0.3 }
	between := 0
	v.after = func(float64) {
		at, _ := g.shown(e)
		if v.time < g.newest() {
			require.InDelta(t, v.time*9, at.X, 0.1)
			if v.time > outage*20+1 && v.time < outage*20+6 {
				between++
			}
		}
	}
	g.run(3)
	require.Positive(t, between, "the gap must be seen")
}

func TestAPathThatBecomesLonger(t *testing.T) {
	g := newGame(t, replicationtest.Seed(t), profileB, 20)
	v := newView(g)
	e := g.spawn(place{})
	g.onTick = func(n int) { g.place(e).X = float32(n%1000) * 0.1 }
	for _, change := range []float64{0.08, -0.08, 0.5, -0.5, 3} {
		g.run(20)
		before := v.Stats()
		g.profile.oneWay += change
		g.run(8)
		late := v.Stats().Starved - before.Starved
		require.Less(t, float64(late)/144, 1.5*max(change, 0)+0.5, "a change of %v", change)
		require.InDelta(t, before.Delay.Seconds(), v.Stats().Delay.Seconds(), 0.06, "a change of %v", change)
	}
}

// TestAShorterPathIsNoticed, though one of the first packets on it comes as late as on the longer one. Not to notice it
// would cost the difference as delay until what came on the longer one is forgotten.
func TestAShorterPathIsNoticed(t *testing.T) {
	for late := range 5 {
		g := newGame(t, 1, profile{oneWay: 0.155}, 20)
		v := newView(g)
		e := g.spawn(place{})
		g.onTick = func(n int) { g.place(e).X = float32(n%1000) * 0.1 }
		g.run(10)
		before := v.Stats().Delay
		g.profile.oneWay -= 0.05
		g.run(0.05 + 0.05*float64(late))
		g.profile.oneWay += 0.047
		g.run(0.05)
		g.profile.oneWay -= 0.047
		g.run(4)
		require.InDelta(t, before.Seconds(), v.Stats().Delay.Seconds(), 0.02, "packet %d", late)
	}
}

func TestATimeOfTheServerInWhichItStandsStill(t *testing.T) {
	g := newGame(t, replicationtest.Seed(t), profile{oneWay: 0.075, jitter: 0.008}, 20)
	v := newView(g)
	e := g.spawn(place{})
	g.onTick = func(n int) { g.place(e).X = float32(n%1000) * 0.1 }
	g.run(10)
	before := v.time
	v.after = func(float64) {
		require.GreaterOrEqual(t, v.time, before)
		before = v.time
	}
	delay := v.Stats().Delay
	stop := g.now
	g.frozen = func(now float64) bool { return now < stop+3 }
	g.run(3)
	g.shift += 3
	g.run(2)
	require.InDelta(t, delay.Seconds(), v.Stats().Delay.Seconds(), 0.06)
	starved := v.Stats().Starved
	g.run(3)
	require.Less(t, v.Stats().Starved-starved, uint64(25))
}

func TestNothingAllocates(t *testing.T) {
	if replicationtest.RaceDetector {
		t.Skip("the race detector allocates")
	}
	c := newCrowd(t, 300, moveTurning)
	require.Zero(t, testing.AllocsPerRun(50, func() { _ = c.client.Frame(time.Second / 144) }))
	frames := func() {
		c.tick(t)
		for range 7 {
			_ = c.client.Frame(time.Second / 140)
		}
	}
	for range 300 {
		frames()
	}
	require.Zero(t, testing.AllocsPerRun(100, frames), "with new states")
	seats := newCrowd(t, 100, func(v *seat, n int) { v.X = float32(n % 100) })
	benches := newCrowd(t, 100, func(v *bench, n int) { v.X = float32(n % 100) })
	frames = func() {
		seats.tick(t)
		benches.tick(t)
		_ = seats.client.Frame(time.Second / 20)
		_ = benches.client.Frame(time.Second / 20)
	}
	for range 300 {
		frames()
	}
	require.Zero(t, testing.AllocsPerRun(100, frames), "with references")
}

// TestLossOfSomePacketsOfATick: in a large world each tick takes several packets, and those that arrive must not hide
// that others got lost.
func TestLossOfSomePacketsOfATick(t *testing.T) {
	replicationtest.OneGoroutine(t)
	g := newGame(t, replicationtest.Seed(t), profileD, 20)
	var list []ecs.Entity
	for i := range 400 {
		list = append(list, g.spawn(place{Y: float32(i)}))
	}
	g.onTick = func(n int) {
		for i, e := range list {
			*g.place(e) = place{float32(n*7%300 + i), float32(n * 13 % 300), float32(n * i % 300)}
		}
	}
	v := newView(g)
	g.run(20)
	still, seen := 0, 0
	last := map[ecs.Entity]place{}
	v.after = func(float64) {
		for _, e := range list[:50] {
			at, _ := g.shown(e)
			if seen++; at == last[e] {
				still++
			}
			last[e] = at
		}
	}
	packets := g.client.Stats().Packets
	g.run(30)
	require.Greater(t, g.client.Stats().Packets-packets, uint64(30*20*1.5), "too few packets per tick")
	t.Logf("%.2f %% of the frames of an entity stand still, delay %.0f ms", 100*float64(still)/float64(seen), 1000*v.delay())
	require.Less(t, float64(still)/float64(seen), 0.02)
}
