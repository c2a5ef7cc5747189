package quic

import (
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/transport"
	"github.com/arche-replicate/arche-replicate/replication/transport/udp"
)

type position struct {
	X float32 `repl:"range=-100:100,step=0.01"`
}

type noise struct {
	Bytes string `repl:"max=4000"`
}

type spark struct {
	Bytes string `repl:"max=1000"`
}

func schema() *replication.Schema {
	s := replication.NewSchema()
	replication.Register[position](s)
	replication.RegisterMessage[noise](s, replication.Immediate())
	replication.RegisterMessage[spark](s, replication.Unreliable())
	return s
}

// host is a server with one entity that moves.
type host struct {
	server   *replication.Server
	listener *Listener
	world    *ecs.World
	entity   ecs.Entity
}

func newHost(opts ...replication.ServerOption) *host {
	world := ecs.NewWorld()
	h := &host{server: replication.NewServer(&world, schema(), opts...), world: &world}
	h.entity = world.NewEntity(ecs.ComponentID[position](&world), ecs.ComponentID[replication.Replicated](&world))
	return h
}

func serve(t *testing.T, address string, opts ...Option) *host {
	h := newHost()
	h.listen(t, address, opts...)
	return h
}

func (h *host) listen(t *testing.T, address string, opts ...Option) {
	var err error
	h.listener, err = Listen(address, h.server, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.listener.Close()) })
}

func (h *host) tick() {
	h.listener.Poll()
	p := (*position)(h.world.Get(h.entity, ecs.ComponentID[position](h.world)))
	if p.X++; p.X > 90 {
		p.X = -90
	}
	h.server.Replicate()
}

type player struct {
	client *replication.Client
	conn   *Conn
	err    error // of Frame
}

func dial(t *testing.T, address string, opts ...Option) *player {
	world := ecs.NewWorld()
	return dialFor(t, replication.NewClient(&world, schema()), address, opts...)
}

func dialFor(t *testing.T, client *replication.Client, address string, opts ...Option) *player {
	p := &player{client: client}
	var err error
	p.conn, err = Dial(address, client, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.conn.Close()) })
	return p
}

func (p *player) connected() bool { return p.client.Status() == replication.StatusConnected }

func (p *player) frame() {
	p.conn.Poll()
	p.err = p.client.Frame(time.Second / 60)
}

// until plays until done.
func until(t *testing.T, h *host, done func() bool, players ...*player) {
	t.Helper()
	replicationtest.Until(t, done, func() {
		if h != nil {
			h.tick()
		}
		for _, p := range players {
			p.frame()
		}
	}, func() {
		for _, p := range players {
			t.Logf("%v %v %+v", p.client.Status(), p.client.Err(), p.conn.Stats())
		}
	})
}

// advances returns a function that reports whether the client has seen so many ticks more.
func (p *player) advances(ticks int32) func() bool {
	return replicationtest.Advances(p.client.Tick, p.connected, ticks)
}

func TestAClientConnectsPlaysAndLeaves(t *testing.T) {
	h := serve(t, "127.0.0.1:0")
	p := dial(t, h.listener.Addr().String())
	until(t, h, p.advances(60), p)
	for peer := range h.server.Peers() {
		require.Equal(t, "quic", peer.Remote().Transport)
		require.True(t, strings.HasPrefix(peer.Remote().Address, "127.0.0.1:"))
	}
	require.Equal(t, transport.Stats{Peers: 1, Opened: 1}, h.listener.Stats().Stats)
	require.EqualValues(t, 1, p.conn.Stats().Dials)
	require.NoError(t, p.conn.Close())
	require.NoError(t, p.conn.Close())
	until(t, h, func() bool { return h.listener.Stats().Peers == 0 })
	require.Zero(t, h.server.Stats().Peers)
}

// TestTheLastWordsArrive: what a client sends last, and a server, is why it leaves.
func TestTheLastWordsArrive(t *testing.T) {
	for range 10 {
		h := serve(t, "127.0.0.1:0")
		p, q := dial(t, h.listener.Addr().String()), dial(t, h.listener.Addr().String())
		until(t, h, func() bool { return p.connected() && q.connected() }, p, q)
		var why error
		h.server.OnDisconnect(func(peer *replication.Peer) { why = peer.Err() })
		require.NoError(t, p.conn.Close())
		until(t, h, func() bool { return why != nil }, q)
		var left *replication.DisconnectError
		require.ErrorAs(t, why, &left)
		require.True(t, left.Remote, "a packet of the client's: %v", why)
		require.NoError(t, h.listener.Close())
		require.NoError(t, h.listener.Close())
		from := time.Now()
		until(t, nil, func() bool { return q.client.Status() == replication.StatusReconnecting }, q)
		require.Less(t, time.Since(from), 5*time.Second, "a packet of the server's, and not its silence")
	}
}

