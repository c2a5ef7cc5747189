package replication

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// Messages that are refused: too large, too many, or misused. Each has its error text.

// TestTextsTooLongAreRefused: a message is never sent with a truncated text.
func TestTextsTooLongAreRefused(t *testing.T) {
	type line struct {
		Text string `repl:"max=5"`
	}
	type name struct {
		Of [4]byte `repl:"max=3"`
	}
	s := NewSchema()
	RegisterMessage[line](s)
	RegisterInput[name](s)
	x := connectedWire(t, s)
	var got []string
	OnServerMessage(x.client, func(m line) { got = append(got, m.Text) })
	OnClientMessage(x.server, func(_ *Peer, m line) { got = append(got, m.Text) })
	const want = "replication: message too large: line.Text: the string has 6 bytes, and max is 5: shorten it, or raise max in the tag"
	for _, err := range []error{
		SendToClient(x.peer, line{"123456"}), SendToAll(x.server, line{"123456"}), SendToViewers(x.server, ecs.Entity{}, line{"123456"}), SendToServer(x.client, line{"123456"}),
	} {
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, schema.ErrMessageTooLarge)
	}
	require.NoError(t, SendToClient(x.peer, line{"12345"}))
	require.NoError(t, SendToServer(x.client, line{"é123"}))
	tick := x.client.InputTick()
	require.EqualError(t, SetInput(x.client, tick, name{[4]byte{1, 2, 3, 4}}),
		"replication: message too large: name.Of: the array has 4 bytes, and max is 3: shorten it, or raise max in the tag")
	require.NoError(t, SetInput(x.client, tick, name{[4]byte{1, 2, 3}}))
	x.rounds(3)
	require.ElementsMatch(t, []string{"12345", "é123"}, got)
}

// manyMessages registers n message types.
func manyMessages(s *Schema, n int) {
	for i := range n {
		t := reflect.ArrayOf(i+1, reflect.TypeFor[bool]())
		if err := s.raw.RegisterMessage(t, &schema.MessageOptions{Options: schema.Options{Name: fmt.Sprint("Bools", i), Named: true}}); err != nil {
			panic(err)
		}
	}
}

type mBytes40 struct{ B [40]uint8 }

type mBytes47 struct{ B [47]uint8 }

type mBytes48 struct{ B [48]uint8 }

// TestBuffersAreBounded: a channel takes 1024 messages or 64 KiB, a tick 256 unreliable ones or 16 KiB.
func TestBuffersAreBounded(t *testing.T) {
	x := connectedWire(t, messageSchema(), WithMTU(2000))
	fill := func(send func() error) (n int) {
		for {
			if err := send(); err != nil {
				require.Equal(t, message.ErrBufferFull, err)
				return n
			}
			n++
		}
	}
	require.Equal(t, 1024, fill(func() error { return SendToClient(x.peer, mHit{}) }))
	require.Equal(t, 1024, fill(func() error { return SendToClient(x.peer, mChat{}) }), "a channel of its own")
	require.Equal(t, 256, fill(func() error { return SendToClient(x.peer, mSpark{}) }))
	require.Equal(t, 1024, fill(func() error { return SendToServer(x.client, mHit{}) }))
	require.Equal(t, 256, fill(func() error { return SendToServer(x.client, mFlash{}) }))
	require.ErrorIs(t, SendToAll(x.server, mHit{}), message.ErrBufferFull)
	require.Equal(t, 1024+1024+256, len(x.server.messages.Messenger.Pending), "what nobody takes is not kept")
	for range 20 { // the server is silent: queued messages stay
		x.replicate()
	}
	require.Equal(t, 0, fill(func() error { return SendToClient(x.peer, mHit{}) }))
	x.rounds(100)
	require.Equal(t, 54, fill(func() error { return SendToClient(x.peer, mMap{}) }), "64 KiB of 1200 bytes")
	x.rounds(100)
	require.Equal(t, 1024, fill(func() error { return SendToClient(x.peer, mHit{}) }))
	require.EqualValues(t, 1, x.peer.Stats().MessagesDropped)
}

