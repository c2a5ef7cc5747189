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

// TestPartsOutOfViewDoNotHoldUpSettled: of an entity that the client keeps showing, a part is not sent before it goes out
// of view, or is lost afterwards. So it is never sent, and the peer must not count as one that is sent a large state:
// that would hold up Client.Settled.
func TestPartsOutOfViewAreForgotten(t *testing.T) {
	for _, unsent := range []bool{false, true} {
		x := connectedWire(t, testSchema(), WithMTU(128))
		bulk, frozen := ecs.ComponentID[tBulk](x.world), ecs.ComponentID[tFrozen](x.world)
		e := x.spawn(bulk)
		x.spawn(frozen)
		fillBulk(x, e, 1)
		x.rounds(100)
		if unsent {
			x.peer.SetBudget(60 * 64)
			x.rounds(2)
		}
		fillBulk(x, e, 2)
		packets := x.replicate()
		require.True(t, x.peer.acked.Large.Any())
		require.Equal(t, unsent, x.peer.acked.AnyDirty())
		if !unsent {
			packets = packets[1:]
		}
		x.deliver(packets...)
		x.answer(x.apply()...)
		nobody := ecs.All(frozen)
		x.peer.SetInterest(Interest{Filter: &nobody, Keep: true})
		x.rounds(100)
		require.False(t, x.peer.acked.Large.Any(), unsent)
		x.peer.SetInterest(Interest{Keep: true})
		x.rounds(50)
		x.requireEqual()
	}
}

// TestStatesThatArrivedNeedNoParts: a small change of a large entity arrives, but its ack is late. Meanwhile the server
// can't encode it against what the client held before, and begins to send the complete state in parts.
func TestStatesThatArrivedNeedNoParts(t *testing.T) {
	x := connectedWire(t, testSchema(), WithMTU(128))
	bulk := ecs.ComponentID[tBulk](x.world)
	e := x.spawn(bulk)
	fillBulk(x, e, 1)
	x.rounds(100)
	x.peer.SetBudget(60 * 128)
	(*tBulk)(x.world.Get(e, bulk)).Cells[0]++
	x.deliver(x.replicate()...)
	late := x.apply()
	for n := 0; !x.peer.acked.Large.Any() || !x.peer.acked.AnyDirty(); n++ {
		require.Less(t, n, 400)
		x.replicate()
	}
	x.answer(late...)
	require.False(t, x.peer.acked.AnyDirty())
	require.False(t, x.peer.acked.Large.Any())
	x.rounds(100)
	x.requireEqual()
}
