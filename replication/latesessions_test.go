package replication

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// Late packets of other sessions are recognised as such, and change nothing.

// TestWelcomesToEarlierHellosAreIgnored: a welcome to a nonce that the client gave up is ignored.
func TestWelcomesToEarlierHellosAreIgnored(t *testing.T) {
	x := newWire(t, testSchema())
	x.answer(x.apply()...)
	late := x.takeDown()
	require.Len(t, late, 1)
	x.client.Reconnect()
	require.ErrorIs(t, x.client.Receive(late[0]), wire.ErrStale)
	require.Equal(t, StatusConnecting, x.client.Status())
	x.rounds(10)
	x.spawn()
	x.rounds(5)
	x.requireEqual()
	require.ErrorIs(t, x.client.Receive(late[0]), wire.ErrStale)
	for range defaultClientTimeout {
		x.apply()
	}
	require.Equal(t, StatusReconnecting, x.client.Status())
	require.ErrorIs(t, x.client.Receive(late[0]), wire.ErrStale)
}

// TestLateHelloTakesNoSessionOverWithoutChecksum: the hello of an earlier client arrives again, and
// its acks look like those of the current one.
func TestLateHelloTakesNoSessionOverWithoutChecksum(t *testing.T) {
	x, e, move := crowd(t, 5, WithoutChecksum())
	id := x.peer.conn.Session.ID
	former := wire.Hello{Version: wire.ProtocolVersion, Fingerprint: x.server.sessions.Fingerprint, Nonce: 99}
	for range 50 {
		require.NoError(t, x.peer.Receive(wire.WithChecksum(former.Append(nil))))
		x.deliver(x.takeDown()...)
		move(e[0], 0.5)
		x.round()
		x.requireEqual()
		require.Equal(t, id, x.peer.conn.Session.ID)
	}
	require.EqualValues(t, 5, x.client.Stats().Spawns)
	require.EqualValues(t, 5, x.peer.Stats().FullStates)
}

// TestLatePacketsWithoutChecksum of the previous session are recognised by their sequences, in both
// directions.
func TestLatePacketsWithoutChecksum(t *testing.T) {
	for _, first := range []uint16{0, 1<<16 - 50, 1<<15 - 20} {
		x, e, move := crowd(t, 5, WithoutChecksum(), replicationtest.FirstSequence(first))
		var down, up [][]byte
		for range 100 {
			move(e[0], 0.5)
			p := x.replicate()
			x.deliver(p...)
			u := x.apply()
			x.answer(u...)
			down, up = append(down, p...), append(up, u...)
		}
		x.client.Reconnect()
		x.answer(x.apply()...)
		x.deliver(x.takeDown()...)
		require.Equal(t, StatusConnected, x.client.Status())
		replay := func() {
			for _, p := range down {
				require.ErrorIs(t, x.client.Receive(p), wire.ErrStale)
			}
			acked := x.peer.Stats().Acked
			for _, p := range up {
				_ = x.peer.Receive(p)
			}
			require.Equal(t, acked, x.peer.Stats().Acked)
		}
		replay() // before anything of the new session arrived
		for range 20 {
			move(e[0], 0.5)
			x.round()
			replay()
		}
		x.requireEqual()
		require.EqualValues(t, 5, x.client.Stats().Spawns)
		require.Zero(t, x.client.Stats().MissingBaselines)
	}
}

// TestALateStateDoesNotConfirmASession: without checksums, a state packet of an earlier session may
// be taken for one of a session that the server has only offered. The client must not regard that
// session as confirmed.
func TestALateStateDoesNotConfirmASession(t *testing.T) {
	x := newWire(t, testSchema(), WithoutChecksum())
	x.restart(faceOf(x.server.schema), 7, WithTimeout(ofTicks(20)))
	x.rounds(3)
	x.spawn()
	late := x.replicate()
	require.NotEmpty(t, late)
	x.server.Disconnect(x.peer)
	x.takeDown() // the disconnects are lost
	x.connect()
	for range 60 {
		x.answer(x.apply()...)
		if x.deliver(x.takeDown()...); x.client.Stats().Sessions == 2 {
			break
		}
	}
	require.EqualValues(t, 2, x.client.Stats().Sessions)
	require.False(t, x.peer.Connected())
	x.deliver(late...)
	x.rounds(60)
	require.True(t, x.peer.Connected())
}

