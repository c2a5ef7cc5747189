package udp

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

type remark struct {
	Text string `repl:"max=200"`
}

// datagrams returns one of each kind that ends send each other: hellos, welcomes, states, acks, messages, refusals and
// disconnects, bare and with headers, and cookies; complete, truncated, damaged, and garbage.
func datagrams(t testing.TB) (kinds [][]byte) {
	r := rand.New(rand.NewPCG(1, 2))
	keep := func(packet []byte) error {
		kinds = append(kinds, append([]byte(nil), packet...))
		return nil
	}
	world, clientWorld := ecs.NewWorld(), ecs.NewWorld()
	own, other := schema(), schema()
	for _, s := range []*replication.Schema{own, other} {
		replication.RegisterMessage[remark](s)
	}
	server := replication.NewServer(&world, own)
	world.NewEntity(ecs.ComponentID[position](&world), ecs.ComponentID[replication.Replicated](&world))
	var client *replication.Client
	var peer *replication.Peer
	client = replication.NewClient(&clientWorld, other)
	client.SetSend(func(p []byte) error { _ = keep(p); return peer.Receive(p) })
	peer = server.Connect(func(p []byte) error { _ = keep(p); return client.Receive(p) })
	for range 30 {
		server.Replicate()
		require.NoError(t, client.Frame(time.Second/60))
		if client.Status() == replication.StatusConnected {
			require.NoError(t, replication.SendToClient(peer, remark{"hello"}))
			require.NoError(t, replication.SendToServer(client, remark{"hello"}))
		}
	}
	client.Disconnect(replication.Reason{})
	foreign := replication.NewClient(&clientWorld, schema()) // is refused
	second := server.Connect(func(p []byte) error { return keep(p) })
	foreign.SetSend(func(p []byte) error { _ = keep(p); return second.Receive(p) })
	require.NoError(t, foreign.Frame(time.Second))
	server.Close()
	require.Greater(t, len(kinds), 60)

	for _, packet := range kinds[:len(kinds):len(kinds)] {
		cookie := make([]byte, cookieSize)
		kinds = append(kinds, headed(cookie, packet))
		for i := range cookie {
			cookie[i] = byte(r.Uint32())
		}
		kinds = append(kinds, headed(cookie, packet), headed(cookie, nil))
		damaged := append([]byte(nil), packet...)
		damaged[r.IntN(len(damaged))] ^= 1 << r.IntN(8)
		kinds = append(kinds, damaged, packet[:r.IntN(len(packet))])
	}
	for n := range 200 { // of each length
		garbage := make([]byte, n)
		for i := range garbage {
			garbage[i] = byte(r.Uint32())
		}
		kinds = append(kinds, garbage, headed(make([]byte, cookieSize), garbage)[:n])
	}
	return append(kinds, make([]byte, 1200), make([]byte, 60_000))
}

// A stranger gets at most one datagram for each that it sends, which is no longer, whatever it sends.
func TestStrangersGetNoMoreThanTheySend(t *testing.T) {
	h := serve(t, "127.0.0.1:0", WithHelloRate(1_000_000))
	stranger, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer func() { require.NoError(t, stranger.Close()) }()
	at, buf := h.listener.Addr(), make([]byte, mostBytes)
	var sent, got uint64
	for _, d := range datagrams(t) {
		_, err := stranger.WriteToUDPAddrPort(d, at)
		require.NoError(t, err)
		_, err = stranger.WriteToUDPAddrPort([]byte{0}, at) // when it is received, the one before is done with
		require.NoError(t, err)
		sent += 2
		for end := time.Now().Add(10 * time.Second); h.listener.Stats().Received < sent && time.Now().Before(end); {
			time.Sleep(20 * time.Microsecond)
		}
		require.Equal(t, sent, h.listener.Stats().Received)
		h.listener.Poll()
		h.server.Replicate()
		if s := h.listener.Stats(); s.Answered > got {
			got++
			require.Equal(t, got, s.Answered, "answers to one datagram")
			require.NoError(t, stranger.SetReadDeadline(time.Now().Add(10*time.Second)))
			n, from, err := stranger.ReadFromUDPAddrPort(buf)
			require.NoError(t, err)
			require.Equal(t, at, from)
			require.LessOrEqual(t, n, len(d))
		}
	}
	require.Greater(t, got, sent/4)
	require.NoError(t, stranger.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	n, _, err := stranger.ReadFromUDPAddrPort(buf)
	require.Error(t, err, "%d bytes that nobody asked for", n)
	require.Zero(t, h.listener.Stats().Opened)
	require.Empty(t, h.listener.table)
}

// The same for a datagram that has any cookie but its own, from any address.
func TestCookiesOfOthersProveNothing(t *testing.T) {
	now := time.Duration(0)
	l := still(t, &now, WithHelloRate(1_000_000))
	r := rand.New(rand.NewPCG(3, 4))
	address := func() netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(r.Uint32()), byte(r.Uint32())}), uint16(r.Uint32()))
	}
	packet := hello(t)
	for range 2000 {
		from, other := address(), address()
		period := uint64(now / cookiePeriod)
		cookie := append([]byte(nil), l.baker.cookie(other, period)...)
		if r.IntN(2) == 0 && period > 2 { // its own, too old
			cookie = append(cookie[:0], l.baker.cookie(from, period-2)...)
		}
		d := headed(cookie, packet)
		if l.take(d, from) {
			require.LessOrEqual(t, len(l.answer), len(d))
		}
		require.Empty(t, l.table)
		now += time.Duration(r.IntN(int(time.Second)))
	}
}
