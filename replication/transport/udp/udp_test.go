package udp

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/transport"
)

type position struct {
	X float32 `repl:"range=-100:100,step=0.01"`
}

func schema() *replication.Schema {
	s := replication.NewSchema()
	replication.Register[position](s)
	return s
}

type host struct {
	server   *replication.Server
	listener *Listener
}

func serve(t *testing.T, address string, opts ...Option) *host {
	world := ecs.NewWorld()
	h := &host{server: replication.NewServer(&world, schema())}
	world.NewEntity(ecs.ComponentID[position](&world), ecs.ComponentID[replication.Replicated](&world))
	var err error
	h.listener, err = Listen(address, h.server, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.listener.Close()) })
	return h
}

type player struct {
	client *replication.Client
	conn   *Conn
}

func dial(t *testing.T, h *host) *player {
	world := ecs.NewWorld()
	p := &player{client: replication.NewClient(&world, schema())}
	var err error
	p.conn, err = Dial(h.listener.Addr().String(), p.client)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.conn.Close()) })
	return p
}

// until plays until done, at most 2,000 ticks.
func until(t *testing.T, h *host, done func() bool, players ...*player) {
	t.Helper()
	for range 2000 {
		h.listener.Poll()
		h.server.Replicate()
		for _, p := range players {
			p.conn.Poll()
			require.NoError(t, p.client.Frame(time.Second/60))
		}
		if done() {
			return
		}
		time.Sleep(time.Millisecond) // the sockets' goroutines
	}
	t.Fatal("it did not happen in 2,000 ticks")
}

func (p *player) connected() bool { return p.client.Status() == replication.StatusConnected }

func TestAClientConnectsAndLeaves(t *testing.T) {
	h := serve(t, "127.0.0.1:0")
	p := dial(t, h)
	until(t, h, p.connected, p)
	require.True(t, p.conn.proven.Load(), "bare packets from now on")
	require.NoError(t, p.conn.Close())
	until(t, h, func() bool { return h.listener.Stats().Peers == 0 })
	require.Empty(t, h.listener.table)
}

// TestClientsOfAServerThatStopsWait: they are notified, so it takes no time.
func TestClientsOfAServerThatStopsWait(t *testing.T) {
	h := serve(t, "127.0.0.1:0")
	p := dial(t, h)
	until(t, h, p.connected, p)
	require.NoError(t, h.listener.Close())
	for range 30 {
		time.Sleep(time.Millisecond)
		p.conn.Poll()
		require.NoError(t, p.client.Frame(time.Second/60))
	}
	require.Equal(t, replication.StatusReconnecting, p.client.Status())
}

func TestAClientsNewAddress(t *testing.T) {
	h := serve(t, "127.0.0.1:0")
	p := dial(t, h)
	until(t, h, p.connected, p)
	old := p.conn
	var err error
	p.conn, err = Dial(h.listener.Addr().String(), p.client)
	require.NoError(t, err)
	p.client.Reconnect()
	until(t, h, p.connected, p)
	require.NoError(t, old.conn.Close())
}

func TestPeersPerIPAreBounded(t *testing.T) {
	h := serve(t, "127.0.0.1:0", WithLimits(transport.Limits{PeersPerIP: 1}))
	p := dial(t, h)
	until(t, h, p.connected, p)
	q := dial(t, h)
	until(t, h, func() bool { return h.listener.Stats().FullIP > 0 }, p, q)
	require.Len(t, h.listener.table, 1)
}

func TestThePortIsTaken(t *testing.T) {
	h := serve(t, "127.0.0.1:0")
	_, err := Listen(h.listener.Addr().String(), h.server)
	require.ErrorContains(t, err, "in use")
	_, err = Dial("127.0.0.1", dial(t, h).client)
	require.Error(t, err)
}

func still(t testing.TB, now *time.Duration, opts ...Option) *Listener {
	world := ecs.NewWorld()
	opts = append(opts, func(o *options) { o.now = func() time.Duration { return *now } })
	l, err := Listen("127.0.0.1:0", replication.NewServer(&world, schema()), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// hello is a real packet with which a client asks for a session.
func hello(t testing.TB) (packet []byte) {
	world := ecs.NewWorld()
	c := replication.NewClient(&world, schema())
	c.SetSend(func(p []byte) error { packet = append([]byte(nil), p...); return nil })
	require.NoError(t, c.Frame(time.Second))
	require.NotEmpty(t, packet)
	return packet
}

func headed(cookie, packet []byte) []byte {
	return append(append([]byte(magic), cookie...), packet...)
}

func TestCookiesProveOneAddressForAMinute(t *testing.T) {
	now := time.Duration(0)
	l := still(t, &now, WithLimits(transport.Limits{Inbox: 1}))
	a, b := netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2")
	require.True(t, l.take(headed(make([]byte, cookieSize), hello(t)), a))
	cookie := append([]byte(nil), l.answer[len(magic):]...)
	require.True(t, l.take(headed(cookie, hello(t)), b), "another port's cookie")
	require.EqualValues(t, 1, l.stats.BadCookie)
	now = 61 * time.Second
	require.True(t, l.take(headed(cookie, hello(t)), a), "too old")
	require.EqualValues(t, 2, l.stats.BadCookie)
	now = 59 * time.Second
	require.False(t, l.take(headed(cookie, make([]byte, 100)), a))
	require.EqualValues(t, 1, l.stats.NoHello)
	require.Empty(t, l.table, "nothing is kept")
	require.False(t, l.take(headed(cookie, hello(t)), a))
	require.False(t, l.take(headed(cookie, hello(t)), a))
	require.EqualValues(t, 1, l.Stats().InboxFull)
	require.Len(t, l.table, 1)
}

func TestAnswersToStrangersAreBounded(t *testing.T) {
	now := time.Duration(0)
	l := still(t, &now, WithHelloRate(100))
	answers := 0
	packet := make([]byte, 64)
	for i := range 100_000 { // in a second
		now = time.Duration(i) * 10 * time.Microsecond
		if l.take(packet, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 9)) {
			answers++
		}
	}
	require.InDelta(t, 200, answers, 1, "a full bucket, and what a second fills")
	require.Empty(t, l.table)
	require.EqualValues(t, 100_000-answers, l.stats.RateLimit)
}

// A flood from one address leaves answers for others.
func TestAFloodFromOneAddress(t *testing.T) {
	now := time.Duration(0)
	s := newStrangers(800, now)
	flood, others := 0, 0
	for i := range 100_000 {
		now = time.Duration(i) * 10 * time.Microsecond
		if s.allow(netip.MustParseAddrPort("127.0.0.1:1"), now) {
			flood++
		}
		if i%1000 == 0 && s.allow(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, 0, byte(i / 1000)}), 9), now) {
			others++
		}
	}
	require.InDelta(t, 200, flood, 1)
	require.Greater(t, others, 90, "of 100; few share the bucket")
}

