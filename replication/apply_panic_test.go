package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// registerUpset registers a component whose conversion at the client panics while *upset is true.
func registerUpset(s *Schema, upset *bool) {
	Register[cvPlan](s, As(cvToGoal, func(g *cvGoal, p *cvPlan) {
		if *upset {
			panic("the user's")
		}
		cvFromGoal(g, p)
	}))
}

// TestRowsAreWrittenThoughAConversionPanics: the rows of the entities before are shown, and nothing is written later to
// where components were before.
func TestRowsAreWrittenThoughAConversionPanics(t *testing.T) {
	upset := false
	s := testSchema()
	registerUpset(s, &upset)
	x := connectedWire(t, s)
	position, plan := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[cvPlan](x.world)
	moves, first := x.spawn(position), x.spawn(position)
	plans := x.spawn(plan)
	x.rounds(8)
	for turn := float32(0); turn < 3; turn++ {
		(*tPosition)(x.world.Get(moves, position)).X = 10 + turn
		(*cvPlan)(x.world.Get(plans, plan)).steps = append((*cvPlan)(x.world.Get(plans, plan)).steps, cvStep{X: turn})
		x.deliver(x.replicate()...)
		upset = true
		require.PanicsWithValue(t, "the user's", func() { _ = x.client.Apply() })
		upset = false
		at, ok := x.mirrored(moves)
		require.True(t, ok)
		shown := ecs.ComponentID[tPosition](x.mirror)
		require.InDelta(t, 10+turn, (*tPosition)(x.mirror.Get(at, shown)).X, 0.01)
		if turn == 0 {
			x.world.RemoveEntity(first) // the rows of the world move
		}
		x.rounds(2)
		require.Nil(t, x.client.Verify())
	}
}

// TestWhatAPanicLeftHalfWrittenDoesNotLinger: its values are not those of any state.
func TestWhatAPanicLeftHalfWrittenDoesNotLinger(t *testing.T) {
	upset := true
	s := NewSchema()
	registerUpset(s, &upset)
	Register[tPosition](s)
	x := connectedWire(t, s)
	x.client.apply.Shown = func() (blend.Time, bool) { return blend.Time{}, true } // as interpolation does
	position, plan := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[cvPlan](x.world)
	upset = false
	sound := x.spawn(position, plan)
	x.rounds(3)
	upset = true
	half := x.spawn(position, plan)
	x.deliver(x.replicate()...)
	require.PanicsWithValue(t, "the user's", func() { _ = x.client.Apply() })
	upset = false
	x.world.RemoveEntity(half)
	x.world.RemoveEntity(sound)
	x.rounds(3)
	require.Equal(t, 1, x.client.mirrorsShown(), "the other one lingers")
	require.Nil(t, x.client.Verify())
}

// TestCloseForgetsWhatAPanicLeft: events whose hooks were not called for a panic before them.
func TestCloseForgetsWhatAPanicLeft(t *testing.T) {
	upset := true
	s := NewSchema()
	Register[tPosition](s)
	registerUpset(s, &upset)
	x := connectedWire(t, s)
	x.client.OnSpawn(func(ecs.Entity) {})
	x.spawn(ecs.ComponentID[tPosition](x.world))
	x.spawn(ecs.ComponentID[cvPlan](x.world))
	x.deliver(x.replicate()...)
	require.PanicsWithValue(t, "the user's", func() { _ = x.client.Apply() })
	upset = false
	x.client.Close()
	require.NotPanics(t, func() { _ = x.client.Apply() })
}
