//go:build !js

package web

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/mlange-42/arche/ecs"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/webtransport-go"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/transport"
	"github.com/arche-replicate/arche-replicate/replication/transport/internal/link"
)

type position struct {
	X float32 `repl:"range=-100:100,step=0.01"`
}

type noise struct {
	Bytes string `repl:"max=4000"`
}

func schema() *replication.Schema {
	s := replication.NewSchema()
	replication.Register[position](s)
	replication.RegisterMessage[noise](s, replication.Immediate())
	return s
}

// host is a server with an entity that moves, or more, and a web server.
type host struct {
	server  *replication.Server
	handler *Handler
	http    *httptest.Server
	tracker *tracker
	world   *ecs.World
	moving  []ecs.Entity
	rng     *rand.Rand
}

func serve(t *testing.T, opts ...Option) *host { return serveAt(t, "127.0.0.1:0", opts...) }

func serveAt(t *testing.T, address string, opts ...Option) *host {
	world := ecs.NewWorld()
	h := &host{server: replication.NewServer(&world, schema()), world: &world, rng: rand.New(rand.NewPCG(1, 2))}
	h.spawn(1)
	h.handler = NewHandler(h.server, opts...)
	mux := http.NewServeMux()
	mux.Handle("/play", h.handler)
	h.http = httptest.NewUnstartedServer(mux)
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	require.NoError(t, h.http.Listener.Close())
	h.tracker = &tracker{Listener: l}
	h.http.Listener = h.tracker
	h.http.Start()
	t.Cleanup(func() { h.close(t) })
	return h
}

func (h *host) close(t *testing.T) {
	require.NoError(t, h.handler.Close())
	h.http.Close()
}

func (h *host) spawn(n int) {
	for range n {
		h.moving = append(h.moving, h.world.NewEntity(ecs.ComponentID[position](h.world), ecs.ComponentID[replication.Replicated](h.world)))
	}
}

func (h *host) url() string { return h.http.URL + "/play" }

func (h *host) tick() {
	h.handler.Poll()
	for _, e := range h.moving {
		p := (*position)(h.world.Get(e, ecs.ComponentID[position](h.world)))
		p.X = h.rng.Float32()*180 - 90
	}
	h.server.Replicate()
}

type player struct {
	client *replication.Client
	conn   *Conn
	err    error // of Frame
}

func newPlayer() *player {
	world := ecs.NewWorld()
	return &player{client: replication.NewClient(&world, schema())}
}

func dial(t *testing.T, url string, opts ...Option) *player {
	p := newPlayer()
	var err error
	p.conn, err = Dial(url, p.client, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.conn.Close()) })
	return p
}

// dialTransport connects over WebTransport, as only browsers do otherwise.
func dialTransport(t *testing.T, h *host, origin string) *player {
	p, url := newPlayer(), fmt.Sprintf("https://127.0.0.1:%d/play", h.handler.quic.port)
	p.conn = &Conn{link.NewConn("web", "the test", p.client, nil, func(ctx context.Context) (link.ClientSocket, error) {
		d := &webtransport.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}}, //nolint:gosec // of the test
			QUICConfig: &quic.Config{
				EnableDatagrams: true, EnableStreamResetPartialDelivery: true, InitialPacketSize: packetSize,
				MaxIdleTimeout: time.Second,
			},
		}
		answer, s, err := d.Dial(ctx, url, http.Header{"Origin": {origin}})
		if err != nil {
			if answer != nil {
				err = refusal(answer.StatusCode, "the body is not readable", "the test")
			}
			return nil, err
		}
		return session{s}, nil
	})}
	t.Cleanup(func() { require.NoError(t, p.conn.Close()) })
	return p
}

type session struct{ *webtransport.Session }

func (s session) Write(packet []byte) error { return s.SendDatagram(packet) }

func (s session) Read() ([]byte, error) {
	for {
		packet, err := s.ReceiveDatagram(context.Background())
		if err != nil {
			<-s.Context().Done()
			_, err = s.AcceptStream(context.Background()) // why the session has ended
			return nil, err
		}
		if len(packet) > 0 {
			return packet, nil
		}
	}
}

