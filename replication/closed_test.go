package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestGettersWorkAfterThePeerEnded: games call the methods of a peer until they notice that it
// ended.
func TestGettersWorkAfterThePeerEnded(t *testing.T) {
	x := connectedWire(t, messageSchema())
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
		_, _, _ = x.client.InputTick(), x.client.InputDelay(), x.client.PredictionTick()
		_, _ = x.client.ServerTick(), x.client.RoundTrip()
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

// TestAClosedServerBeginsNothing: a peer connected after Close would look alive and never receive
// anything.
func TestAClosedServerBeginsNothing(t *testing.T) {
	x := connectedWire(t, messageSchema())
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

// TestAHookMayCloseTheServerInReplicate: the tick then does not happen.
func TestAHookMayCloseTheServerInReplicate(t *testing.T) {
	x := newWire(t, testSchema(), WithTimeout(ofTicks(5)))
	x.server.OnDisconnect(func(*Peer) { x.server.Close() })
	x.spawn(ecs.ComponentID[tHealth](x.world))
	for n := 0; x.peer.Err() == nil; n++ {
		require.Less(t, n, 10)
		require.NotPanics(t, x.server.Replicate)
	}
	require.EqualError(t, x.peer.Err(), "replication: disconnected: timeout")
	require.PanicsWithValue(t, "replication: Replicate of a closed server: make a new one with NewServer", x.server.Replicate)
}

// TestEveryCallAfterTheEnd does what the package documentation states, at both ends alike.
func TestEveryCallAfterTheEnd(t *testing.T) {
	x := newMisused(t)
	_ = x.spawn(ecs.ComponentID[tHealth](x.world))
	x.server.Close()
	x.client.Close()
	sent := len(x.down) + len(x.up)
	again := map[string]string{
		"Server.Connect": "replication: Connect of a closed server: make a new one with NewServer", "Server.Replicate": "replication: Replicate of a closed server: make a new one with NewServer",
		"Client.Reconnect": "replication: Reconnect of a closed client: make a new one with NewClient",
		"Expect":           "", // of a dead entity, whether or not the server is closed
	}
	for _, calls := range []map[string]func(){callsOf(x), callsOfClient(x)} {
		for name, call := range calls {
			if want, refused := again[name]; !refused {
				require.Empty(t, refusal(t, call, "%s", name), name)
			} else if want != "" {
				require.Equal(t, want, refusal(t, call, "%s", name), name)
			}
		}
	}
	for range 3 {
		for name, err := range map[string]error{
			"SendToClient": SendToClient(x.peer, mHit{}), "SendToAll": SendToAll(x.server, mHit{}), "SendToViewers": SendToViewers(x.server, x.entity, mHit{}),
			"SendToServer": SendToServer(x.client, mHit{}), "SetInput": SetInput(x.client, 1, mMove{}),
		} {
			require.ErrorIs(t, err, ErrNotConnected, name)
		}
		require.ErrorIs(t, x.peer.Receive([]byte{1, 2, 3, 4, 5, 6}), ErrUnexpected)
		require.ErrorIs(t, x.client.Receive([]byte{1, 2, 3, 4, 5, 6}), ErrUnexpected)
		require.EqualError(t, x.client.Apply(), "replication: disconnected: closed")
		require.EqualError(t, x.peer.Err(), "replication: disconnected: closed")
	}
	require.Equal(t, StatusDisconnected, x.client.Status())
	require.Equal(t, sent, len(x.down)+len(x.up), "nothing is sent any more")
	require.Zero(t, x.server.Stats().Peers)
}

// TestAClosedClientDeliversNothing, even if it was closed in the handler of the first of several
// messages.
func TestAClosedClientDeliversNothing(t *testing.T) {
	x := newMisused(t)
	handled := 0
	OnServerMessage(x.client, func(mHit) { handled++; x.client.Close() })
	for range 3 {
		require.NoError(t, SendToClient(x.peer, mHit{}))
	}
	x.deliver(x.replicate()...)
	require.EqualError(t, x.client.Apply(), "replication: disconnected: closed")
	require.Error(t, x.client.Apply())
	require.Equal(t, 1, handled)
	require.EqualValues(t, 2, x.client.Stats().MessagesUnhandled)
}

// TestFunctionsThatReplicateAsksOnlyRead: they decide what peers are sent, which must not change meanwhile.
func TestFunctionsThatReplicateAsksOnlyRead(t *testing.T) {
	for place, ask := range map[string]func(x *misused, do func()){
		"Visible": func(x *misused, do func()) {
			x.peer.SetInterest(Interest{Visible: func(ecs.Entity) bool { do(); return true }})
		},
		"SetPriorityFunc": func(x *misused, do func()) { x.peer.SetPriorityFunc(func([]ecs.Entity, []float32) { do() }) },
	} {
		for name, do := range map[string]func(x *misused){
			"Server.Close":    func(x *misused) { x.server.Close() },
			"Peer.Disconnect": func(x *misused) { x.peer.Disconnect(Reason{}) },
			"Peer.Receive":    func(x *misused) { _ = x.peer.Receive(nil) },

			"Peer.SetInterest":     func(x *misused) { x.peer.SetInterest(Interest{}) },
			"Peer.LookFrom":        func(x *misused) { x.peer.LookFrom(1, 1, 1) },
			"Peer.SetPriorityFunc": func(x *misused) { x.peer.SetPriorityFunc(nil) },
			"Peer.SetBudget":       func(x *misused) { x.peer.SetBudget(2000) },
			"Peer.SetBudgetRange":  func(x *misused) { x.peer.SetBudgetRange(2000, 4000) },
			"Peer.SetSendInterval": func(x *misused) { x.peer.SetSendInterval(2) },
			"Server.NewGrid":       func(x *misused) { x.server.NewGrid(10, "tPosition.X", "tPosition.Y") },
			"Server.SetOwner":      func(x *misused) { x.server.SetOwner(x.entity, x.peer) },
			"Server.Connect":       func(x *misused) { x.server.Connect(func([]byte) error { return nil }) },
			"SendToAll":            func(x *misused) { _ = SendToAll(x.server, mHit{}) },
			"SendToClient":         func(x *misused) { _ = SendToClient(x.peer, mHit{}) },
		} {
			x := newMisused(t)
			x.peer.SetBudget(1000)
			for range 300 {
				x.spawn(ecs.ComponentID[tPosition](x.world))
			}
			calls := 0
			ask(x, func() {
				calls++
				require.Equal(t, "replication: "+name+" in a function that Server.Replicate calls: note it, and do it after Server.Replicate",
					refusal(t, func() { do(x) }, "%s", name), place)
			})
			(*tHealth)(x.world.Get(x.entity, ecs.ComponentID[tHealth](x.world))).HP = 77
			x.rounds(10)
			require.Positive(t, calls, place)
			x.peer.SetBudget(0)
			x.rounds(10)
			require.True(t, x.peer.Connected())
			x.requireEqual()
		}
	}
	calls := 0
	s := NewSchema()
	Register[tHealth](s, OnlyFor(func(p *Peer) bool {
		calls++
		require.Contains(t, refusal(t, func() { p.Disconnect(Reason{}) }, "OnlyFor"), "in a function that Server.Replicate calls")
		return true
	}))
	x := connectedWire(t, s)
	x.spawn(ecs.ComponentID[tHealth](x.world))
	x.rounds(3)
	require.Positive(t, calls)
}
