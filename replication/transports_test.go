package replication_test

import (
	"errors"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// pair is a server and a client that are not connected yet.
func pair(t *testing.T) (*replication.Server, *replication.Client) {
	t.Helper()
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	return replication.NewServer(&world, replication.NewSchema()), replication.NewClient(&mirror, replication.NewSchema())
}

func TestATransportIsAttachedToAClient(t *testing.T) {
	_, client := pair(t)
	require.NoError(t, client.Frame(time.Second/60))
	require.ErrorContains(t, client.Err(), "no send function yet")
	sent := 0
	client.SetSend(func([]byte) error { sent++; return nil })
	for range 60 {
		require.NoError(t, client.Frame(time.Second/60))
	}
	require.Positive(t, sent)
	require.NoError(t, client.Err())
}

func TestATransportEndsAClient(t *testing.T) {
	_, client := pair(t)
	sent, why := 0, errors.New("the certificate is not trusted")
	client.SetSend(func([]byte) error { sent++; return nil })
	seam.OfClient(client).Fail(why)
	for range 600 {
		require.ErrorIs(t, client.Frame(time.Second/60), why)
	}
	require.ErrorIs(t, client.Err(), why)
	require.Equal(t, "replication: the client can't reach the server: the certificate is not trusted", client.Err().Error())
	require.Zero(t, sent)
	client.Reconnect()
	require.NoError(t, client.Frame(time.Second))
	require.Positive(t, sent)
	client.Close()
	seam.OfClient(client).Fail(why)
}

func TestAcceptsKnowsHellos(t *testing.T) {
	server, client := pair(t)
	var hello []byte
	client.SetSend(func(p []byte) error { hello = append(hello[:0], p...); return nil })
	require.NoError(t, client.Frame(time.Second))
	require.True(t, server.Accepts(hello))
	for i := range hello {
		hello[i] ^= 1
		require.False(t, server.Accepts(hello), "byte %d is damaged", i)
		hello[i] ^= 1
	}
	for n := range hello {
		require.False(t, server.Accepts(hello[:n]))
	}
	var welcome []byte
	peer := server.Connect(func(p []byte) error { welcome = append(welcome[:0], p...); return nil })
	require.NoError(t, peer.Receive(hello))
	require.NotEmpty(t, welcome)
	require.False(t, server.Accepts(welcome))
	server.Close()
	require.False(t, server.Accepts(hello))
	require.Panics(t, func() { (*replication.Server)(nil).Accepts(hello) })
}

// TestAcceptsAnyVersionAndSchema: the server has an answer for them.
func TestAcceptsAnyVersionAndSchema(t *testing.T) {
	server, _ := pair(t)
	for _, h := range []wire.Hello{
		{Version: wire.ProtocolVersion},
		{Version: wire.ProtocolVersion, Fingerprint: 7, Data: make([]byte, wire.MaxJoinData)},
		{Version: wire.ProtocolVersion + 1},
		{},
	} {
		hello := h.Append(make([]byte, wire.ChecksumSize))
		wire.HandshakeKey().Write(hello, 0, 0)
		require.True(t, server.Accepts(hello), "version %d", h.Version)
		answers := 0
		peer := server.Connect(func([]byte) error { answers++; return nil })
		require.NoError(t, peer.Receive(hello))
		require.Equal(t, 1, answers)
	}
	for kind := range 256 {
		h := (&wire.Hello{Version: wire.ProtocolVersion}).Append(make([]byte, wire.ChecksumSize))
		if h[wire.ChecksumSize] == byte(kind) {
			continue
		}
		h[wire.ChecksumSize] = byte(kind)
		wire.HandshakeKey().Write(h, 0, 0)
		require.False(t, server.Accepts(h), "kind %d", kind)
	}
}

// TestAcceptsOnAnyGoroutine is for the race detector.
func TestAcceptsOnAnyGoroutine(t *testing.T) {
	server, client := pair(t)
	var hello []byte
	client.SetSend(func(p []byte) error { hello = append(hello[:0], p...); return nil })
	require.NoError(t, client.Frame(time.Second))
	ended, begun := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; server.Accepts(hello); n++ {
			if n == 0 {
				close(begun)
			}
		}
	}()
	<-begun
	peer := server.Connect(func([]byte) error { return nil })
	for range 100 {
		require.NoError(t, peer.Receive(hello))
		server.Replicate()
	}
	server.Close()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		require.Fail(t, "it accepts after Close")
	}
}

