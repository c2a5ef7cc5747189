package replication_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

type (
	restingPlace struct {
		X, Y, Z float32 `repl:"range=-1000:1000,step=0.01"`
	}
	restingTurn struct {
		Q [4]float32 `repl:"quat,bits=9"`
	}
	restingHeading struct {
		A float32 `repl:"angle,bits=10,period=360"`
	}
	restless struct {
		X float32 `repl:"range=-1000:1000,step=0.01,margin=0"`
	}
	restingTwin struct{ x float64 }
	twinOfIt    struct {
		X float64 `repl:"range=-1000:1000,step=0.01"`
	}
)

// A noisyWorld is a server with one peer, to which it sends all, and whose packets arrive at once.
type noisyWorld struct {
	world, mirror *ecs.World
	server        *replication.Server
	client        *replication.Client
	peer          *replication.Peer
	schema        *replication.Schema
}

func newNoisyWorld(register func(*replication.Schema)) *noisyWorld {
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	x := &noisyWorld{world: &world, mirror: &mirror, schema: replication.NewSchema()}
	register(x.schema)
	x.server = replication.NewServer(x.world, x.schema)
	x.peer = x.server.Connect(func(p []byte) error { return x.client.Receive(p) })
	x.client = replication.NewClientWith(x.mirror, x.schema, func(p []byte) error { return x.peer.Receive(p) })
	return x
}

// updates plays ticks and returns how many updates were sent.
func (x *noisyWorld) updates(t *testing.T, ticks int, move func()) uint64 {
	before := x.peer.Stats().Updates
	for range ticks {
		move()
		x.server.Replicate()
		require.NoError(t, x.client.Apply())
	}
	return x.peer.Stats().Updates - before
}

// atBoundary returns the updates of 600 ticks in which X is half-way between two steps, with noise of 1/100 step.
func atBoundary[T any](t *testing.T, x func(*T) *float32) uint64 {
	rng := rand.New(rand.NewPCG(1, 54))
	w := newNoisyWorld(func(s *replication.Schema) { replication.Register[T](s) })
	id := ecs.ComponentID[T](w.world)
	e := w.world.NewEntity(id, replication.ReplicatedID(w.world))
	move := func() { *x((*T)(w.world.Get(e, id))) = float32(10.005 + (2*rng.Float64()-1)*0.0001) }
	w.updates(t, 10, move)
	return w.updates(t, 600, move)
}

func TestNoiseBetweenTwoStepsIsNoChange(t *testing.T) {
	require.Zero(t, atBoundary(t, func(v *restingPlace) *float32 { return &v.X }))
	require.Greater(t, atBoundary(t, func(v *restless) *float32 { return &v.X }), uint64(200), "without a margin")
}

