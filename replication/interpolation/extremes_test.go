package interpolation_test

import (
	"math"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
)

// TestAClientOfFewFrames: a bot, or a game in the background, may never have a short frame.
func TestAClientOfFewFrames(t *testing.T) {
	for _, frames := range []float64{9, 4, 1, 0.2} {
		type drawn place
		g := newGame(t, replicationtest.Seed(t), profileB, 20, replication.WithTimeout(0))
		g.frames = frames
		v := newView(g)
		interpolation.Into[place, drawn](v.Interpolation)
		id := ecs.ComponentID[drawn](&g.local)
		e := g.spawn(place{})
		g.onTick = func(n int) { g.place(e).X = float32(n % 5000) }
		g.run(30 + 20/frames)
		last, before := -1., v.Stats().Starved
		v.after = func(float64) {
			own, ok := g.mirror(e)
			require.True(t, ok)
			require.True(t, g.local.Has(own, id), "%v frames per second", frames)
			x := float64((*drawn)(g.local.Get(own, id)).X)
			// The server sends less to a client that is silent for seconds, so there may be nothing new.
			if starved := v.Stats().Starved; starved == before && frames >= 1 {
				require.Greater(t, x, last, "%v frames per second", frames)
			} else {
				require.GreaterOrEqual(t, x, last, "%v frames per second", frames)
				before = starved
			}
			require.Less(t, float64(g.ticked)-x, (max(1/frames, 3/frames-4)+0.5)*20+20, "%v frames per second", frames)
			last = x
		}
		g.run(10 + 10/frames)
		require.Greater(t, last, 400., "%v frames per second", frames)
		require.NotZero(t, v.Stats().Frames)
	}
}

type label struct{}

// TestCustomOfALabel: a component without fields is in states, too.
func TestCustomOfALabel(t *testing.T) {
	g := &game{t: t, rand: newRand(t), profile: quiet, rate: 20, frames: 60}
	g.prepare(1, func() { replication.Register[label](g.schema) })
	id := ecs.ComponentID[label](&g.world)
	v := newView(g)
	calls := 0
	interpolation.Custom(v.Interpolation, func(ecs.Entity, *label, *label, float32) { calls++ })
	e := g.world.NewEntity(ecs.ComponentID[replication.Replicated](&g.world), id)
	g.run(2)
	_, ok := g.mirror(e)
	require.True(t, ok)
	require.Greater(t, calls, 30)
}

type childOf struct {
	ecs.Relation
	X float32
}

func TestARelationIsShownInPlace(t *testing.T) {
	g := &game{t: t, rand: newRand(t), profile: quiet, rate: 20, frames: 60}
	g.prepare(1, func() { replication.Register[childOf](g.schema) })
	id := ecs.ComponentID[childOf](&g.world)
	v := newView(g)
	type drawn childOf
	require.PanicsWithValue(t, "interpolation: Into: interpolation_test.childOf is a relation, and an entity can't have two: use Custom", func() { interpolation.Into[childOf, drawn](v.Interpolation) })
	a, b := g.spawn(place{}), g.spawn(place{})
	e, f := g.world.NewEntity(ecs.ComponentID[replication.Replicated](&g.world), id), g.world.NewEntity(ecs.ComponentID[replication.Replicated](&g.world), id)
	g.world.Relations().Set(e, id, a)
	g.world.Relations().Set(f, id, b)
	g.onTick = func(n int) {
		(*childOf)(g.world.Get(e, id)).X = float32(n)
		(*childOf)(g.world.Get(f, id)).X = -float32(n)
	}
	g.run(2)
	at := ecs.ComponentID[childOf](&g.local)
	v.after = func(float64) {
		if v.time > g.newest() {
			return
		}
		x, _ := g.mirror(e)
		y, _ := g.mirror(f)
		require.InDelta(t, v.time, (*childOf)(g.local.Get(x, at)).X, 0.01)
		require.InDelta(t, -v.time, (*childOf)(g.local.Get(y, at)).X, 0.01)
		m, _ := g.mirror(a)
		require.Equal(t, m, g.local.Relations().Get(x, at))
	}
	g.run(2)
}

// TestAFrameOfCenturies must not confuse the clock.
func TestAFrameOfCenturies(t *testing.T) {
	g := newGame(t, replicationtest.Seed(t), quiet, 20, replication.WithTimeout(0))
	v := newView(g)
	e := g.spawn(place{})
	g.onTick = func(n int) { g.place(e).X = float32(n) * 0.1 }
	g.run(2)
	for range 3000 {
		require.NoError(t, g.client.Frame(math.MaxInt64))
	}
	before := v.time
	v.after = func(float64) {
		require.LessOrEqual(t, before, v.time)
		require.Less(t, v.time, g.newest()+6)
		before = v.time
	}
	g.run(3)
	v.after = nil
	g.run(5)
	at, _ := g.shown(e)
	require.InDelta(t, v.time*0.1, at.X, 0.02)
	require.Less(t, g.newest()-v.time, 10.)
}

// TestStatesAreHeldForAsLongAsTheyAreShown: the delay may be longer than the protocol needs old states for.
func TestStatesAreHeldForAsLongAsTheyAreShown(t *testing.T) {
	for _, c := range []struct{ rate, interval, window int }{{1000, 50, 64}, {60, 30, 16}, {20, 60, 8}} {
		g := newGame(t, replicationtest.Seed(t), profileD, float64(c.rate), replication.WithTuning(replication.Tuning{Window: c.window}),
			replication.WithTimeout(0))
		g.peer.SetSendInterval(c.interval)
		v := newView(g)
		e := g.spawn(place{})
		g.onTick = func(n int) { g.place(e).X = float32(n) * 6 / float32(c.rate) }
		seconds := 20 * float64(c.interval) / float64(c.rate)
		g.run(max(10, seconds))
		judged := 0
		v.after = func(float64) {
			if at, _ := g.shown(e); v.time < g.newest() {
				require.InDelta(t, v.time*6/float64(c.rate), at.X, 0.02, "%+v", c)
				judged++
			}
		}
		g.run(max(10, seconds))
		require.Greater(t, judged, 500, "%+v", c)
	}
}
