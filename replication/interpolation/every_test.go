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

// TestWhatMovesMustNotBeCapturedSeldom: a component with Every would stand still and jump.
func TestWhatMovesMustNotBeCapturedSeldom(t *testing.T) {
	type slow struct {
		X float32 `repl:"range=-10000:10000,step=0.01"`
	}
	type hours struct {
		Hour uint8 `repl:"range=1:24,wrap"`
	}
	type held struct {
		X    float32 `repl:"range=-10000:10000,step=0.01,hold"`
		Hour uint8   `repl:"range=1:24,wrap,hold"`
	}
	attach := func(register func(s *replication.Schema)) *interpolation.Interpolation {
		schema, world := replication.NewSchema(), ecs.NewWorld()
		register(schema)
		return interpolation.Attach(replication.NewClient(&world, schema))
	}
	require.PanicsWithValue(t, "interpolation: Attach: slow is registered with Every(4), so it would stand still for 3 "+
		"ticks and cover all of the distance in one: leave out Every and use Peer.SetSendInterval to send motion less "+
		"often, give the fields that move the tag hold, or register it with Newest",
		func() { attach(func(s *replication.Schema) { replication.Register[slow](s, replication.Every(4)) }) })
	require.Panics(t, func() { attach(func(s *replication.Schema) { replication.Register[hours](s, replication.Every(2)) }) },
		"integers that go round move, too")
	p := attach(func(s *replication.Schema) {
		replication.Register[slow](s, replication.Every(4), replication.Newest())
		replication.Register[held](s, replication.Every(4))
	})
	interpolation.Custom(p, func(ecs.Entity, *slow, *slow, float32) {})
}

// TestWhatStepsMayBeCapturedSeldom: it changes at the time of its state, at most n-1 ticks after it did at the server.
func TestWhatStepsMayBeCapturedSeldom(t *testing.T) {
	type rounds struct{ N uint16 }
	const n = 4
	g := &game{t: t, rand: newRand(t), profile: quiet, rate: 20, frames: 144, wobble: 0.1}
	g.prepare(replicationtest.Seed(t), func() { replication.Register[rounds](g.schema, replication.Every(n)) })
	e := g.spawn(place{})
	id, local := ecs.ComponentID[rounds](&g.world), ecs.ComponentID[rounds](&g.local)
	g.world.Add(e, id)
	v := newView(g)
	g.onTick = func(tick int) {
		g.place(e).X = float32(tick)
		(*rounds)(g.world.Get(e, id)).N = uint16(tick)
	}
	g.run(3)
	v.after = func(float64) {
		own, _ := g.mirror(e)
		shown, now := float64((*rounds)(g.local.Get(own, local)).N), math.Floor(v.time)
		require.LessOrEqual(t, shown, now)
		require.Greater(t, shown, now-n)
	}
	g.run(10)
}
