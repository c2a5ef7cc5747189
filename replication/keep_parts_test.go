package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestPartsOutOfViewMakeRoom: an entity that leaves the view before all its parts arrived is not
// shown, not even with Keep, and does not block the assembly of others.
func TestPartsOutOfViewMakeRoom(t *testing.T) {
	x := connectedWire(t, testSchema(), WithMTU(128))
	bulk, frozen := ecs.ComponentID[tBulk](x.world), ecs.ComponentID[tFrozen](x.world)
	var es []ecs.Entity
	for i := range receive.MaxAssemblies {
		e := x.spawn(bulk)
		fillBulk(x, e, uint64(i+1))
		es = append(es, e)
	}
	for i, p := range x.replicate() {
		if i%3 > 0 { // of all, but not all parts
			x.deliver(p)
		}
	}
	require.Len(t, x.client.recv.Parts, receive.MaxAssemblies)
	seen := ecs.All(frozen)
	x.peer.SetInterest(Interest{Filter: &seen, Keep: true})
	e := x.spawn(bulk, frozen)
	fillBulk(x, e, 99)
	x.rounds(100)
	x.requireSeen(e)
	x.peer.SetInterest(Interest{Keep: true})
	x.rounds(100)
	x.requireSeen(append(es, e)...)
}

// TestPartsThatWereNotSentYet: the server makes the client drop the parts that it has.
func TestPartsThatWereNotSentYet(t *testing.T) {
	x := connectedWire(t, testSchema(), WithMTU(128))
	x.peer.SetBudget(60 * 128)
	fillBulk(x, x.spawn(ecs.ComponentID[tBulk](x.world)), 1)
	for n := 0; len(x.client.recv.Parts) == 0; n++ {
		require.Less(t, n, 10)
		x.round()
	}
	nobody := ecs.All(ecs.ComponentID[tFrozen](x.world))
	x.peer.SetInterest(Interest{Filter: &nobody, Keep: true})
	x.rounds(20)
	require.Empty(t, x.client.recv.Parts)
	x.peer.SetInterest(Interest{Keep: true})
	x.rounds(50)
	x.requireEqual()
}
