package replication

import (
	"fmt"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// Messages that wait: for entities in the client's world, and for their acknowledgement.

// TestMessagesWaitForTheWorld: a message is delivered when the client's world has the entities and
// components of its tick.
func TestMessagesWaitForTheWorld(t *testing.T) {
	x := connectedWire(t, messageSchema())
	var got []string
	collect[mHit](x.client, &got)
	collect[mChat](x.client, &got)
	collect[mSpark](x.client, &got)
	health := ecs.ComponentID[tHealth](x.world)
	e := x.spawn(health)
	sendHit := func(n uint32) {
		require.NoError(t, SendToClient(x.peer, mHit{Number: n}))
		require.NoError(t, SendToClient(x.peer, mChat{Number: n}))
		require.NoError(t, SendToClient(x.peer, mSpark{Number: n}))
	}
	// round loses all state, or delivers everything.
	round := func(lose bool) {
		got = nil
		for _, p := range x.replicate() {
			if kind := wire.KindOf(p[wire.ChecksumSize:]); !lose || kind == wire.KindMessages {
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
		sendHit(uint32(i))
		round(true)
		require.Equal(t, []string{fmt.Sprintf("replication.mChat{%d [0 0 0 0]}", i)}, got, step.what)
		for len(got) == 0 || got[0][:16] != "replication.mHit" {
			round(false)
		}
		require.Equal(t, []string{fmt.Sprintf("replication.mHit{%d 0}", i), fmt.Sprintf("replication.mSpark{%d [0 0 1]}", i)}, got, step.what)
		x.rounds(20)
	}
	// Messages do not wait for changed values.
	e = x.spawn(health)
	x.rounds(20)
	(*tHealth)(x.world.Get(e, health)).HP = 7
	sendHit(9)
	round(true)
	require.Len(t, got, 3)
}

// TestMessagesDontWaitForEver: the awaited entity may never arrive.
func TestMessagesDontWaitForEver(t *testing.T) {
	x := connectedWire(t, messageSchema())
	var got []string
	collect[mHit](x.client, &got)
	hidden := false
	x.peer.SetInterest(Interest{Visible: func(ecs.Entity) bool { return !hidden }, Keep: true})
	x.round()
	x.spawn(ecs.ComponentID[tHealth](x.world))
	require.NoError(t, SendToClient(x.peer, mHit{Number: 1}))
	for _, p := range x.replicate() { // the entity is lost
		if wire.KindOf(p[wire.ChecksumSize:]) == wire.KindMessages {
			x.deliver(p)
		}
	}
	x.answer(x.apply()...)
	require.Empty(t, got, "the message waits")
	hidden = true // not sent again: the client may keep what it has seen, which is nothing
	resent := func() uint64 { return x.peer.Stats().MessagesResent }
	for i := 0; resent() < 2; i++ { // the packet with that information is lost twice
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

// TestUnreliableMessagesWaitForAWhile: then they are dropped, like those beyond the limit.
func TestUnreliableMessagesWaitForAWhile(t *testing.T) {
	x := connectedWire(t, messageSchema())
	var got []string
	collect[mSpark](x.client, &got)
	x.spawn(ecs.ComponentID[tHealth](x.world))
	lose := func() {
		for _, p := range x.replicate() {
			if wire.KindOf(p[wire.ChecksumSize:]) == wire.KindMessages {
				x.deliver(p)
			}
		}
		x.apply()
	}
	for range 3 {
		for range message.MaxUnreliable {
			require.NoError(t, SendToClient(x.peer, mSpark{}))
		}
		lose()
	}
	require.Equal(t, message.MaxWaiting, x.client.messages.Kept)
	require.EqualValues(t, message.MaxUnreliable, x.client.Stats().MessagesDropped)
	for range message.WaitTicks {
		lose()
	}
	require.Zero(t, x.client.messages.Kept+x.client.messages.Bytes)
	require.EqualValues(t, 3*message.MaxUnreliable, x.client.Stats().MessagesDropped)
	x.rounds(5)
	require.Empty(t, got)
}

// TestASilentClientIsSentLittle: unacknowledged messages are sent again less and less often.
func TestASilentClientIsSentLittle(t *testing.T) {
	x := connectedWire(t, messageSchema())
	for range wire.MaxQueued {
		require.NoError(t, SendToClient(x.peer, mHit{}))
	}
	x.replicate()
	first := x.peer.Stats().MessageBytes
	require.Greater(t, first, uint64(wire.MaxQueued*5))
	for range 1000 {
		for _, p := range x.replicate() {
			require.LessOrEqual(t, len(p), 1200)
		}
	}
	require.Less(t, x.peer.Stats().MessageBytes-first, first+2000)
	require.Less(t, x.peer.Stats().MessagesResent, uint64(wire.MaxQueued+100*message.MaxProbes))
	got := 0
	OnServerMessage(x.client, func(mHit) { got++ })
	for i := 0; got < wire.MaxQueued; i++ { // nothing was dropped
		x.round()
		require.Less(t, i, 200)
	}
}

func (c *Client) mirrorsShown() (n int) {
	for range c.Entities() {
		n++
	}
	return n
}

// TestImmediateMessagesOvertakeAWorld: while a client receives a large world, messages that need it
// wait on the server.
func TestImmediateMessagesOvertakeAWorld(t *testing.T) {
	x := newWire(t, messageSchema())
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
	require.NoError(t, SendToClient(x.peer, mHit{}))
	require.NoError(t, SendToClient(x.peer, mChat{}))
	x.rounds(3)
	require.Equal(t, []string{"replication.mChat{0 [0 0 0 0]}"}, got)
	require.Less(t, x.client.mirrorsShown(), 1000)
	for i := 0; len(got) < 2; i++ {
		x.round()
		require.Less(t, i, 400)
	}
	require.Equal(t, 5000, x.client.mirrorsShown(), "the message has seen it all")
	x.rounds(2 * ackstate.CleanAt)
	require.LessOrEqual(t, len(x.peer.acked.Structure.Changes), ackstate.CleanAt)
	require.Less(t, cap(x.peer.acked.Structure.Changes), 1025)
}

// TestDependenciesOfARetransmitShrink: a message is sent again when less is known to be missing,
// and overtakes its first copy. The newer dependencies count.
func TestDependenciesOfARetransmitShrink(t *testing.T) {
	for name, order := range map[string][2]int{"in order": {0, 1}, "overtaken": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			x := connectedWire(t, messageSchema())
			var got []string
			collect[mHit](x.client, &got)
			hidden := false
			x.peer.SetInterest(Interest{Visible: func(ecs.Entity) bool { return !hidden }, Keep: true})
			x.round()
			x.spawn(ecs.ComponentID[tHealth](x.world))
			require.NoError(t, SendToClient(x.peer, mHit{Number: 1}))
			var copies [][]byte
			for i := 0; len(copies) < 2; i++ { // the entity never arrives
				for _, p := range x.replicate() {
					if wire.KindOf(p[wire.ChecksumSize:]) == wire.KindMessages {
						copies = append(copies, p)
					}
				}
				hidden = true
				require.Less(t, i, 100)
			}
			x.deliver(copies[order[0]], copies[order[1]])
			x.apply()
			require.Len(t, got, 1, "there is nothing to wait for any more")
		})
	}
}