// TestRefusalsOfMessages lists the error texts.
func TestRefusalsOfMessages(t *testing.T) {
	full := func() *Schema {
		s := NewSchema()
		manyMessages(s, schema.MaxMessageTypes)
		return s
	}
	for _, c := range []struct {
		name string
		do   func()
		want string
	}{
		{"no schema", func() { RegisterMessage[mHit](nil) }, "there is no schema: make one with NewSchema"},
		{"no schema for inputs", func() { RegisterInput[mHit](nil) }, "there is no schema: make one with NewSchema"},
		{"twice", func() { RegisterMessage[mHit](messageSchema()) }, "mHit: replication.mHit is registered already: register every type once"},
		{"name of a component", func() { RegisterMessage[mMap](messageSchema(), Name("tHealth")) }, "tHealth: replication.tHealth and replication.mMap have the same name: give one another with the option Name"},
		{"name of a message", func() { Register[mMap](messageSchema(), Name("mHit")) }, "mHit: replication.mHit and replication.mMap have the same name: give one another with the option Name"},
		{"name of the input", func() { RegisterMessage[mBytes40](messageSchema(), Name("mMove")) }, "mMove: replication.mMove and replication.mBytes40 have the same name: give one another with the option Name"},
		{"second input", func() { RegisterInput[mBytes40](messageSchema()) }, "mBytes40: the schema has the input type mMove already: put all commands into one"},
		{"large input", func() { RegisterInput[mMap](NewSchema()) }, "mMap: an input of 9600 to 9600 bits, where 512 are the most, and 32768 that its type may take: inputs are sent again and again; use ranges, and messages for what is rare"},
		{"slice", func() {
			type tSlice struct{ A []int }
			RegisterMessage[tSlice](NewSchema())
		}, `tSlice.A: slices can't be replicated; use a fixed array or skip the field with repl:"-"`},
		{"pointer", func() { RegisterMessage[*mHit](NewSchema()) }, "*replication.mHit is a pointer: register the component type itself"},
		{"reserved name", func() { RegisterMessage[schemaTeam](NewSchema(), Name("input")) }, `the name "input" of a type that is no struct has a meaning in the schema text: choose another with the option Name`},
		{"frozen", func() {
			s := messageSchema()
			s.raw.Freeze()
			RegisterMessage[mBytes40](s)
		}, "mBytes40: the schema is in use: register all components before making a server or client of it"},
		{"too many", func() { RegisterMessage[mHit](full()) }, "mHit: the schema is full: it holds at most 255 message types"},
		{"small MTU", func() { WithMTU(63) }, "an MTU of 63 bytes: use 64 to 65507"},
		{"small MTU of a client", func() {
			w := ecs.NewWorld()
			NewClientWith(&w, messageSchema(), func([]byte) error { return nil }, WithMTU(255))
		}, "NewClient: an MTU of 255 bytes: a client needs 256 or more"},

		{"unknown to send", func() { _ = SendToClient(connectedWire(t, messageSchema()).peer, mBytes40{}) }, "replication.mBytes40 is not a registered message: call RegisterMessage before making servers and clients of the schema"},
		{"unknown to send to the server", func() { _ = SendToServer(connectedWire(t, testSchema()).client, mHit{}) }, "replication.mHit is not a registered message: call RegisterMessage before making servers and clients of the schema"},
		{"unknown to handle", func() { OnClientMessage(connectedWire(t, testSchema()).server, func(*Peer, mHit) {}) }, "replication.mHit is not a registered message: call RegisterMessage before making servers and clients of the schema"},
		{"unknown to handle at a client", func() { OnServerMessage(connectedWire(t, testSchema()).client, func(mHit) {}) }, "replication.mHit is not a registered message: call RegisterMessage before making servers and clients of the schema"},
		{"pointer to send", func() { _ = SendToClient(connectedWire(t, messageSchema()).peer, &mHit{}) }, "*replication.mHit is a pointer: send and handle the message itself"},
		{"no inputs", func() { _ = SetInput(connectedWire(t, testSchema()).client, 0, mMove{}) }, "the schema has no inputs: call RegisterInput before making servers and clients of it"},
		{"other input", func() { _, _ = Input[mHit](connectedWire(t, messageSchema()).peer, 0) }, "replication.mHit is not the input type, which is replication.mMove"},
	} {
		require.PanicsWithValue(t, "replication: "+c.want, c.do, c.name)
	}
	x := newWire(t, messageSchema())
	require.ErrorIs(t, SendToClient(x.peer, mHit{}), ErrNotConnected)
	require.NoError(t, SendToAll(x.server, mHit{}), "to nobody")
	require.NoError(t, SendToViewers(x.server, ecs.Entity{}, mHit{}))
	require.ErrorIs(t, SendToServer(x.client, mHit{}), ErrNotConnected)
	require.ErrorIs(t, SetInput(x.client, 0, mMove{}), ErrNotConnected)
	require.Empty(t, x.server.messages.Messenger.Pending)
	require.Zero(t, x.client.InputTick())
	require.Zero(t, x.client.InputDelay()+x.client.PredictionTick()+x.client.ServerTick()+x.client.RoundTrip())
	for err, want := range map[error]string{
		ErrNotConnected:       "replication: not connected: messages and inputs need a session, see Client.Status and Peer.Connected",
		message.ErrBufferFull: "replication: the message buffer is full: the other end has not acknowledged what is in it, or too much was sent in this tick",
		message.ErrFlood:      "replication: too many packets of messages and inputs in a tick",
		ErrInputSet:           "replication: the tick has its input already: inputs are set once for a tick, in their order",
	} {
		require.EqualError(t, err, want)
	}
}

