package interpolation_test

import (
	"math"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
)

// quiet is a path that loses nothing and delays all packets by the same time.
var quiet = profile{oneWay: 0.05}

type velocity struct {
	X, Y, Z float32
}

func TestHermiteFollowsACircle(t *testing.T) {
	for _, curved := range []bool{true, false} {
		g := &game{t: t, rand: nil, profile: quiet, rate: 20, frames: 144}
		g.rand = newRand(t)
		g.first = func() { replication.Register[velocity](g.schema) }
		if curved {
			g.placed = []replication.ComponentOption{replication.Hermite[velocity](1. / 20)}
		}
		g.prepare(1, nil)
		id := ecs.ComponentID[velocity](&g.world)
		e := g.spawn(place{})
		g.world.Add(e, id)
		v := newView(g)
		const turn = 0.5 // radians per tick
		g.onTick = func(n int) {
			sin, cos := math.Sincos(float64(n) * turn)
			*g.place(e) = place{float32(10 * cos), float32(10 * sin), 0}
			*(*velocity)(g.world.Get(e, id)) = velocity{float32(-10 * turn * 20 * sin), float32(10 * turn * 20 * cos), 0}
		}
		g.run(3)
		off := 0.0
		v.after = func(float64) {
			at, _ := g.shown(e)
			if v.time < g.newest() {
				off = max(off, math.Abs(math.Hypot(float64(at.X), float64(at.Y))-10))
			}
		}
		g.run(3)
		if curved {
			require.Less(t, off, 0.015)
		} else {
			require.Greater(t, off, 0.2, "chords are that far off")
		}
	}
}

// TestExtrapolationIsBounded: without the option entities stop, with it they go on for a while, and those at rest
// don't.
func TestExtrapolationIsBounded(t *testing.T) {
	for _, ticks := range []float64{0, 4, 2.5} {
		g := newGame(t, replicationtest.Seed(t), quiet, 20)
		var opts []interpolation.Option
		if ticks > 0 {
			opts = append(opts, interpolation.Extrapolate(time.Duration(ticks*50)*time.Millisecond))
		}
		v := newView(g, opts...)
		e, box := g.spawn(place{}), g.spawn(place{X: 5})
		g.onTick = func(n int) {
			g.place(e).X = float32(n) * 0.3
			g.place(box).Y = float32(min(n, 20))
		}
		g.run(4)
		before := v.Stats()
		require.Zero(t, before.Extrapolated)
		g.muted = func(float64) bool { return true }
		g.run(1)
		at, _ := g.shown(e)
		require.InDelta(t, (g.newest()+ticks)*0.3, at.X, 0.02)
		at, _ = g.shown(box)
		require.Equal(t, place{X: 5, Y: 20}, at)
		require.Equal(t, ticks > 0, v.Stats().Extrapolated > 0)
		g.muted = nil
		g.run(2)
		require.Greater(t, v.Stats().Starved, before.Starved)
		at, _ = g.shown(e)
		require.InDelta(t, v.time*0.3, at.X, 0.02)
	}
}

func TestCustomGetsBothStates(t *testing.T) {
	g := newGame(t, replicationtest.Seed(t), quiet, 20)
	v := newView(g)
	e, box := g.spawn(place{}), g.spawn(place{X: 7})
	g.onTick = func(n int) { g.place(e).X = float32(n) }
	calls := map[float32]int{}
	var x float64
	interpolation.Custom(v.Interpolation, func(own ecs.Entity, a, b *place, f float32) {
		calls[a.Y]++
		if mirror, _ := g.mirror(e); own == mirror {
			x = float64(a.X) + float64(b.X-a.X)*float64(f)
			return
		}
		mirror, _ := g.mirror(box)
		require.Equal(t, mirror, own)
		require.Equal(t, place{X: 7}, *a)
		require.Same(t, a, b)
		require.Zero(t, f)
	})
	g.run(2)
	v.after = func(float64) {
		if v.time < g.newest() {
			require.InDelta(t, v.time, x, 1e-4)
		}
		at, _ := g.shown(e)
		if v.time < g.newest() {
			require.InDelta(t, at.X, x, 1e-4, "the component is written as well")
		}
	}
	g.run(2)
	require.Greater(t, calls[0], 500)
}

// TestATwinLeavesTheComponentToTheSimulation, and goes with it.
func TestATwinLeavesTheComponentToTheSimulation(t *testing.T) {
	type drawn place
	g := newGame(t, replicationtest.Seed(t), quiet, 20)
	v := newView(g)
	interpolation.Into[place, drawn](v.Interpolation)
	id := ecs.ComponentID[drawn](&g.local)
	e := g.spawn(place{})
	g.onTick = func(n int) { g.place(e).X = float32(n) }
	g.run(2)
	v.after = func(float64) {
		require.Nil(t, g.client.Verify())
		own, _ := g.mirror(e)
		if v.time < g.newest() {
			require.InDelta(t, v.time, (*drawn)(g.local.Get(own, id)).X, 1e-3)
		}
	}
	g.run(2)
	v.after = nil
	own, _ := g.mirror(e)
	g.world.Remove(e, g.ids.place)
	g.onTick = nil
	g.run(1)
	require.False(t, g.local.Has(own, id))
}

