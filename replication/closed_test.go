package replication

import (
	"testing"

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
		p.SetPriority(func([]ecs.Entity, []float32) {})
		p.Disconnect(Reason{Text: "again"})
		x.server.Disconnect(p)
		x.server.SetOwner(e, p)
		require.Nil(t, x.server.Owner(e))
		require.ErrorIs(t, Send(p, mHit{}), ErrNotConnected)
		require.ErrorIs(t, p.Receive(nil), ErrUnexpected)
		require.False(t, p.Connected())
		_, _ = p.Stats(), p.RoundTrip()
		require.EqualError(t, p.Err(), "replication: disconnected: closed")
		x.server.Replicate()
	})
	x.client.Disconnect(Reason{})
	require.NotPanics(t, func() {
		require.ErrorIs(t, SendToServer(x.client, mHit{}), ErrNotConnected)
		require.ErrorIs(t, SetInput(x.client, 5, mMove{}), ErrNotConnected)
		_, _, _, _ = x.client.InputTick(), x.client.Lead(), x.client.ServerTick(), x.client.RoundTrip()
		_, _ = x.client.Verify(), x.client.Divergence()
		require.ErrorIs(t, x.client.Receive([]byte{1, 2, 3, 4, 5, 6}), ErrUnexpected)
		require.Error(t, x.client.Apply())
		x.client.Close()
		x.client.Close()
		require.Error(t, x.client.Apply())
		_, ok := x.client.Entity(NetID{1, 1})
		require.False(t, ok)
		x.client.Each(func(NetID, ecs.Entity, uint32) { t.Fatal("closed") })
	})
	x.server.Close()
	require.NotPanics(t, x.server.Close)
}