// TestEarlierSessionsAreRecognisedByChecksum: even in sessions without checksums, state hashes,
// disconnects and first messages have one. Those of the previous session are not mistaken for a
// future state, whatever their checksums look like.
func TestEarlierSessionsAreRecognisedByChecksum(t *testing.T) {
	x := newWire(t, messageSchema(), WithoutChecksum(), WithStateHash(2))
	x.restart(faceOf(x.server.schema), 7)
	x.spawn()
	x.rounds(3)
	var down, up [][]byte
	session, key := x.peer.conn.Session.ID, x.peer.conn.Session.Up
	for n := 0; len(down) < 20 || len(up) < 20; n++ {
		require.Less(t, n, 2000)
		for _, p := range x.replicate() {
			if x.deliver(p); len(p) > wire.ChecksumSize && p[wire.ChecksumSize] == byte(wire.KindHashes) && wire.KindOf(p) == wire.KindState {
				down = append(down, p)
			}
		}
		x.answer(x.apply()...)
		if packet := wire.DisconnectPacket(0, fmt.Sprint(n), session, key, 200); wire.KindOf(packet) == wire.KindInputs || wire.KindOf(packet) == wire.KindMessages {
			up = append(up, packet)
		}
	}
	x.client.Reconnect()
	x.rounds(5)
	require.NotEqual(t, session, x.peer.conn.Session.ID)
	for _, p := range down {
		require.ErrorIs(t, x.client.Receive(p), wire.ErrStale)
	}
	for _, p := range up {
		require.ErrorIs(t, x.peer.Receive(p), wire.ErrStale)
	}
	x.rounds(2)
	require.Zero(t, x.peer.Stats().RefusedAcks)
	x.requireEqual()
}

// TestLateHashesOfASessionWithoutStatesAreRecognised: a session may end for the client before any
// of its states arrives, and its state hashes arrive late. Without checksums they must not be taken
// for states of the next session.
func TestLateHashesOfASessionWithoutStatesAreRecognised(t *testing.T) {
	x := newWire(t, testSchema(), WithoutChecksum(), WithStateHash(1), neverSilent)
	x.restart(faceOf(x.server.schema), 7)
	for range 40 {
		x.spawn()
	}
	x.answer(x.apply()...)
	x.deliver(x.takeDown()...) // the welcome
	x.answer(x.apply()...)     // the session is confirmed
	require.True(t, x.peer.Connected())
	var late [][]byte
	for n := 0; len(late) < 20; n++ {
		require.Less(t, n, 2000)
		for _, p := range x.replicate() { // all states are lost
			if p[wire.ChecksumSize] == byte(wire.KindHashes) && wire.KindOf(p) == wire.KindState {
				late = append(late, p)
			}
		}
	}
	x.client.Reconnect()
	x.rounds(1)
	require.EqualValues(t, 2, x.client.Stats().Sessions)
	for _, p := range late {
		require.ErrorIs(t, x.client.Receive(p), wire.ErrStale)
	}
	x.rounds(5)
	x.requireEqual()
}

// TestLateStatesOfASkippedSessionAreTooOld: two sessions are offered, and the client already is in
// the second one when its first ack of the first arrives. The server's packets in the first must
// not be taken for the second, even without checksums.
func TestLateStatesOfASkippedSessionAreTooOld(t *testing.T) {
	x := newWire(t, testSchema(), WithoutChecksum())
	x.restart(faceOf(x.server.schema), 7)
	x.spawn()
	introduce := func() (packets [][]byte) {
		sessions := x.client.Stats().Sessions
		for n := 0; x.client.Stats().Sessions == sessions; n++ {
			require.Less(t, n, 100)
			x.answer(x.apply()...)
			x.deliver(x.takeDown()...)
		}
		for range session.IntroduceEvery + 1 { // an ack of the latest offer, and a hello that names it
			packets = append(packets, x.apply()...)
		}
		return packets
	}
	first := introduce()
	require.NotEmpty(t, first)
	x.client.Reconnect()
	second := introduce()
	require.False(t, x.peer.Connected())
	x.answer(first...)
	require.True(t, x.peer.Connected())
	late := 0
	for range 5 {
		x.spawn()
		for _, p := range x.replicate() {
			require.ErrorIs(t, x.client.Receive(p), wire.ErrStale)
			late++
		}
	}
	require.NotZero(t, late)
	x.answer(second...)
	x.rounds(60)
	x.requireEqual()
}

