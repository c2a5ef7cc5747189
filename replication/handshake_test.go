package replication

import (
	"errors"
	"fmt"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

type tManyFields struct {
	AnUncommonlyLongFieldName [3]float64 `repl:"range=-123456.25:123456.25,step=0.015625"`
	Second, Third, Fourth     int64      `repl:"range=-1234567890123:1234567890123"`
}

type tManyFieldsDiffer struct {
	AnUncommonlyLongFieldName [3]float64 `repl:"range=-123456.25:123456.25,step=0.03125"`
	Second, Third, Fourth     int64      `repl:"range=-1234567890123:1234567890123"`
}

// longSchema returns a schema whose text takes several packets; last adds to its end.
func longSchema(last func(s *Schema)) *Schema {
	s := testSchema()
	Register[[3]tManyFields](s, Name("First"))
	Register[[4]tManyFields](s, Name("Second"))
	Register[[5]tManyFields](s, Name("Third"))
	last(s)
	return s
}

// TestSchemaMismatchIsNamed: the schemas differ in the last of their lines, which is far behind the
// first packet, or in the first line.
func TestSchemaMismatchIsNamed(t *testing.T) {
	many := func(s *Schema) { Register[tManyFields](s, Name("Last")) }
	for name, c := range map[string]struct {
		server, client         *Schema
		wantServer, wantClient string
	}{
		"another step": {
			longSchema(many), longSchema(func(s *Schema) { Register[tManyFieldsDiffer](s, Name("Last")) }),
			"Last.AnUncommonlyLongFieldName [3]float64 range=-123456.25:123456.25,step=0.015625",
			"Last.AnUncommonlyLongFieldName [3]float64 range=-123456.25:123456.25,step=0.03125",
		},
		"the server has more": {
			longSchema(many), longSchema(func(*Schema) {}), "component Last", "",
		},
		"the client has more": {
			longSchema(func(*Schema) {}), longSchema(many), "", "component Last",
		},
		"another name": {
			longSchema(many), longSchema(func(s *Schema) { Register[tManyFields](s, Name("Lost")) }),
			"component Last", "component Lost",
		},
		"the first line": {
			longSchema(many), NewSchema(), "component tPosition", "",
		},
		"nothing at all": {
			NewSchema(), longSchema(many), "", "component tPosition",
		},
	} {
		for _, mtu := range []int{64, 300, 1200} {
			t.Run(fmt.Sprint(name, " ", mtu), func(t *testing.T) {
				x := newWire(t, c.server, WithMTU(mtu))
				x.restart(c.client, 7)
				err := x.untilRefused(mtu)
				var diff *SchemaError
				require.True(t, errors.As(err, &diff), "%v", err)
				fits := mtu > 300
				if fits {
					require.Equal(t, c.wantServer, diff.Server)
				} else { // the line may not fit into a packet
					require.NotEmpty(t, diff.Server+diff.Client)
					require.Contains(t, c.wantServer, diff.Server)
				}
				require.Equal(t, c.wantClient, diff.Client)
				require.NotEqual(t, diff.Server, diff.Client)
				require.Equal(t, session.CompareSchemas(c.server.Text(), c.client.Text()).Line, diff.Line)
				require.False(t, x.client.Connected())
				require.False(t, x.peer.Connected())
				require.NotZero(t, x.peer.Stats().RefusedSchemas)

				// It is final: the client sends nothing more, and returns the error each time.
				for range 20 {
					require.Equal(t, err, x.client.Apply())
				}
				require.Empty(t, x.up)
			})
		}
	}
}

// TestProtocolVersionsAreNamed: an end of another release reports its version, in both directions.
func TestProtocolVersionsAreNamed(t *testing.T) {
	x := newWire(t, testSchema())
	h := wire.Hello{Version: wire.ProtocolVersion + 1, Fingerprint: x.server.sessions.Fingerprint, Nonce: 7}
	require.NoError(t, x.peer.Receive(wire.WithChecksum(h.Append(nil))))
	answer := x.takeDown()
	require.Len(t, answer, 1)
	var m wire.Refuse
	require.True(t, m.Parse(wire.OpenHandshake(answer[0])))
	require.EqualValues(t, wire.ProtocolVersion, m.Version)

	m.Version, m.Nonce = wire.ProtocolVersion+1, x.client.session.Nonce
	require.NoError(t, x.client.Receive(wire.WithChecksum(m.Append(nil))))
	require.EqualError(t, x.client.Apply(),
		fmt.Sprintf("replication: the server speaks protocol version %d, this client %d: use the same release on both sides", wire.ProtocolVersion+1, wire.ProtocolVersion))
}

// TestHandshakeSurvivesLoss loses every packet of the handshake once, each in turn.
func TestHandshakeSurvivesLoss(t *testing.T) {
	for lost := range 4 {
		x := newWire(t, testSchema())
		x.spawn(ecs.ComponentID[tPosition](x.world))
		n := 0
		survivors := func(packets [][]byte) (kept [][]byte) {
			for _, p := range packets {
				if n != lost {
					kept = append(kept, p)
				}
				n++
			}
			return kept
		}
		for range 40 {
			x.deliver(survivors(x.replicate())...)
			x.answer(survivors(x.apply())...)
			x.deliver(survivors(x.takeDown())...)
		}
		require.Greater(t, n, lost)
		require.True(t, x.peer.Connected(), "packet %d lost", lost)
		x.requireEqual("packet %d lost", lost)
	}
}

// TestUnansweredClientSendsLittle: a client without a server sends at a bounded rate.
func TestUnansweredClientSendsLittle(t *testing.T) {
	x := newWire(t, testSchema())
	bytes := 0
	for range 1000 {
		for _, p := range x.apply() {
			bytes += len(p)
		}
	}
	h := wire.Hello{}
	require.LessOrEqual(t, bytes, 1000/session.IntroduceEvery*len(wire.WithChecksum(h.Append(nil))))
	require.NotZero(t, bytes)

	// A welcomed client that then receives nothing sends no more than that either.
	x.answer(x.up...)
	x = newWire(t, testSchema())
	x.answer(x.apply()...)
	x.deliver(x.takeDown()...)
	require.True(t, x.client.Connected())
	packets := 0
	for range 1000 {
		packets += len(x.apply())
	}
	require.LessOrEqual(t, packets, 2*1000/session.IntroduceEvery)
}

// TestAnswersAreBoundedByHellos: otherwise anyone could make the server flood a victim at little
// cost.
func TestAnswersAreBoundedByHellos(t *testing.T) {
	x := newWire(t, longSchema(func(*Schema) {}))
	own := x.server.sessions.Fingerprint
	for _, h := range []wire.Hello{
		{Version: wire.ProtocolVersion, Fingerprint: own, Nonce: 7},
		{Version: wire.ProtocolVersion, Fingerprint: own + 1, Nonce: 7},
		{Version: wire.ProtocolVersion + 1, Fingerprint: own, Nonce: 7},
	} {
		body := h.Append(nil)
		answers := 0
		for n := range len(body) + 1 {
			_ = x.peer.Receive(wire.WithChecksum(body[:n]))
			for _, p := range x.takeDown() {
				answers++
				require.LessOrEqual(t, len(p), wire.MaxAmplification*(wire.ChecksumSize+n))
			}
		}
		require.Equal(t, 1, answers)
	}
}

// TestLateHelloChangesNothing: the network delivers a copy of a hello late.
func TestLateHelloChangesNothing(t *testing.T) {
	x := newWire(t, testSchema())
	x.spawn(ecs.ComponentID[tPosition](x.world))
	hellos := x.apply()
	require.Len(t, hellos, 1)
	x.answer(hellos...)
	x.deliver(x.takeDown()...)
	x.rounds(5)
	x.requireEqual()
	first := x.peer.conn.Session

	x.answer(hellos...) // of the current session
	x.deliver(x.takeDown()...)
	x.rounds(5)
	require.Equal(t, first, x.peer.conn.Session)

	x.restart(faceOf(x.server.schema), 8)
	x.rounds(5)
	x.requireEqual()
	second := x.peer.conn.Session
	require.NotEqual(t, first.ID, second.ID)
	x.answer(hellos...) // of a client that is gone
	x.deliver(x.takeDown()...)
	x.rounds(5)
	require.Equal(t, second, x.peer.conn.Session)
	x.spawn()
	x.rounds(2)
	x.requireEqual()
}

// TestLateHelloBetweenWelcomeAndAck: the copy arrives while the server waits for the first packet
// of a client that it has welcomed.
func TestLateHelloBetweenWelcomeAndAck(t *testing.T) {
	x := newWire(t, testSchema())
	x.spawn(ecs.ComponentID[tPosition](x.world))
	late := wire.Hello{Version: wire.ProtocolVersion, Fingerprint: x.server.sessions.Fingerprint, Nonce: 99}
	x.answer(x.apply()...)
	x.deliver(x.takeDown()...)
	require.True(t, x.client.Connected(), "welcomed")
	x.answer(wire.WithChecksum(late.Append(nil)))
	x.takeDown()
	x.rounds(60)
	require.True(t, x.peer.Connected())
	x.requireEqual()
}

// TestEveryNonceWorks: also that of a zero value.
func TestEveryNonceWorks(t *testing.T) {
	for _, nonce := range []uint64{0, 1, 1<<64 - 1} {
		x := newWire(t, testSchema())
		x.restart(faceOf(x.server.schema), nonce)
		x.spawn()
		x.rounds(10)
		require.True(t, x.peer.Connected(), "nonce %d", nonce)
		x.requireEqual()
	}
}

// TestClientRestart gives the same peer a new client with an empty world.
func TestClientRestart(t *testing.T) {
	x := connectedWire(t, testSchema())
	seed := seedOf(t)
	g := newGame(seed, x.world, faceOf(x.server.schema), 20)
	for n := range 5 {
		for range 30 {
			g.step()
			x.round()
		}
		x.requireEqual()
		old := x.client
		x.restart(faceOf(x.server.schema), 100+uint64(n))
		for range 10 {
			g.step()
			x.round()
		}
		x.requireEqual()
		x.peer.out.Send = func(p []byte) error { // from here on packets are for the new client
			require.Error(t, old.Receive(p))
			x.down = append(x.down, p)
			return nil
		}
		x.round()
		x.peer.out.Send = func(p []byte) error {
			x.down = append(x.down, append([]byte(nil), p...))
			return nil
		}
	}
}

// TestDisconnect ends a session on the server's side.
func TestDisconnect(t *testing.T) {
	x := connectedWire(t, testSchema())
	e := x.spawn(ecs.ComponentID[tPosition](x.world))
	x.rounds(3)
	require.Equal(t, 1, x.server.Stats().Peers)
	x.server.Disconnect(x.peer)
	x.server.Disconnect(x.peer) // a second call has no effect
	require.Zero(t, x.server.Stats().Peers)
	require.False(t, x.peer.Connected())
	require.Len(t, x.takeDown(), session.DisconnectCopies)
	(*tPosition)(x.world.Get(e, ecs.ComponentID[tPosition](x.world))).X = 5
	require.Empty(t, x.replicate())
	h := wire.Hello{Version: wire.ProtocolVersion, Fingerprint: x.server.sessions.Fingerprint, Nonce: 99}
	for _, p := range [][]byte{nil, {1}, wire.WithChecksum(h.Append(nil)), make([]byte, 100)} {
		require.ErrorIs(t, x.peer.Receive(p), wire.ErrUnexpected)
	}
	require.Empty(t, x.down)
}

// TestReflectedPacketsAreRefused sends every packet back to its sender.
func TestReflectedPacketsAreRefused(t *testing.T) {
	for _, opts := range [][]ServerOption{nil, {WithoutChecksum()}} {
		x := newWire(t, testSchema(), opts...)
		g := newGame(1, x.world, faceOf(x.server.schema), 20)
		for range 50 {
			g.step()
			down := x.replicate()
			up := x.apply()
			before := *x.peer
			for _, p := range down {
				require.Error(t, x.peer.Receive(p))
			}
			require.Equal(t, before.conn.Session, x.peer.conn.Session)
			for _, p := range up {
				require.Error(t, x.client.Receive(p))
			}
			x.deliver(down...)
			x.answer(up...)
			down = x.takeDown()
			for _, p := range down {
				require.Error(t, x.peer.Receive(p))
			}
			x.deliver(down...)
		}
		require.NotZero(t, x.client.Stats().Packets)
		x.rounds(5)
		x.requireEqual()
	}
}

// TestSessionsDontMix: the ticks and sequences of two sessions overlap, yet each refuses the
// packets of the other.
func TestSessionsDontMix(t *testing.T) {
	schema := testSchema()
	a, b := newWire(t, schema, WithSeed(1)), newWire(t, schema, WithSeed(2))
	for _, x := range []*fixture{a, b} {
		x.spawn(ecs.ComponentID[tPosition](x.world))
	}
	b.world.RemoveEntity(b.spawn())
	for range 10 {
		toA, toB := a.replicate(), b.replicate()
		before := a.client.Stats().Packets
		a.deliver(toB...)
		require.Equal(t, before, a.client.Stats().Packets)
		a.deliver(toA...)
		b.deliver(toB...)
		upA, upB := a.apply(), b.apply()
		if a.peer.Connected() && b.peer.Connected() {
			for _, p := range upB {
				require.Error(t, a.peer.Receive(p))
			}
		}
		a.answer(upA...)
		b.answer(upB...)
		a.deliver(a.takeDown()...)
		b.deliver(b.takeDown()...)
	}
	require.NotEqual(t, a.peer.conn.Session.ID, b.peer.conn.Session.ID)
	a.requireEqual()
	b.requireEqual()
	require.NotEqual(t, delta.Tick(0), a.server.snap.Tick)
}

// TestOffsetsBeyondTheText: such offsets are harmless, also where an int has 32 bits.
func TestOffsetsBeyondTheText(t *testing.T) {
	x := newWire(t, testSchema())
	for _, offset := range []uint32{1 << 16, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		h := wire.Hello{Version: wire.ProtocolVersion, Fingerprint: 1, Nonce: 5, Offset: offset}
		require.NoError(t, x.peer.Receive(wire.WithChecksum(h.Append(nil))))
		for _, p := range x.takeDown() {
			var m wire.Refuse
			require.True(t, m.Parse(wire.OpenHandshake(p)))
			require.Equal(t, offset, m.Offset)
			require.Empty(t, m.Text)
		}
	}
	require.EqualValues(t, 4, x.peer.Stats().RefusedSchemas)
}
