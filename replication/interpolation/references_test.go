package interpolation_test

import (
	"math"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/mlange-42/arche/ecs/event"
	"github.com/mlange-42/arche/listener"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
)

// seat is where somebody is: in the world, or in a car.
type seat struct {
	Of ecs.Entity
	X  float32 `repl:"range=-2000:2000,step=0.01"`
}

type drawnSeat seat

// bench is the same by a relation.
type bench struct {
	ecs.Relation
	X float32 `repl:"range=-2000:2000,step=0.01"`
}

// A ride is a game in which a man gets into a car at 1000, or out of it, every so many ticks.
type ride struct {
	*game
	car, man          ecs.Entity
	seats, benches    ecs.ID // of the server's world
	ownSeat, ownBench ecs.ID // of the client's world
}

func newRide(t testing.TB, p profile, every int) *ride {
	g := &game{t: t, rand: newRand(t), profile: p, rate: 20, frames: 144, wobble: 0.1}
	g.prepare(replicationtest.Seed(t), func() {
		replication.Register[seat](g.schema)
		replication.Register[bench](g.schema)
	})
	r := &ride{
		game:  g,
		seats: ecs.ComponentID[seat](&g.world), benches: ecs.ComponentID[bench](&g.world),
		ownSeat: ecs.ComponentID[seat](&g.local), ownBench: ecs.ComponentID[bench](&g.local),
	}
	r.car = g.spawn(place{X: 1000})
	r.man = g.world.NewEntity(ecs.ComponentID[replication.Replicated](&g.world), r.seats, r.benches)
	g.onTick = func(n int) {
		s, b := (*seat)(g.world.Get(r.man, r.seats)), (*bench)(g.world.Get(r.man, r.benches))
		*s, b.X = seat{X: 1000}, 1000
		if inside(n, every) {
			*s, b.X = seat{Of: r.car}, 0
		}
		if of := s.Of; n%every == 0 {
			g.world.Relations().Set(r.man, r.benches, of)
		}
		g.place(r.car).Y = float32(n % 1000) // states come in every tick
	}
	return r
}

// inside reports whether the man is in the car in a tick.
func inside(n, every int) bool { return n/every%2 == 1 }

// drawn returns where a place that is relative to an entity is drawn.
func (r *ride) drawn(of ecs.Entity, x float32) float64 {
	if of.IsZero() {
		return float64(x)
	}
	require.True(r.t, r.local.Alive(of))
	return float64(x) + float64((*place)(r.local.Get(of, r.at.place)).X)
}

// TestReferencesAreThoseOfTheTimeShown: a place and what it is relative to change in one tick at the server, and in one
// frame at the client. Relations and references have the same rules.
func TestReferencesAreThoseOfTheTimeShown(t *testing.T) {
	for name, p := range map[string]profile{"quiet": quiet, "B": profileB, "D": profileD} {
		r := newRide(t, p, 40)
		v := newView(r.game)
		r.run(2)
		offSeat, offBench, in, out := 0., 0., 0, 0
		v.after = func(float64) {
			man, ok := r.mirror(r.man)
			require.True(t, ok)
			s, b := (*seat)(r.local.Get(man, r.ownSeat)), (*bench)(r.local.Get(man, r.ownBench))
			of := r.local.Relations().Get(man, r.ownBench)
			require.Equal(t, s.Of, of, "the relation's target is that of the same time")
			offSeat = max(offSeat, math.Abs(r.drawn(s.Of, s.X)-1000))
			offBench = max(offBench, math.Abs(r.drawn(of, b.X)-1000))
			if p == quiet {
				require.Equal(t, inside(int(v.time), 40), !s.Of.IsZero(), "at %v", v.time)
			}
			if s.Of.IsZero() {
				out++
			} else {
				in++
			}
		}
		r.run(30)
		require.LessOrEqual(t, offSeat, quantum, "%s: by a reference", name)
		require.LessOrEqual(t, offBench, quantum, "%s: by a relation", name)
		require.Greater(t, min(in, out), 1500, name)
	}
}

// TestTwinsAndFunctionsGetReferencesOfTheirTime, while the component keeps those of the newest state.
func TestTwinsAndFunctionsGetReferencesOfTheirTime(t *testing.T) {
	r := newRide(t, profileB, 40)
	v := newView(r.game)
	interpolation.Into[seat, drawnSeat](v.Interpolation)
	calls, between := 0, 0
	interpolation.Custom(v.Interpolation, func(_ ecs.Entity, a, b *seat, _ float32) {
		calls++
		require.InDelta(t, 1000, r.drawn(a.Of, a.X), quantum)
		require.InDelta(t, 1000, r.drawn(b.Of, b.X), quantum)
		if a.Of != b.Of {
			between++
		}
	})
	twin := ecs.ComponentID[drawnSeat](&r.local)
	r.run(2)
	newer := 0
	v.after = func(float64) {
		man, _ := r.mirror(r.man)
		d, s := (*drawnSeat)(r.local.Get(man, twin)), (*seat)(r.local.Get(man, r.ownSeat))
		require.InDelta(t, 1000, r.drawn(d.Of, d.X), quantum)
		require.Nil(t, r.client.Verify(), "the component is that of Apply")
		if s.Of != d.Of {
			newer++
		}
	}
	r.run(20)
	require.Greater(t, calls, 2500)
	require.Zero(t, between, "the two values of a function are relative to the same entity")
	require.Greater(t, newer, 50, "the component is newer than its twin")
}

// TestATargetIsSetOnceForEachChange: Apply leaves it to play-out, and does not put it back and forth meanwhile. When the
// target ends, there is none from then on.
func TestATargetIsSetOnceForEachChange(t *testing.T) {
	r := newRide(t, quiet, 40)
	v := newView(r.game)
	r.run(2.1)
	set := 0
	l := listener.NewCallback(func(*ecs.World, ecs.EntityEvent) { set++ }, event.TargetChanged, r.ownBench)
	r.local.SetListener(&l)
	first := r.ticked
	r.run(20)
	require.InDelta(t, (r.ticked-first)/40, set, 1)
	for !inside(int(v.time), 40) {
		r.run(0.1)
	}
	man, _ := r.mirror(r.man)
	require.False(t, r.local.Relations().Get(man, r.ownBench).IsZero())
	r.onTick = nil
	r.world.RemoveEntity(r.car)
	r.run(0.2)
	require.True(t, r.local.Relations().Get(man, r.ownBench).IsZero())
}

// TestReferencesToWhatTheUserRemovesAreZero, also while the entity that has them rests.
func TestReferencesToWhatTheUserRemovesAreZero(t *testing.T) {
	r := newRide(t, quiet, 40)
	v := newView(r.game)
	interpolation.Into[place, drawnPlace](v.Interpolation)
	r.run(3)
	r.onTick = nil
	(*seat)(r.world.Get(r.man, r.seats)).Of = r.car
	r.run(2)
	man, _ := r.mirror(r.man)
	s := func() *seat { return (*seat)(r.local.Get(man, r.ownSeat)) }
	car, _ := r.mirror(r.car)
	require.Equal(t, car, s().Of)
	r.local.RemoveEntity(car)
	r.run(0.1)
	require.True(t, s().Of.IsZero())
}
