package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/history"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// The packets of a peer must not depend on anything that it may not see, however indirectly.

// TestOldBaselinesDoNotDependOnOtherSlots: the history may reach further back than promised if
// neighbouring slots did not change. Whether an update is a delta must not depend on that.
func TestOldBaselinesDoNotDependOnOtherSlots(t *testing.T) {
	x := connectedWire(t, testSchema(), WithWindow(8))
	position, health := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tHealth](x.world)
	e := x.spawn(position, health)
	slot := func() int { id, _ := x.server.NetID(e); return int(id.Slot) }
	x.rounds(20)
	first := x.server.snap.Tick
	known := func(at delta.Tick) bool {
		w := bitbuf.NewWriter(make([]byte, 500))
		_, _, known := x.server.sender.workers.List[0].EncodeUpdate(&w, slot(), delta.Baselines{A1: at})
		return known
	}
	set := func(v float32) { (*tPosition)(x.world.Get(e, position)).X = v }
	set(1)
	x.rounds(3)
	require.True(t, known(first))
	set(2)
	x.rounds(5)
	require.True(t, known(first), "it is kept for a window")
	x.rounds(20)
	_, found := x.server.snap.Histories[0].At(slot(), first)
	require.Equal(t, history.Present, found, "nothing else changed in the block")
	require.False(t, known(first))
	require.True(t, known(first+1), "the state before the present one is kept as long as that lasts")
	(*tHealth)(x.world.Get(e, health)).HP = 3
	x.rounds(20)
	require.True(t, known(first+1), "of each component")
}

// TestMessagesRevealNothingOfHiddenEntities: messages do not even depend on hidden entities that
// turn out to be irrelevant.
func TestMessagesRevealNothingOfHiddenEntities(t *testing.T) {
	x := connectedWire(t, messageSchema())
	health := ecs.ComponentID[tHealth](x.world)
	seen, hidden := x.spawn(), x.spawn()
	x.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return e == seen }})
	x.rounds(5)
	slot := func(e ecs.Entity) uint32 { id, _ := x.server.NetID(e); return id.Slot }
	noted := func(e ecs.Entity) bool {
		for _, c := range x.peer.acked.Structure.Changes {
			if c.Slot == slot(e) {
				return true
			}
		}
		return false
	}
	x.peer.acked.Structure = &ackstate.Structure{}
	x.world.Add(hidden, health)
	x.world.Add(seen, health)
	x.server.Replicate()
	require.True(t, noted(seen))
	require.False(t, noted(hidden))
}

// TestMessagesDoNotWaitForKeptEntities: an entity comes back into view before the client's ack
// arrives, which then shows that there is nothing to send.
func TestMessagesDoNotWaitForKeptEntities(t *testing.T) {
	x := connectedWire(t, messageSchema())
	e, visible := x.spawn(), true
	x.peer.SetInterest(Interest{Keep: true, Visible: func(ecs.Entity) bool { return visible }})
	x.deliver(x.replicate()...)
	late := x.apply()
	for _, visible = range []bool{false, false, true} {
		x.server.Replicate()
		if visible {
			x.takeDown() // sent once more, and lost
		}
	}
	x.answer(late...)
	_, here := x.mirrored(e)
	require.True(t, here)
	came := false
	OnServerMessage(x.client, func(mHit) { came = true })
	require.NoError(t, SendToClient(x.peer, mHit{}))
	x.rounds(200)
	require.True(t, came)
}
