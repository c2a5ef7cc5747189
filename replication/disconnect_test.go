package replication

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// requireDisconnected returns the error with the reason for which a connection ended.
func requireDisconnected(t testing.TB, err error) *DisconnectError {
	t.Helper()
	var d *DisconnectError
	require.True(t, errors.As(err, &d), "%v", err)
	return d
}

func TestDisconnectCarriesTheReason(t *testing.T) {
	for name, opts := range map[string][]ServerOption{"checksum": nil, "none": {WithoutChecksum()}} {
		t.Run(name, func(t *testing.T) {
			x, e, _ := crowd(t, 3, opts...)
			require.NoError(t, x.peer.Err())
			require.Equal(t, StatusConnected, x.client.Status())
			x.peer.Disconnect(Reason{ReasonKicked, "the vote of all others"})
			require.EqualError(t, x.peer.Err(), `replication: disconnected: kicked: "the vote of all others"`)
			require.False(t, x.peer.Connected())
			require.Zero(t, x.server.Stats().Peers)
			disconnects := x.takeDown()
			require.Len(t, disconnects, session.DisconnectCopies)

			require.NoError(t, x.client.Receive(disconnects[1])) // one copy is enough
			for range 20 {
				require.EqualError(t, x.client.Apply(), `replication: disconnected by the other end: kicked: "the vote of all others"`)
			}
			require.Empty(t, x.up, "it does not come back by itself")
			require.Equal(t, StatusDisconnected, x.client.Status())
			require.False(t, x.client.Connected())
			require.Equal(t, DisconnectError{Reason: Reason{ReasonKicked, "the vote of all others"}, Remote: true}, *requireDisconnected(t, x.client.Apply()))
			require.Error(t, x.client.Receive(disconnects[2]), "there is no session any more")
			_, ok := x.mirrored(e[0])
			require.True(t, ok, "the world stays")

			// The user may try again, and the server may accept it.
			x.connect()
			x.client.Reconnect()
			x.rounds(8)
			require.Equal(t, StatusConnected, x.client.Status())
			x.requireEqual()
		})
	}
}

func TestClientDisconnectReachesTheServer(t *testing.T) {
	for name, opts := range map[string][]ServerOption{"checksum": nil, "none": {WithoutChecksum()}} {
		t.Run(name, func(t *testing.T) {
			x, _, _ := crowd(t, 3, opts...)
			other := connect(x.server, 1, hostileLinks()[0], WithSeed(55))
			for range 5 {
				x.server.Replicate()
				other.step(t)
			}
			x.takeDown()
			x.client.Disconnect(Reason{ReasonGame + 3, "gone for dinner"})
			require.EqualError(t, x.client.Apply(), `replication: disconnected: code 67: "gone for dinner"`)
			require.Len(t, x.up, session.DisconnectCopies)
			require.NoError(t, x.peer.Receive(x.up[0]))
			require.False(t, x.peer.Connected())
			require.EqualError(t, x.peer.Err(), `replication: disconnected by the other end: code 67: "gone for dinner"`)
			require.Equal(t, 1, x.server.Stats().Peers, "the other one")
			require.True(t, other.peer.Connected())
			for _, p := range x.up {
				require.ErrorIs(t, x.peer.Receive(p), wire.ErrUnexpected)
			}
			require.Empty(t, x.replicate(), "nobody answers who has left")
			x.server.Disconnect(x.peer)
			require.True(t, requireDisconnected(t, x.peer.Err()).Remote, "the first reason counts")
			require.Equal(t, 1, x.server.Stats().Peers)
		})
	}
}

func TestClosedServerDisconnectsItsPeers(t *testing.T) {
	x, _, _ := crowd(t, 1)
	x.server.Close()
	x.deliver(x.takeDown()...)
	require.EqualError(t, x.client.Apply(), "replication: disconnected by the other end: closed")
}

func TestClosedClientLeavesNothing(t *testing.T) {
	x, _, _ := crowd(t, 5)
	own := x.mirror.NewEntity()
	q := x.mirror.Query(ecs.All())
	require.PanicsWithValue(t, "replication: Close on a locked world: call it outside of queries, since it removes entities", x.client.Close)
	q.Close()
	x.client.Close()
	x.client.Close()
	require.Equal(t, 1, x.mirror.Stats().Entities.Used)
	require.True(t, x.mirror.Alive(own))
	x.answer(x.up...)
	require.EqualError(t, x.peer.Err(), "replication: disconnected by the other end: closed")
	require.EqualError(t, x.client.Apply(), "replication: disconnected: closed")
	for range x.client.Entities() {
		require.Fail(t, "there is none")
	}
	require.PanicsWithValue(t, "replication: Reconnect of a closed client: make a new one with NewClient", x.client.Reconnect)

	// Also when the world was reset just before, and when there was never a session.
	x, _, _ = crowd(t, 5)
	x.mirror.Reset()
	own = x.mirror.NewEntity()
	x.client.Close()
	require.True(t, x.mirror.Alive(own))
	x = newWire(t, testSchema())
	x.client.Close()
	require.Empty(t, x.up)
}

