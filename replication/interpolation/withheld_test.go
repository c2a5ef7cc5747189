package interpolation_test

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/apply"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
)

// predicted marks what interpolation leaves alone.
type predicted struct{ Row uint32 }

// TestWithheldComponentsAreLeftAlone: their values, references, relations, twins and functions, in entities with the
// marker. When these lose it, they are shown as all others are.
func TestWithheldComponentsAreLeftAlone(t *testing.T) {
	r := newRide(t, profileB, 40)
	v := newView(r.game)
	interpolation.Into[seat, drawnSeat](v.Interpolation)
	of := ecs.Entity{} // for which the function must not be called
	calls := 0
	interpolation.Custom(v.Interpolation, func(e ecs.Entity, _, _ *seat, _ float32) {
		calls++
		require.NotEqual(t, of, e)
	})
	inside := seam.OfClient(r.client)
	marker, twin := ecs.ComponentID[predicted](&r.local), ecs.ComponentID[drawnSeat](&r.local)
	held := apply.Withheld{On: true, Marker: marker}
	for k := range inside.Schema.Components {
		held.Components.Add(k)
	}
	inside.Apply.View.Withheld = held
	rock, other := r.spawn(place{X: 50}), r.spawn(place{X: 50})
	onTick := r.onTick
	r.onTick = func(n int) {
		onTick(n)
		if r.world.Alive(other) {
			r.place(other).X = float32(n % 1000)
		}
	}
	r.run(2)
	man, _ := r.mirror(r.man)
	car, _ := r.mirror(r.car)
	rested, _ := r.mirror(rock)
	for _, e := range []ecs.Entity{man, car, rested} {
		r.local.Add(e, marker)
	}
	of = man
	at := func(e ecs.Entity) *place { return (*place)(r.local.Get(e, r.at.place)) }
	s, b := (*seat)(r.local.Get(man, r.ownSeat)), (*bench)(r.local.Get(man, r.ownBench))
	d := (*drawnSeat)(r.local.Get(man, twin))
	*at(car), *at(rested) = place{X: -1}, place{X: -2}
	*s, b.X, *d = seat{Of: man, X: -3}, -4, drawnSeat{Of: car, X: -5}
	r.local.Relations().Set(man, r.ownBench, man)
	moved, last, frames := 0, float32(0), 0
	v.after = func(float64) {
		frames++
		s, b = (*seat)(r.local.Get(man, r.ownSeat)), (*bench)(r.local.Get(man, r.ownBench))
		d = (*drawnSeat)(r.local.Get(man, twin))
		require.Equal(t, [2]place{{X: -1}, {X: -2}}, [2]place{*at(car), *at(rested)})
		require.Equal(t, seat{Of: man, X: -3}, *s)
		require.EqualValues(t, -4, b.X)
		require.Equal(t, man, r.local.Relations().Get(man, r.ownBench))
		require.Equal(t, drawnSeat{Of: car, X: -5}, *d)
		require.True(t, v.Shown(man))
		require.Nil(t, r.client.Verify())
		if e, ok := r.mirror(other); ok && at(e).X != last {
			moved, last = moved+1, at(e).X
		}
	}
	calls = 0
	r.run(4)
	require.Greater(t, moved, frames*9/10, "the others go on")
	require.Zero(t, calls, "nobody else has a seat")

	of = ecs.Entity{}
	for _, e := range []ecs.Entity{man, car, rested} {
		r.local.Remove(e, marker)
	}
	inside.Apply.Renew(man) // for the component that has a twin; interpolation sees to the others
	v.after = func(float64) {
		s, d = (*seat)(r.local.Get(man, r.ownSeat)), (*drawnSeat)(r.local.Get(man, twin))
		require.InDelta(t, 50, at(rested).X, quantum)
		require.InDelta(t, 1000, at(car).X, quantum)
		require.InDelta(t, 1000, r.drawn(d.Of, d.X), quantum)
		b = (*bench)(r.local.Get(man, r.ownBench))
		require.InDelta(t, 1000, r.drawn(r.local.Relations().Get(man, r.ownBench), b.X), quantum)
		require.Nil(t, r.client.Verify())
	}
	r.run(4)
	require.NotZero(t, calls)
}

// TestWhatIsWithheldFromGoesAtOnce: it is ahead of what is shown, so it doesn't linger, and the functions of OnDespawn
// are called when Apply learns of its end. What is new is shown once it is predicted.
func TestWhatIsWithheldFromGoesAtOnce(t *testing.T) {
	g := newGame(t, 5, quiet, 20)
	v := newView(g)
	gone := map[ecs.Entity]float64{}
	replication.OnDespawn(g.client, func(e ecs.Entity) { gone[e] = g.now })
	inside := seam.OfClient(g.client)
	marker := ecs.ComponentID[predicted](&g.local)
	inside.Apply.View.Withheld = apply.Withheld{On: true, Marker: marker}
	mine, other := g.spawn(place{}), g.spawn(place{})
	g.run(2)
	m, _ := g.mirror(mine)
	o, _ := g.mirror(other)
	g.local.Add(m, marker)
	g.world.RemoveEntity(mine)
	g.world.RemoveEntity(other)
	g.run(2)
	require.Len(t, gone, 2)
	require.Greater(t, gone[o]-gone[m], 0.04, "the delay of what is shown")

	early := 0
	v.after = func(float64) {
		if e, ok := g.mirror(mine); ok && !v.Shown(e) {
			g.local.Add(e, marker)
			require.True(t, v.Shown(e))
			early++
		}
	}
	mine = g.spawn(place{})
	g.run(1)
	require.Equal(t, 1, early)
}
