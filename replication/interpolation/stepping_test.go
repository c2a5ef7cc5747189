package interpolation_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
)

// gadget moves and has something that does not.
type gadget struct {
	X    float32 `repl:"range=-1000:1000,step=0.01"`
	Open bool
	Kind uint8
	Bits uint8  `repl:"flags=4"`
	Name string `repl:"max=8"`
}

// gadgetAt returns the gadget of a tick.
func gadgetAt(n int, x float32) gadget {
	return gadget{X: x, Open: n%2 == 0, Kind: uint8(n), Bits: uint8(n) & 15, Name: strconv.Itoa(n)}
}

// TestExtrapolatedEntitiesKeepWhatSteps: beyond the newest state, what does not move is that of the newest state.
func TestExtrapolatedEntitiesKeepWhatSteps(t *testing.T) {
	g := &game{t: t, rand: newRand(t), profile: quiet, rate: 20, frames: 144, wobble: 0.1}
	g.prepare(replicationtest.Seed(t), func() { replication.Register[gadget](g.schema) })
	id, own := ecs.ComponentID[gadget](&g.world), ecs.ComponentID[gadget](&g.local)
	v := newView(g, interpolation.Extrapolate(time.Second/2))
	e := g.world.NewEntity(ecs.ComponentID[replication.Replicated](&g.world), id)
	g.onTick = func(n int) {
		*(*gadget)(g.world.Get(e, id)) = gadgetAt(n, float32(n)*0.3)
	}
	g.run(4)
	g.muted = func(float64) bool { return true }
	guessed := 0
	v.after = func(float64) {
		if v.time <= g.newest() {
			return
		}
		guessed++
		mirror, _ := g.mirror(e)
		at := (*gadget)(g.local.Get(mirror, own))
		n := int(g.newest())
		require.Equal(t, gadgetAt(n, at.X), *at, "at %v, the newest state is of %v", v.time, g.newest())
	}
	g.run(1)
	require.Greater(t, guessed, 10)
}

// TestWhatStepsIsThatOfTheTimeShown: all of it changes in the frame that reaches the next state.
func TestWhatStepsIsThatOfTheTimeShown(t *testing.T) {
	g := &game{t: t, rand: newRand(t), profile: quiet, rate: 20, frames: 144, wobble: 0.1}
	g.prepare(replicationtest.Seed(t), func() { replication.Register[gadget](g.schema) })
	id, own := ecs.ComponentID[gadget](&g.world), ecs.ComponentID[gadget](&g.local)
	v := newView(g)
	e := g.world.NewEntity(ecs.ComponentID[replication.Replicated](&g.world), id)
	g.onTick = func(n int) {
		*(*gadget)(g.world.Get(e, id)) = gadgetAt(n, float32(n)*0.3)
	}
	g.run(3)
	shown := 0
	v.after = func(float64) {
		if v.time >= g.newest() {
			return
		}
		shown++
		mirror, _ := g.mirror(e)
		at := (*gadget)(g.local.Get(mirror, own))
		require.Equal(t, gadgetAt(int(v.time), at.X), *at, "at %v", v.time)
		require.InDelta(t, v.time*0.3, at.X, quantum)
	}
	g.run(3)
	require.Greater(t, shown, 400)
}