func TestRemote(t *testing.T) {
	server, _ := pair(t)
	peer := server.Connect(func([]byte) error { return nil })
	require.Empty(t, peer.Remote().String())
	peer.SetRemote(replication.Remote{Transport: "udp", Address: "203.0.113.7:40123"})
	require.Equal(t, "udp 203.0.113.7:40123", peer.Remote().String())
	var gone replication.Remote
	server.OnDisconnect(func(p *replication.Peer) { gone = p.Remote() })
	peer.Disconnect(replication.Reason{})
	require.Equal(t, "udp", gone.Transport)
	require.Equal(t, "udp 203.0.113.7:40123", peer.Remote().String(), "it stays")
}

func TestHooksAreTakenBack(t *testing.T) {
	server, client := pair(t)
	var calls []string
	note := func(name string) func(*replication.Peer) {
		return func(*replication.Peer) { calls = append(calls, name) }
	}
	var removes []func()
	removes = append(removes,
		server.OnDrain(note("drain")),
		server.OnRefuse(func(*replication.Peer, error) { calls = append(calls, "refuse") }),
		server.OnJoin(func(*replication.Peer, []byte) error { return errors.New("never") }),
		server.OnConnect(note("connect")),
	)
	for _, remove := range removes {
		remove()
		remove()
	}
	var second, third func()
	server.OnConnect(func(*replication.Peer) { calls = append(calls, "first"); second(); third() })
	second = server.OnConnect(note("second"))
	third = server.OnConnect(note("third"))
	server.OnConnect(note("last"))
	remove := server.OnDisconnect(note("gone"))
	server.OnDisconnect(note("also gone"))

	peer := server.Connect(client.Receive)
	client.SetSend(peer.Receive)
	for range 20 {
		require.NoError(t, client.Frame(time.Second/60))
		server.Replicate()
	}
	require.Equal(t, []string{"first", "last"}, calls)
	remove()
	peer.Disconnect(replication.Reason{})
	require.Equal(t, []string{"first", "last", "also gone"}, calls)
}

// TestWatchersSeeWhatHappens: each moment of both ends, with the sizes of packets.
func TestWatchersSeeWhatHappens(t *testing.T) {
	server, client := pair(t)
	var moments []seam.Moment
	sent, received := 0, 0
	watch := watcher(func(at seam.Moment, bytes int) {
		moments = append(moments, at)
		switch at {
		case seam.Sent:
			sent += bytes
		case seam.ReceiveBegins:
			received += bytes
		}
	})
	in := seam.OfServer(server)
	*in.Watchers = append(*in.Watchers, watch)
	inside := seam.OfClient(client)
	*inside.Watchers = append(*inside.Watchers, watch)
	down := 0
	peer := server.Connect(func(p []byte) error { down += len(p); return client.Receive(p) })
	up := 0
	client.SetSend(func(p []byte) error { up += len(p); return peer.Receive(p) })
	for range 70 {
		require.NoError(t, client.Frame(time.Second/60))
		server.Replicate()
	}
	require.True(t, peer.Connected())
	require.Equal(t, down, received)
	require.Equal(t, down+up, sent)
	require.Equal(t, []seam.Moment{
		seam.FrameBegins, seam.ReceiveBegins, seam.ReceiveEnds, seam.Sent, seam.Sent, // a hello and its answer
		seam.FrameEnds, seam.ReplicateBegins,
	}, moments[:7])
	require.Equal(t, seam.ReplicateEnds, moments[len(moments)-1])
	age, known := inside.Recv.BaselineAge()
	require.False(t, known, "an empty world names no baseline: %d", age)

	before := server.Stats()
	var again replication.ServerStats
	in.Stats(&again)
	require.Equal(t, before, again)
	fields := &again.Fields
	require.Zero(t, testing.AllocsPerRun(10, func() { in.Stats(&again) }), "%d fields", len(*fields))
}

type watcher func(at seam.Moment, bytes int)

func (w watcher) Note(at seam.Moment, bytes int) { w(at, bytes) }
