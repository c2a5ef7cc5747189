package rewind

import (
	"math"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// TestConditionsHaveCountersOfTheirOwn: as in package interpolation, what comes under a condition is cut by a counter under the
// same condition, and that cuts nothing else.
func TestConditionsHaveCountersOfTheirOwn(t *testing.T) {
	type Teleports struct {
		N uint8 `repl:"cut"`
	}
	type Aim struct {
		Yaw float32 `repl:"range=-1000:1000,step=0.01"`
	}
	schema := replication.NewSchema()
	replication.Register[Position](schema)
	replication.Register[Teleports](schema, replication.OwnerOnly())
	replication.Register[Aim](schema, replication.OwnerOnly())
	replication.RegisterInput[Shot](schema)
	for _, loss := range []float64{0, 0.1} {
		g := newGameOf(t, replicationtest.Seed(t), 20, loss, schema)
		g.delay = 0.25
		e := g.spawn(0)
		aim, count := ecs.ComponentID[Aim](g.world), ecs.ComponentID[Teleports](g.world)
		g.world.Add(e, aim, count)
		g.server.SetOwner(e, g.peer)
		side := float32(0)
		g.tick = func() {
			tick := g.server.Tick() + 1
			if tick%16 == 0 {
				side = 900 - side
				(*Teleports)(g.world.Get(e, count)).N++
			}
			(*Aim)(g.world.Get(e, aim)).Yaw = side + float32(tick%16)
		}
		walker := g.spawn(0)
		move := g.tick
		g.tick = func() {
			move()
			g.at(e).X, g.at(walker).X = float32(g.server.Tick()+1)/100, float32(g.server.Tick()+1)/100
		}
		cut, moved := 0, 0
		g.eachView(60, func(v View) {
			var a Aim
			if !Get(v, e, &a) || g.now < 3 {
				return
			}
			var own, other Position
			require.True(t, Get(v, e, &own) && Get(v, walker, &other))
			require.Equal(t, other, own, "the counter cuts nothing else")
			tick, part := uint32(v.Time().Tick), v.Time().Fraction
			require.True(t, a.Yaw < 16 || a.Yaw >= 900 && a.Yaw < 916, "%v is in between", a.Yaw)
			if next := (tick + 1) % 16; next == 0 && part > 0 {
				cut++
			} else if loss == 0 && part > 0 {
				require.InDelta(t, float32(tick%16)+part, float32(math.Mod(float64(a.Yaw), 900)), 0.01)
				moved++
			}
		})
		require.Greater(t, cut, 20)
		require.True(t, loss > 0 || moved > 500)
	}
}
