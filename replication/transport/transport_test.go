package transport_test

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil { // plays wait most of the time
		panic(err)
	}
	os.Exit(m.Run())
}

// onEach plays with each transport at the same time, and checks that neither goroutines nor sockets are left.
func onEach(t *testing.T, play func(t *testing.T, c carrier)) {
	leavesNothing(t, func(t *testing.T) {
		for _, c := range carriers {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				play(t, c)
			})
		}
	})
}

func leavesNothing(t *testing.T, play func(t *testing.T)) {
	before := replicationtest.Held()
	if t.Run("play", play) {
		before.RequireReleased(t)
	}
}

const anyPort = "127.0.0.1:0"

func TestAGame(t *testing.T) {
	onEach(t, func(t *testing.T, c carrier) {
		g := newGame(t)
		l := g.listen(c, anyPort, nil)
		g.joins(4, c, l.address)
		for range 3 {
			inputs := g.inputs
			g.steps(100)
			require.Greater(t, g.inputs-inputs, 100, "of 400: sockets may be late on a busy machine")
			g.converges()
		}
		for _, p := range g.players {
			require.Zero(t, p.skipped, "notes")
			require.Greater(t, p.notes, uint32(3))
			require.Zero(t, p.client.Stats().RefusedPackets)
		}
		for peer := range g.server.Peers() {
			require.Equal(t, c.name, peer.Remote().Transport)
			require.Greater(t, g.wishes[peer], uint32(3), "sockets may be late")
		}
		require.Equal(t, 4, l.stats().Peers)
		require.EqualValues(t, 4, l.stats().Opened)
	})
}

// The server dies without a word, and another one is started at its port.
func TestTheServerStartsAgain(t *testing.T) {
	onEach(t, func(t *testing.T, c carrier) {
		g := newGame(t)
		address := g.listen(c, anyPort, nil).address
		g.joins(4, c, address)
		g.steps(30)
		for _, p := range g.players {
			p.relay.mute(true)
			p.relay.move() // the sockets of the server are gone
		}
		require.NoError(t, g.listeners[0].close())
		next := newGame(t)
		next.noted = 1000 // what is still on its way from the first server has other numbers
		next.listen(c, address, nil)
		next.players, g.players = g.players, nil
		for _, p := range next.players {
			p.g, p.notes, p.sessions = next, 0, 1
			p.relay.mute(false)
		}
		next.until("all are back", func() bool {
			return next.server.Stats().Peers == 4 && next.all((*player).plays)()
		})
		next.steps(60)
		next.converges()
	})
}

// A client's process is killed, or its machine loses the network.
func TestAClientVanishes(t *testing.T) {
	onEach(t, func(t *testing.T, c carrier) {
		g := newGame(t, replication.WithTimeout(3*time.Second))
		g.joins(4, c, g.listen(c, anyPort, nil).address)
		gone, others := g.players[0], g.players[1:]
		watch(others...)
		gone.relay.mute(true)
		gone.away = true
		g.until("it times out", func() bool { return g.server.Stats().Peers == 3 })
		require.EqualValues(t, 1, g.server.Stats().Timeouts)
		g.steps(60)
		g.converges()
		g.noticedNothing(others...)
	})
}

func TestAClientMoves(t *testing.T) {
	onEach(t, func(t *testing.T, c carrier) {
		g := newGame(t)
		g.joins(4, c, g.listen(c, anyPort, nil).address)
		moves, others := g.players[0], g.players[1:]
		watch(others...)
		for range 3 {
			before := map[string]bool{}
			for peer := range g.server.Peers() {
				before[peer.Remote().Address] = true
			}
			moves.relay.move()
			g.until("the client has another address", func() bool {
				for peer := range g.server.Peers() {
					if peer.Connected() && !before[peer.Remote().Address] {
						return moves.plays() && moves.gap < 3
					}
				}
				return false
			})
			g.steps(30)
		}
		g.converges()
		g.noticedNothing(others...)
	})
}

// A fifth of the packets is lost in each direction, half of it by the network of either end; others come twice, or later than the next ones.
func TestABadNetwork(t *testing.T) {
	onEach(t, func(t *testing.T, c carrier) {
		bad := netsim.Profile{
			Latency: 10 * time.Millisecond, Jitter: 8 * time.Millisecond, Loss: 0.106, Duplicate: 0.1,
			Reorder: 0.2, ReorderBy: 20 * time.Millisecond,
		}
		server, client := netsim.NewNetwork(1, bad), netsim.NewNetwork(2, bad)
		t.Cleanup(func() {
			client.Close()
			server.Close()
			require.Zero(t, server.Stats().Paths+client.Stats().Paths)
		})
		g := newGame(t)
		l := g.listen(c, anyPort, server)
		for range 4 {
			g.join(c, l.address, client)
		}
		g.until("all join", g.all((*player).plays))
		g.steps(100)
		g.converges()
		for _, p := range g.players {
			require.Zero(t, p.skipped, "notes")
			require.Zero(t, p.client.Stats().RefusedPackets)
			require.Positive(t, p.notes)
		}
		for _, s := range []netsim.NetworkStats{server.Stats(), client.Stats()} {
			require.Equal(t, 8, s.Paths)
			require.Greater(t, s.Lost, s.Sent/16)
			require.Positive(t, s.Duplicated)
		}
	})
}

