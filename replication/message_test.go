package replication

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

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

func talkSchema() *Schema {
	s := testSchema()
	RegisterMessage[mHit](s)
	RegisterMessage[mChat](s, Immediate())
	RegisterMessage[mSpark](s, Unreliable())
	RegisterMessage[mFlash](s, Unreliable(), Immediate())
	RegisterMessage[mMap](s)
	RegisterInput[mMove](s)
	return s
}

// collect appends what comes to got, as text.
func collect[T any](c *Client, got *[]string) {
	OnServerMessage(c, func(m T) { *got = append(*got, fmt.Sprintf("%T%v", m, m)) })
}

func TestMessagesGoBothWays(t *testing.T) {
	x := connectedWire(t, talkSchema())
	var got []string
	collect[mHit](x.client, &got)
	collect[mChat](x.client, &got)
	collect[mSpark](x.client, &got)
	collect[mFlash](x.client, &got)
	require.NoError(t, Send(x.peer, mHit{1, 50}))
	require.NoError(t, Send(x.peer, mHit{2, 1e9}))
	require.NoError(t, SendToAll(x.server, mChat{2, [4]uint8{1, 2, 3, 4}}))
	require.NoError(t, Send(x.peer, mSpark{3, [3]float32{1, 0, 0}}))
	require.NoError(t, Send(x.peer, mFlash{}))
	require.Empty(t, got)
	x.round()
	require.Equal(t, []string{
		"replication.mHit{1 50}", "replication.mHit{2 100}", // clamped, as in components
		"replication.mChat{2 [1 2 3 4]}", "replication.mSpark{3 [1 0 0]}", "replication.mFlash{}",
	}, got)
	require.Equal(t, x.server.Tick(), x.client.MessageTick())

	var up []string
	OnMessage(x.server, func(p *Peer, m mHit) {
		require.Equal(t, x.peer, p)
		up = append(up, fmt.Sprint(m))
	})
	OnMessage(x.server, func(_ *Peer, m mSpark) { up = append(up, fmt.Sprint(m)) })
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

// TestMessagesWithoutFunctionAreCounted: nobody takes them, and nothing waits for them.
func TestMessagesWithoutFunctionAreCounted(t *testing.T) {
	x := connectedWire(t, talkSchema())
	var got []string
	collect[mHit](x.client, &got)
	collect[mChat](x.client, &got)
	OnServerMessage[mHit](x.client, nil)
	OnMessage(x.server, func(*Peer, mHit) { t.Fatal("replaced") })
	OnMessage[mHit](x.server, nil)
	require.NoError(t, Send(x.peer, mHit{}))
	require.NoError(t, Send(x.peer, mChat{}))
	require.NoError(t, SendToServer(x.client, mHit{}))
	x.rounds(3)
	require.Len(t, got, 1)
	require.EqualValues(t, 1, x.client.Stats().MessagesUnhandled)
	require.EqualValues(t, 1, x.peer.Stats().MessagesUnhandled)
}

// TestAMessageHasItsOwnMemory: fields that are not sent are zero, whatever the message before had.
func TestAMessageHasItsOwnMemory(t *testing.T) {
	x := connectedWire(t, talkSchema(), WithMTU(2000))
	var got []mMap
	OnServerMessage(x.client, func(m mMap) { got = append(got, m) })
	require.NoError(t, Send(x.peer, mMap{Cells: [150]uint64{0: 1, 140: 1 << 63}, Local: 7}))
	require.NoError(t, Send(x.peer, mMap{Cells: [150]uint64{1: 2}, Local: 8}))
	x.rounds(3)
	require.Equal(t, []mMap{{Cells: [150]uint64{0: 1, 140: 1 << 63}}, {Cells: [150]uint64{1: 2}}}, got)
	require.Zero(t, x.client.talk.values[4].value.Field(1).Int())
}

// TestMessagesWaitForTheWorld: one that was sent in a tick is handed over when the world has the structure of it.
func TestMessagesWaitForTheWorld(t *testing.T) {
	x := connectedWire(t, talkSchema())
	var got []string
	collect[mHit](x.client, &got)
	collect[mChat](x.client, &got)
	collect[mSpark](x.client, &got)
	health := ecs.ComponentID[tHealth](x.world)
	e := x.spawn(health)
	say := func(n uint32) {
		require.NoError(t, Send(x.peer, mHit{Number: n}))
		require.NoError(t, Send(x.peer, mChat{Number: n}))
		require.NoError(t, Send(x.peer, mSpark{Number: n}))
	}
	// round loses all state, or lets all come.
	round := func(lose bool) {
		got = nil
		for _, p := range x.replicate() {
			if kind := kindOf(p[checksumSize:]); !lose || kind == kindMessages {
				x.deliver(p)
			}
		}
		x.answer(x.apply()...)
	}
	steps := []struct {
		what string
		do   func()
	}{
		{"spawned", func() {}},
		{"another component", func() { x.world.Add(e, ecs.ComponentID[tFrozen](x.world)) }},
		{"one less", func() { x.world.Remove(e, health) }},
		{"despawned", func() { x.world.RemoveEntity(e) }},
	}
	for i, step := range steps {
		step.do()
		say(uint32(i))
		round(true)
		require.Equal(t, []string{fmt.Sprintf("replication.mChat{%d [0 0 0 0]}", i)}, got, step.what)
		for len(got) == 0 || got[0][:16] != "replication.mHit" {
			round(false)
		}
		require.Equal(t, []string{fmt.Sprintf("replication.mHit{%d 0}", i), fmt.Sprintf("replication.mSpark{%d [0 0 1]}", i)}, got, step.what)
		x.rounds(20)
	}
	// A value that changed is nothing to wait for.
	e = x.spawn(health)
	x.rounds(20)
	(*tHealth)(x.world.Get(e, health)).HP = 7
	say(9)
	round(true)
	require.Len(t, got, 3)
}

// TestMessagesDontWaitForEver: what a message waits for may never come.
func TestMessagesDontWaitForEver(t *testing.T) {
	x := connectedWire(t, talkSchema())
	var got []string
	collect[mHit](x.client, &got)
	hidden := false
	x.peer.SetInterest(Interest{Visible: func(ecs.Entity) bool { return !hidden }, Keep: true})
	x.round()
	x.spawn(ecs.ComponentID[tHealth](x.world))
	require.NoError(t, Send(x.peer, mHit{Number: 1}))
	for _, p := range x.replicate() { // the entity does not come
		if kindOf(p[checksumSize:]) == kindMessages {
			x.deliver(p)
		}
	}
	x.answer(x.apply()...)
	require.Empty(t, got, "the message waits")
	hidden = true // and is not sent again: the client may keep what it has seen, which is nothing
	resent := func() uint64 { return x.peer.Stats().MessagesResent }
	for i := 0; resent() < 2; i++ { // what says so gets lost twice
		x.replicate()
		x.answer(x.apply()...)
		require.Less(t, i, 500)
	}
	require.Empty(t, got)
	for i := 0; len(got) == 0; i++ {
		x.round()
		require.Less(t, i, 500)
	}
	require.Equal(t, 0, x.client.mirrorsShown())
}

// TestUnreliableMessagesWaitForAWhile: then they are dropped, and so are more than there is room for.
func TestUnreliableMessagesWaitForAWhile(t *testing.T) {
	x := connectedWire(t, talkSchema())
	var got []string
	collect[mSpark](x.client, &got)
	x.spawn(ecs.ComponentID[tHealth](x.world))
	lose := func() {
		for _, p := range x.replicate() {
			if kindOf(p[checksumSize:]) == kindMessages {
				x.deliver(p)
			}
		}
		x.apply()
	}
	for range 3 {
		for range maxLoose {
			require.NoError(t, Send(x.peer, mSpark{}))
		}
		lose()
	}
	require.Equal(t, maxWaiting, x.client.talk.kept)
	require.EqualValues(t, maxLoose, x.client.Stats().MessagesDropped)
	for range waitApplies {
		lose()
	}
	require.Zero(t, x.client.talk.kept+x.client.talk.bytes)
	require.EqualValues(t, 3*maxLoose, x.client.Stats().MessagesDropped)
	x.rounds(5)
	require.Empty(t, got)
}

// TestASilentClientIsSentLittle: what awaits its acknowledgement is sent again ever less often.
func TestASilentClientIsSentLittle(t *testing.T) {
	x := connectedWire(t, talkSchema())
	for range maxQueued {
		require.NoError(t, Send(x.peer, mHit{}))
	}
	x.replicate()
	first := x.peer.Stats().MessageBytes
	require.Greater(t, first, uint64(maxQueued*5))
	for range 1000 {
		for _, p := range x.replicate() {
			require.LessOrEqual(t, len(p), 1200)
		}
	}
	require.Less(t, x.peer.Stats().MessageBytes-first, first+2000)
	require.Less(t, x.peer.Stats().MessagesResent, uint64(maxQueued+100*maxProbes))
	got := 0
	OnServerMessage(x.client, func(mHit) { got++ })
	for i := 0; got < maxQueued; i++ { // it was not gone
		x.round()
		require.Less(t, i, 200)
	}
}

func (c *Client) mirrorsShown() (n int) {
	c.Each(func(NetID, ecs.Entity, uint32) { n++ })
	return n
}

// TestImmediateMessagesOvertakeAWorld: while a client gets to know a large world, messages that need it wait at the server.
func TestImmediateMessagesOvertakeAWorld(t *testing.T) {
	x := newWire(t, talkSchema())
	position := ecs.ComponentID[tPosition](x.world)
	for range 5000 {
		x.spawn(position)
	}
	x.peer.SetBudget(60_000)
	for !x.peer.Connected() {
		x.round()
	}
	var got []string
	collect[mHit](x.client, &got)
	collect[mChat](x.client, &got)
	require.NoError(t, Send(x.peer, mHit{}))
	require.NoError(t, Send(x.peer, mChat{}))
	x.rounds(3)
	require.Equal(t, []string{"replication.mChat{0 [0 0 0 0]}"}, got)
	require.Less(t, x.client.mirrorsShown(), 1000)
	for i := 0; len(got) < 2; i++ {
		x.round()
		require.Less(t, i, 400)
	}
	require.Equal(t, 5000, x.client.mirrorsShown(), "the message has seen it all")
	x.rounds(2 * cleanAt)
	require.LessOrEqual(t, len(x.peer.talk.structure.changes), cleanAt)
	require.Less(t, cap(x.peer.talk.structure.changes), 1025)
}

// TestSendToViewers: those get a message that see the entity, or saw it end.
func TestSendToViewers(t *testing.T) {
	s := talkSchema()
	x := connectedWire(t, s)
	var blind [][]byte
	world := ecs.NewWorld()
	other := x.server.Connect(func(p []byte) error {
		blind = append(blind, append([]byte(nil), p...))
		return nil
	})
	client := NewClient(&world, s, other.Receive, WithNonce(99))
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
	say := func(e ecs.Entity) {
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
	say(e)
	expect("one that was spawned just now", 2, 0)
	set.Add(e)
	say(e)
	expect("one that comes into view", 2, 2)
	say(e)
	x.world.RemoveEntity(e)
	expect("one that ends", 2, 2)
	say(e)
	expect("one that ended long ago", 0, 0)
	f := x.spawn(ecs.ComponentID[tHealth](x.world))
	expect("nothing", 0, 0)
	say(f)
	x.world.RemoveEntity(f)
	expect("one that ends out of view", 2, 0)
	require.Zero(t, other.talk.out[laneState].size+x.peer.talk.out[laneState].size, "room was given back")
	require.Zero(t, other.talk.out[laneState].expected)
}

// TestHandlersMayDoAlmostAnything: they send, disconnect, and change worlds.
func TestHandlersMayDoAlmostAnything(t *testing.T) {
	x := connectedWire(t, talkSchema())
	OnMessage(x.server, func(p *Peer, m mHit) {
		switch m.Number {
		case 0:
			x.spawn(ecs.ComponentID[tHealth](x.world))
			require.NoError(t, Send(p, m))
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
		require.PanicsWithValue(t, "replication: Apply in a message handler, which runs in an Apply", func() { _ = x.client.Apply() })
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
	require.ErrorIs(t, Send(x.peer, mHit{}), ErrNotConnected)
	require.ErrorIs(t, x.peer.Receive([]byte{1, 2, 3, 4, 5}), ErrUnexpected)
}

// TestARestartedClientStartsAnew: what was on its way in the old session is gone, ids begin anew.
func TestARestartedClientStartsAnew(t *testing.T) {
	s := talkSchema()
	x := connectedWire(t, s)
	for i := range uint32(100) {
		require.NoError(t, Send(x.peer, mHit{Number: i}))
		require.NoError(t, SendToServer(x.client, mHit{Number: i}))
	}
	x.replicate()
	x.apply()
	x.restart(s, 8)
	var got, up []uint32
	OnServerMessage(x.client, func(m mHit) { got = append(got, m.Number) })
	OnMessage(x.server, func(_ *Peer, m mHit) { up = append(up, m.Number) })
	x.rounds(5)
	require.NoError(t, Send(x.peer, mHit{Number: 1000}))
	require.NoError(t, SendToServer(x.client, mHit{Number: 2000}))
	x.rounds(5)
	require.Equal(t, []uint32{1000}, got)
	require.Equal(t, []uint32{2000}, up)
}

// TestUnreliableMessagesAreNotSentAgain, and reliable ones are.
func TestUnreliableMessagesAreNotSentAgain(t *testing.T) {
	x := connectedWire(t, talkSchema())
	var got []string
	collect[mHit](x.client, &got)
	collect[mSpark](x.client, &got)
	require.NoError(t, Send(x.peer, mSpark{}))
	require.NoError(t, Send(x.peer, mHit{}))
	x.replicate() // lost
	x.rounds(80)
	require.Equal(t, []string{"replication.mHit{0 0}"}, got)
	require.EqualValues(t, 1, x.peer.Stats().MessagesResent)
}

// TestTheLargestMessageFits into a packet of any size, and one byte more does not.
func TestTheLargestMessageFits(t *testing.T) {
	for _, mtu := range []int{64, 100, 300, 1200, 2000} {
		s := NewSchema()
		RegisterMessage[mBytes40](s)
		RegisterMessage[mBytes47](s)
		RegisterMessage[mBytes48](s)
		RegisterMessage[mMap](s)
		manyMessages(s, 200) // type numbers take all their bits
		x := connectedWire(t, s, WithMTU(mtu), WithFirstTick(1<<31))
		n := 0
		OnServerMessage(x.client, func(mBytes47) { n++ })
		OnServerMessage(x.client, func(mMap) { n++ })
		OnServerMessage(x.client, func(mBytes48) { n++ })
		require.NoError(t, Send(x.peer, mBytes47{}))
		err := Send(x.peer, mBytes48{})
		if mtu == 64 {
			require.EqualError(t, err, "replication: message too large: mBytes48 takes 48 bytes, and 47 fit into a packet of 64: "+
				"send it in pieces, or raise the MTU")
			require.ErrorIs(t, err, ErrMessageTooLarge)
		} else {
			require.NoError(t, err)
		}
		if mtu < 1217 {
			require.ErrorIs(t, Send(x.peer, mMap{}), ErrMessageTooLarge)
		} else {
			require.NoError(t, Send(x.peer, mMap{}))
		}
		x.server.tick += maxMessageAge // an age takes all its bits
		for range 3 {
			for _, p := range x.replicate() {
				require.LessOrEqual(t, len(p), mtu)
				x.deliver(p)
			}
			x.answer(x.apply()...)
		}
		require.Equal(t, int(x.peer.Stats().Messages), n, "mtu %d", mtu)
		require.Equal(t, uint64(n), x.client.Stats().MessagesReceived)
	}
}

// TestTextsTooLongAreRefused: a message is not sent with half of what it was to say.
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
	OnMessage(x.server, func(_ *Peer, m line) { got = append(got, m.Text) })
	const want = "replication: message too large: line.Text: the string has 6 bytes, and max is 5: shorten it, or raise max in the tag"
	for _, err := range []error{
		Send(x.peer, line{"123456"}), SendToAll(x.server, line{"123456"}), SendToViewers(x.server, ecs.Entity{}, line{"123456"}), SendToServer(x.client, line{"123456"}),
	} {
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, ErrMessageTooLarge)
	}
	require.NoError(t, Send(x.peer, line{"12345"}))
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
		if err := s.registerMessage(t, []MessageOption{Name(fmt.Sprint("Bools", i))}); err != nil {
			panic(err)
		}
	}
}

type mBytes40 struct{ B [40]uint8 }

type mBytes47 struct{ B [47]uint8 }

type mBytes48 struct{ B [48]uint8 }

// TestBuffersAreBounded: a lane takes 1024 messages or 64 KiB, a tick 256 unreliable ones or 16 KiB.
func TestBuffersAreBounded(t *testing.T) {
	x := connectedWire(t, talkSchema(), WithMTU(2000))
	fill := func(send func() error) (n int) {
		for {
			if err := send(); err != nil {
				require.Equal(t, ErrBufferFull, err)
				return n
			}
			n++
		}
	}
	require.Equal(t, 1024, fill(func() error { return Send(x.peer, mHit{}) }))
	require.Equal(t, 1024, fill(func() error { return Send(x.peer, mChat{}) }), "a lane of its own")
	require.Equal(t, 256, fill(func() error { return Send(x.peer, mSpark{}) }))
	require.Equal(t, 1024, fill(func() error { return SendToServer(x.client, mHit{}) }))
	require.Equal(t, 256, fill(func() error { return SendToServer(x.client, mFlash{}) }))
	require.ErrorIs(t, SendToAll(x.server, mHit{}), ErrBufferFull)
	require.Equal(t, 1024+1024+256, len(x.server.messenger.drafts), "what nobody takes is not kept")
	for range 20 { // the server goes silent: what waits stays
		x.replicate()
	}
	require.Equal(t, 0, fill(func() error { return Send(x.peer, mHit{}) }))
	x.rounds(100)
	require.Equal(t, 54, fill(func() error { return Send(x.peer, mMap{}) }), "64 KiB of 1200 bytes")
	x.rounds(100)
	require.Equal(t, 1024, fill(func() error { return Send(x.peer, mHit{}) }))
	require.EqualValues(t, 1, x.peer.Stats().MessagesDropped)
}

// TestRefusalsOfMessages: what is refused, with its sentence.
func TestRefusalsOfMessages(t *testing.T) {
	full := func() *Schema {
		s := NewSchema()
		manyMessages(s, maxMessageTypes)
		return s
	}
	for _, c := range []struct {
		name string
		do   func()
		want string
	}{
		{"no schema", func() { RegisterMessage[mHit](nil) }, "RegisterMessage needs a schema: make one with NewSchema"},
		{"no schema for inputs", func() { RegisterInput[mHit](nil) }, "RegisterInput needs a schema: make one with NewSchema"},
		{"twice", func() { RegisterMessage[mHit](talkSchema()) }, "mHit: replication.mHit is registered already: register every type once"},
		{"name of a component", func() { RegisterMessage[mMap](talkSchema(), Name("tHealth")) }, "tHealth: replication.tHealth and replication.mMap have the same name: give one another with the option Name"},
		{"name of a message", func() { Register[mMap](talkSchema(), Name("mHit")) }, "mHit: replication.mHit and replication.mMap have the same name: give one another with the option Name"},
		{"name of the input", func() { RegisterMessage[mBytes40](talkSchema(), Name("mMove")) }, "mMove: replication.mMove and replication.mBytes40 have the same name: give one another with the option Name"},
		{"second input", func() { RegisterInput[mBytes40](talkSchema()) }, "mBytes40: the schema has the input type mMove already: put all commands into one"},
		{"large input", func() { RegisterInput[mMap](NewSchema()) }, "mMap: an input of 9600 bits, where 512 are the most: inputs are sent again and again; use ranges, and messages for what is rare"},
		{"slice", func() {
			type tSlice struct{ A []int }
			RegisterMessage[tSlice](NewSchema())
		}, `tSlice.A: slices can't be replicated; use a fixed array or skip the field with repl:"-"`},
		{"pointer", func() { RegisterMessage[*mHit](NewSchema()) }, "*replication.mHit is a pointer: register the component type itself"},
		{"interval", func() { RegisterMessage[mHit](NewSchema(), Every(2)) }, "mHit: the option Every is for components"},
		{"priority", func() { RegisterInput[mHit](NewSchema(), Priority(2)) }, "mHit: the option Priority is for components"},
		{"once", func() { RegisterMessage[mHit](NewSchema(), Once()) }, "mHit: the option Once is for components"},
		{"condition", func() { RegisterMessage[mHit](NewSchema(), OwnerOnly()) }, "mHit: OwnerOnly, ExceptOwner and OnlyFor are for components: who gets a message is said when it is sent"},
		{"condition of inputs", func() { RegisterInput[mHit](NewSchema(), ExceptOwner()) }, "mHit: OwnerOnly, ExceptOwner and OnlyFor are for components: who gets a message is said when it is sent"},
		{"reserved name", func() { RegisterMessage[schemaTeam](NewSchema(), Name("input")) }, `the name "input" of a type that is no struct has a meaning in the schema text: choose another with the option Name`},
		{"sealed", func() {
			s := talkSchema()
			s.seal()
			RegisterMessage[mBytes40](s)
		}, "mBytes40: the schema is in use: register all components before making a server or client of it"},
		{"too many", func() { RegisterMessage[mHit](full()) }, "mHit: the schema is full: it holds at most 255 message types"},
		{"small MTU", func() { WithClientMTU(100) }, "a client's MTU of 100 bytes: use 256 to 65507"},

		{"unknown to send", func() { _ = Send(connectedWire(t, talkSchema()).peer, mBytes40{}) }, "replication.mBytes40 is not a registered message: call RegisterMessage before making servers and clients of the schema"},
		{"unknown to send to the server", func() { _ = SendToServer(connectedWire(t, testSchema()).client, mHit{}) }, "replication.mHit is not a registered message: call RegisterMessage before making servers and clients of the schema"},
		{"unknown to handle", func() { OnMessage(connectedWire(t, testSchema()).server, func(*Peer, mHit) {}) }, "replication.mHit is not a registered message: call RegisterMessage before making servers and clients of the schema"},
		{"unknown to handle at a client", func() { OnServerMessage(connectedWire(t, testSchema()).client, func(mHit) {}) }, "replication.mHit is not a registered message: call RegisterMessage before making servers and clients of the schema"},
		{"pointer to send", func() { _ = Send(connectedWire(t, talkSchema()).peer, &mHit{}) }, "*replication.mHit is a pointer: send and handle the message itself"},
		{"no inputs", func() { _ = SetInput(connectedWire(t, testSchema()).client, 0, mMove{}) }, "the schema has no inputs: call RegisterInput before making servers and clients of it"},
		{"other input", func() { _, _ = Input[mHit](connectedWire(t, talkSchema()).peer, 0) }, "replication.mHit is not the input type, which is replication.mMove"},
	} {
		require.PanicsWithValue(t, "replication: "+c.want, c.do, c.name)
	}
	x := newWire(t, talkSchema())
	require.ErrorIs(t, Send(x.peer, mHit{}), ErrNotConnected)
	require.NoError(t, SendToAll(x.server, mHit{}), "to nobody")
	require.NoError(t, SendToViewers(x.server, ecs.Entity{}, mHit{}))
	require.ErrorIs(t, SendToServer(x.client, mHit{}), ErrNotConnected)
	require.ErrorIs(t, SetInput(x.client, 0, mMove{}), ErrNotConnected)
	require.Empty(t, x.server.messenger.drafts)
	require.Zero(t, x.client.InputTick())
	require.Zero(t, x.client.Lead()+x.client.ServerTick()+x.client.RoundTrip())
	for err, want := range map[error]string{
		ErrNotConnected: "replication: not connected: messages and inputs need a session, see Connected",
		ErrBufferFull:   "replication: the message buffer is full: the other end has not acknowledged what is in it",
		ErrFlood:        "replication: too many packets of messages and inputs in a tick",
		ErrInputSet:     "replication: the tick has its input already: inputs are set once for a tick, in their order",
	} {
		require.EqualError(t, err, want)
	}
}

// TestSchemaTextHasMessages behind components, however they were registered, and nothing where there are none.
func TestSchemaTextHasMessages(t *testing.T) {
	s := NewSchema()
	RegisterInput[mMove](s, Name("Move"))
	RegisterMessage[mHit](s, Name("Hit"))
	RegisterMessage[mFlash](s, Name("Flash"), Immediate(), Unreliable())
	RegisterMessage[schemaTeam](s, Field("", Range(0, 3)))
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

// TestNothingIsSaidWithoutMessages: a schema with neither messages nor inputs has none of their packets.
func TestNothingIsSaidWithoutMessages(t *testing.T) {
	x := connectedWire(t, testSchema())
	x.spawn(ecs.ComponentID[tHealth](x.world))
	for range 40 {
		down := x.replicate()
		x.deliver(down...)
		for _, p := range append(down, x.apply()...) {
			require.NotContains(t, []packetKind{kindMessages, kindInputs}, kindOf(p[checksumSize:]))
			x.answer(p)
		}
	}
	require.Nil(t, x.peer.talk)
	forged := []byte{0, 0, 0, 0, byte(kindMessages), 0, 0}
	x.server.opts.noChecksum = true
	require.Error(t, x.peer.Receive(forged))
	require.Error(t, x.client.Receive(forged))
	require.InDelta(t, float64(x.server.Tick()), x.client.ServerTick(), 1)
}