// TestLostDisconnectsAreSentAgain: all copies of the disconnect are lost, so the server answers the
// client's next packets with another.
func TestLostDisconnectsAreSentAgain(t *testing.T) {
	for name, opts := range map[string][]ServerOption{"checksum": nil, "none": {WithoutChecksum()}} {
		t.Run(name, func(t *testing.T) {
			x, _, _ := crowd(t, 1, opts...)
			late := forgeAck(x.client, &wire.Ack{})
			x.peer.Disconnect(Reason{ReasonKicked, "idle"})
			x.takeDown() // lost
			var err error
			for n := 0; err == nil; n++ {
				require.Less(t, n, defaultClientTimeout+10)
				x.deliver(x.replicate()...)
				err = x.client.Apply()
				x.answer(x.up...)
				x.up = nil
				x.deliver(x.takeDown()...)
			}
			require.Equal(t, Reason{ReasonKicked, "idle"}, requireDisconnected(t, err).Reason)

			// An ack is answered too, but not without limit.
			answers := 0
			for range 100 {
				require.ErrorIs(t, x.peer.Receive(late), wire.ErrUnexpected)
				answers += len(x.takeDown())
			}
			require.Equal(t, session.MaxDisconnects-1, answers)
		})
	}
}

// TestDisconnectDuringTheHandshake: the client was welcomed, and its first packet is still in
// flight.
func TestDisconnectDuringTheHandshake(t *testing.T) {
	x := newWire(t, testSchema())
	x.answer(x.apply()...)
	x.deliver(x.takeDown()...)
	require.Equal(t, StatusConnected, x.client.Status())
	require.False(t, x.peer.Connected())
	x.peer.Disconnect(Reason{ReasonKicked, "full"})
	x.deliver(x.takeDown()...)
	require.Equal(t, "full", requireDisconnected(t, x.client.Apply()).Reason.Text)

	// And in the other direction.
	x = newWire(t, testSchema())
	x.answer(x.apply()...)
	x.deliver(x.takeDown()...)
	x.client.Disconnect(Reason{})
	x.answer(x.up...)
	require.Error(t, x.peer.Err())

	// There is nobody to notify.
	x = newWire(t, testSchema())
	x.client.Disconnect(Reason{})
	x.peer.Disconnect(Reason{})
	require.Empty(t, x.up)
	require.Empty(t, x.down)
}

// TestForeignDisconnectsAreIgnored: disconnects of other or earlier sessions, in the wrong
// direction, damaged or forged.
func TestForeignDisconnectsAreIgnored(t *testing.T) {
	for name, opts := range map[string][]ServerOption{"checksum": nil, "none": {WithoutChecksum()}} {
		t.Run(name, func(t *testing.T) {
			x, _, move := crowd(t, 2, opts...)
			var wrong [][]byte
			r := Reason{ReasonKicked, "never"}
			add := func() {
				wrong = append(wrong, wire.DisconnectPacket(uint8(r.Code), r.Text, x.client.session.ID, x.client.session.Down, 1200), wire.DisconnectPacket(uint8(r.Code), r.Text, x.client.session.ID, x.client.session.Up, 1200))
			}
			add() // of an earlier session on the same connection
			x.client.Reconnect()
			x.rounds(8)
			id := x.client.session.ID
			require.Equal(t, StatusConnected, x.client.Status())
			x.requireEqual()
			down := wire.DisconnectPacket(uint8(r.Code), r.Text, id, x.client.session.Down, 1200)
			up := wire.DisconnectPacket(uint8(r.Code), r.Text, id, x.client.session.Up, 1200)
			other := connectedWire(t, testSchema(), append(opts, WithSeed(9))...)
			wrong = append(wrong, wire.DisconnectPacket(uint8(r.Code), r.Text, other.client.session.ID, other.client.session.Down, 1200))
			wrong = append(wrong, wire.DisconnectPacket(uint8(r.Code), r.Text, id, other.client.session.Down, 1200), wire.DisconnectPacket(uint8(r.Code), r.Text, other.client.session.ID, x.client.session.Down, 1200))
			rng := rand.New(rand.NewPCG(seedOf(t), 8))
			for range 2000 {
				for _, p := range [][]byte{down, up} {
					p = bytes.Clone(p)
					switch rng.IntN(3) {
					case 0:
						p[rng.IntN(len(p))] ^= 1 << rng.IntN(8)
					case 1:
						p = p[:rng.IntN(len(p))]
					default:
						p = append(p, byte(rng.Uint32()))
					}
					wrong = append(wrong, p)
				}
			}
			for _, p := range wrong {
				if name == "checksum" || len(p) == 0 || !wire.IsState(p) { // else it is state, damaged on the way
					_ = x.client.Receive(p)
				}
				_ = x.peer.Receive(p)
			}
			_ = x.client.Receive(up) // reflected
			_ = x.peer.Receive(down)
			require.NoError(t, x.client.Apply())
			require.NoError(t, x.peer.Err())
			move(x.firstEntity(), 3)
			x.rounds(40)
			x.requireEqual()
			require.Equal(t, id, x.client.session.ID)

			require.NoError(t, x.client.Receive(down), "the genuine one")
			require.Error(t, x.client.Apply())
		})
	}
}

