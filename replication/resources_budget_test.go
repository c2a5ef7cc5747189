package replication

import (
	"math/rand/v2"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestResourcesUnderABudget: resources take part with the weights of their types, and are not
// passed to the priority function.
func TestResourcesUnderABudget(t *testing.T) {
	wait := func(opts ...ComponentOption) (ticks int) {
		s := NewSchema()
		Register[tPosition](s)
		RegisterResource[rsWeather](s, opts...)
		x := connectedWire(t, s)
		position := ecs.ComponentID[tPosition](x.world)
		var crowd []ecs.Entity
		for range 300 {
			crowd = append(crowd, x.spawn(position))
		}
		setResource(x.world, rsWeather{})
		x.rounds(5)
		x.peer.SetBudget(6000)
		asked := 0
		x.peer.SetPriorityFunc(func(entities []ecs.Entity, weights []float32) {
			require.Len(t, weights, len(entities))
			asked += len(entities)
			for i, e := range entities {
				require.True(t, x.world.Alive(e))
				weights[i] = float32(e.ID() % 5)
			}
		})
		rng := rand.New(rand.NewPCG(1, 2))
		for round := range 40 {
			setResource(x.world, rsWeather{Rain: uint8(round)})
			for n := 0; resourceOf[rsWeather](x.mirror).Rain != uint8(round); n++ {
				require.Less(t, n, 300, "nothing starves")
				for _, e := range crowd {
					(*tPosition)(x.world.Get(e, position)).X = rng.Float32()*200 - 100
				}
				x.round()
				ticks++
			}
		}
		require.NotZero(t, asked)
		require.NotZero(t, x.peer.Stats().OverBudget)
		return ticks
	}
	plain, urgent := wait(), wait(Priority(50))
	t.Logf("40 changes took %d ticks, with priority %d", plain, urgent)
	require.Less(t, urgent, plain)
}

// TestResourcesAloneUnderABudget: no entity is dirty, so the priority function is not called.
func TestResourcesAloneUnderABudget(t *testing.T) {
	x := connectedWire(t, resourceSchema())
	x.peer.SetBudget(600)
	x.peer.SetPriorityFunc(func([]ecs.Entity, []float32) { require.Fail(t, "nobody waits") })
	m := setResource(x.world, rsMap{})
	for range 200 {
		for i := range m.Cells {
			m.Cells[i]++
		}
		x.round()
	}
	require.NotZero(t, x.peer.Stats().OverBudget)
	x.rounds(300)
	require.Equal(t, *m, *resourceOf[rsMap](x.mirror))
}
