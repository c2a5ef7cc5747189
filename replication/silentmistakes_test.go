package replication

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestServerLearnsWhyClientsAreRefused: from its statistics, also when the peer is gone, and near the line that differs.
func TestServerLearnsWhyClientsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		server, client *Schema
	}{
		"another step": {
			longSchema(func(s *Schema) { Register[tManyFields](s, Name("Last")) }),
			longSchema(func(s *Schema) { Register[tManyFieldsDiffer](s, Name("Last")) }),
		},
		"the first line": {
			testSchema(), NewSchema(),
		},
		"the client has more": {
			longSchema(func(*Schema) {}), longSchema(func(s *Schema) { Register[tManyFields](s, Name("Last")) }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newWire(t, c.server, WithTimeout(ofTicks(30)))
			require.Empty(t, x.server.Stats().LastRefusal)
			x.restart(c.client, 7)
			err := x.untilRefused(1200)
			var diff *SchemaError
			require.ErrorAs(t, err, &diff)
			refused := x.peer.Stats().RefusedSchemas
			require.NotZero(t, refused)
			for range 40 {
				x.replicate()
			}
			stats := x.server.Stats()
			require.Zero(t, stats.Peers, "it is silent")
			require.Equal(t, refused, stats.RefusedSchemas)
			var first, last int
			var line string
			_, err = fmt.Sscanf(stats.LastRefusal, "the schema of a client differs from this server's in one of the lines %d (here %q) to %d"+
				": register the same types in the same order on both ends, with the same fields, options and tables of Tune", &first, &line, &last)
			require.NoError(t, err, stats.LastRefusal)
			require.LessOrEqual(t, first, diff.Line)
			require.GreaterOrEqual(t, last, diff.Line)
			require.LessOrEqual(t, last-first, 8)
			require.Equal(t, strings.Split(c.server.Text(), "\n")[first-1], line)
		})
	}
}

// TestLastRefusalTakesAnyHello: offsets come from the wire.
func TestLastRefusalTakesAnyHello(t *testing.T) {
	x, sendHello := strangers(t, testSchema())
	text := x.server.sessions.Text
	for _, offset := range []uint32{0, 1, uint32(len(text)) - 1, uint32(len(text)), 1 << 31, 1<<32 - 1} {
		sendHello(wire.Hello{Version: wire.ProtocolVersion, Fingerprint: 1, Nonce: 7, Offset: offset})
		require.Contains(t, x.server.Stats().LastRefusal, "the schema of a client ", "offset %d", offset)
	}
	sendHello(wire.Hello{Version: 200, Nonce: 7, Offset: 1 << 31})
	require.Equal(t, fmt.Sprintf("a client speaks protocol version 200, this server %d: use the same release on both sides", ProtocolVersion),
		x.server.Stats().LastRefusal)
	require.EqualValues(t, 7, x.server.Stats().RefusedSchemas)
}

// TestUnmarkedEntitiesAreCounted: they have components of the schema, but nobody marked them.
func TestUnmarkedEntitiesAreCounted(t *testing.T) {
	type local struct{ X int }
	schema := testSchema()
	RegisterResource[tMatchState](schema)
	world := ecs.NewWorld()
	other := ecs.ComponentID[local](&world) // the ID that a resource has not
	server := NewServer(&world, schema)
	position, marker := ecs.ComponentID[tPosition](&world), ReplicatedID(&world)
	require.Zero(t, server.Stats().Unmarked)
	forgotten := world.NewEntity(position)
	world.NewEntity(other)
	world.NewEntity(marker, position)
	world.NewEntity(marker)
	ecs.NewBuilder(&world, position, other).NewBatch(3)
	for range 2 {
		require.Equal(t, 4, server.Stats().Unmarked)
		server.Replicate()
	}
	world.Add(forgotten, marker)
	require.Equal(t, 3, server.Stats().Unmarked)
	query := world.Query(ecs.All(position)) // the world is locked
	require.Equal(t, 3, server.Stats().Unmarked)
	query.Close()
	world.Reset()
	require.Zero(t, server.Stats().Unmarked)
	require.False(t, world.IsLocked())
}

type tMatchState struct{ Round uint8 }