// TestTrap16SwappedRowsAndReusedSlots: removing entities moves others to their rows, and new ones get their slots and
// IDs.
func TestTrap16SwappedRowsAndReusedSlots(t *testing.T) {
	g := newGame(t, replicationtest.Seed(t), quiet, 20)
	v := newView(g)
	list := map[int]ecs.Entity{}
	g.onTick = func(n int) {
		if e, ok := list[n%7]; ok {
			g.world.RemoveEntity(e)
		}
		list[n%7] = g.spawn(place{Y: float32(n % 7)})
		for i, e := range list {
			*g.place(e) = place{X: float32(n), Y: float32(i), Z: float32(n * i)}
		}
	}
	g.run(2)
	shown := 0
	v.after = func(float64) {
		for i := range 7 {
			at, ok := g.shown(list[i])
			if !ok {
				continue
			}
			require.EqualValues(t, i, at.Y, "it shows another entity's place")
			require.InDelta(t, at.X*at.Y, at.Z, 0.1)
			shown++
		}
	}
	g.run(5)
	require.Greater(t, shown, 1000)
}

// TestAUserMayRemoveThingsAndResetTheWorld: what is removed stays removed, and what comes again is shown.
func TestAUserMayRemoveThingsAndResetTheWorld(t *testing.T) {
	g := newGame(t, replicationtest.Seed(t), quiet, 20)
	v := newView(g)
	a, b := g.spawn(place{}), g.spawn(place{})
	g.onTick = func(n int) { g.place(a).X, g.place(b).X = float32(n), float32(n) }
	g.run(2)
	own, _ := g.mirror(a)
	g.local.Remove(own, g.at.place)
	other, _ := g.mirror(b)
	g.local.RemoveEntity(other)
	g.run(1)
	require.False(t, g.local.Has(own, g.at.place))
	g.local.Reset()
	g.run(1)
	for _, e := range []ecs.Entity{a, b} {
		at, ok := g.shown(e)
		require.True(t, ok)
		require.InDelta(t, v.time, at.X, 0.01)
	}
	g.client.Reconnect()
	g.run(2)
	at, _ := g.shown(a)
	require.InDelta(t, v.time, at.X, 0.01)
	g.client.Close()
	require.Error(t, g.client.Frame(time.Second))
}

// TestNewTwinsHaveTheValuesOfTheirComponents: also where no state shows them, since the user added the component.
func TestNewTwinsHaveTheValuesOfTheirComponents(t *testing.T) {
	type drawn place
	g := newGame(t, 1, quiet, 20)
	v := newView(g)
	interpolation.Into[place, drawn](v.Interpolation)
	e := g.world.NewEntity(ecs.ComponentID[replication.Replicated](&g.world))
	g.run(3)
	own, ok := g.mirror(e)
	require.True(t, ok)
	g.local.Add(own, g.at.place)
	*(*place)(g.local.Get(own, g.at.place)) = place{1, 2, 3}
	g.run(0.2)
	require.Equal(t, drawn{1, 2, 3}, *(*drawn)(g.local.Get(own, ecs.ComponentID[drawn](&g.local))))
}

type (
	drawnPlace     place
	drawnTeleports teleports
)

func TestMisuseIsAnsweredBySentences(t *testing.T) {
	type other struct{ X float64 }
	g := newGame(t, 1, quiet, 20)
	v := newView(g)
	p := v.Interpolation
	shown := newGame(t, 1, quiet, 20)
	shown.spawn(place{})
	late := newView(shown).Interpolation
	shown.run(2)
	for name, c := range map[string]struct {
		misuse func()
		want   string
	}{
		"second":       {func() { interpolation.Attach(g.client) }, "has an Interpolation already: attach one per client"},
		"no option":    {func() { interpolation.Attach(g.client, nil) }, "leave it out"},
		"none":         {func() { (*interpolation.Interpolation)(nil).Stats() }, "Attach makes one"},
		"zero":         {func() { interpolation.Into[place, drawnPlace](&interpolation.Interpolation{}) }, "Attach makes one"},
		"no client":    {func() { interpolation.Attach(nil) }, "NewClient makes one"},
		"margin":       {func() { interpolation.Margin(1) }, "use 0.5 to 0.9999"},
		"speed":        {func() { interpolation.Speed(0, 1) }, "use 0.25 to 1"},
		"extrapolate":  {func() { interpolation.Extrapolate(0) }, "use 1ms to 3s"},
		"plain number": {func() { interpolation.Extrapolate(4) }, "Extrapolate(4ns): use 1ms to 3s"},
		"too far":      {func() { interpolation.Extrapolate(time.Minute) }, "use 1ms to 3s"},
		"unregistered": {func() { interpolation.Custom(p, func(ecs.Entity, *other, *other, float32) {}) }, "is not registered"},
		"twin": {
			func() { interpolation.Into[place, other](p) }, "does not have the fields",
		},
		"late": {
			func() { interpolation.Into[place, drawnPlace](late) }, "call Into right after Attach",
		},
		"registered twin": {func() { interpolation.Into[health, teleports](p) }, "is registered in the schema"},
		"no function":     {func() { interpolation.Custom[place](p, nil) }, "needs a function"},
		"locked": {func() {
			q := g.local.Query(ecs.All())
			defer q.Close()
			_ = g.client.Frame(1)
		}, "outside of queries"},
	} {
		func() {
			defer func() {
				require.Contains(t, recover(), c.want, name)
			}()
			c.misuse()
			t.Errorf("%s: no panic", name)
		}()
	}
}

// TestATwinFollowsOneComponent: two components can't both write the same values.
func TestATwinFollowsOneComponent(t *testing.T) {
	type spot place
	type drawn place
	g := &game{t: t, rand: newRand(t), profile: quiet, rate: 20, frames: 60}
	g.prepare(1, func() { replication.Register[spot](g.schema) })
	p := interpolation.Attach(g.client)
	interpolation.Into[place, drawn](p)
	require.PanicsWithValue(t, "interpolation: Into: interpolation_test.drawn has the values of a component already: "+
		"declare a type for each", func() { interpolation.Into[spot, drawn](p) })
}
