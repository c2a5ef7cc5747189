package link

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/transport"
)

// game is a server with a hub, and clients whose packets go there without sockets.
type game struct {
	t      *testing.T
	server *replication.Server
	hub    *Hub
	now    time.Time
}

func newGame(t *testing.T, l transport.Limits) *game {
	world := ecs.NewWorld()
	g := &game{t: t, server: replication.NewServer(&world, replication.NewSchema())}
	g.hub = NewHub("test", g.server, l, nil)
	g.hub.now = func() time.Time { return g.now }
	return g
}

type player struct {
	client *replication.Client
	link   *Link
	mu     sync.Mutex
	down   [][]byte
	closed chan struct{}
}

func (g *game) dial(address string, change ...func(s *Socket)) (*player, error) {
	world := ecs.NewWorld()
	p := &player{client: replication.NewClient(&world, replication.NewSchema()), closed: make(chan struct{})}
	s := Socket{
		Address: netip.MustParseAddrPort(address),
		Send: func(packet []byte) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.down = append(p.down, bytes.Clone(packet))
			return nil
		},
		Close: func() { close(p.closed) },
	}
	for _, fn := range change {
		fn(&s)
	}
	var err error
	if p.link, err = g.hub.Open(s); err != nil {
		return nil, err
	}
	p.client.SetSend(func(packet []byte) error { p.link.Deliver(packet); return nil })
	return p, nil
}

func (g *game) mustDial(address string, change ...func(s *Socket)) *player {
	p, err := g.dial(address, change...)
	require.NoError(g.t, err)
	return p
}

func (g *game) play(ticks int, players ...*player) {
	for range ticks {
		g.now = g.now.Add(time.Second / 60)
		g.hub.Poll()
		g.server.Replicate()
		for _, p := range players {
			p.mu.Lock()
			down := p.down
			p.down = nil
			p.mu.Unlock()
			for _, packet := range down {
				_ = p.client.Receive(packet)
			}
			_ = p.client.Frame(time.Second / 60)
		}
	}
}

func (p *player) isClosed() bool {
	select {
	case <-p.closed:
		return true
	case <-time.After(100 * time.Millisecond):
		return false
	}
}

func TestLimits(t *testing.T) {
	g := newGame(t, transport.Limits{Peers: 3, PeersPerIP: 2})
	a, b := g.mustDial("10.0.0.1:1"), g.mustDial("10.0.0.1:2")
	_, err := g.dial("10.0.0.1:3")
	require.ErrorIs(t, err, ErrFullIP)
	_, err = g.dial("[::ffff:10.0.0.1]:3")
	require.ErrorIs(t, err, ErrFullIP, "the same address")
	c := g.mustDial("[2001:db8::1]:1")
	_, err = g.dial("[2001:db8::2]:1")
	require.ErrorIs(t, err, ErrFull)
	g.play(20, a, b, c)
	for _, p := range []*player{a, b, c} {
		require.Equal(t, replication.StatusConnected, p.client.Status())
	}
	require.Equal(t, transport.Stats{Peers: 3, Opened: 3, Full: 1, FullIP: 2}, g.hub.Stats())
	b.link.HangUp()
	g.play(1)
	require.True(t, b.isClosed())
	_, err = g.dial("10.0.0.1:4")
	require.NoError(t, err, "there is room again")
}

// TestAHangUpNamesTheTransport of the socket, of which a hub may have several.
func TestAHangUpNamesTheTransport(t *testing.T) {
	g := newGame(t, transport.Limits{})
	var why []string
	g.server.OnDisconnect(func(p *replication.Peer) { why = append(why, p.Err().Error()) })
	a := g.mustDial("10.0.0.1:1", func(s *Socket) { s.Transport = "websocket" })
	b := g.mustDial("10.0.0.1:2")
	g.play(20, a, b)
	a.link.HangUp()
	g.play(1)
	b.link.HangUp()
	g.play(1)
	require.Len(t, why, 2)
	require.Contains(t, why[0], "the client's websocket connection has closed")
	require.Contains(t, why[1], "the client's test connection has closed")
}

