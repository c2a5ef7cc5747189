package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/sender"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestMessagesBeginASession: a client's first message may arrive before its first ack, or instead
// of it. The message confirms the session as well, and is not refused.
func TestMessagesBeginASession(t *testing.T) {
	x := newWire(t, messageSchema())
	var got []uint32
	OnClientMessage(x.server, func(_ *Peer, m mHit) { got = append(got, m.Number) })
	x.answer(x.apply()...) // hello
	x.deliver(x.takeDown()...)
	require.True(t, x.client.Connected())
	require.NoError(t, SendToServer(x.client, mHit{Number: 5}))
	up := x.apply()
	require.Len(t, up, 2, "an ack and a message")
	require.False(t, x.peer.Connected())
	damaged := append([]byte(nil), up[1]...)
	damaged[len(damaged)-1] ^= 1
	require.ErrorIs(t, x.peer.Receive(damaged), wire.ErrChecksum)
	require.False(t, x.peer.Connected())
	require.NoError(t, x.peer.Receive(up[1]))
	require.True(t, x.peer.Connected())
	require.Equal(t, []uint32{5}, got)
	require.NoError(t, x.peer.Receive(up[0]))
	x.spawn(ecs.ComponentID[tPosition](x.world))
	x.rounds(5)
	require.Equal(t, []uint32{5}, got)
	x.requireEqual()
	require.EqualValues(t, 1, x.client.Stats().Sessions)
	require.EqualValues(t, 1, x.peer.Stats().RefusedPackets, "the damaged one")
}

// TestHonestClientsAreNeverRefused: whatever the network does, with checksums or without, no packet
// of an honest client is refused, from its first one on.
func TestHonestClientsAreNeverRefused(t *testing.T) {
	seed := seedOf(t)
	all := 0
	for _, opts := range [][]ServerOption{nil, {WithoutChecksum()}} {
		for n := range uint64(20) {
			r := newInputRig(seed+n, netsim.Config{Latency: 3, Jitter: 3, Loss: 0.3, Duplicate: 0.2, Reorder: 0.3, ReorderBy: 6}, opts...)
			got, sent := 0, 0
			OnClientMessage(r.server, func(*Peer, mHit) { got++ })
			for tick := range 300 {
				if tick < 100 && SendToServer(r.client, mHit{}) == nil {
					sent++
				}
				r.tick(t)
			}
			for late := 0; got < sent && late < 2000; late++ { // a silent network makes both ends send little
				r.tick(t)
			}
			all += sent // few in a run whose handshake packets were lost
			require.Equal(t, sent, got)
			require.Zero(t, r.peer.Stats().RefusedPackets)
			require.Zero(t, r.client.Stats().RefusedPackets)
		}
	}
	require.Greater(t, all, 40*40)
}

// TestTheFirstPacketOfAServerIsRepeated: in an idle world an empty packet starts the session and
// reports that everything has arrived. If it is lost, it is repeated sooner than the next
// keep-alive, but not forever to a client that never answers.
func TestTheFirstPacketOfAServerIsRepeated(t *testing.T) {
	x := newWire(t, testSchema())
	x.spawn(ecs.ComponentID[tPosition](x.world))
	for !x.peer.Connected() {
		x.deliver(x.takeDown()...)
		x.answer(x.apply()...)
	}
	delivered, lost := 0, 0
	for tick := 0; !x.client.Complete(); tick++ {
		require.Less(t, tick, 5*sender.CompleteTicks, "%d delivered, %d lost", delivered, lost)
		for _, p := range x.replicate() {
			if len(p) < 20 { // empty
				if delivered++; delivered <= 3 {
					lost++
					continue
				}
			}
			x.deliver(p)
		}
		x.answer(x.apply()...)
	}
	require.Equal(t, 3, lost)

	x.restart(faceOf(x.client.schema), 9)
	for range 3 { // the client answers, and then is silent
		x.answer(x.apply()...)
		x.deliver(x.takeDown()...)
	}
	before := x.peer.Stats().Packets
	for range 600 {
		x.replicate()
	}
	require.LessOrEqual(t, x.peer.Stats().Packets-before, uint64(sender.MaxCompletes+10+20), "one a second, a few more, and the entity again and again")
}

// TestLateAckOfAnOldClientLocksNobodyOut: the first ack of a client that is gone arrives after the
// next client was welcomed.
func TestLateAckOfAnOldClientLocksNobodyOut(t *testing.T) {
	x := newWire(t, testSchema())
	x.answer(x.apply()...) // hello
	x.deliver(x.takeDown()...)
	var late [][]byte
	for len(late) == 0 {
		late = x.apply() // the first ack
	}
	x.restart(faceOf(x.server.schema), 8)
	x.answer(x.apply()...)
	x.deliver(x.takeDown()...)
	require.True(t, x.client.Connected())
	x.answer(late...)
	x.spawn(ecs.ComponentID[tPosition](x.world))
	x.rounds(20)
	x.requireEqual()
}
