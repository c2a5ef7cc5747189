package replication

import (
	"fmt"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestConnectAndDisconnectHooks: each way in which a connection begins and ends calls a hook once,
// with the reason, when the world may be changed.
func TestConnectAndDisconnectHooks(t *testing.T) {
	x := newWire(t, messageSchema(), WithTimeout(ofTicks(50)))
	var lines []string
	requireThat := func(want ...string) {
		t.Helper()
		require.Equal(t, want, lines)
		lines = nil
	}
	ships := map[*Peer]ecs.Entity{}
	x.server.OnConnect(func(p *Peer) {
		require.True(t, p.Connected())
		lines = append(lines, "came")
		if e, again := ships[p]; again {
			x.world.RemoveEntity(e)
		}
		ships[p] = x.spawn(ecs.ComponentID[tHealth](x.world))
		x.server.SetOwner(ships[p], p)
		require.NoError(t, SendToClient(p, mHit{Number: 7}))
		require.PanicsWithValue(t, "replication: Replicate in a message handler or hook of the server: wait until the call that it runs in returns",
			x.server.Replicate)
	})
	x.server.OnDisconnect(func(p *Peer) {
		require.False(t, p.Connected())
		require.ErrorIs(t, SendToClient(p, mHit{}), ErrNotConnected)
		lines = append(lines, fmt.Sprint("gone: ", p.Err()))
		if e, ok := ships[p]; ok {
			require.Nil(t, x.server.Owner(e))
			x.world.RemoveEntity(e)
			delete(ships, p)
		}
	})
	OnClientMessage(x.server, func(p *Peer, _ mHit) {
		lines = append(lines, "message")
		p.Disconnect(Reason{Code: ReasonKicked})
	})
	got := 0
	handle := func() { OnServerMessage(x.client, func(mHit) { got++ }) }
	handle()
	x.rounds(5)
	requireThat("came")
	require.Equal(t, 1, got)
	require.Equal(t, 1, x.mirror.Stats().Entities.Used)

	x.client.Reconnect()
	x.rounds(20)
	requireThat("came")
	require.Equal(t, 1, x.mirror.Stats().Entities.Used)

	x.client.Disconnect(Reason{Text: "tea"})
	x.answer(x.up...)
	x.up = nil
	requireThat(`gone: replication: disconnected by the other end: closed: "tea"`)
	require.Empty(t, ships)

	again := func() {
		x.connect()
		x.client.Reconnect()
		x.rounds(6)
		requireThat("came")
	}
	again()
	for range 60 {
		x.replicate()
	}
	requireThat("gone: replication: disconnected: timeout")
	x.down = nil

	again()
	require.NoError(t, SendToServer(x.client, mHit{}))
	x.round()
	requireThat("message", "gone: replication: disconnected: kicked")

	x.connect() // no client comes
	for range 60 {
		x.replicate()
	}
	requireThat("gone: replication: disconnected: timeout")
	x.connect()
	x.server.Close()
	requireThat("gone: replication: disconnected: closed")
	require.PanicsWithValue(t, "replication: OnConnect needs a function", func() { x.server.OnConnect(nil) })
	require.PanicsWithValue(t, "replication: OnDisconnect needs a function", func() { x.server.OnDisconnect(nil) })
}

// TestAHookMayDisconnectOtherPeers and the peer that it is called for.
func TestAHookMayDisconnectOtherPeers(t *testing.T) {
	for _, first := range []int{0, 3} {
		w := ecs.NewWorld()
		s := NewServer(&w, messageSchema(), WithTimeout(ofTicks(5)))
		var peers []*Peer
		for range 4 {
			peers = append(peers, s.Connect(func([]byte) error { return nil }))
		}
		gone := map[*Peer]int{}
		s.OnDisconnect(func(p *Peer) {
			gone[p]++
			for i := range peers {
				peers[(i+first)%4].Disconnect(Reason{})
			}
		})
		for range 10 {
			s.Replicate()
		}
		require.Len(t, gone, 4)
		for _, n := range gone {
			require.Equal(t, 1, n)
		}
	}
	x := newWire(t, messageSchema())
	x.server.OnConnect(func(p *Peer) { p.Disconnect(Reason{Code: ReasonGame, Text: "full"}) })
	require.NotPanics(t, func() {
		x.answer(x.apply()...)
		x.deliver(x.takeDown()...)
		x.answer(x.apply()...)
		x.deliver(x.takeDown()...)
	})
	require.EqualError(t, x.client.Apply(), `replication: disconnected by the other end: code 64: "full"`)
}
