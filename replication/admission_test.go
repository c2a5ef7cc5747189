package replication

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// doorman is a game that accepts clients whose data begins with "ann". It records what it was
// asked.
type doorman struct {
	asked     []string
	connected []string
}

func (d *doorman) watch(x *fixture) *doorman {
	x.server.OnJoin(func(_ *Peer, data []byte) error {
		d.asked = append(d.asked, string(data))
		if !bytes.HasPrefix(data, []byte("ann")) {
			return fmt.Errorf("who is %q", data)
		}
		return nil
	})
	x.server.OnConnect(func(p *Peer) { d.connected = append(d.connected, string(p.JoinData())) })
	return d
}

// joiningWire is a server with a doorman, and a client with data, before their handshake.
func joiningWire(t testing.TB, data string, opts ...ServerOption) (*fixture, *doorman) {
	x := newWire(t, messageSchema(), opts...)
	x.restart(faceOf(x.server.schema), 7, WithJoinData([]byte(data)))
	return x, new(doorman).watch(x)
}

// requireRefused returns the reason for which a client was refused.
func requireRefused(t testing.TB, x *fixture) Reason {
	t.Helper()
	gone := requireDisconnected(t, x.client.Apply())
	require.True(t, gone.Remote)
	require.Equal(t, StatusDisconnected, x.client.Status())
	require.Empty(t, x.up, "it sends nothing more")
	return gone.Reason
}

// TestOnJoinDecidesBeforeAnythingIsKept: it is called once per session, before OnConnect, however
// often the hello arrives.
func TestOnJoinDecidesBeforeAnythingIsKept(t *testing.T) {
	for _, opts := range [][]ServerOption{nil, {WithoutChecksum()}} {
		x, d := joiningWire(t, "ann 1", opts...)
		require.Nil(t, x.peer.JoinData())
		hello := x.apply()
		require.Len(t, hello, 1)
		for range 3 {
			x.answer(hello...) // its answers are lost
			require.Len(t, x.takeDown(), 1)
			x.replicate()
		}
		require.Equal(t, []string{"ann 1"}, d.asked)
		require.Empty(t, d.connected)
		x.rounds(10)
		require.True(t, x.peer.Connected() && x.client.Connected())
		x.answer(hello...)
		require.Equal(t, []string{"ann 1"}, d.asked, "of the session in force")
		require.Equal(t, []string{"ann 1"}, d.connected)
		require.Equal(t, "ann 1", string(x.peer.JoinData()))
		require.Zero(t, x.peer.Stats().RefusedJoins)
	}
}

// TestARefusedClientGetsTheReason, and may try again with other data.
func TestARefusedClientGetsTheReason(t *testing.T) {
	for _, opts := range [][]ServerOption{nil, {WithoutChecksum()}, {WithMTU(64)}} {
		x, d := joiningWire(t, "bob", opts...)
		hello := x.apply()
		x.answer(hello...)
		lost := x.takeDown()
		require.Len(t, lost, 1)
		x.replicate()
		for range 3 * 4 {
			x.answer(x.apply()...) // again, and lost again
		}
		again := x.takeDown()
		require.Equal(t, [][]byte{lost[0], lost[0], lost[0]}, again, "no new session")
		require.Equal(t, []string{"bob"}, d.asked, "it was decided")
		x.deliver(again...)
		require.Equal(t, Reason{ReasonRefused, `who is "bob"`}, requireRefused(t, x))
		require.Equal(t, `refused: "who is \"bob\""`, requireRefused(t, x).String())
		require.NoError(t, x.peer.Err(), "the peer waits for another try")
		require.False(t, x.peer.Connected())
		require.EqualValues(t, 1, x.peer.Stats().RefusedJoins)
		require.EqualValues(t, 1, x.client.Stats().Packets+1, "no state came")

		x.client.SetJoinData([]byte("ann 2"))
		x.client.Reconnect()
		x.deliver(lost...)
		require.Equal(t, StatusConnecting, x.client.Status(), "a late refusal of another hello")
		x.replicate()
		x.rounds(10)
		require.True(t, x.peer.Connected() && x.client.Connected())
		require.Equal(t, []string{"bob", "ann 2"}, d.asked)
		require.Equal(t, []string{"ann 2"}, d.connected)
		x.deliver(lost...)
		require.True(t, x.client.Connected())
	}
}

