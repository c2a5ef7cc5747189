package replication

import (
	"fmt"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/stretchr/testify/require"
)

// A helloForger sends hellos with the address of a player who joins.
type helloForger struct {
	x     *fixture
	hello wire.Hello
}

func newHelloForger(x *fixture) *helloForger {
	return &helloForger{x, wire.Hello{
		Version: wire.ProtocolVersion, Fingerprint: x.server.sessions.Fingerprint, Data: []byte("eve"),
	}}
}

// send makes n hellos arrive at the server, each with another nonce. The answers go to the player.
func (f *helloForger) send(n int) {
	for range n {
		f.hello.Nonce += 1 << 32
		_ = f.x.peer.Receive(wire.WithChecksum(f.hello.Append(nil)))
	}
}

// joinUnderAttack plays until the client's session is in force, over a path that takes trip ticks in all, and returns
// how many ticks that took, or the limit.
func joinUnderAttack(x *fixture, trip, perTick, limit int) int {
	forger := newHelloForger(x)
	late := make([][][]byte, trip)
	for n := range limit {
		forger.send(perTick)
		x.deliver(x.replicate()...)
		x.answer(late[n%trip]...)
		late[n%trip] = x.apply()
		forger.send(perTick)
		x.deliver(x.takeDown()...)
		if x.client.session.InForce {
			return n
		}
	}
	return limit
}

// TestForgedHellosKeepNobodyOut: somebody sends 60 or more hellos per second with a player's address. The player joins
// about as fast as without, and joins again.
func TestForgedHellosKeepNobodyOut(t *testing.T) {
	for _, opts := range [][]ServerOption{nil, {WithoutChecksum()}} {
		for _, asks := range []bool{false, true} {
			for _, trip := range []int{1, 6, 20} {
				for _, perTick := range []int{1, 5, 100} {
					if asks && perTick > 5 {
						continue // more calls of OnJoin than a tick has
					}
					t.Run(fmt.Sprint(len(opts), asks, trip, perTick), func(t *testing.T) {
						x := newWire(t, messageSchema(), opts...)
						x.restart(faceOf(x.server.schema), 7, WithJoinData([]byte("ann")))
						if asks {
							x.server.OnJoin(func(*Peer, []byte) error { return nil })
						}
						x.spawn()
						require.LessOrEqual(t, joinUnderAttack(x, trip, perTick, 600), 2*trip+8)
						require.Equal(t, "ann", string(x.peer.JoinData()))
						x.client.Reconnect()
						require.LessOrEqual(t, joinUnderAttack(x, trip, perTick, 600), 2*trip+8)
						x.rounds(20)
						x.requireEqual()
						require.EqualValues(t, 2, x.client.Stats().Sessions)
					})
				}
			}
		}
	}
}

// offer returns the hello that confirms the session of a welcome to hello.
func (f *helloForger) offer(t testing.TB, hello wire.Hello) wire.Hello {
	t.Helper()
	require.NoError(t, f.x.peer.Receive(wire.WithChecksum(hello.Append(nil))))
	down := f.x.takeDown()
	var m wire.Welcome
	require.True(t, m.Parse(wire.OpenHandshake(down[len(down)-1])))
	hello.Session, hello.Offset = m.Session, m.Sequence
	return hello
}

// TestOnlyTheOfferIsConfirmed: a hello that names a session begins it only if all of it is as it was when the session
// was offered, and only on the same connection.
func TestOnlyTheOfferIsConfirmed(t *testing.T) {
	for _, opts := range [][]ServerOption{nil, {WithoutChecksum()}} {
		x := newWire(t, testSchema(), opts...)
		f := newHelloForger(x)
		asked := f.hello
		asked.Nonce, asked.Slots, asked.Codings, asked.Data = 99, 1000, wire.TakesCompact, []byte("ann")
		good := f.offer(t, asked)
		first := x.peer
		for i, change := range []func(h *wire.Hello){
			func(h *wire.Hello) { h.Nonce++ },
			func(h *wire.Hello) { h.Slots++ },
			func(h *wire.Hello) { h.Codings = 0 },
			func(h *wire.Hello) { h.Offset++ },
			func(h *wire.Hello) { h.Session += wire.Epochs },
			func(h *wire.Hello) { h.Session = 0 },
			func(h *wire.Hello) { h.Data = []byte("eve") },
			func(h *wire.Hello) { h.Data = nil },
			func(*wire.Hello) { x.connect() }, // to another address
		} {
			bad := good
			change(&bad)
			require.NoError(t, x.peer.Receive(wire.WithChecksum(bad.Append(nil))))
			require.False(t, x.peer.Connected(), "change %d", i)
		}
		x.peer = first
		f.send(10)
		require.NoError(t, x.peer.Receive(wire.WithChecksum(good.Append(nil))))
		require.True(t, x.peer.Connected())
		require.Equal(t, "ann", string(x.peer.JoinData()))
		require.EqualValues(t, 1000, x.peer.conn.Session.Slots)
		require.Equal(t, good.Session, x.peer.conn.Session.ID)
	}
}

// TestLateConfirmationsChangeNothing: those of the session in force, of the previous one and of earlier ones.
func TestLateConfirmationsChangeNothing(t *testing.T) {
	for _, opts := range [][]ServerOption{nil, {WithoutChecksum()}} {
		x := newWire(t, testSchema(), opts...)
		f := newHelloForger(x)
		begun := 0
		x.server.OnConnect(func(*Peer) { begun++ })
		hello := f.hello
		var late [][]byte
		for n := range 4 {
			hello.Nonce++
			confirmation := f.offer(t, hello)
			late = append(late, wire.WithChecksum(confirmation.Append(nil)))
			require.NoError(t, x.peer.Receive(late[n]))
			require.Equal(t, n+1, begun)
			id := x.peer.conn.Session.ID
			for k := range late {
				if err := x.peer.Receive(late[k]); k < n {
					require.ErrorIs(t, err, ErrStale)
				} else {
					require.NoError(t, err)
				}
			}
			require.Empty(t, x.takeDown(), "no answers")
			x.replicate()
			require.Equal(t, n+1, begun)
			require.Equal(t, id, x.peer.conn.Session.ID)
		}
		x.peer.Disconnect(Reason{ReasonKicked, "out"})
		x.takeDown()
		require.ErrorIs(t, x.peer.Receive(late[3]), ErrUnexpected)
		require.Len(t, x.takeDown(), 1, "the reason again")
	}
}

// TestJoinDataIsThatOfTheHello: data that the client sets while it waits for an answer goes with another nonce, so
// that the session which begins has the data that was looked at.
func TestJoinDataIsThatOfTheHello(t *testing.T) {
	x := newWire(t, testSchema())
	x.restart(faceOf(x.server.schema), 7, WithJoinData([]byte("ann")))
	f := newHelloForger(x)
	x.answer(x.apply()...)
	welcome := x.takeDown()
	x.client.SetJoinData([]byte("bob"))
	x.deliver(welcome...)
	require.False(t, x.client.Connected())
	for range 20 {
		x.answer(x.apply()...)
		x.deliver(x.takeDown()...)
		f.send(5)
		x.takeDown()
	}
	require.True(t, x.client.Connected() && x.peer.Connected())
	require.Equal(t, "bob", string(x.peer.JoinData()))
}