// TestClosedSocketIsFound: the send functions of both ends refuse everything from the beginning, or from some moment on.
func TestClosedSocketIsFound(t *testing.T) {
	for _, late := range []bool{false, true} {
		x := newWire(t, testSchema(), WithTimeout(ofTicks(200)))
		closed := false
		send := func(to *[][]byte) func(p []byte) error {
			return func(p []byte) error {
				if closed {
					return &net.OpError{Op: "write", Net: "udp", Err: net.ErrClosed}
				}
				*to = append(*to, bytes.Clone(p))
				return nil
			}
		}
		x.peer = x.server.Connect(send(&x.down))
		x.client = NewClientWith(x.mirror, faceOf(x.server.schema), send(&x.up), WithSeed(9))
		if late {
			x.rounds(5)
			require.True(t, x.peer.Connected() && x.client.Connected())
		}
		closed = true
		require.NoError(t, x.client.Err())
		for x.peer.Err() == nil {
			x.round()
		}
		for range defaultClientTimeout {
			x.round()
		}
		require.Equal(t, late, x.client.Status() == StatusReconnecting)
		require.Equal(t, !late, x.client.Status() == StatusConnecting)
		require.ErrorIs(t, x.client.Err(), net.ErrClosed)
		require.Regexp(t, `^replication: the client can't reach the server: write udp: use of closed network connection$`, x.client.Err().Error())
		require.ErrorIs(t, x.client.Stats().LastSendError, net.ErrClosed)
		require.NotZero(t, x.client.Stats().SendErrors)
		if late {
			require.ErrorIs(t, x.peer.Stats().LastSendError, net.ErrClosed)
			require.ErrorIs(t, x.peer.Err(), net.ErrClosed)
			require.EqualError(t, x.peer.Err(), "replication: disconnected: timeout; the last packet could not be sent: write udp: use of closed network connection")
		}

		// A socket that works again: the error was not final.
		closed = false
		x.connect()
		x.rounds(40)
		require.True(t, x.client.Connected())
		require.NoError(t, x.client.Err())
		require.ErrorIs(t, x.client.Stats().LastSendError, net.ErrClosed, "the latest error, however long ago")
		x.client.Disconnect(Reason{})
		require.Equal(t, x.client.Err(), x.client.Apply())
		require.EqualError(t, x.client.Err(), "replication: disconnected: closed")
		x.peer.Disconnect(Reason{Code: ReasonKicked})
		require.EqualError(t, x.peer.Err(), "replication: disconnected: kicked")
		require.NoError(t, errors.Unwrap(x.peer.Err()))
	}
}

// TestKeptPacketsAreFound: a send function keeps packets until the tick is over, at either end. They never reach the
// world, and the other end returns the reason.
func TestKeptPacketsAreFound(t *testing.T) {
	for _, noChecksum := range []bool{false, true} {
		for _, workers := range []int{1, 4} {
			opts := []ServerOption{WithSeed(1), WithWorkers(workers)}
			if noChecksum {
				opts = append(opts, WithoutChecksum())
			}
			schema := testSchema()
			RegisterMessage[mHit](schema)
			x := newWire(t, schema, opts...)
			entities := []ecs.Entity{}
			for range 300 {
				entities = append(entities, x.spawn(ecs.ComponentID[tPosition](x.world)))
			}
			x.rounds(10)
			x.requireEqual()

			var down, up [][]byte
			x.peer = x.server.Connect(func(p []byte) error { down = append(down, p); return nil })
			mirror := ecs.NewWorld()
			x.mirror = &mirror
			x.client = NewClientWith(x.mirror, schema, func(p []byte) error { up = append(up, p); return nil }, WithSeed(9))
			for range 50 {
				for i, e := range entities {
					(*tPosition)(x.world.Get(e, ecs.ComponentID[tPosition](x.world))).X += float32(i%7) * 0.01
				}
				x.server.Replicate()
				for _, p := range down {
					require.ErrorIs(t, x.client.Receive(p), ErrOverwritten)
				}
				require.NoError(t, x.client.Apply())
				for _, p := range up {
					require.ErrorIs(t, x.peer.Receive(p), ErrOverwritten)
				}
				down, up = nil, nil
			}
			require.EqualValues(t, x.peer.Stats().RefusedPackets, x.peer.Stats().Overwritten)
			require.NotZero(t, x.peer.Stats().Overwritten)
		}
	}
}