func TestAKickIsLearned(t *testing.T) {
	h := serve(t, "127.0.0.1:0")
	p := dial(t, h.listener.Addr().String())
	until(t, h, p.connected, p)
	for peer := range h.server.Peers() {
		peer.Disconnect(replication.Reason{Code: replication.ReasonKicked, Text: "no cheating"})
	}
	until(t, h, func() bool { return p.err != nil }, p)
	require.ErrorContains(t, p.err, "no cheating")
}

func TestTheServerStartsAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "server.pem")
	h := serve(t, "127.0.0.1:0", WithSelfSigned(file))
	address, hash := h.listener.Addr().String(), h.listener.Fingerprint()
	p := dial(t, address, WithFingerprint(hash), idle(time.Second))
	until(t, h, p.advances(30), p)
	for range 2 {
		require.NoError(t, h.listener.socket.Close()) // it dies without a word
		_ = h.listener.Close()
		h = newHost()
		h.listen(t, address, WithSelfSigned(file))
		require.Equal(t, hash, h.listener.Fingerprint())
		until(t, h, func() bool { return p.connected() && h.server.Stats().Peers == 1 }, p)
		until(t, h, p.advances(30), p)
	}
}

// A relay carries the datagrams of one client.
type relay struct {
	front *net.UDPConn
	to    *net.UDPAddr
	mute  atomic.Bool // it swallows all

	mu     sync.Mutex
	back   *net.UDPConn
	client *net.UDPAddr
}

func newRelay(t *testing.T, to string) *relay {
	front, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	r := &relay{front: front}
	r.to, err = net.ResolveUDPAddr("udp4", to)
	require.NoError(t, err)
	r.move(t)
	go func() {
		buf := make([]byte, 2000)
		for {
			n, from, err := front.ReadFromUDP(buf)
			if err != nil {
				return
			}
			r.mu.Lock()
			r.client = from
			if !r.mute.Load() {
				_, _ = r.back.WriteToUDP(buf[:n], r.to)
			}
			r.mu.Unlock()
		}
	}()
	t.Cleanup(func() { _ = front.Close(); _ = r.back.Close() })
	return r
}

// move gives the client another address, as a router does.
func (r *relay) move(t *testing.T) {
	back, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	r.mu.Lock()
	if r.back != nil {
		_ = r.back.Close()
	}
	r.back = back
	r.mu.Unlock()
	go func() {
		buf := make([]byte, 2000)
		for {
			n, _, err := back.ReadFromUDP(buf)
			if err != nil {
				return
			}
			r.mu.Lock()
			to := r.client
			r.mu.Unlock()
			if to != nil && !r.mute.Load() {
				_, _ = r.front.WriteToUDP(buf[:n], to)
			}
		}
	}()
}

func TestAClientMoves(t *testing.T) {
	h := serve(t, "127.0.0.1:0")
	r := newRelay(t, h.listener.Addr().String())
	p := dial(t, r.front.LocalAddr().String())
	until(t, h, p.advances(30), p)
	for range 5 {
		r.move(t)
		want := r.back.LocalAddr().String()
		until(t, h, func() bool {
			for peer := range h.server.Peers() {
				return peer.Remote().Address == want
			}
			return false
		}, p)
		until(t, h, p.advances(30), p)
	}
	require.EqualValues(t, 5, h.listener.Stats().Moved)
	require.EqualValues(t, 1, h.listener.Stats().Opened, "the connection stays the same")
	require.EqualValues(t, 1, p.conn.Stats().Dials)
}

func idle(d time.Duration) Option { return func(o *options) { o.idle = d } }

