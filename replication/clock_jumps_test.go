package replication

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAClientThatSleptForLongReachesItsServerAtOnce: what the server acknowledged before is not completed to a time after it,
// however long the client slept: 16 bits of a time wrap after 18 minutes at 60 ticks per second.
func TestAClientThatSleptForLongReachesItsServerAtOnce(t *testing.T) {
	for _, slept := range []time.Duration{time.Minute, 18 * time.Minute, 1092 * time.Second, 1093 * time.Second, time.Hour} {
		x := connectedWire(t, messageSchema(), WithTimeout(0))
		var got []uint32
		OnClientMessage(x.server, func(_ *Peer, m mHit) { got = append(got, m.Number) })
		x.frames(3, 60)
		require.NoError(t, SendToServer(x.client, mHit{Number: 1}))
		late := x.replicate() // what was in the socket when the client fell asleep
		x.answer(x.apply()...)
		late = append(late, x.replicate()...)
		late = append(late, x.replicate()...)

		x.client.Advance(slept)
		x.deliver(late...)
		x.answer(x.apply()...)
		require.NoError(t, SendToServer(x.client, mHit{Number: 2}))
		x.frames(2, 60)
		require.Equal(t, []uint32{1, 2}, got, "%v", slept)
		require.NoError(t, SetInput(x.client, x.client.InputTick(), mMove{Fire: true}), "%v", slept)
		x.frames(1, 60)
		require.NotZero(t, x.peer.Stats().Inputs, "%v", slept)
	}
}

// TestMessagesAfterALongSilence: only states came for longer than 16 bits of a time reach.
func TestMessagesAfterALongSilence(t *testing.T) {
	for _, opts := range [][]ServerOption{{}, {WithoutChecksum()}} {
		schema := NewSchema()
		Register[tPosition](schema)
		RegisterMessage[mHit](schema)
		x := connectedWire(t, schema, opts...)
		x.frames(1, 60)
		for range 40_000 {
			x.round()
		}
		var got []uint32
		OnServerMessage(x.client, func(m mHit) { got = append(got, m.Number) })
		require.NoError(t, SendToClient(x.peer, mHit{Number: 1}))
		x.frames(1, 60)
		require.Equal(t, []uint32{1}, got)
	}
}

// TestALateMessagePacketDoesNotSilenceOthers: without checksums, nothing shows that the short time of a packet from
// before a pause is completed to one long after it.
func TestALateMessagePacketDoesNotSilenceOthers(t *testing.T) {
	for _, pause := range []int{36_000, 50_000, 52_000, 64_000} { // ticks
		x := connectedWire(t, messageSchema(), WithTimeout(0), WithoutChecksum())
		var down, up []uint32
		OnClientMessage(x.server, func(_ *Peer, m mHit) { up = append(up, m.Number) })
		OnServerMessage(x.client, func(m mHit) { down = append(down, m.Number) })
		x.frames(3, 60)
		require.NoError(t, SendToClient(x.peer, mHit{Number: 1}))
		require.NoError(t, SendToServer(x.client, mHit{Number: 1}))
		lateDown := x.replicate()
		lateUp := x.apply()
		for range pause {
			x.replicate()
			x.client.Advance(time.Second / 60)
			x.apply()
		}
		x.frames(2, 60)
		require.Equal(t, []uint32{1}, down)
		require.Equal(t, []uint32{1}, up)
		x.deliver(lateDown...)
		x.answer(lateUp...)
		require.NoError(t, SendToClient(x.peer, mHit{Number: 2}))
		require.NoError(t, SendToServer(x.client, mHit{Number: 2}))
		x.frames(2, 60)
		require.Equal(t, []uint32{1, 2}, down, "after %d ticks", pause)
		require.Equal(t, []uint32{1, 2}, up, "after %d ticks", pause)
	}
}
