package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

type pMatch struct{ Round uint8 }

type pMatchTwin struct{ Round uint8 }

// TestAPanicInTheCaptureLeavesNoOwner: an entity that ended in a tick whose capture panicked has no
// owner any more, and the next entity in its slot has none.
func TestAPanicInTheCaptureLeavesNoOwner(t *testing.T) {
	fails := false
	s := NewSchema()
	Register[tPosition](s)
	Register[tHealth](s, OwnerOnly())
	RegisterResource[pMatch](s, As(func(from *pMatch, to *pMatchTwin) {
		if fails {
			panic("the user's")
		}
		to.Round = from.Round
	}, func(from *pMatchTwin, to *pMatch) { to.Round = from.Round }))

	x := newWire(t, s)
	match := &pMatch{}
	ecs.AddResource(x.world, match)
	x.rounds(5)
	position, health := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tHealth](x.world)
	e := x.spawn(position, health)
	x.rounds(5)
	x.server.SetOwner(e, x.peer)
	x.rounds(5)
	require.Same(t, x.peer, x.server.Owner(e))
	slot := x.slotOf(e)

	x.world.RemoveEntity(e)
	match.Round++
	fails = true
	require.Panics(t, x.server.Replicate)
	fails = false
	require.Nil(t, x.server.Owner(e))

	var next ecs.Entity
	for range 200 { // until an entity gets the slot
		next = x.spawn(position, health)
		x.round()
		if x.slotOf(next) == slot {
			break
		}
	}
	require.Equal(t, slot, x.slotOf(next))
	x.rounds(10)
	require.Nil(t, x.server.Owner(next))
	mirrored := 0
	for _, of := range x.client.Entities() {
		if x.mirror.Has(of, ecs.ComponentID[tHealth](x.mirror)) {
			mirrored++
		}
	}
	require.Zero(t, mirrored, "nobody owns what is there now")
}
