package replication

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
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
			x := newWire(t, c.server, WithTimeout(30))
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
		x := newWire(t, testSchema(), WithTimeout(200))
		if late {
			x = connectedWire(t, testSchema(), WithTimeout(200))
		}
		closed := func([]byte) error { return &net.OpError{Op: "write", Net: "udp", Err: net.ErrClosed} }
		clientSend := x.client.session.Send
		x.client.session.Send, x.peer.out.Send = closed, closed
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
		require.Regexp(t, `^replication: the client can't reach the server: the send function refused the last \d+ packets: write udp: use of closed network connection$`, x.client.Err().Error())
		require.ErrorIs(t, x.client.Stats().LastSendError, net.ErrClosed)
		require.NotZero(t, x.client.Stats().SendErrors)
		if late {
			require.ErrorIs(t, x.peer.Stats().LastSendError, net.ErrClosed)
			require.ErrorIs(t, x.peer.Err(), net.ErrClosed)
			require.EqualError(t, x.peer.Err(), "replication: disconnected: timeout; the last packet could not be sent: write udp: use of closed network connection")
		}

		// A socket that works again: the error was not final.
		x.client.session.Send = clientSend
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