// TestRefusalsAreNoLargerThanHellos: their texts are cut to fit.
func TestRefusalsAreNoLargerThanHellos(t *testing.T) {
	for size := range wire.MaxJoinData + 1 {
		x := newWire(t, testSchema())
		x.restart(faceOf(x.server.schema), 7, WithJoinData(bytes.Repeat([]byte("x"), size)))
		x.server.OnJoin(func(*Peer, []byte) error { return errors.New(strings.Repeat("é", 1000) + "\xff") })
		hello := x.apply()
		require.Len(t, hello[0], max(64, 41+size))
		x.answer(hello...)
		refusal := x.takeDown()
		require.Len(t, refusal, 1)
		require.LessOrEqual(t, len(refusal[0]), len(hello[0]))
		x.deliver(refusal...)
		text := requireRefused(t, x).Text
		require.True(t, utf8.ValidString(text))
		require.Len(t, text, min(128, max(50, 27+size))&^1)
	}
	x := newWire(t, testSchema())
	for _, size := range []int{513, 5000} {
		require.PanicsWithValue(t, fmt.Sprintf("replication: join data of %d bytes: use at most 512, which fit into the packet that asks to join", size),
			func() { x.restart(faceOf(x.server.schema), 7, WithJoinData(make([]byte, size))) })
	}
	x.restart(faceOf(x.server.schema), 7, WithMTU(256), WithJoinData(make([]byte, 215)))
	require.Len(t, x.apply()[0], 256)
	require.PanicsWithValue(t, "replication: join data of 216 bytes: use at most 215, which fit into the packet that asks to join",
		func() { x.client.SetJoinData(make([]byte, 216)) })
}

// TestJoinDataIsCopied at both ends.
func TestJoinDataIsCopied(t *testing.T) {
	data := []byte("ann 1")
	x := newWire(t, testSchema())
	x.restart(faceOf(x.server.schema), 7, WithJoinData(data))
	copy(data, "bob")
	var lent []byte
	x.server.OnJoin(func(_ *Peer, data []byte) error { lent = data; return nil })
	x.rounds(3)
	require.Equal(t, "ann 1", string(x.peer.JoinData()))
	copy(lent, "bob")
	require.Equal(t, "ann 1", string(x.peer.JoinData()))
	copy(data, "ann 2")
	x.client.SetJoinData(data)
	copy(data, "bob")
	x.client.Reconnect()
	x.rounds(3)
	require.Equal(t, "ann 2", string(x.peer.JoinData()))
	x.client.SetJoinData(nil)
	x.client.Reconnect()
	x.rounds(3)
	require.True(t, x.peer.Connected())
	require.Nil(t, x.peer.JoinData(), "not even an empty part of the packet")
}

// TestHellosCallOnJoinFewTimesPerTick: even hellos with new nonces can't make the game work more than
// that.
func TestHellosCallOnJoinFewTimesPerTick(t *testing.T) {
	const perTick = 16
	x, d := joiningWire(t, "ann")
	hello := wire.Hello{Version: wire.ProtocolVersion, Fingerprint: x.server.sessions.Fingerprint}
	for tick := range 5 {
		for n := range 100 {
			hello.Nonce++
			hello.Data = fmt.Append(nil, "eve ", hello.Nonce)
			packet := wire.WithChecksum(hello.Append(nil))
			if err := x.peer.Receive(packet); n < perTick {
				require.NoError(t, err)
				require.Equal(t, string(hello.Data), d.asked[len(d.asked)-1])
			} else {
				require.ErrorIs(t, err, ErrUnexpected)
			}
		}
		require.Len(t, d.asked, perTick*(tick+1))
		require.Len(t, x.takeDown(), perTick)
		x.replicate()
	}
	require.EqualValues(t, 5*perTick, x.peer.Stats().RefusedJoins)
	require.EqualValues(t, 5*(100-perTick), x.peer.Stats().RefusedPackets)
	x.rounds(5)
	require.True(t, x.peer.Connected(), "an honest client comes in")
}

// TestAJoinMayBePending: the client keeps asking until it is decided, and the server keeps nothing
// of it until then.
func TestAJoinMayBePending(t *testing.T) {
	for _, verdict := range []error{nil, errors.New("no")} {
		x := newWire(t, testSchema())
		decision, asked := fmt.Errorf("the database is slow: %w", ErrJoinPending), 0
		x.server.OnJoin(func(*Peer, []byte) error { asked++; return decision })
		for range 20 {
			x.answer(x.apply()...)
			require.Empty(t, x.replicate(), "no answer")
		}
		require.Equal(t, 5, asked)
		require.Equal(t, StatusConnecting, x.client.Status())
		for range x.peer.conn.Known() {
			t.Fatal("a session")
		}
		require.Zero(t, x.peer.Stats().RefusedJoins+x.peer.Stats().RefusedPackets)
		decision = verdict
		for range 8 {
			x.answer(x.apply()...)
		}
		x.deliver(x.takeDown()...)
		require.Equal(t, 6, asked)
		if verdict != nil {
			require.Equal(t, Reason{ReasonRefused, "no"}, requireRefused(t, x))
			continue
		}
		x.rounds(3)
		require.True(t, x.peer.Connected())
	}
}