// TestViewersBelongToTheGeneration: a message for the viewers of an entity waits while ticks do not
// end. Meanwhile another entity gets the slot and is shown to a client, which never saw the first
// one.
func TestViewersBelongToTheGeneration(t *testing.T) {
	x := connectedWire(t, messageSchema())
	var got []string
	collect[mHit](x.client, &got)
	var shown ecs.Entity
	upset := false
	x.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool {
		if upset {
			panic("the user's")
		}
		return e == shown
	}})
	unfinished := func() {
		t.Helper()
		require.PanicsWithValue(t, "the user's", x.server.Replicate)
	}
	position := ecs.ComponentID[tPosition](x.world)
	hidden := x.spawn(position)
	x.spawn(position)
	x.rounds(3)
	slot := x.slotOf(hidden)
	require.NoError(t, SendToViewers(x.server, hidden, mHit{}))
	x.world.RemoveEntity(hidden)
	upset = true
	unfinished()
	upset = false
	shown = x.spawn(position)
	send := x.peer.out.Send
	x.peer.out.Send = func([]byte) error { panic("the user's") }
	unfinished()
	x.peer.out.Send = send
	require.Equal(t, slot, x.slotOf(shown))
	require.NotZero(t, x.peer.acked.Acks.Shown[0])
	shown = ecs.Entity{}
	x.rounds(10)
	require.Empty(t, got)
}

// TestPeersAwaitingADespawnAreNotViewers: a client still shows a despawned entity, and the next one
// in its slot spawned and despawned unseen. The client gets none of that entity's messages, not
// even in the tick in which kept entities are released.
func TestPeersAwaitingADespawnAreNotViewers(t *testing.T) {
	for _, keep := range []bool{false, true} {
		x := connectedWire(t, messageSchema())
		var got []string
		collect[mHit](x.client, &got)
		var shown ecs.Entity
		visible := func(e ecs.Entity) bool { return e == shown }
		x.peer.SetInterest(Interest{Visible: visible, Keep: keep})
		position := ecs.ComponentID[tPosition](x.world)
		shown = x.spawn(position)
		x.rounds(3)
		slot := x.slotOf(shown)
		require.NoError(t, SendToViewers(x.server, shown, mHit{Number: 1}))
		x.world.RemoveEntity(shown)
		x.replicate() // lost
		hidden := x.spawn(position)
		x.replicate() // lost
		require.Equal(t, slot, x.slotOf(hidden))
		require.NoError(t, SendToViewers(x.server, hidden, mHit{Number: 2}))
		x.world.RemoveEntity(hidden)
		x.peer.SetInterest(Interest{Visible: visible})
		x.rounds(20)
		require.Equal(t, []string{"replication.mHit{1 0}"}, got)
		x.requireSeen()
	}
}
