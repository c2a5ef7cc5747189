package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// What users may do to both worlds.

// tLocal is a component that the client's user adds.
type tLocal struct{ Heat float64 }

func TestComponentThatTheUserAddedFirst(t *testing.T) {
	x, e, _ := crowd(t, 1)
	m, _ := x.mirrored(e[0])
	health := ecs.ComponentID[tHealth](x.mirror)
	x.mirror.Add(m, health)
	(*tHealth)(x.mirror.Get(m, health)).HP = 5
	x.world.Add(e[0], ecs.ComponentID[tHealth](x.world))
	x.rounds(2)
	x.requireEqual("the server's value counts")
	x.world.Remove(e[0], ecs.ComponentID[tHealth](x.world))
	x.rounds(2)
	require.False(t, x.mirror.Has(m, health))
}

func TestLocalComponentsSurvive(t *testing.T) {
	x, e, move := crowd(t, 2)
	local, position := ecs.ComponentID[tLocal](x.mirror), ecs.ComponentID[tPosition](x.world)
	health := ecs.ComponentID[tHealth](x.world)
	m, _ := x.mirrored(e[0])
	x.mirror.Add(m, local)
	(*tLocal)(x.mirror.Get(m, local)).Heat = 36.6
	for i := range 12 {
		switch i % 4 {
		case 0:
			x.world.Add(e[0], health)
		case 1:
			x.world.Remove(e[0], position)
		case 2:
			x.world.Remove(e[0], health)
		case 3:
			x.world.Add(e[0], position)
			move(e[0], 1)
		}
		x.round()
		x.requireEqual()
		require.Equal(t, 36.6, (*tLocal)(x.mirror.Get(m, local)).Heat)
	}
}