// TestOnJoinNeedsTheRightSchema: clients with another schema could not join anyway.
func TestOnJoinNeedsTheRightSchema(t *testing.T) {
	x, d := joiningWire(t, "ann")
	for _, h := range []wire.Hello{
		{Version: wire.ProtocolVersion + 1, Fingerprint: x.server.sessions.Fingerprint, Nonce: 5, Data: []byte("ann")},
		{Version: wire.ProtocolVersion, Fingerprint: 1, Nonce: 5, Data: bytes.Repeat([]byte("ann"), 150)},
	} {
		packet := wire.WithChecksum(h.Append(nil))
		x.answer(packet)
		answer := x.takeDown()
		require.Len(t, answer, 1)
		require.LessOrEqual(t, len(answer[0]), wire.MaxAmplification*wire.MinMTU)
		require.True(t, (&wire.Refuse{}).Parse(wire.OpenHandshake(answer[0])))
	}
	require.Empty(t, d.asked)
	require.EqualValues(t, 2, x.peer.Stats().RefusedSchemas)
}

// TestOnJoinIsCalledForEveryNewSession: after Reconnect, and on another server; but not when the
// client finds its session again.
func TestOnJoinIsCalledForEveryNewSession(t *testing.T) {
	x, d := joiningWire(t, "ann 1")
	x.restart(faceOf(x.server.schema), 7, WithJoinData([]byte("ann 1")), WithTimeout(ofTicks(10)))
	e := x.spawn(ecs.ComponentID[tHealth](x.world))
	x.rounds(5)
	x.client.Reconnect()
	x.rounds(5)
	require.Equal(t, []string{"ann 1", "ann 1"}, d.asked)
	require.EqualValues(t, 2, x.client.Stats().Sessions)
	for range 20 {
		x.apply() // out of reach
	}
	require.Equal(t, StatusReconnecting, x.client.Status())
	x.rounds(10)
	require.Equal(t, StatusConnected, x.client.Status())
	require.Len(t, d.asked, 2, "it has its session still")

	x.client.SetJoinData([]byte("ann 2"))
	x.replaceServer(faceOf(x.server.schema), 2)
	d = new(doorman).watch(x)
	x.spawn(ecs.ComponentID[tHealth](x.world))
	x.rounds(30)
	require.Equal(t, StatusConnected, x.client.Status())
	require.Equal(t, []string{"ann 2"}, d.asked)
	require.Equal(t, []string{"ann 2"}, d.connected)

	x.client.SetJoinData([]byte("bob"))
	x.replaceServer(faceOf(x.server.schema), 3)
	d = new(doorman).watch(x)
	for range 30 {
		x.deliver(x.replicate()...)
		_ = x.client.Apply()
		x.answer(x.up...)
		x.up = nil
		x.deliver(x.takeDown()...)
	}
	require.Equal(t, Reason{ReasonRefused, `who is "bob"`}, requireRefused(t, x))
	require.Equal(t, []string{"bob"}, d.asked)
	require.Equal(t, 1, shownEntities(x.client), "what was shown stays, as after any end")
	_ = e
}

func shownEntities(c *Client) (n int) {
	for range c.Entities() {
		n++
	}
	return n
}

// TestARefusalDoesNotAffectTheSession: a hello of a stranger, or a late one, may arrive under the
// client's address.
func TestARefusalDoesNotAffectTheSession(t *testing.T) {
	x, d := joiningWire(t, "ann 1")
	x.spawn(ecs.ComponentID[tHealth](x.world))
	x.rounds(5)
	h := wire.Hello{Version: wire.ProtocolVersion, Fingerprint: x.server.sessions.Fingerprint, Nonce: 99, Data: []byte("eve")}
	x.answer(wire.WithChecksum(h.Append(nil)))
	x.deliver(x.takeDown()...) // it goes to the client
	h.Nonce, h.Data = 100, []byte("ann's ticket")
	x.replicate()
	x.answer(wire.WithChecksum(h.Append(nil)))
	x.deliver(x.takeDown()...)
	x.rounds(5)
	require.Equal(t, []string{"ann 1", "eve", "ann's ticket"}, d.asked)
	require.Equal(t, []string{"ann 1"}, d.connected)
	require.Equal(t, "ann 1", string(x.peer.JoinData()))
	require.True(t, x.peer.Connected() && x.client.Connected())
	require.EqualValues(t, 1, x.client.Stats().Sessions)
	x.requireEqual()

	// The client itself tries another session, in vain.
	x.client.SetJoinData([]byte("bob"))
	x.client.Reconnect()
	x.answer(x.apply()...)
	x.deliver(x.takeDown()...)
	require.Equal(t, ReasonRefused, requireRefused(t, x).Code)
	require.True(t, x.peer.Connected(), "nothing shows that it was the client")
}