func TestNoSteadyStateAllocation(t *testing.T) {
	now := time.Duration(0)
	l := still(t, &now)
	a := netip.MustParseAddrPort("127.0.0.1:1")
	require.True(t, l.take(headed(make([]byte, cookieSize), hello(t)), a))
	require.False(t, l.take(headed(l.answer[len(magic):], hello(t)), a))
	l.Poll()
	stranger, garbage := make([]byte, 64), make([]byte, 20)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for range 32 {
			l.take(garbage, a)
			l.take(stranger, netip.MustParseAddrPort("127.0.0.2:1"))
		}
		l.Poll()
	}))
}

func FuzzDatagrams(f *testing.F) {
	f.Add([]byte(magic), false)
	f.Add(headed(make([]byte, cookieSize), hello(f)), false)
	f.Add(hello(f), true)
	for _, d := range datagrams(f) {
		f.Add(d[:min(len(d), 1200)], len(d)%2 == 0)
	}
	now := time.Duration(0)
	l := still(f, &now, WithLimits(transport.Limits{PeersPerIP: 1 << 20, Peers: 1 << 20}))
	a := netip.MustParseAddrPort("127.0.0.1:1")
	f.Fuzz(func(t *testing.T, data []byte, proven bool) {
		l.strangers = newStrangers(1000, now)
		if proven { // what a client sends that has a cookie
			data = headed(l.baker.cookie(a, 0), data)
		}
		if l.take(data, a) && len(data) < len(l.answer) {
			t.Fatal("an answer is larger than what asked")
		}
		if !proven && len(l.table) > 0 {
			t.Fatal("a stranger is kept without a cookie")
		}
		l.Poll()
		for _, p := range slices.Collect(l.server.Peers()) {
			p.Disconnect(replication.Reason{})
		}
		clear(l.table)
		c := &Conn{server: a, opts: l.opts}
		c.take(data, c.server)
	})
}

func TestMisuse(t *testing.T) {
	require.Panics(t, func() { _, _ = Listen(":0", nil) })
	require.Panics(t, func() { _, _ = Dial(":1", nil) })
	require.Panics(t, func() { _, _ = Listen(":0", nil, nil) })
	require.Panics(t, func() { WithHelloRate(0) })
	require.Panics(t, func() { WithNetwork(nil) })
	require.Panics(t, func() { WithSeal(nil, nil) })
	world := ecs.NewWorld()
	require.PanicsWithValue(t, "udp: Dial: WithHelloRate is an option of Listen: leave it out", func() {
		_, _ = Dial("127.0.0.1:9", replication.NewClient(&world, schema()), WithHelloRate(1))
	})
	require.PanicsWithValue(t, "udp: Limits.Inbox is -1: give a positive number, or 0 for the default", func() {
		_, _ = Listen("127.0.0.1:0", replication.NewServer(&world, schema()), WithLimits(transport.Limits{Inbox: -1}))
	})
}

// A server that is absent is reported, although packets to it are sent; one that comes is found.
func TestAnAbsentServerIsReported(t *testing.T) {
	now := time.Duration(1)
	world := ecs.NewWorld()
	client := replication.NewClient(&world, schema())
	nobody, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	address := nobody.LocalAddr().String()
	conn, err := Dial(address, client, func(o *options) { o.now = func() time.Duration { return now } })
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	require.NoError(t, conn.transmit(make([]byte, 64)))
	now += silence
	require.NoError(t, conn.transmit(make([]byte, 64)))
	now++
	require.ErrorContains(t, conn.transmit(make([]byte, 64)), "is the server running")
	require.NoError(t, client.Frame(time.Second))
	require.ErrorContains(t, client.Err(), "no answer from "+address)
	require.NoError(t, nobody.Close())
	h := serve(t, address)
	until(t, h, func() bool { return client.Status() == replication.StatusConnected }, &player{client, conn})
	require.NoError(t, client.Err())
	require.NoError(t, conn.transmit(make([]byte, 64)))
}
