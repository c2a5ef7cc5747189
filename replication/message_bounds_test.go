package replication

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/stretchr/testify/require"
)

// TestAClientThatAcknowledgesNoMessagesGetsFew: it claims to have received every packet, and none of the messages in
// them. What is queued is not sent again and again because of that.
func TestAClientThatAcknowledgesNoMessagesGetsFew(t *testing.T) {
	type long struct{ B [60]byte }
	s := testSchema()
	RegisterMessage[long](s, Immediate())
	x := newWire(t, s)
	x.rounds(10)
	queued := uint64(0)
	for SendToClient(x.peer, long{}) == nil {
		queued++
	}
	x.replicate()
	before := x.peer.Stats()
	x.client.clock.Now++
	for range 10 * 60 {
		x.replicate()
		var buf [64]byte
		w := bitbuf.NewWriter(buf[:])
		w.WriteExpGolomb(0, 0)
		for c := range wire.Channels {
			first := uint16(x.peer.messages.Out[c].First)
			(&wire.ChannelAck{Present: true, Received: uint16(x.server.Tick()), Next: first}).Write(&w)
		}
		w.WriteBool(false)
		require.NoError(t, x.peer.Receive(x.forgeMessages(wire.KindMessages, false, 0, w.Bytes())))
		x.client.clock.Now++
		require.NoError(t, x.peer.Receive(x.client.recv.WriteAcks(x.client.session.AckKey()))) // it is not silent
	}
	resent := x.peer.Stats().MessagesResent - before.MessagesResent
	require.Greater(t, queued, uint64(1000))
	require.Greater(t, resent, 5*queued, "the server believes it")
	require.Less(t, resent, 30*queued)
}

// TestAFloodIsBounded: packets beyond the number that an honest client sends in a tick are refused.
func TestAFloodIsBounded(t *testing.T) {
	x := newMessageWire(t, nil)
	x.replicate()
	handled := 0
	OnClientMessage(x.server, func(*Peer, mFlash) { handled++ })
	packet := func(i int, messages int) []byte {
		w := bitbuf.NewWriter(make([]byte, 1000))
		w.WriteExpGolomb(uint64(i%message.MaxMessagePackets), 0)
		w.WriteBits(0, 2)
		for range messages {
			w.WriteBits(1|3<<1, 4)
		}
		w.WriteBool(false)
		return x.forgeMessages(wire.KindMessages, false, int32(1+i/message.MaxMessagePackets), bytes.Clone(w.Bytes()))
	}
	flood := func(messages int) (taken, refused int) {
		for i := range 1000 {
			switch err := x.peer.Receive(packet(i, messages)); err {
			case nil:
				taken++
			case message.ErrFlood:
				refused++
			default:
				require.NoError(t, err)
			}
		}
		return taken, refused
	}
	taken, refused := flood(1)
	require.Equal(t, message.MaxPacketsPerTick, taken)
	require.Equal(t, 1000-message.MaxPacketsPerTick, refused)
	require.Equal(t, message.MaxPacketsPerTick, handled)
	x.client.clock.Now += 1000
	x.server.Replicate()
	handled = 0
	_, _ = flood(message.MaxPacketMessages)
	require.Equal(t, message.MaxMessagesPerTick, handled)
	require.EqualValues(t, 1000-message.MaxPacketsPerTick+1000-message.MaxMessagesPerTick/message.MaxPacketMessages, x.peer.Stats().Floods)

	// Inputs count as well.
	x.client.clock.Now += 1000
	x.server.Replicate()
	in := x.forgeMessages(wire.KindInputs, false, 0, make([]byte, 7))
	for i := range 1000 {
		if err := x.peer.Receive(in); i < message.MaxPacketsPerTick {
			require.NotErrorIs(t, err, message.ErrFlood)
		} else {
			require.ErrorIs(t, err, message.ErrFlood)
		}
	}
}

// TestHostileMessagesTakeLittleMemory: messages far ahead of the next id, of the largest size, and
// inputs for all ticks.
func TestHostileMessagesTakeLittleMemory(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector takes memory of its own")
	}
	x := connectedWire(t, messageSchema(), WithMTU(2000))
	x.replicate()
	before := heapInUse()
	buf := make([]byte, 2000)
	for round := range 20 {
		for i := range wire.MaxQueued - 1 {
			w := bitbuf.NewWriter(buf)
			w.WriteExpGolomb(uint64(i%message.MaxMessagePackets), 0)
			w.WriteBits(0, 2)
			w.WriteBits(1|4<<1, 4)
			w.WriteBits(uint64(i+1), 16)
			w.WriteBool(false) // not fragmented
			for range 150 {
				w.WriteBits(^uint64(0), 64)
			}
			w.WriteBool(false)
			require.NoError(t, x.peer.Receive(x.forgeMessages(wire.KindMessages, false, int32(1+(round*wire.MaxQueued+i)/message.MaxMessagePackets), w.Bytes())))
			if i%200 == 0 {
				x.replicate()
			}
		}
	}
	require.LessOrEqual(t, x.peer.messages.In[wire.ChannelState].Size, message.MaxQueuedBytes)
	require.Less(t, heapInUse()-before, int64(400<<10))
	runtime.KeepAlive(x)
}