// TestOnJoinMayPanic: the game handles the panic, and the server keeps nothing.
func TestOnJoinMayPanic(t *testing.T) {
	x, d := joiningWire(t, "ann")
	upset := true
	x.server.OnJoin(func(*Peer, []byte) error {
		if upset {
			panic("the user's")
		}
		return nil
	})
	hello := x.apply()
	require.PanicsWithValue(t, "the user's", func() { x.answer(hello...) })
	require.Empty(t, x.replicate())
	for range x.peer.conn.Known() {
		t.Fatal("a session")
	}
	require.PanicsWithValue(t, "the user's", func() { x.answer(hello...) })
	upset = false
	x.rounds(10)
	require.Equal(t, []string{"ann", "ann", "ann"}, d.asked)
	require.True(t, x.peer.Connected())
}

// TestOnJoinMayDisconnectThePeer, to refuse with a reason of the game's own. If the disconnect is
// lost, it is sent again.
func TestOnJoinMayDisconnectThePeer(t *testing.T) {
	const full = ReasonGame + 1
	x, d := joiningWire(t, "ann")
	gone := 0
	x.server.OnDisconnect(func(*Peer) { gone++ })
	x.server.OnJoin(func(p *Peer, _ []byte) error {
		p.Disconnect(Reason{full, "full"})
		return nil
	})
	x.server.OnJoin(func(*Peer, []byte) error { panic("it is decided") })
	hello := x.apply()
	require.NoError(t, x.peer.Receive(hello[0]))
	require.Equal(t, Reason{full, "full"}, requireDisconnected(t, x.peer.Err()).Reason)
	require.Equal(t, 1, gone)
	first := x.takeDown()
	require.Len(t, first, 1)
	for range 100 {
		require.ErrorIs(t, x.peer.Receive(hello[0]), ErrUnexpected)
	}
	again := x.takeDown()
	require.Len(t, again, 16)
	require.Equal(t, first[0], again[0])
	x.deliver(again...)
	require.Equal(t, Reason{full, "full"}, requireRefused(t, x))
	require.Equal(t, []string{"ann"}, d.asked)
	require.Empty(t, d.connected)
	require.EqualValues(t, 1, x.peer.Stats().RefusedJoins)
	require.Empty(t, x.replicate())
}

// TestOnJoinMayCloseTheServer: the client gets a disconnect.
func TestOnJoinMayCloseTheServer(t *testing.T) {
	x, _ := joiningWire(t, "ann")
	x.server.OnJoin(func(*Peer, []byte) error { x.server.Close(); return errors.New("not this text") })
	x.answer(x.apply()...)
	x.deliver(x.takeDown()...)
	require.Equal(t, Reason{ReasonClosed, ""}, requireRefused(t, x))
	require.ErrorIs(t, x.peer.Receive(nil), ErrUnexpected)
}

// TestOnJoinBeginsNoTick, and may send to others.
func TestOnJoinBeginsNoTick(t *testing.T) {
	x, _ := joiningWire(t, "ann")
	calls := 0
	x.server.OnJoin(func(p *Peer, _ []byte) error {
		calls++
		require.PanicsWithValue(t, "replication: Replicate in a message handler or hook of the server: wait until the call that it runs in returns", x.server.Replicate)
		require.ErrorIs(t, SendToClient(p, mHit{}), ErrNotConnected)
		require.NoError(t, SendToAll(x.server, mHit{}))
		return nil
	})
	x.rounds(5)
	require.Equal(t, 1, calls)
	require.True(t, x.peer.Connected())
}

// TestJoinDataWithoutOnJoin: every client is accepted, and the data is available all the same.
func TestJoinDataWithoutOnJoin(t *testing.T) {
	x := newWire(t, testSchema())
	x.restart(faceOf(x.server.schema), 7, WithJoinData([]byte("ann")))
	x.rounds(5)
	require.True(t, x.peer.Connected())
	require.Equal(t, "ann", string(x.peer.JoinData()))
}
