package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// Messages to the viewers of an entity, and what others notice of them.

// TestWhoKeptAnEntityIsNoViewer: a client that shows an entity as it was when it went out of view gets no messages to
// its viewers, not even if the entity is removed after the call.
func TestWhoKeptAnEntityIsNoViewer(t *testing.T) {
	x := connectedWire(t, messageSchema())
	var got []string
	collect[mHit](x.client, &got)
	collect[mSpark](x.client, &got)
	visible := true
	x.peer.SetInterest(Interest{Keep: true, Visible: func(ecs.Entity) bool { return visible }})
	kept, seen := x.spawn(ecs.ComponentID[tPosition](x.world)), x.spawn(ecs.ComponentID[tPosition](x.world))
	sendAndRemove := func(e ecs.Entity, n uint32) {
		require.NoError(t, SendToViewers(x.server, e, mHit{Number: n}))
		require.NoError(t, SendToViewers(x.server, e, mSpark{Number: n}))
		x.world.RemoveEntity(e)
		x.rounds(5)
	}
	x.rounds(5)
	sendAndRemove(seen, 1)
	require.Len(t, got, 2, "the client saw it")
	visible = false
	x.rounds(50)
	sendAndRemove(kept, 2)
	require.Len(t, got, 2, "the client did not see it")
}

// TestViewersOfASlotUsedAgain: a client that is sent state seldom saw the entity that had the slot before.
func TestViewersOfASlotUsedAgain(t *testing.T) {
	x := connectedWire(t, messageSchema())
	var got []string
	collect[mHit](x.client, &got)
	var hidden ecs.Entity
	x.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return e != hidden }})
	e := x.spawn(ecs.ComponentID[tPosition](x.world))
	x.rounds(5)
	slot := x.slotOf(e)
	x.peer.SetSendInterval(20)
	x.rounds(60)
	for !x.peer.acked.InInterval() {
		x.round()
	}
	x.world.RemoveEntity(e)
	for range 10 { // until a new entity gets the slot
		x.round()
		hidden = x.spawn(ecs.ComponentID[tPosition](x.world))
		x.round()
		if x.slotOf(hidden) == slot {
			break
		}
		x.world.RemoveEntity(hidden)
	}
	require.Equal(t, slot, x.slotOf(hidden))
	require.NoError(t, SendToViewers(x.server, hidden, mHit{}))
	x.world.RemoveEntity(hidden)
	x.rounds(40)
	require.Empty(t, got)
}

// TestMessagesToOthersTakeNoRoom: what happens to entities that a client does not see leaves it as much room as before.
func TestMessagesToOthersTakeNoRoom(t *testing.T) {
	x := connectedWire(t, messageSchema())
	var got []string
	collect[mHit](x.client, &got)
	collect[mSpark](x.client, &got)
	seen, hidden := x.spawn(ecs.ComponentID[tPosition](x.world)), x.spawn(ecs.ComponentID[tPosition](x.world))
	x.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return e == seen }})
	x.rounds(5)
	for range 2000 {
		require.NoError(t, SendToViewers(x.server, hidden, mHit{}))
		require.NoError(t, SendToViewers(x.server, hidden, mSpark{}))
	}
	require.NoError(t, SendToClient(x.peer, mHit{}))
	require.NoError(t, SendToViewers(x.server, seen, mHit{}))
	require.NoError(t, SendToClient(x.peer, mSpark{}))
	require.NoError(t, SendToViewers(x.server, seen, mSpark{}))
	x.rounds(3)
	require.Len(t, got, 4)
	require.Zero(t, x.peer.Stats().MessagesDropped)

	got = nil
	for range message.MaxUnreliable - 1 {
		require.NoError(t, SendToClient(x.peer, mSpark{}))
	}
	for range 3 {
		require.NoError(t, SendToViewers(x.server, seen, mSpark{}))
	}
	x.rounds(3)
	require.Len(t, got, message.MaxUnreliable)
	require.EqualValues(t, 2, x.peer.Stats().MessagesDropped, "no room")
	for range 2000 {
		require.NoError(t, SendToViewers(x.server, seen, mHit{}))
	}
	x.replicate()
	require.Greater(t, x.peer.Stats().MessagesDropped, uint64(900), "no room")
}

// TestPendingMessagesToViewersAreBounded, also if the server does not replicate.
func TestPendingMessagesToViewersAreBounded(t *testing.T) {
	x := connectedWire(t, messageSchema())
	e := x.spawn(ecs.ComponentID[tPosition](x.world))
	x.rounds(5)
	count := func(send func() error) (n int) {
		for send() == nil {
			n++
			require.Less(t, n, 20_000)
		}
		require.Equal(t, message.ErrBufferFull, send())
		x.replicate()
		require.NoError(t, send())
		x.replicate()
		return n
	}
	require.Equal(t, 1<<14, count(func() error { return SendToViewers(x.server, e, mSpark{}) }))
	large := mMap{}
	for i := range large.Cells {
		large.Cells[i] = ^uint64(0)
	}
	require.Equal(t, 1<<20/1200, count(func() error { return SendToViewers(x.server, e, large) }))
}

// TestMessagesToNobodyTakeNoRoom: neither those without clients nor those about the dead.
func TestMessagesToNobodyTakeNoRoom(t *testing.T) {
	x := connectedWire(t, messageSchema())
	e := x.spawn(ecs.ComponentID[tPosition](x.world))
	x.rounds(5)
	x.world.RemoveEntity(e)
	for range 1<<14 + 1 {
		require.NoError(t, SendToViewers(x.server, e, mSpark{}))
	}
	e = x.spawn(ecs.ComponentID[tPosition](x.world))
	x.peer.Disconnect(Reason{})
	for range 1<<14 + 1 {
		require.NoError(t, SendToViewers(x.server, e, mSpark{}))
	}
}

// TestMessagesNameNoLeftovers: of an entity that despawned before anything of it came in the session, the client may
// still show what it had in the session before.
func TestMessagesNameNoLeftovers(t *testing.T) {
	x := newMentioning(t)
	e := x.spawn()
	x.spawn()
	x.rounds(5)
	x.peer.SetSendInterval(20)
	x.rounds(60)
	x.client.Reconnect()
	x.answer(x.apply()...)
	x.deliver(x.takeDown()...)
	x.answer(x.apply()...)
	require.True(t, x.peer.Connected())
	for !x.peer.out.Rests {
		x.replicate()
	}
	require.NoError(t, SendToClient(x.peer, rWhom{Number: 1, Target: e}))
	x.replicate() // lost
	x.world.RemoveEntity(e)
	for i := 0; len(x.got) == 0; i++ {
		x.round()
		require.Less(t, i, 200)
	}
	require.True(t, x.got[0].Target.IsZero())
}