// TestPacketsKeptInASessionAreFound: the same from some moment of a session on.
func TestPacketsKeptInASessionAreFound(t *testing.T) {
	for _, noChecksum := range []bool{false, true} {
		opts := []ServerOption{WithSeed(1)}
		if noChecksum {
			opts = append(opts, WithoutChecksum())
		}
		schema := testSchema()
		RegisterMessage[mHit](schema)
		world, mirror := ecs.NewWorld(), ecs.NewWorld()
		server := NewServer(&world, schema, opts...)
		keeps := false
		var down, up [][]byte
		send := func(to *[][]byte) func(p []byte) error {
			return func(p []byte) error {
				if !keeps {
					p = bytes.Clone(p)
				}
				*to = append(*to, p)
				return nil
			}
		}
		peer := server.Connect(send(&down))
		client := NewClientWith(&mirror, schema, send(&up), WithSeed(9))
		position := ecs.ComponentID[tPosition](&world)
		e := world.NewEntity(ReplicatedID(&world), position)
		overwritten := [2]int{}
		for tick := range 60 {
			keeps = tick >= 20
			(*tPosition)(world.Get(e, position)).X = float32(tick)
			_ = SendToClient(peer, mHit{})
			_ = SendToServer(client, mHit{})
			server.Replicate()
			for _, p := range down {
				if errors.Is(client.Receive(p), ErrOverwritten) {
					overwritten[0]++
				}
			}
			down = nil
			require.NoError(t, client.Apply())
			for _, p := range up {
				if errors.Is(peer.Receive(p), ErrOverwritten) {
					overwritten[1]++
				}
			}
			require.Equal(t, keeps, overwritten[0] > 0, "tick %d", tick)
			require.Equal(t, keeps, overwritten[1] > 0, "tick %d", tick)
			up = nil
		}
		require.EqualValues(t, 1, client.Stats().Sessions)
		require.EqualValues(t, overwritten[0], client.Stats().Overwritten)
		require.EqualValues(t, overwritten[0], client.Stats().RefusedPackets)
		require.EqualValues(t, overwritten[1], peer.Stats().Overwritten)
		require.EqualValues(t, overwritten[1], peer.Stats().RefusedPackets)
		require.Greater(t, overwritten[0], 40)
		require.Greater(t, overwritten[1], 10)
	}
}

// TestPathThatDropsLargePacketsIsFound: the client is connected, but never complete; the server sees why, also if the
// path changes in the middle of a game. With the MTU that the statistics suggest, all is well.
func TestPathThatDropsLargePacketsIsFound(t *testing.T) {
	oneGoroutine(t)
	const carries = 576 - 28
	play := func(mtu int, late bool) (x *fixture) {
		x = newWire(t, testSchema(), WithMTU(mtu))
		position, bulk := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tBulk](x.world)
		rng := rand.New(rand.NewPCG(seedOf(t), 1))
		var moving []ecs.Entity
		for i := range 600 {
			e := x.spawn([]ecs.ID{position, bulk}[:1+i%2]...)
			if moving = append(moving, e); i%2 == 1 {
				for k := range 40 {
					(*tBulk)(x.world.Get(e, bulk)).Cells[k] = rng.Uint64()
				}
			}
		}
		if late {
			x.rounds(200)
			require.True(t, x.client.Complete())
			require.Zero(t, x.peer.Stats().LostLarge)
		}
		for tick := range 2400 {
			for _, e := range moving[:tick%600] { // now more of them move, and now fewer
				(*tPosition)(x.world.Get(e, position)).X = rng.Float32() * 100
			}
			for _, p := range x.replicate() {
				if len(p) <= carries && rng.Float64() >= 0.1 { // small ones get lost, too
					x.deliver(p)
				}
			}
			x.answer(x.apply()...)
			x.deliver(x.takeDown()...)
		}
		t.Logf("late %v, MTU %d: LostLarge %d, LargestAcked %d", late, mtu, x.peer.Stats().LostLarge, x.peer.Stats().LargestAcked)
		require.True(t, x.client.Connected())
		require.LessOrEqual(t, x.peer.Stats().LargestAcked, carries)
		return x
	}
	for _, late := range []bool{false, true} {
		x := play(1200, late)
		require.Equal(t, late, x.client.Complete())
		require.Greater(t, x.peer.Stats().LostLarge, uint64(10))
		x = play(carries, false)
		require.True(t, x.client.Complete())
		require.LessOrEqual(t, x.peer.Stats().LostLarge, uint64(4))
	}
}

