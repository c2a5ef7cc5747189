package transport_test

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/stretchr/testify/require"
)

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
	before, files := runtime.NumGoroutine(), sockets()
	if !t.Run("play", play) {
		return
	}
	for range 500 {
		if runtime.NumGoroutine() <= before && sockets() <= files {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	stacks := make([]byte, 1<<16)
	t.Fatalf("%d sockets instead of %d, %s", sockets(), files, stacks[:runtime.Stack(stacks, true)])
}

func sockets() (n int) {
	open, _ := os.ReadDir("/proc/self/fd") // nothing elsewhere than on Linux
	for _, f := range open {
		if to, _ := os.Readlink("/proc/self/fd/" + f.Name()); strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
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
			require.Greater(t, g.inputs-inputs, 350, "of 400")
			g.converges()
		}
		for _, p := range g.players {
			require.Zero(t, p.skipped, "notes")
			require.Greater(t, p.notes, uint32(20))
			require.Zero(t, p.client.Stats().RefusedPackets)
		}
		for peer := range g.server.Peers() {
			require.Equal(t, c.remote, peer.Remote().Transport)
			require.Greater(t, g.wishes[peer], uint32(20))
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
