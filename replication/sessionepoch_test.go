package replication

import (
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestLateMessagesWithoutChecksumBelongToTheirSession: a client begins a new session on the same
// connection, and messages and inputs of the old one arrive late, at both ends, before and after
// the new one is confirmed. Only their epoch distinguishes them, and they are not delivered.
func TestLateMessagesWithoutChecksumBelongToTheirSession(t *testing.T) {
	x := newWire(t, messageSchema(), WithoutChecksum())
	var up, down []uint32
	OnClientMessage(x.server, func(_ *Peer, m mHit) { up = append(up, m.Number) })
	OnServerMessage(x.client, func(m mHit) { down = append(down, m.Number) })
	messagePackets := func(packets [][]byte) (messagePackets [][]byte) {
		for _, p := range packets {
			if k := wire.KindOf(p); wire.OpenHandshake(p) == nil && (k == wire.KindMessages || k == wire.KindInputs) {
				messagePackets = append(messagePackets, p)
			}
		}
		return messagePackets
	}
	connect := func() {
		before := x.peer.conn.Session.ID
		for n := 0; x.peer.conn.Session.ID == before || !x.client.recv.AnyState; n++ {
			require.Less(t, n, 100)
			x.answer(x.apply()...)
			x.deliver(x.replicate()...)
		}
	}
	connect()
	tags := map[uint8]bool{}
	for n := range uint32(3 * wire.Epochs) {
		up, down = nil, nil
		require.NoError(t, SendToServer(x.client, mHit{Number: 100 + n}))
		require.NoError(t, SendToClient(x.peer, mHit{Number: 200 + n}))
		lateUp, lateDown := messagePackets(x.apply()), messagePackets(x.replicate())
		require.NotEmpty(t, lateUp)
		require.NotEmpty(t, lateDown)
		x.client.Reconnect()
		x.answer(x.apply()...)
		x.deliver(x.takeDown()...) // the welcome
		require.NotEqual(t, x.peer.conn.Session.ID, x.client.session.ID)
		for _, p := range lateDown {
			require.ErrorIs(t, x.client.Receive(p), wire.ErrStale)
		}
		old := x.client.session.Down.Epoch
		connect()
		require.Equal(t, x.peer.conn.Session.ID, x.client.session.ID)
		require.Equal(t, old, x.peer.conn.Session.Up.Epoch)
		for _, p := range lateUp {
			require.ErrorIs(t, x.peer.Receive(p), wire.ErrStale)
		}
		for _, p := range lateDown {
			require.ErrorIs(t, x.client.Receive(p), wire.ErrStale)
		}
		require.NoError(t, SendToServer(x.client, mHit{Number: n}))
		require.NoError(t, SendToClient(x.peer, mHit{Number: n}))
		x.rounds(3)
		require.Equal(t, []uint32{n}, up)
		require.Equal(t, []uint32{n}, down)
		tags[old] = true
	}
	require.Len(t, tags, wire.Epochs)
	require.Zero(t, x.client.Stats().RefusedPackets)
	require.Zero(t, x.peer.Stats().RefusedPackets)
}

// TestAcceptedSessionsHaveDistinctEpochs: whichever sessions are offered and confirmed. The one in force, the previous
// one and the latest four offers differ.
func TestAcceptedSessionsHaveDistinctEpochs(t *testing.T) {
	x := newWire(t, messageSchema(), WithoutChecksum())
	var offers []wire.Hello // that may be confirmed still, the latest last
	for n := range uint64(200) {
		h := wire.Hello{Version: wire.ProtocolVersion, Fingerprint: x.client.session.Fingerprint, Nonce: 1000 + n}
		require.NoError(t, x.peer.Receive(wire.WithChecksum(h.Append(nil))))
		h.Session, h.Offset = x.peer.conn.Offered.ID, x.peer.conn.Offered.First
		offers = append(offers, h)
		offers = offers[max(0, len(offers)-4):]
		if n%7 == 3 {
			k := len(offers) - 1 - int(n)%3
			require.NoError(t, x.peer.Receive(wire.WithChecksum(offers[k].Append(nil))))
			require.Equal(t, offers[k].Session, x.peer.conn.Session.ID)
			offers = offers[k+1:]
		}
		seen := map[uint8]bool{}
		if x.peer.conn.Former.Off {
			seen[x.peer.conn.Former.Epoch] = true
		}
		sessions := []uint64{}
		for s := range x.peer.conn.Known() {
			require.Equal(t, s.Up.Epoch, s.Down.Epoch)
			require.Equal(t, s.Up.Epoch, wire.EpochOf(s.ID))
			sessions = append(sessions, s.ID)
		}
		for _, h := range offers {
			sessions = append(sessions, h.Session)
		}
		slices.Sort(sessions)
		for _, id := range slices.Compact(sessions) {
			require.False(t, seen[wire.EpochOf(id)], "in round %d", n)
			seen[wire.EpochOf(id)] = true
		}
	}
}

// TestMessagesOfASessionWithAnotherPeerAreStale: a client whose server has dropped it searches for
// it on a new connection, and keeps sending in the old session until it is answered. The new peer
// does not know that session, and does not accept its packets as its own.
func TestMessagesOfASessionWithAnotherPeerAreStale(t *testing.T) {
	x := newWire(t, messageSchema(), WithoutChecksum())
	var up []uint32
	OnClientMessage(x.server, func(_ *Peer, m mHit) { up = append(up, m.Number) })
	e := x.spawn(ecs.ComponentID[tPosition](x.world))
	x.rounds(5)
	tags := map[uint8]bool{}
	for n := range uint32(60) {
		(*tPosition)(x.world.Get(e, ecs.ComponentID[tPosition](x.world))).X++
		x.rounds(3)
		require.True(t, x.peer.Connected() && x.client.recv.AnyState, "in round %d", n)
		tags[x.client.session.Down.Epoch] = true
		x.peer.Disconnect(Reason{})
		x.takeDown() // the disconnect is lost
		x.connect()
		for x.client.session.State != session.ClientSeeking {
			x.apply()
		}
		require.NoError(t, SendToServer(x.client, mHit{Number: n}))
		packets := x.apply() // delayed
		x.rounds(2 * session.IntroduceEvery)
		require.Equal(t, x.peer.conn.Session.ID, x.client.session.ID)
		for _, p := range packets {
			if k := wire.KindOf(p); wire.OpenHandshake(p) == nil && (k == wire.KindMessages || k == wire.KindInputs) {
				require.ErrorIs(t, x.peer.Receive(p), wire.ErrStale)
			}
		}
	}
	require.Empty(t, up)
	require.Len(t, tags, wire.Epochs)
}
