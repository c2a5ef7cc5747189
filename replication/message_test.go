package replication

import (
	"errors"
	"fmt"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

type mHit struct {
	Number uint32
	Damage float32 `repl:"range=0:100,step=0.1"`
}

type mChat struct {
	Number uint32
	Text   [4]uint8
}

type mSpark struct {
	Number uint32
	Dir    [3]float32 `repl:"unit,bits=8"`
}

type mFlash struct{}

type mMap struct {
	Cells [150]uint64
	Local int `repl:"-"`
}

type mMove struct {
	Aim   float32 `repl:"angle,bits=10"`
	Fire  bool
	Stamp uint16
}

func messageSchema() *Schema {
	s := testSchema()
	RegisterMessage[mHit](s)
	RegisterMessage[mChat](s, Immediate())
	RegisterMessage[mSpark](s, Unreliable())
	RegisterMessage[mFlash](s, Unreliable(), Immediate())
	RegisterMessage[mMap](s)
	RegisterInput[mMove](s)
	return s
}

// collect appends received messages to got, as text.
func collect[T any](c *Client, got *[]string) {
	OnServerMessage(c, func(m T) { *got = append(*got, fmt.Sprintf("%T%v", m, m)) })
}

func TestMessagesGoBothWays(t *testing.T) {
	x := connectedWire(t, messageSchema())
	var got []string
	collect[mHit](x.client, &got)
	collect[mChat](x.client, &got)
	collect[mSpark](x.client, &got)
	collect[mFlash](x.client, &got)
	require.NoError(t, SendToClient(x.peer, mHit{1, 50}))
	require.NoError(t, SendToClient(x.peer, mHit{2, 1e9}))
	require.NoError(t, SendToAll(x.server, mChat{2, [4]uint8{1, 2, 3, 4}}))
	require.NoError(t, SendToClient(x.peer, mSpark{3, [3]float32{1, 0, 0}}))
	require.NoError(t, SendToClient(x.peer, mFlash{}))
	require.Empty(t, got)
	x.round()
	require.Equal(t, []string{
		"replication.mHit{1 50}", "replication.mHit{2 100}", // clamped, as in components
		"replication.mChat{2 [1 2 3 4]}", "replication.mSpark{3 [1 0 0]}", "replication.mFlash{}",
	}, got)
	require.Equal(t, x.server.Tick(), x.client.MessageTick())

	var up []string
	OnClientMessage(x.server, func(p *Peer, m mHit) {
		require.Equal(t, x.peer, p)
		up = append(up, fmt.Sprint(m))
	})
	OnClientMessage(x.server, func(_ *Peer, m mSpark) { up = append(up, fmt.Sprint(m)) })
	require.NoError(t, SendToServer(x.client, mHit{1, 50}))
	require.NoError(t, SendToServer(x.client, mSpark{7, [3]float32{0, 1, 0}}))
	require.NoError(t, SendToServer(x.client, mHit{2, 0}))
	x.round()
	require.Equal(t, []string{"{1 50}", "{2 0}", "{7 [0 1 0]}"}, up)
	x.rounds(100)
	require.Len(t, got, 5)
	require.Len(t, up, 3)

	p, c := x.peer.Stats(), x.client.Stats()
	require.EqualValues(t, 5, p.Messages)
	require.EqualValues(t, 5, c.MessagesReceived)
	require.EqualValues(t, 3, c.Messages)
	require.EqualValues(t, 3, p.MessagesReceived)
	require.Zero(t, p.MessagesResent+c.MessagesResent+p.MessagesDropped+c.MessagesDropped)
}

// TestMessagesWithoutFunctionAreCounted: messages without a handler are dropped, and nothing waits
// for them.
func TestMessagesWithoutFunctionAreCounted(t *testing.T) {
	x := connectedWire(t, messageSchema())
	var got []string
	collect[mHit](x.client, &got)
	collect[mChat](x.client, &got)
	OnServerMessage[mHit](x.client, nil)
	OnClientMessage(x.server, func(*Peer, mHit) { t.Fatal("replaced") })
	OnClientMessage[mHit](x.server, nil)
	require.NoError(t, SendToClient(x.peer, mHit{}))
	require.NoError(t, SendToClient(x.peer, mChat{}))
	require.NoError(t, SendToServer(x.client, mHit{}))
	x.rounds(3)
	require.Len(t, got, 1)
	require.EqualValues(t, 1, x.client.Stats().MessagesUnhandled)
	require.EqualValues(t, 1, x.peer.Stats().MessagesUnhandled)
}

// TestAMessageHasItsOwnMemory: fields that are not sent are zero, whatever the previous message
// contained.
func TestAMessageHasItsOwnMemory(t *testing.T) {
	x := connectedWire(t, messageSchema(), WithMTU(2000))
	var got []mMap
	OnServerMessage(x.client, func(m mMap) { got = append(got, m) })
	require.NoError(t, SendToClient(x.peer, mMap{Cells: [150]uint64{0: 1, 140: 1 << 63}, Local: 7}))
	require.NoError(t, SendToClient(x.peer, mMap{Cells: [150]uint64{1: 2}, Local: 8}))
	x.rounds(3)
	require.Equal(t, []mMap{{Cells: [150]uint64{0: 1, 140: 1 << 63}}, {Cells: [150]uint64{1: 2}}}, got)
	require.Zero(t, x.client.messages.Values[4].Value.Field(1).Int())
}

// TestSendToViewers: a message goes to clients that see the entity, or saw its despawn.
func TestSendToViewers(t *testing.T) {
	s := messageSchema()
	x := connectedWire(t, s)
	var blind [][]byte
	world := ecs.NewWorld()
	other := x.server.Connect(func(p []byte) error {
		blind = append(blind, append([]byte(nil), p...))
		return nil
	})
	client := NewClientWith(&world, s, other.Receive, WithSeed(99))
	var seen, hidden []string
	collect[mHit](x.client, &seen)
	collect[mHit](client, &hidden)
	collect[mSpark](x.client, &seen)
	collect[mSpark](client, &hidden)
	round := func() {
		x.round()
		for _, p := range blind {
			_ = client.Receive(p)
		}
		blind = nil
		require.NoError(t, client.Apply())
	}
	set := x.server.NewEntitySet()
	other.SetInterest(Interest{Sets: []*EntitySet{set}})
	for range 5 {
		round()
	}
	require.True(t, other.Connected())
	sendBoth := func(e ecs.Entity) {
		require.NoError(t, SendToViewers(x.server, e, mHit{}))
		require.NoError(t, SendToViewers(x.server, e, mSpark{}))
	}
	expect := func(what string, a, b int) {
		t.Helper()
		round()
		require.Len(t, seen, a, what)
		require.Len(t, hidden, b, what)
		seen, hidden = nil, nil
		for range 5 {
			round()
		}
		require.Empty(t, seen, "not again")
	}
	e := x.spawn(ecs.ComponentID[tHealth](x.world))
	sendBoth(e)
	expect("one that was spawned just now", 2, 0)
	set.Add(e)
	sendBoth(e)
	expect("one that comes into view", 2, 2)
	sendBoth(e)
	x.world.RemoveEntity(e)
	expect("one that ends", 2, 2)
	sendBoth(e)
	expect("one that ended long ago", 0, 0)
	f := x.spawn(ecs.ComponentID[tHealth](x.world))
	expect("nothing", 0, 0)
	sendBoth(f)
	x.world.RemoveEntity(f)
	expect("one that ends out of view", 2, 0)
	require.Zero(t, other.messages.Out[wire.ChannelState].Size+x.peer.messages.Out[wire.ChannelState].Size, "room was given back")
	require.Zero(t, other.messages.Out[wire.ChannelState].Expected)
}

// TestHandlersMayDoAlmostAnything: they send, disconnect, and change worlds.
func TestHandlersMayDoAlmostAnything(t *testing.T) {
	x := connectedWire(t, messageSchema())
	OnClientMessage(x.server, func(p *Peer, m mHit) {
		switch m.Number {
		case 0:
			x.spawn(ecs.ComponentID[tHealth](x.world))
			require.NoError(t, SendToClient(p, m))
			require.NoError(t, SendToAll(x.server, mChat{}))
		case 1:
			require.PanicsWithValue(t, "replication: Replicate in a message handler or hook of the server: wait until the call that it runs in returns", x.server.Replicate)
			x.server.Disconnect(p)
		default:
			t.Fatal("handed over to one that is disconnected")
		}
	})
	var got []string
	OnServerMessage(x.client, func(m mHit) {
		require.Equal(t, 1, x.client.mirrorsShown())
		got = append(got, fmt.Sprint(m))
		require.NoError(t, SendToServer(x.client, mHit{Number: 1}))
		require.NoError(t, SendToServer(x.client, mHit{Number: 2}))
		require.PanicsWithValue(t, "replication: Frame in a message handler, which runs in a Frame", func() { _ = x.client.Apply() })
		x.mirror.NewEntity()
	})
	require.NoError(t, SendToServer(x.client, mHit{}))
	var err error
	for range 4 {
		x.deliver(x.replicate()...)
		err = x.client.Apply()
		x.answer(x.up...)
		x.up = nil
	}
	require.ErrorAs(t, err, new(*DisconnectError))
	require.Equal(t, []string{"{0 0}"}, got)
	require.ErrorIs(t, SendToClient(x.peer, mHit{}), ErrNotConnected)
	require.ErrorIs(t, x.peer.Receive([]byte{1, 2, 3, 4, 5}), wire.ErrUnexpected)
}

// TestARestartedClientGetsANewSession: messages of the old session are gone, and ids start again.
func TestARestartedClientGetsANewSession(t *testing.T) {
	s := messageSchema()
	x := connectedWire(t, s)
	for i := range uint32(100) {
		require.NoError(t, SendToClient(x.peer, mHit{Number: i}))
		require.NoError(t, SendToServer(x.client, mHit{Number: i}))
	}
	x.replicate()
	x.apply()
	x.restart(s, 8)
	var got, up []uint32
	OnServerMessage(x.client, func(m mHit) { got = append(got, m.Number) })
	OnClientMessage(x.server, func(_ *Peer, m mHit) { up = append(up, m.Number) })
	x.rounds(5)
	require.NoError(t, SendToClient(x.peer, mHit{Number: 1000}))
	require.NoError(t, SendToServer(x.client, mHit{Number: 2000}))
	x.rounds(5)
	require.Equal(t, []uint32{1000}, got)
	require.Equal(t, []uint32{2000}, up)
}

// TestMessagesAreHandledOnceThoughHandlersPanic: the next Apply goes on with those behind the one whose
// handler panicked.
func TestMessagesAreHandledOnceThoughHandlersPanic(t *testing.T) {
	for panicsAt := range 8 {
		x := connectedWire(t, messageSchema())
		var got []uint32
		handle := func(number uint32) {
			if got = append(got, number); len(got) == panicsAt+1 {
				panic("the user's")
			}
		}
		OnServerMessage(x.client, func(m mHit) { handle(m.Number) })
		OnServerMessage(x.client, func(m mSpark) { handle(m.Number) })
		for i := range uint32(4) {
			require.NoError(t, SendToClient(x.peer, mHit{Number: i}))
			require.NoError(t, SendToClient(x.peer, mSpark{Number: 4 + i, Dir: [3]float32{1, 0, 0}}))
		}
		x.deliver(x.replicate()...)
		require.PanicsWithValue(t, "the user's", func() { _ = x.client.Apply() })
		x.rounds(3)
		require.Equal(t, []uint32{0, 1, 2, 3, 4, 5, 6, 7}, got, "message %d", panicsAt)
		require.Zero(t, x.client.messages.Kept+x.client.messages.Bytes)
	}
}

// TestUnreliableMessagesAreNotSentAgain, and reliable ones are.
func TestUnreliableMessagesAreNotSentAgain(t *testing.T) {
	x := connectedWire(t, messageSchema())
	var got []string
	collect[mHit](x.client, &got)
	collect[mSpark](x.client, &got)
	require.NoError(t, SendToClient(x.peer, mSpark{}))
	require.NoError(t, SendToClient(x.peer, mHit{}))
	x.replicate() // lost
	x.rounds(80)
	require.Equal(t, []string{"replication.mHit{0 0}"}, got)
	require.EqualValues(t, 1, x.peer.Stats().MessagesResent)
}

// TestSchemaTextHasMessages after components, whatever the order of registration, and nothing if
// there are none.
func TestSchemaTextHasMessages(t *testing.T) {
	s := NewSchema()
	RegisterInput[mMove](s, Name("Move"))
	RegisterMessage[mHit](s, Name("Hit"))
	RegisterMessage[mFlash](s, Name("Flash"), Immediate(), Unreliable())
	RegisterMessage[schemaTeam](s, Field("", "range=0:3"))
	Register[tHealth](s)
	require.Equal(t, `arche-replicate schema 1
component tHealth
tHealth.HP int16 range=0:100
tHealth.Armed bool
message Hit reliable
Hit.Number uint32
Hit.Damage float32 range=0:100,step=0.1
message Flash unreliable immediate
message schemaTeam reliable
schemaTeam uint8 range=0:3
input Move
Move.Aim float32 angle,bits=10,period=6.283185307179586
Move.Fire bool
Move.Stamp uint16
`, s.Text())
	a, b := NewSchema(), NewSchema()
	RegisterMessage[mHit](a)
	RegisterMessage[mHit](b, Immediate())
	require.NotEqual(t, a.Fingerprint(), b.Fingerprint())
	x := newWire(t, a)
	x.restart(b, 9)
	var err error
	for range 4 {
		x.deliver(x.replicate()...)
		err = errors.Join(err, x.client.Apply())
		x.answer(x.up...)
		x.up = nil
		x.deliver(x.takeDown()...)
	}
	require.ErrorContains(t, err, `line 2: server has "message mHit reliable", client has "message mHit reliable immediate"`)
}

// TestNoMessagePacketsWithoutMessages: with a schema without messages and inputs, no such packets
// are sent.
func TestNoMessagePacketsWithoutMessages(t *testing.T) {
	x := connectedWire(t, testSchema())
	x.spawn(ecs.ComponentID[tHealth](x.world))
	for range 40 {
		down := x.replicate()
		x.deliver(down...)
		for _, p := range down {
			require.NotEqual(t, wire.KindMessages, wire.KindOf(p[wire.ChecksumSize:]))
		}
		for _, p := range x.apply() {
			require.NotContains(t, []wire.PacketKind{wire.KindMessages, wire.KindInputs}, wire.KindOf(p[wire.ChecksumSize:]))
			x.answer(p)
		}
	}
	require.Nil(t, x.peer.messages)
	forged := []byte{0, 0, 0, 0, byte(wire.KindMessages), 0, 0}
	x.server.opts.NoChecksum = true
	require.Error(t, x.peer.Receive(forged))
	require.Error(t, x.client.Receive(forged))
	require.InDelta(t, float64(x.server.Tick()), x.client.ServerTick(), 1)
}