func (s session) Close(error) {
	link.Flush(s.SendDatagram, s.Context().Done())
	time.Sleep(overtaking)
	_ = s.CloseWithError(0, "")
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
		if h != nil {
			t.Logf("%+v", h.handler.Stats())
		}
	})
}

// advances returns a function that reports whether the client has seen so many ticks more.
func (p *player) advances(ticks int32) func() bool {
	return replicationtest.Advances(p.client.Tick, p.connected, ticks)
}

// both runs a test over WebSockets and over WebTransport.
func both(t *testing.T, test func(t *testing.T, h *host, dial func() *player)) {
	t.Run("WebSocket", func(t *testing.T) {
		h := serve(t)
		test(t, h, func() *player { return dial(t, h.url()) })
	})
	t.Run("WebTransport", func(t *testing.T) {
		h := serve(t)
		require.NoError(t, h.handler.WebTransport("127.0.0.1:0", nil))
		test(t, h, func() *player { return dialTransport(t, h, h.http.URL) })
	})
}

func TestAClientConnectsPlaysAndLeaves(t *testing.T) {
	both(t, func(t *testing.T, h *host, dial func() *player) {
		p := dial()
		until(t, h, p.advances(60), p)
		for peer := range h.server.Peers() {
			require.Equal(t, strings.ToLower(path.Base(t.Name())), peer.Remote().Transport)
			require.True(t, strings.HasPrefix(peer.Remote().Address, "127.0.0.1:"))
		}
		require.Equal(t, transport.Stats{Peers: 1, Opened: 1}, h.handler.Stats().Stats)
		require.EqualValues(t, 1, p.conn.Stats().Dials)
		var why error
		h.server.OnDisconnect(func(peer *replication.Peer) { why = peer.Err() })
		require.NoError(t, p.conn.Close())
		require.NoError(t, p.conn.Close())
		until(t, h, func() bool { return h.handler.Stats().Peers == 0 })
		var left *replication.DisconnectError
		require.ErrorAs(t, why, &left)
		require.True(t, left.Remote, "a packet of the client's: %v", why)
		stats := h.handler.Stats()
		stats.NoClient, stats.WebTransports = 0, 0 // it repeats its last words
		require.Equal(t, HandlerStats{Stats: transport.Stats{Opened: 1}}, stats)
	})
}

// TestTheLastWordsArrive: what a server sends last is why it leaves.
func TestTheLastWordsArrive(t *testing.T) {
	both(t, func(t *testing.T, h *host, dial func() *player) {
		p, q := dial(), dial()
		until(t, h, func() bool { return p.connected() && q.connected() }, p, q)
		for peer := range h.server.Peers() {
			peer.Disconnect(replication.Reason{Code: replication.ReasonKicked, Text: "no cheating"})
			break
		}
		until(t, h, func() bool { return p.err != nil || q.err != nil }, p, q)
		if p.err == nil {
			p, q = q, p
		}
		require.ErrorContains(t, p.err, "no cheating")
		require.NoError(t, q.err)
		require.NoError(t, h.handler.Close())
		from := time.Now()
		until(t, nil, func() bool { return q.client.Status() == replication.StatusReconnecting }, q)
		require.Less(t, time.Since(from), 5*time.Second, "a packet of the server's, and not its silence")
	})
}

func TestLimits(t *testing.T) {
	h := serve(t, WithLimits(transport.Limits{PeersPerIP: 1}))
	require.NoError(t, h.handler.WebTransport("127.0.0.1:0", nil))
	p := dial(t, h.url())
	until(t, h, p.connected, p)
	q, r := dial(t, h.url()), dialTransport(t, h, h.http.URL)
	until(t, h, func() bool {
		return q.client.Err() != nil && strings.Contains(q.client.Err().Error(), link.ErrFullIP.Error()) &&
			r.client.Err() != nil && strings.Contains(r.client.Err().Error(), link.ErrFullIP.Error())
	}, p, q, r)
	require.NoError(t, q.err)
	require.Equal(t, 1, h.server.Stats().Peers)
}

func TestTheServerStartsAgain(t *testing.T) {
	h := serve(t)
	p := dial(t, h.url())
	until(t, h, p.advances(30), p)
	at := h.http.Listener.Addr().String()
	for range 2 {
		h.tracker.cut() // it dies without a word
		h.close(t)
		h = serveAt(t, at)
		until(t, h, func() bool { return p.connected() && h.server.Stats().Peers == 1 }, p)
		until(t, h, p.advances(30), p)
	}
}