// TestOfferedSequencesStayNearTheCurrentSession: however many sessions are offered in a row,
// packets of the session before them are too old in all of them, also by the low bits of their
// sequences.
func TestOfferedSequencesStayNearTheCurrentSession(t *testing.T) {
	x := connectedWire(t, testSchema(), WithoutChecksum())
	x.rounds(20)
	var last uint32
	for nonce := range uint64(40) {
		h := wire.Hello{Version: wire.ProtocolVersion, Fingerprint: x.server.sessions.Fingerprint, Nonce: 1000 + nonce}
		require.NoError(t, x.peer.Receive(wire.WithChecksum(h.Append(nil))))
		var m wire.Welcome
		down := x.takeDown()
		require.True(t, m.Parse(wire.OpenHandshake(down[len(down)-1])))
		ahead := m.Sequence - x.peer.acked.Log.Next
		require.GreaterOrEqual(t, ahead, uint32(session.SequenceGap))
		require.Less(t, ahead, uint32(1<<15), "offer %d", nonce)
		if nonce > 0 && nonce <= session.MaxOfferGaps {
			require.Equal(t, last+session.OfferGap, m.Sequence)
		}
		last = m.Sequence
	}
}

// TestLateHashesOfTheSessionBeforeThePrevious: without checksums they may look like states, but their sequences are not
// believed. If they were, all genuine states would be too old afterwards.
func TestLateHashesOfTheSessionBeforeThePrevious(t *testing.T) {
	for seed := range uint64(20) {
		x := newWire(t, testSchema(), WithoutChecksum(), WithStateHash(1), WithSeed(seed+1))
		x.restart(faceOf(x.server.schema), seed+7)
		e := x.spawn(ecs.ComponentID[tPosition](x.world))
		x.rounds(6)
		position := func() *tPosition { return (*tPosition)(x.world.Get(e, ecs.ComponentID[tPosition](x.world))) }
		var late [][]byte
		for range 40 {
			position().X++
			for _, p := range x.replicate() {
				if x.deliver(p); len(p) > wire.ChecksumSize && p[wire.ChecksumSize] == byte(wire.KindHashes) && wire.IsState(p) {
					late = append(late, p)
				}
			}
			x.answer(x.apply()...)
		}
		for range 2 {
			x.client.Reconnect()
			for range 8 {
				position().X++
				x.round()
			}
			require.True(t, x.client.Complete())
		}
		before := x.client.Stats()
		for _, p := range late {
			require.ErrorIs(t, x.client.Receive(p), wire.ErrStale)
		}
		require.Equal(t, before.Packets, x.client.Stats().Packets)
		position().X = 1
		x.rounds(3)
		x.requireEqual()
		require.EqualValues(t, 3, x.client.Stats().Sessions)
	}
}

// TestOnePacketDoesNotEndASessionWithoutChecksum, whatever its sequence and tick are, and if it comes twice.
func TestOnePacketDoesNotEndASessionWithoutChecksum(t *testing.T) {
	x, e, move := crowd(t, 5, WithoutChecksum())
	nothing := func(w *bitbuf.Writer) { beginEntries(w) }
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 1))
	for n := range 200 {
		packet := x.forgeState(rng.Uint32(), rng.Uint32(), nothing)
		if n < 32-11 {
			packet = x.forgeState(x.client.recv.Window.Newest+1<<(n+11), uint32(x.server.Tick()), nothing)
		}
		for range 2 {
			require.ErrorIs(t, x.client.Receive(packet), wire.ErrStale)
		}
		move(e[0], 0.5)
		x.round()
		x.requireEqual()
	}
	require.EqualValues(t, 1, x.client.Stats().Sessions)
	require.EqualValues(t, 5, x.client.Stats().Spawns)
}

// TestOutagesWithoutChecksum: after an outage in which more packets are lost than the client remembers, it takes the
// second one that arrives.
func TestOutagesWithoutChecksum(t *testing.T) {
	x, e, move := crowd(t, 5, WithoutChecksum(), neverSilent)
	for n := range wire.WindowSize + 100 {
		move(e[0], float32(1-n%2*2))
		x.replicate()
	}
	before := x.client.Stats().Packets
	for range 2 {
		move(e[0], 1)
		packets := x.replicate()
		require.Len(t, packets, 1)
		require.Equal(t, before, x.client.Stats().Packets, "the first one is not believed")
		x.deliver(packets...)
	}
	require.Equal(t, before+1, x.client.Stats().Packets)
	x.rounds(3)
	x.requireEqual()
	require.EqualValues(t, 1, x.client.Stats().Sessions)
}