// TestLossIsNotTakenForASmallPath: neither random loss nor outages.
func TestLossIsNotTakenForASmallPath(t *testing.T) {
	for _, loss := range []float64{0, 0.05, 0.2, 0.4} {
		seed := seedOf(t)
		world := ecs.NewWorld()
		schema := testSchema()
		server := NewServer(&world, schema, WithSeed(seed))
		ends := []*end{connect(server, seed, netsim.Config{Latency: 3, Jitter: 2, Loss: loss})}
		g := newGame(seed, &world, schema, 60)
		most := uint64(0)
		for tick := range 3000 {
			g.step()
			if tick%600 > 500 {
				ends[0].link.SetConfig(netsim.Config{Latency: 3, Loss: 1})
			} else if tick%600 == 0 {
				ends[0].link.SetConfig(netsim.Config{Latency: 3, Jitter: 2, Loss: loss})
			}
			server.Replicate()
			ends[0].step(t)
			most = max(most, ends[0].peer.Stats().LostLarge)
		}
		t.Log(loss, most, ends[0].peer.Stats().LargestAcked, ends[0].peer.Stats().Lost)
		require.LessOrEqual(t, most, uint64(5), "loss %v", loss)
	}
}

// TestTwoClientsBehindOnePeerAreCounted: their packets arrive at one peer, whose packets go to one of them, to both or
// to the one that sent last. A client that starts anew, again and again over a bad network, is not taken for two.
func TestTwoClientsBehindOnePeerAreCounted(t *testing.T) {
	for _, messages := range []bool{false, true} {
		for name, reaches := range map[string]func(to, last int) bool{
			"the first one": func(to, _ int) bool { return to == 0 },
			"both":          func(int, int) bool { return true },
			"the last one":  func(to, last int) bool { return to == last },
		} {
			schema := testSchema()
			if messages {
				RegisterMessage[mHit](schema)
			}
			world := ecs.NewWorld()
			server := NewServer(&world, schema, WithSeed(1))
			world.NewEntity(ReplicatedID(&world), ecs.ComponentID[tPosition](&world))
			var clients [2]*Client
			var down [2][][]byte
			var up [][]byte
			last, from := 0, 0
			peer := server.Connect(func(p []byte) error {
				for to := range clients {
					if reaches(to, last) {
						down[to] = append(down[to], bytes.Clone(p))
					}
				}
				return nil
			})
			for i := range clients {
				mirror := ecs.NewWorld()
				clients[i] = NewClientWith(&mirror, schema, func(p []byte) error { up = append(up, bytes.Clone(p)); return nil }, WithSeed(uint64(i)))
			}
			play := func(n int) {
				for range n {
					server.Replicate()
					for from = range clients {
						for _, p := range down[from] {
							_ = clients[from].Receive(p)
						}
						down[from] = nil
						require.NoError(t, clients[from].Apply())
						for _, p := range up {
							last = from
							_ = peer.Receive(p)
						}
						up = nil
					}
				}
			}
			play(600)
			first := peer.Stats().OtherClients
			play(1200)
			t.Log(messages, name, first, peer.Stats().OtherClients, clients[0].Stats().Sessions, clients[1].Stats().Sessions)
			require.Greater(t, peer.Stats().OtherClients, first, name)
		}
	}
}

// TestClientThatStartsAnewIsNoOtherClient: nor one that reconnects, with packets that are late, lost and repeated.
func TestClientThatStartsAnewIsNoOtherClient(t *testing.T) {
	world := ecs.NewWorld()
	schema := testSchema()
	RegisterMessage[mHit](schema)
	server := NewServer(&world, schema, WithSeed(1))
	g := newGame(seedOf(t), &world, schema, 10)
	e := connect(server, seedOf(t), netsim.Config{Latency: 6, Jitter: 5, Loss: 0.2, Duplicate: 0.2, Reorder: 0.2, ReorderBy: 20})
	for tick := range 4000 {
		if tick%200 == 100 {
			e.client.Reconnect()
		}
		if tick%200 == 199 {
			mirror := ecs.NewWorld()
			e.world, e.client = &mirror, NewClientWith(&mirror, schema, e.link.Up.Send)
		}
		if tick%1000 > 800 { // longer than a second, so that it asks for its session
			e.link.Down.SetConfig(netsim.Config{Loss: 1})
		} else if tick%1000 == 0 {
			e.link.SetConfig(netsim.Config{Latency: 6, Jitter: 5, Loss: 0.2, Duplicate: 0.2, Reorder: 0.2, ReorderBy: 20})
		}
		g.step()
		server.Replicate()
		e.step(t)
	}
	require.Zero(t, e.peer.Stats().OtherClients)
	require.True(t, e.peer.Connected())
}