func TestSilentLinksAreDropped(t *testing.T) {
	g := newGame(t, transport.Limits{})
	p := g.mustDial("10.0.0.1:1")
	for range 11 {
		p.link.Deliver([]byte("noise"))
		g.play(60)
	}
	require.True(t, p.isClosed())
	require.Empty(t, g.hub.links)
	stats := g.hub.Stats()
	require.EqualValues(t, 1, stats.Silent)
	require.Positive(t, stats.NoClient)
	require.Zero(t, g.server.Stats().Peers, "no peer was made of it")
}

// TestTheReasonIsRepeated: all packets with it were lost. The client learns it from what it sends afterwards.
func TestTheReasonIsRepeated(t *testing.T) {
	g := newGame(t, transport.Limits{})
	lost := false
	p := g.mustDial("10.0.0.1:1", func(s *Socket) {
		send := s.Send
		s.Send = func(packet []byte) error {
			if lost {
				return errors.New("lost")
			}
			return send(packet)
		}
	})
	g.play(20, p)
	lost = true
	for peer := range g.server.Peers() {
		peer.Disconnect(replication.Reason{Code: replication.ReasonKicked})
	}
	lost = false
	g.play(5*60, p) // until the client asks whether the server is still there
	var why *replication.DisconnectError
	require.ErrorAs(t, p.client.Frame(0), &why)
	require.Equal(t, replication.ReasonKicked, why.Reason.Code)
	g.play(11 * 60)
	require.True(t, p.isClosed())
	require.Empty(t, g.hub.links)
	require.Zero(t, g.hub.Stats().Silent)
}

// TestTheNextSessionOfALink: the client ends one and begins another over the same socket.
func TestTheNextSessionOfALink(t *testing.T) {
	g := newGame(t, transport.Limits{})
	p := g.mustDial("10.0.0.1:1")
	g.play(20, p)
	p.client.Disconnect(replication.Reason{})
	g.play(20, p)
	require.Zero(t, g.server.Stats().Peers)
	p.client.Reconnect()
	g.play(20, p)
	require.Equal(t, replication.StatusConnected, p.client.Status())
	require.Empty(t, g.hub.idle)
	q := g.mustDial("10.0.0.1:2", func(s *Socket) { s.Connectionless = true })
	g.play(20, p, q)
	q.client.Disconnect(replication.Reason{})
	g.play(1, p)
	require.True(t, q.isClosed(), "nothing else reports that it has left")
}

func TestABlockedSocketHoldsUpNobody(t *testing.T) {
	g := newGame(t, transport.Limits{Outbox: 4})
	closed := make(chan struct{})
	stuck := g.mustDial("10.0.0.1:1", func(s *Socket) {
		s.Blocks = true
		s.Send = func([]byte) error { <-closed; return errors.New("closed") }
		s.Close = func() { close(closed) }
	})
	p := g.mustDial("10.0.0.1:2", func(s *Socket) { s.Blocks = true })
	for range 100 {
		g.play(1, stuck, p)
		time.Sleep(time.Millisecond) // the writers
	}
	require.Equal(t, replication.StatusConnected, p.client.Status())
	require.Positive(t, g.hub.Stats().OutboxFull)
	begin := time.Now()
	g.hub.Close()
	require.Less(t, time.Since(begin), 5*time.Second)
	require.True(t, p.isClosed())
	_, err := g.dial("10.0.0.1:3")
	require.ErrorIs(t, err, ErrShut)
	g.play(20, p)
	require.Equal(t, replication.StatusReconnecting, p.client.Status(), "it was notified, and waits for the next server")
	require.Zero(t, g.server.Stats().Peers)
	require.Equal(t, g.server, g.hub.server, "it goes on")
	g.hub.Poll()
	g.hub.Close()
}