// For three seconds a client reads nothing, so its packets fill the buffers on the way.
func TestASlowReader(t *testing.T) {
	onEach(t, func(t *testing.T, c carrier) {
		g := newGame(t)
		g.joins(4, c, g.listen(c, anyPort, nil).address)
		slow, others := g.players[0], g.players[1:]
		watch(others...)
		slow.relay.hold(true)
		slow.away = true
		for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
			g.step()
		}
		g.noticedNothing(others...)
		slow.relay.hold(false)
		slow.away = false
		begin := g.server.Tick()
		g.until("the slow one has caught up", func() bool {
			return slow.plays() && g.server.Tick()-slow.client.Tick() < 20
		})
		require.Less(t, g.server.Tick()-begin, replication.Tick(120), "ticks")
		g.steps(60)
		g.converges()
		g.noticedNothing(others...)
	})
}

// A laptop is closed for longer than the server waits: neither the client nor its sockets do anything. With
// REPLICATION_LONG that is 30 seconds by the clock, so that sockets give up, too.
func TestAClosedLaptop(t *testing.T) {
	onEach(t, func(t *testing.T, c carrier) {
		closed, pause := 4*time.Second, time.Millisecond
		if os.Getenv("REPLICATION_LONG") != "" {
			closed, pause = 30*time.Second, tickTime
		}
		g := newGame(t, replication.WithTimeout(closed))
		g.joins(4, c, g.listen(c, anyPort, nil).address)
		laptop, others := g.players[0], g.players[1:]
		watch(others...)
		laptop.away = true
		laptop.relay.mute(true)
		g.pause, pause = pause, g.pause
		g.steps(int(closed/tickTime) + 60)
		g.pause = pause
		require.Equal(t, 3, g.server.Stats().Peers)
		laptop.relay.mute(false)
		laptop.away = false
		laptop.frame(closed)
		g.until("the laptop is back", func() bool { return laptop.plays() && g.server.Stats().Peers == 4 })
		g.steps(60)
		g.converges()
		g.noticedNothing(others...)
	})
}

// One server has all transports at once, each with its own size of packets, and with or without a checksum.
func TestAllTransportsAtOnce(t *testing.T) {
	leavesNothing(t, func(t *testing.T) {
		g := newGame(t, replication.WithMTU(9000))
		of := map[string]carrier{}
		for i, c := range carriers {
			of[c.name] = c
			l := g.listen(c, anyPort, nil)
			g.server.OnConnect(func(p *replication.Peer) {
				if p.Data() == nil && len(of) == i+1 {
					p.SetData(c)
				}
			})
			p := g.join(c, l.address, nil, replication.WithMTU(1200))
			g.until(c.name+" joins", p.plays)
		}
		g.steps(120)
		g.converges()
		g.noticedNothing(g.players...)
		g.still = true

		for peer := range g.server.Peers() {
			c, largest := peer.Data().(carrier), uint64(0)
			require.Equal(t, c.name, peer.Remote().Transport)
			for range 4 {
				require.NoError(t, replication.SendToClient(peer, bulk{strings.Repeat("x", 4000)}))
			}
			for range 30 {
				before := peer.Stats()
				g.step()
				after := peer.Stats()
				if n := after.MessagePackets - before.MessagePackets; n > 0 {
					largest = max(largest, (after.MessageBytes-before.MessageBytes)/n)
				}
			}
			if c.mtu == 9000 {
				require.Greater(t, largest, uint64(2000), c.name)
			} else {
				require.LessOrEqual(t, largest, uint64(1200), c.name)
				require.Greater(t, largest, uint64(1000), c.name)
			}
		}
		quiet := map[bool]map[uint64]bool{true: {}, false: {}} // sizes of packets without changes
		before := map[*replication.Peer]replication.PeerStats{}
		for range 300 {
			for peer := range g.server.Peers() {
				before[peer] = peer.Stats()
			}
			g.step()
			for peer := range g.server.Peers() {
				if s := peer.Stats(); s.Packets == before[peer].Packets+1 && s.MessagePackets == before[peer].MessagePackets {
					quiet[peer.Data().(carrier).checksum][s.Bytes-before[peer].Bytes] = true
				}
			}
		}
		require.Equal(t, map[bool]map[uint64]bool{true: {7: true}, false: {5: true}}, quiet,
			"without a checksum of 4 bytes, sequence and tick have 8 bits more")
	})
}

// A listener is closed before its server and after it, and more than once. Its clients wait for the next server, or learn
// that the game has ended.
func TestTheOrderOfClosing(t *testing.T) {
	onEach(t, func(t *testing.T, c carrier) {
		for _, listenerFirst := range []bool{true, false} {
			g := newGame(t)
			l := g.listen(c, anyPort, nil)
			g.joins(4, c, l.address)
			begin := time.Now()
			if listenerFirst {
				require.NoError(t, l.close())
				require.Zero(t, g.server.Stats().Peers)
				l.poll()
				g.server.Replicate()
				g.server.Close()
			} else {
				g.server.Close()
				l.poll()
				require.NoError(t, l.close())
			}
			require.Less(t, time.Since(begin), 3*time.Second)
			require.NoError(t, l.close())
			l.poll()
			for _, p := range g.players {
				for n := 0; p.err == nil && p.client.Status() != replication.StatusReconnecting; n++ {
					require.Less(t, n, 300, "by a packet, and not by silence")
					p.conn.Poll()
					p.err = p.client.Frame(tickTime)
					time.Sleep(time.Millisecond)
				}
				var ended *replication.DisconnectError
				require.Equal(t, !listenerFirst, errors.As(p.err, &ended), "%v", p.err)
			}
		}
	})
}