// firstEntity returns the entity in the server's first slot.
func (x *fixture) firstEntity() ecs.Entity { return x.server.snap.Slots.Info[0].Entity }

func TestReasonsAreCutToFit(t *testing.T) {
	for _, mtu := range []int{64, 100, 1200} {
		for name, text := range map[string]string{
			"long": strings.Repeat("x", 5000), "runes": strings.Repeat("€", 300), "broken": strings.Repeat("\xe2\x82", 300),
			"short": "ok", "zeros": strings.Repeat("\x00", 300),
		} {
			x := connectedWire(t, testSchema(), WithMTU(mtu))
			x.peer.Disconnect(Reason{ReasonGame, text})
			for _, p := range x.down {
				require.LessOrEqual(t, len(p), mtu)
			}
			x.deliver(x.takeDown()...)
			got := requireDisconnected(t, x.client.Apply()).Reason.Text
			require.True(t, utf8.ValidString(got), name)
			room := min(wire.MaxReasonText, mtu-wire.ChecksumSize-wire.DisconnectHead)
			require.LessOrEqual(t, len(got), room)
			if name != "broken" {
				require.Greater(t, len(got), min(room, len(text))-utf8.UTFMax, name)
				require.True(t, strings.HasPrefix(text, got), name)
			}

			x = connectedWire(t, testSchema(), WithMTU(mtu))
			x.client.Disconnect(Reason{ReasonGame, text})
			for _, p := range x.up {
				require.LessOrEqual(t, len(p), 215)
			}
			x.answer(x.up...)
			require.LessOrEqual(t, len(requireDisconnected(t, x.peer.Err()).Reason.Text), wire.MaxReasonText)
		}
	}
	x := connectedWire(t, testSchema())
	packet := wire.DisconnectPacket(0, "", x.client.session.ID, x.client.session.Down, 1200)
	packet = append(packet, 0xff) // not UTF-8
	x.client.session.Down.Write(packet, 0, 0)
	require.Error(t, x.client.Receive(packet))
	require.NoError(t, x.client.Apply())
}

// TestReconnectInAHookOfClose: a closed client stays closed, whatever the hooks that Close calls
// do.
func TestReconnectInAHookOfClose(t *testing.T) {
	x, _, _ := crowd(t, 1)
	x.client.OnDespawn(func(ecs.Entity) { x.client.Reconnect() })
	x.client.Close()
	require.Equal(t, StatusDisconnected, x.client.Status())
	var ended *DisconnectError
	require.ErrorAs(t, x.client.Apply(), &ended)
	require.Panics(t, x.client.Reconnect)
}

// TestALateDisconnectOfAnOlderOffer does not end the session of a client that was started again.
func TestALateDisconnectOfAnOlderOffer(t *testing.T) {
	x := connectedWire(t, testSchema())
	x.rounds(10)
	x.client.Reconnect()
	x.answer(x.apply()...)
	x.deliver(x.takeDown()...)
	require.True(t, x.client.Connected(), "in a session that is only offered")
	x.client.Disconnect(Reason{})
	late := x.up
	x.restart(testSchema(), 99) // the same link
	x.up = nil
	x.answer(x.apply()...)
	x.deliver(x.takeDown()...)
	require.True(t, x.client.Connected())
	x.answer(late...)
	require.NoError(t, x.peer.Err())
	x.rounds(5)
	require.True(t, x.peer.Connected())
}

// TestAClientMayLeaveWhileItReconnects: the server learns of it, whether it knows of the new session or not.
func TestAClientMayLeaveWhileItReconnects(t *testing.T) {
	for name, leave := range map[string]func(x *fixture){
		"at once": func(x *fixture) { x.client.Disconnect(Reason{Text: "dinner"}) },
		"after a hello that got lost": func(x *fixture) {
			x.apply()
			x.client.Disconnect(Reason{Text: "dinner"})
		},
		"after a welcome": func(x *fixture) {
			x.answer(x.apply()...)
			x.deliver(x.takeDown()...)
			require.True(t, x.client.Connected())
			x.apply() // the first ack is lost
			x.client.Disconnect(Reason{Text: "dinner"})
		},
	} {
		x := connectedWire(t, testSchema())
		x.rounds(10)
		x.client.Reconnect()
		leave(x)
		require.Len(t, x.up, 3, name)
		x.answer(x.up[2])
		require.ErrorContains(t, x.peer.Err(), "dinner", name)
	}
}
