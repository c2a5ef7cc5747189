package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestAPeerThatHasEndedMayBeAskedAnything: games call its methods until they have heard of it.
func TestAPeerThatHasEndedMayBeAskedAnything(t *testing.T) {
	x := connectedWire(t, talkSchema())
	e := x.spawn(ecs.ComponentID[tHealth](x.world))
	require.NoError(t, SetInput(x.client, x.client.InputTick(), mMove{Fire: true}))
	x.rounds(3)
	p, set := x.peer, x.server.NewEntitySet()
	p.Disconnect(Reason{})
	require.NotPanics(t, func() {
		in, ok := Input[mMove](p, x.server.Tick()+1)
		require.False(t, ok)
		require.Zero(t, in)
		p.SetInterest(Interest{Sets: []*EntitySet{set}, Keep: true})
		p.LookFrom(5, 0, 0)
		p.SetBudget(1000)
		p.SetSendInterval(3)
		p.SetPriorityFunc(func([]ecs.Entity, []float32) {})
		p.Disconnect(Reason{Text: "again"})
		x.server.Disconnect(p)
		x.server.SetOwner(e, p)
		require.Nil(t, x.server.Owner(e))
		require.ErrorIs(t, SendToClient(p, mHit{}), ErrNotConnected)
		require.ErrorIs(t, p.Receive(nil), wire.ErrUnexpected)
		require.False(t, p.Connected())
		_, _ = p.Stats(), p.RoundTrip()
		require.EqualError(t, p.Err(), "replication: disconnected: closed")
		x.server.Replicate()
	})
	x.client.Disconnect(Reason{})
	require.NotPanics(t, func() {
		require.ErrorIs(t, SendToServer(x.client, mHit{}), ErrNotConnected)
		require.ErrorIs(t, SetInput(x.client, 5, mMove{}), ErrNotConnected)
		_, _, _, _ = x.client.InputTick(), x.client.InputDelay(), x.client.ServerTick(), x.client.RoundTrip()
		_, _ = x.client.Verify(), x.client.Divergence()
		require.ErrorIs(t, x.client.Receive([]byte{1, 2, 3, 4, 5, 6}), wire.ErrUnexpected)
		require.Error(t, x.client.Apply())
		x.client.Close()
		x.client.Close()
		require.Error(t, x.client.Apply())
		_, ok := x.client.Entity(NetID{1, 1})
		require.False(t, ok)
		for range x.client.Entities() {
			t.Fatal("closed")
		}
	})
	x.server.Close()
	require.NotPanics(t, x.server.Close)
}

// TestAClosedServerBeginsNothing: a peer that it connected would look alive and never hear anything.
func TestAClosedServerBeginsNothing(t *testing.T) {
	x := connectedWire(t, talkSchema())
	e := x.spawn(ecs.ComponentID[tHealth](x.world))
	x.rounds(3)
	id, _ := x.server.NetID(e)
	send := func([]byte) error { return nil }
	const refused = "replication: Connect of a closed server: make a new one with NewServer"
	calls := 0
	x.server.OnDisconnect(func(*Peer) {
		calls++
		require.PanicsWithValue(t, refused, func() { x.server.Connect(send) }, "or Close would not end")
		require.ErrorIs(t, SendToAll(x.server, mHit{}), ErrNotConnected)
	})
	x.server.Close()
	require.Equal(t, 1, calls)
	require.PanicsWithValue(t, refused, func() { x.server.Connect(send) })
	require.PanicsWithValue(t, "replication: Replicate of a closed server: make a new one with NewServer", x.server.Replicate)
	require.NotPanics(t, func() {
		require.ErrorIs(t, SendToClient(x.peer, mHit{}), ErrNotConnected)
		require.ErrorIs(t, SendToAll(x.server, mHit{}), ErrNotConnected)
		require.ErrorIs(t, SendToViewers(x.server, e, mHit{}), ErrNotConnected)
		require.ErrorIs(t, x.peer.Receive(nil), wire.ErrUnexpected)
		x.server.SetOwner(e, x.peer)
		x.server.SetPriority(e, 2)
		require.Nil(t, x.server.Owner(e))
		set, group := x.server.NewEntitySet(), x.server.NewGroup()
		set.Add(e)
		group.Add(e)
		set.Remove(e)
		group.Remove(e)
		x.server.NewGrid(1, "tPosition.X")
		OnClientMessage(x.server, func(*Peer, mHit) {})
		x.server.OnConnect(func(*Peer) {})
		now, ok := x.server.NetID(e)
		require.True(t, ok)
		require.Equal(t, id, now)
		x.server.Disconnect(x.peer)
		x.server.Close()
	})
	require.Empty(t, x.server.messages.Messenger.Pending, "what is sent does not pile up")
	require.Zero(t, x.server.Stats().Peers)
	x.client.Close()
	require.PanicsWithValue(t, "replication: Reconnect of a closed client: make a new one with NewClient", x.client.Reconnect)
}

// TestAHookMayCloseTheServerInReplicate: the tick does not happen then.
func TestAHookMayCloseTheServerInReplicate(t *testing.T) {
	x := newWire(t, testSchema(), WithTimeout(5))
	x.server.OnDisconnect(func(*Peer) { x.server.Close() })
	x.spawn(ecs.ComponentID[tHealth](x.world))
	for n := 0; x.peer.Err() == nil; n++ {
		require.Less(t, n, 10)
		require.NotPanics(t, x.server.Replicate)
	}
	require.EqualError(t, x.peer.Err(), "replication: disconnected: timeout")
	require.PanicsWithValue(t, "replication: Replicate of a closed server: make a new one with NewServer", x.server.Replicate)
}