func TestAClosedServer(t *testing.T) {
	g := newGame(t, transport.Limits{})
	p := g.mustDial("10.0.0.1:1")
	g.play(20, p)
	g.server.Close()
	q := g.mustDial("10.0.0.1:2")
	_ = q.client.Frame(time.Second)
	g.hub.Poll()
	g.hub.Close()
	require.True(t, p.isClosed())
	require.True(t, q.isClosed())
}

func TestAFloodOfOneIsItsOwn(t *testing.T) {
	g := newGame(t, transport.Limits{})
	p, q := g.mustDial("10.0.0.1:1"), g.mustDial("10.0.0.2:1")
	for i := range 100 {
		for range 1000 {
			p.link.Deliver([]byte(fmt.Sprint("noise", i)))
		}
		g.play(1, p, q)
	}
	require.Equal(t, replication.StatusConnected, q.client.Status())
	require.InDelta(t, 100*(1000-64), g.hub.Stats().InboxFull, 100, "and what the client itself sent")
}

func TestPollDoesNotAllocate(t *testing.T) {
	g := newGame(t, transport.Limits{})
	p := g.mustDial("10.0.0.1:1")
	g.play(100, p)
	noise := make([]byte, 100)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for range 10 {
			p.link.Deliver(noise)
		}
		g.hub.Poll()
	}))
}

func TestAClientMoves(t *testing.T) {
	g := newGame(t, transport.Limits{PeersPerIP: 1})
	p := g.mustDial("10.0.0.1:1")
	g.play(20, p)
	p.link.Moved(netip.MustParseAddrPort("10.0.0.2:7"))
	p.link.Moved(netip.MustParseAddrPort("10.0.0.3:7"))
	g.play(1, p)
	for peer := range g.server.Peers() {
		require.Equal(t, "test 10.0.0.3:7", peer.Remote().String())
	}
	_, err := g.dial("10.0.0.3:1")
	require.ErrorIs(t, err, ErrFullIP, "it counts where it is")
	q := g.mustDial("10.0.0.1:2")
	q.link.Moved(netip.MustParseAddrPort("10.0.0.4:7"))
	q.link.HangUp()
	g.play(1)
	p.link.HangUp()
	g.play(1)
	p.link.Moved(netip.MustParseAddrPort("10.0.0.5:7"))
	g.play(1)
	require.Empty(t, g.hub.perIP)
}

func TestConnectionsInTheMakingAreBounded(t *testing.T) {
	g := newGame(t, transport.Limits{Peers: 3, PeersPerIP: 2})
	begin := func(address string) func() {
		end, _ := g.hub.Begin(netip.MustParseAddrPort(address))
		return end
	}
	a, b := begin("10.0.0.1:1"), begin("10.0.0.1:2")
	require.Nil(t, begin("10.0.0.1:3"))
	c := begin("10.0.0.2:1")
	require.Nil(t, begin("10.0.0.3:1"))
	for _, end := range []func(){a, b, b, c} {
		end()
	}
	require.Zero(t, g.hub.made)
	require.Empty(t, g.hub.making)
	g.hub.Close()
	require.Nil(t, begin("10.0.0.1:1"))
}

// TestPollWithinPoll: as in a hook of the server.
func TestPollWithinPoll(t *testing.T) {
	g := newGame(t, transport.Limits{})
	g.server.OnConnect(func(*replication.Peer) { g.hub.Poll() })
	p := g.mustDial("10.0.0.1:1")
	require.PanicsWithValue(t, "test: Poll within Poll: call it outside of the server's hooks and message handlers",
		func() { g.play(20, p) })
	g.hub.Poll()
}

// TestLargePacketsOfStrangers: neither many of them wait, nor is their memory kept.
func TestLargePacketsOfStrangers(t *testing.T) {
	g := newGame(t, transport.Limits{})
	p := g.mustDial("10.0.0.1:1")
	for range 64 {
		p.link.Deliver(make([]byte, 1<<16))
	}
	require.EqualValues(t, 62, g.hub.Stats().InboxFull, "64 times 2,048 bytes wait")
	g.hub.Poll()
	require.Zero(t, p.link.bytes)
	require.Empty(t, g.hub.queue.free)
}
