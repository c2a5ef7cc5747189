package udp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
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
	until(t, h, func() bool { return len(h.listener.peers) == 0 })
	require.Empty(t, h.listener.table)
	require.Empty(t, h.listener.perIP)
}

func TestAServerDisconnectsItsPeers(t *testing.T) {
	h := serve(t, "127.0.0.1:0")
	p := dial(t, h)
	until(t, h, p.connected, p)
	require.NoError(t, h.listener.Close())
	var err error
	for i := 0; i < 1000 && err == nil; i++ {
		time.Sleep(time.Millisecond)
		p.conn.Poll()
		err = p.client.Frame(time.Second / 60)
	}
	var ended *replication.DisconnectError
	require.ErrorAs(t, err, &ended)
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
	h := serve(t, "127.0.0.1:0", WithMaxPerIP(1))
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

func TestCookiesProveOneAddressForAMinute(t *testing.T) {
	now := time.Duration(0)
	l := still(t, &now, WithInbox(1))
	a, b := netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.1:2")
	hello := append([]byte(magic), make([]byte, cookieSize+64)...)
	require.True(t, l.take(hello, a, nil))
	copy(hello, l.answer[:])
	require.True(t, l.take(hello, b, nil), "another port's cookie")
	require.EqualValues(t, 1, l.stats.BadCookie)
	now = 61 * time.Second
	require.True(t, l.take(hello, a, nil), "too old")
	require.EqualValues(t, 2, l.stats.BadCookie)
	require.Empty(t, l.table, "nothing is kept")
	now = 59 * time.Second
	require.False(t, l.take(hello, a, nil))
	require.False(t, l.take(hello, a, nil))
	require.EqualValues(t, 1, l.stats.InboxFull)
	require.Len(t, l.table, 1)
}

func TestAnswersToStrangersAreBounded(t *testing.T) {
	now := time.Duration(0)
	l := still(t, &now, WithHelloRate(100))
	answers := 0
	packet := make([]byte, 64)
	for i := range 100_000 { // in a second
		now = time.Duration(i) * 10 * time.Microsecond
		if l.take(packet, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 9), nil) {
			answers++
		}
	}
	require.InDelta(t, 200, answers, 1, "a full bucket, and what a second fills")
	require.Empty(t, l.table)
	require.EqualValues(t, 100_000-answers, l.stats.RateLimit)
}

func TestNoSteadyStateAllocation(t *testing.T) {
	now := time.Duration(0)
	l := still(t, &now)
	a := netip.MustParseAddrPort("10.0.0.1:1")
	stranger := make([]byte, 64)
	r := &remote{addr: a, gone: true} // its packets go nowhere
	l.table[a] = r
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for range 32 {
			l.take(stranger, a, nil)
			l.take(stranger, netip.MustParseAddrPort("10.0.0.2:1"), nil)
		}
		l.Poll()
	}))
}

func FuzzDatagrams(f *testing.F) {
	f.Add([]byte(magic))
	f.Add(append([]byte(magic), make([]byte, 100)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		now := time.Duration(0)
		l := still(t, &now)
		if l.take(data, netip.MustParseAddrPort("10.0.0.1:1"), nil) && len(data) < len(l.answer) {
			t.Fatal("an answer is larger than what asked")
		}
		if len(l.table) > 0 {
			t.Fatal("a stranger is kept without a cookie")
		}
		c := &Conn{server: netip.MustParseAddrPort("10.0.0.1:1")}
		c.take(data, c.server, nil)
	})
}

func TestMisuse(t *testing.T) {
	require.Panics(t, func() { _, _ = Listen(":0", nil) })
	require.Panics(t, func() { _, _ = Dial(":1", nil) })
	require.Panics(t, func() { WithInbox(0) })
}