// A tracker is a listener that knows its connections.
type tracker struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (l *tracker) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.conns = append(l.conns, c)
	}
	return c, err
}

// cut breaks all connections.
func (l *tracker) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
}

func TestAClientVanishes(t *testing.T) {
	h := serve(t)
	q := dial(t, h.url())
	conn, _, err := websocket.Dial(t.Context(), h.url(), nil)
	require.NoError(t, err)
	until(t, h, func() bool { return q.connected() && h.handler.Stats().Peers == 2 }, q)
	require.NoError(t, conn.CloseNow())
	until(t, h, func() bool { return h.handler.Stats().Peers == 1 }, q)
	require.EqualValues(t, 1, q.conn.Stats().Dials)
}

func TestABadNetwork(t *testing.T) {
	bad := netsim.NewNetwork(1, netsim.Profile{
		Latency: 30 * time.Millisecond, Jitter: 25 * time.Millisecond, Loss: 0.2, Reorder: 0.2, ReorderBy: 50 * time.Millisecond,
	})
	defer bad.Close()
	h := serve(t, WithNetwork(bad))
	require.NoError(t, h.handler.WebTransport("127.0.0.1:0", nil))
	p, q := dial(t, h.url()), dialTransport(t, h, h.http.URL)
	until(t, h, func() bool { return p.connected() && q.connected() }, p, q)
	until(t, h, p.advances(300), p, q)
	require.NoError(t, p.client.Err())
	require.NoError(t, q.client.Err())
}

func TestCertificatesAreRenewed(t *testing.T) {
	now := time.Now()
	p := &pinned{now: func() time.Time { return now }}
	first := p.hash()
	now = now.Add(renewAfter - time.Minute)
	require.Equal(t, first, p.hash())
	now = now.Add(2 * time.Minute)
	require.NotEqual(t, first, p.hash())
	now = now.Add(-300 * 24 * time.Hour) // the clock was wrong
	require.NotEqual(t, first, p.hash())
}

func TestTheScript(t *testing.T) {
	h := serve(t)
	answer, err := http.Get(h.url() + "?js")
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), "globalThis.archeReplicate")
	require.Equal(t, "text/javascript; charset=utf-8", answer.Header.Get("Content-Type"))
}

// TestWebSocketsDoNotAllocate: neither to write nor to read a packet.
func TestWebSocketsDoNotAllocate(t *testing.T) {
	server := make(chan *socket, 1)
	end := make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		under := &hijacker{ResponseWriter: w}
		conn, err := websocket.Accept(under, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		server <- &socket{conn: conn, net: under.net}
		<-end
	}))
	defer site.Close()
	defer close(end)
	client, err := (&dialer{where: site.URL}).dial(t.Context())
	require.NoError(t, err)
	s, packet := <-server, make([]byte, 300)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if s.Write(packet) != nil || client.Write(packet) != nil {
			t.Error("a packet was not written")
		}
		_, up := s.Read()
		_, down := client.Read()
		if up != nil || down != nil {
			t.Error("a packet was not read")
		}
	}))
	client.Close(nil)
}

// TestNothingIsLeft: neither goroutines nor sockets.
func TestNothingIsLeft(t *testing.T) {
	http.DefaultClient.CloseIdleConnections()
	before := replicationtest.Held()
	for range 3 {
		h := serve(t)
		require.NoError(t, h.handler.WebTransport("127.0.0.1:0", nil))
		var players []*player
		for range 3 {
			players = append(players, dial(t, h.url()), dialTransport(t, h, h.http.URL))
		}
		until(t, h, func() bool {
			for _, p := range players {
				if !p.connected() {
					return false
				}
			}
			return true
		}, players...)
		late, foreign := dial(t, h.url()), dialTransport(t, h, "https://evil.example")
		late.frame() // its handshake is under way
		foreign.frame()
		require.NoError(t, players[0].conn.Close())
		begin := time.Now()
		h.close(t)
		require.Less(t, time.Since(begin), 5*time.Second)
		for _, p := range append(players, late, foreign) {
			require.NoError(t, p.conn.Close())
		}
	}
	before.RequireReleased(t)
}