// TestAClientVanishes: a crash, or a closed laptop. Others notice nothing, and the laptop goes on when it is opened.
func TestAClientVanishes(t *testing.T) {
	h := serve(t, "127.0.0.1:0", idle(2*time.Second))
	r := newRelay(t, h.listener.Addr().String())
	p, q := dial(t, r.front.LocalAddr().String(), idle(time.Second)), dial(t, h.listener.Addr().String())
	until(t, h, func() bool { return p.connected() && q.connected() }, p, q)
	r.mute.Store(true)
	begin := time.Now()
	until(t, h, func() bool { return h.server.Stats().Peers == 1 }, p, q)
	t.Logf("gone after %v", time.Since(begin))
	until(t, h, q.advances(60), q)
	require.EqualValues(t, 1, q.conn.Stats().Dials)
	r.mute.Store(false)
	until(t, h, p.advances(60), p, q)
	require.Greater(t, p.conn.Stats().Dials, uint64(1))
	require.EqualValues(t, 1, q.conn.Stats().Dials)
}

// TestASlowReader: its path is blocked for a while, so its queue fills; the loop waits for nothing.
func TestASlowReader(t *testing.T) {
	h := serve(t, "127.0.0.1:0")
	r := newRelay(t, h.listener.Addr().String())
	p, q := dial(t, r.front.LocalAddr().String()), dial(t, h.listener.Addr().String())
	until(t, h, p.advances(30), p, q)
	until(t, h, q.advances(30), p, q)
	var slow *replication.Peer
	for peer := range h.server.Peers() {
		if peer.Remote().Address == r.back.LocalAddr().String() {
			slow = peer
		}
	}
	require.NotNil(t, slow)
	r.mute.Store(true)
	until(t, h, func() bool {
		for range 20 { // packets in each tick
			_ = replication.SendToClient(slow, spark{strings.Repeat("x", 1000)})
		}
		return h.listener.Stats().OutboxFull > 0
	}, q)
	until(t, h, q.advances(60), q)
	r.mute.Store(false)
	until(t, h, p.advances(60), p, q)
	require.EqualValues(t, 1, p.conn.Stats().Dials)
}

func TestABadNetwork(t *testing.T) {
	bad := netsim.NewNetwork(1, netsim.Profile{
		Latency: 30 * time.Millisecond, Jitter: 25 * time.Millisecond, Loss: 0.2, Reorder: 0.2, ReorderBy: 50 * time.Millisecond,
	})
	defer bad.Close()
	h := serve(t, "127.0.0.1:0", WithNetwork(bad))
	p, q := dial(t, h.listener.Addr().String()), dial(t, h.listener.Addr().String())
	until(t, h, func() bool { return p.connected() && q.connected() }, p, q)
	until(t, h, p.advances(300), p, q)
	require.NoError(t, p.client.Err())
}

func TestTwoTransports(t *testing.T) {
	h := serve(t, "127.0.0.1:0")
	plain, err := udp.Listen("127.0.0.1:0", h.server)
	require.NoError(t, err)
	world := ecs.NewWorld()
	client := replication.NewClient(&world, schema())
	conn, err := udp.Dial(plain.Addr().String(), client)
	require.NoError(t, err)
	p := dial(t, h.listener.Addr().String())
	until(t, h, func() bool {
		plain.Poll()
		conn.Poll()
		require.NoError(t, client.Frame(time.Second/60))
		return p.connected() && client.Status() == replication.StatusConnected
	}, p)
	require.NoError(t, plain.Close())
	until(t, h, func() bool {
		conn.Poll()
		require.NoError(t, client.Frame(time.Second/60))
		return client.Status() == replication.StatusReconnecting
	}, p)
	require.NoError(t, conn.Close())
	until(t, h, p.advances(30), p)
	require.Zero(t, plain.Stats().Peers)
}

// TestNothingIsLeft: neither goroutines nor sockets.
func TestNothingIsLeft(t *testing.T) {
	before := replicationtest.Held()
	for range 3 {
		h := serve(t, "127.0.0.1:0")
		var players []*player
		for range 5 {
			players = append(players, dial(t, h.listener.Addr().String()))
		}
		until(t, h, func() bool {
			for _, p := range players {
				if !p.connected() {
					return false
				}
			}
			return true
		}, players...)
		late := dial(t, h.listener.Addr().String())
		late.frame() // its handshake is under way
		require.NoError(t, players[0].conn.Close())
		require.NoError(t, h.listener.Close())
		for _, p := range append(players, late) {
			require.NoError(t, p.conn.Close())
		}
	}
	before.RequireReleased(t)
}