// What rests is not sent because of noise of 1/16 step to either side, wherever between the steps of its fields it is.
func TestAPileAtRestIsAtRest(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 54))
	noise := func(size float64) float64 { return (2*rng.Float64() - 1) * size }
	const bodies, step = 1000, 0.01
	x := newNoisyWorld(func(s *replication.Schema) {
		replication.Register[restingPlace](s)
		replication.Register[restingTurn](s)
		replication.Register[restingHeading](s)
		replication.Register[restingTwin](s, replication.As(
			func(v *restingTwin, s *twinOfIt) { s.X = v.x }, func(s *twinOfIt, v *restingTwin) { v.x = s.X }))
	})
	type body struct {
		entity      ecs.Entity
		place, twin [3]float64
		turn        [4]float64
		heading     float64
	}
	places, turns := ecs.ComponentID[restingPlace](x.world), ecs.ComponentID[restingTurn](x.world)
	headings, twins := ecs.ComponentID[restingHeading](x.world), ecs.ComponentID[restingTwin](x.world)
	all := make([]body, bodies)
	for i := range all {
		b := &all[i]
		b.entity = x.world.NewEntity(places, turns, headings, twins, replication.ReplicatedID(x.world))
		length := 0.0
		for k := range b.turn {
			b.turn[k] = rng.NormFloat64()
			length += b.turn[k] * b.turn[k]
		}
		for k := range b.turn {
			b.turn[k] /= math.Sqrt(length)
		}
		for k := range b.place {
			b.place[k], b.twin[k] = noise(900), noise(900)
		}
		b.heading = 180 + noise(180)
		if i%2 == 0 { // half-way between two codes, of which one is the last of the circle
			b.heading = 360 * (0.5*float64(i%5) - 1) / 1024
		}
	}
	move := func() {
		for i := range all {
			b := &all[i]
			place := (*restingPlace)(x.world.Get(b.entity, places))
			place.X = float32(b.place[0] + noise(step/16))
			place.Y = float32(b.place[1] + noise(step/16))
			place.Z = float32(b.place[2] + noise(step/16))
			turn := (*restingTurn)(x.world.Get(b.entity, turns))
			for k, v := range b.turn {
				turn.Q[k] = float32(v + noise(1./360/32)) // its length adds to that
			}
			(*restingHeading)(x.world.Get(b.entity, headings)).A = float32(b.heading + noise(360./1024/16))
			(*restingTwin)(x.world.Get(b.entity, twins)).x = b.twin[0] + noise(step/16)
		}
	}
	x.updates(t, 20, move)
	require.Zero(t, x.updates(t, 200, move))
	require.Nil(t, x.client.Verify())
}

// Slow motion is followed, and no error adds up.
func TestMarginsDoNotAddUp(t *testing.T) {
	const step, margin = 0.01, 0.125
	x := newNoisyWorld(func(s *replication.Schema) { replication.Register[restingPlace](s) })
	id, mirrored := ecs.ComponentID[restingPlace](x.world), ecs.ComponentID[restingPlace](x.mirror)
	e := x.world.NewEntity(id, replication.ReplicatedID(x.world))
	rng, v, worst := rand.New(rand.NewPCG(3, 54)), 0.0, 0.0
	for range 20_000 {
		v += (rng.Float64() - 0.48) * step / 4
		x.updates(t, 1, func() { (*restingPlace)(x.world.Get(e, id)).X = float32(v) })
		for _, m := range x.client.Entities() {
			worst = max(worst, math.Abs(float64((*restingPlace)(x.mirror.Get(m, mirrored)).X)-v))
		}
	}
	require.Greater(t, worst, (0.5+0.9*margin)*step)
	require.LessOrEqual(t, worst, (0.5+margin)*step+1e-6) // the rounding of float32
	require.Greater(t, v, 0.3)
}

func TestMarginTags(t *testing.T) {
	refused := func(want, tag string) {
		t.Helper()
		require.PanicsWithValue(t, "replication: place.X: "+want, func() {
			replication.Register[struct{ X float32 }](replication.NewSchema(), replication.Name("place"), replication.Field("X", tag))
		})
	}
	refused("margin=0.5: use 0 to 0.4 of a step", "margin=0.5,range=0:1,step=0.1")
	refused("margin=-1: use 0 to 0.4 of a step", "margin=-1,range=0:1,step=0.1")
	refused("margin=NaN: use 0 to 0.4 of a step", "margin=NaN,range=0:1,step=0.1")
	refused("margin is for fields that are rounded to steps", "margin=0.1")
	refused("margin is given twice", "margin=0.1,margin=0.1,range=0:1,step=0.1")

	// Margins are no part of the schema: both ends need not have the same.
	s, without := replication.NewSchema(), replication.NewSchema()
	replication.Register[restingPlace](s, replication.Name("place"))
	replication.Register[restingPlace](without, replication.Name("place"),
		replication.Field("X", "range=-1000:1000,step=0.01,margin=0"))
	require.Equal(t, s.Fingerprint(), without.Fingerprint())
}
