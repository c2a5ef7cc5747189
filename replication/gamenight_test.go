package replication

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A game night: a large server full of players, with the links that players have. See
// [BenchmarkGameNight].

const (
	nightClients  = 128
	nightEntities = 5000
	nightInterval = 3               // ticks: simulated at 60 Hz, sent at 20
	nightBudget   = 256 * 1000 / 8  // bytes per second: 256 kbit
	nightLoss     = 0.02            // each way
	nightShare    = 0.1             // of the world, visible to a client
	nightDelay    = 2               // ticks: the shortest round trip, 33 ms
	nightFarther  = 6               // range of the clients' round trips in ticks, exclusive
	nightJitter   = 2               // variation of a round trip: 150 ms at most
	nightWarmUp   = 5 * scaleRate   // ticks
	nightTurn     = nightInterval   // ticks of an iteration, in which each client is sent state once
	nightSide     = 2000            // side of the world
	nightMargin   = nightSide/2 - 1 // greatest distance of a viewpoint from the middle
)

// A night is the world, the server and its clients.
type night struct {
	*sharedRig
	follow []*scalePosition // by client: the position of its viewpoint
	radius float64
}

func newNight(tb testing.TB, sorted bool, seed uint64) *night {
	n := &night{sharedRig: newSharedRig(tb, scaleGame(nightEntities), 0, 0, seed)}
	n.radius = math.Sqrt(nightShare * nightSide * nightSide / math.Pi)
	grid := n.server.NewGrid(gameCell, "Position.X", "Position.Y")
	if sorted {
		grid.SortSpawns()
	}
	for i := 0; len(n.follow) < nightClients; i++ {
		// The client plays an entity that is far enough from the edge to see all around at the
		// start.
		p := n.world.parts[i].position
		if max(math.Abs(float64(p.X)), math.Abs(float64(p.Y)))+n.radius > nightMargin {
			continue
		}
		c := len(n.follow)
		f := connectFake(tb, n.server, uint64(c)+1, nightDelay+c%nightFarther, nightLoss)
		f.jitter, f.ackLoss = nightJitter, nightLoss
		f.peer.SetBudget(nightBudget)
		f.peer.SetSendInterval(nightInterval)
		f.peer.SetInterest(Interest{Grid: grid})
		n.fakes, n.acks, n.follow = append(n.fakes, f), append(n.acks, nil), append(n.follow, p)
	}
	return n
}

// tick plays a tick, with viewpoints at the players' current positions.
func (n *night) tick() time.Duration {
	for i, p := range n.follow {
		n.fakes[i].peer.LookFrom(n.radius, float64(p.X), float64(p.Y))
	}
	return n.sharedRig.tick()
}

// BenchmarkGameNight is a server of 128 clients and 5,000 entities of 8 fields, 30 % of which move.
// It simulates at 60 Hz and sends each client state at 20 Hz. Each client plays an entity and sees
// the tenth of the world around it, has 256 kbit/s, a round trip of 33 to 150 ms with jitter, and
// 2 % loss each way.
//
//   - %core: CPU time of acks and Replicate, as a share of one core at 60 ticks per second
//   - us/tick, us/peer-tick: the same per tick, and per client and tick
//   - B/peer-s, entries/peer-s: sent to a client per second
//   - visible: entities that a client sees, on average
//
// The entities spawn in random order, with [Grid.SortSpawns] or without.
func BenchmarkGameNight(b *testing.B) {
	b.Run("SortSpawns", func(b *testing.B) { benchmarkNight(b, newNight(b, true, scaleSeed(b))) })
	b.Run("unsorted", func(b *testing.B) { benchmarkNight(b, newNight(b, false, scaleSeed(b))) })
}

func benchmarkNight(b *testing.B, n *night) {
	for range nightWarmUp {
		n.tick()
	}
	before, sent, ticks := n.server.Stats(), n.sent(), 0
	hidden := n.notVisible()
	spent := n.used()
	var wall time.Duration
	for b.Loop() {
		for range nightTurn {
			wall += n.tick()
		}
		ticks += nightTurn
	}
	spent = n.used() - spent
	n.check(b)
	after := n.server.Stats()
	all, seconds := float64(ticks), float64(ticks)/scaleRate
	b.ReportMetric(0, "ns/op") // includes the world
	b.ReportMetric(100*spent.Seconds()/seconds, "%core")
	b.ReportMetric(float64(spent.Microseconds())/all, "us/tick")
	b.ReportMetric(float64(wall.Microseconds())/all, "wall-us/tick")
	b.ReportMetric(float64(spent.Nanoseconds())/1e3/all/nightClients, "us/peer-tick")
	b.ReportMetric(float64(n.sent()-sent)/seconds/nightClients, "B/peer-s")
	b.ReportMetric(float64(after.Entries-before.Entries)/seconds/nightClients, "entries/peer-s")
	b.ReportMetric(nightEntities-float64(n.notVisible()-hidden)/all/nightClients, "visible")
}

// notVisible returns how many entities were out of view, summed over clients and ticks.
func (n *night) notVisible() (hidden uint64) {
	for _, f := range n.fakes {
		hidden += f.peer.Stats().NotVisible
	}
	return hidden
}

// TestGameNightMatchesItsDescription: clients see the described share of the world, at the
// described latency and loss.
func TestGameNightMatchesItsDescription(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	n := newNight(t, true, seedOf(t))
	for range 120 {
		n.tick()
	}
	hidden, ticks := n.notVisible(), 30
	for range ticks {
		n.tick()
	}
	require.InDelta(t, nightShare, 1-float64(n.notVisible()-hidden)/float64(ticks*nightClients*nightEntities), 0.01)
	least, most, lost, packets := math.Inf(1), 0.0, uint64(0), uint64(0)
	for _, f := range n.fakes {
		trip, s := f.peer.RoundTrip(), f.peer.Stats()
		least, most = min(least, trip), max(most, trip)
		lost, packets = lost+s.Lost, packets+s.Packets
	}
	require.InDelta(t, 3, least, 1, "ticks, with the jitter in the mean")
	require.InDelta(t, 8, most, 1)
	require.InDelta(t, nightLoss, float64(lost)/float64(packets), 0.01)
	n.check(t)
}
