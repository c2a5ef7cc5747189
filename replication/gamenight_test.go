package replication

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A game night: as many players as a large server has, on lines as people have them. See
// [BenchmarkGameNight].

const (
	nightClients  = 128
	nightEntities = 5000
	nightInterval = 3               // ticks: simulated at 60 Hz, sent at 20
	nightBudget   = 256 * 1000 / 8  // bytes per second: 256 kbit
	nightLoss     = 0.02            // each way
	nightShare    = 0.1             // of the world that a client sees
	nightDelay    = 2               // ticks: the shortest round trip, 33 ms
	nightFarther  = 6               // clients' round trips differ by up to so many ticks, less one
	nightJitter   = 2               // and vary by up to so many: 150 ms at most
	nightWarmUp   = 5 * scaleRate   // ticks
	nightTurn     = nightInterval   // ticks of an iteration: each client has its turn once
	nightSide     = 2000            // of the world
	nightMargin   = nightSide/2 - 1 // how far from the middle places may be
)

// A night is the world, the server and its clients.
type night struct {
	*sharedRig
	follow []*scalePosition // by client: where it looks from
	radius float64
}

func newNight(tb testing.TB, seed uint64) *night {
	n := &night{sharedRig: newSharedRig(tb, scaleGame(nightEntities), 0, 0, seed)}
	n.radius = math.Sqrt(nightShare * nightSide * nightSide / math.Pi)
	grid := n.server.NewGrid(gameCell, "Position.X", "Position.Y")
	for i := 0; len(n.follow) < nightClients; i++ {
		// It plays an entity that is far enough from the edge to see all around, as yet.
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

// tick plays a tick: players look from where they are now.
func (n *night) tick() time.Duration {
	for i, p := range n.follow {
		n.fakes[i].peer.LookFrom(n.radius, float64(p.X), float64(p.Y))
	}
	return n.sharedRig.tick()
}

// BenchmarkGameNight is a server of 128 clients and 5,000 entities of 8 fields, 30 % of which move.
// It is simulated at 60 Hz, and each client is sent state at 20 Hz. Each plays an entity and sees the
// tenth of the world around it, has 256 kbit/s, a round trip of 33 to 150 ms with jitter, and a loss of
// 2 % each way.
//
//   - %core: the CPU time of acks and Replicate, of that of one core at 60 ticks per second
//   - us/tick, us/peer-tick: the same for a tick, and for a client in it
//   - B/peer-s, entries/peer-s: what a client is sent in a second
//   - visible: entities that a client sees, in the mean
func BenchmarkGameNight(b *testing.B) {
	n := newNight(b, scaleSeed(b))
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
	b.ReportMetric(0, "ns/op") // of the world, too
	b.ReportMetric(100*spent.Seconds()/seconds, "%core")
	b.ReportMetric(float64(spent.Microseconds())/all, "us/tick")
	b.ReportMetric(float64(wall.Microseconds())/all, "wall-us/tick")
	b.ReportMetric(float64(spent.Nanoseconds())/1e3/all/nightClients, "us/peer-tick")
	b.ReportMetric(float64(n.sent()-sent)/seconds/nightClients, "B/peer-s")
	b.ReportMetric(float64(after.Entries-before.Entries)/seconds/nightClients, "entries/peer-s")
	b.ReportMetric(nightEntities-float64(n.notVisible()-hidden)/all/nightClients, "visible")
}

// notVisible returns how many entities were out of view, by clients and ticks.
func (n *night) notVisible() (hidden uint64) {
	for _, f := range n.fakes {
		hidden += f.peer.Stats().NotVisible
	}
	return hidden
}

// TestGameNightMatchesItsDescription: clients see what they are to see, at the distance and loss that they have.
func TestGameNightMatchesItsDescription(t *testing.T) {
	oneGoroutine(t)
	n := newNight(t, seedOf(t))
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
