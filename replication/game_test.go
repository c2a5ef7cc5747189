package replication

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Conditions of real games: packets get lost, round trips differ, bytes are short, clients see a
// part of the world and are not sent state in every tick. See [BenchmarkGame].

const (
	gameClients = 64
	gameWarmUp  = 320 // ticks: all but those with the smallest budget have the world
	gameTurn    = 16  // ticks that a rig plays per turn
	gameJoins   = 3   // ticks between joins: those who join at once wait for the same, and share what a budget chooses
)

// A gameRow holds the settings of one row of the benchmark.
type gameRow struct {
	name     string
	loss     float64
	trips    bool // round trips of 4 to 14 ticks instead of 5 to 9
	budget   int  // bytes per second; 0: none
	interval int  // ticks; 0: every tick
	view     bool // each client sees about a twentieth

	twin *ackedPlan // settings of the naive server, where they differ
}

// An ample budget always suffices. The naive server has none, because it does the same with less
// work then.
const ampleBudget = 64 << 20

var gameRows = []gameRow{
	{name: "ideal"},
	{name: "loss0.5", loss: 0.005},
	{name: "loss2", loss: 0.02},
	{name: "loss5", loss: 0.05},
	{name: "spread", trips: true},
	{name: "ample", budget: ampleBudget, twin: &ackedPlan{}},
	{name: "ample-loss2", budget: ampleBudget, loss: 0.02, twin: &ackedPlan{}},
	{name: "budget64", budget: 64 << 10},
	{name: "budget64-loss2", budget: 64 << 10, loss: 0.02},
	{name: "budget16-loss2", budget: 16 << 10, loss: 0.02},
	{name: "interval3", interval: 3},
	{name: "interval3-loss2", interval: 3, loss: 0.02},
	{name: "grid5", view: true},
	{name: "grid5-loss2", view: true, loss: 0.02},
	{name: "all", trips: true, budget: 32 << 10, interval: 3, view: true, loss: 0.02},
}

const (
	gameRadius = 252 // of a circle of 5 % of the world
	gameCell   = 125
)

// delay returns the round trip of a client, in ticks.
func (g *gameRow) delay(client int) int {
	if g.trips {
		return 4 + client%11
	}
	return 5 + client%5
}

// newGameRigs returns the library and the naive server with the same work.
func newGameRigs(tb testing.TB, g *gameRow, seed uint64) (*sharedRig, *ackedRig) {
	load := scaleGame(scaleEntities)
	ours := newSharedRig(tb, load, 0, 0, seed)
	twin := newAckedRig(tb, load, gameClients, g.loss, seed)
	var grid *Grid
	if g.view {
		grid = ours.server.NewGrid(gameCell, "Position.X", "Position.Y")
		grid.SortSpawns()
	}
	rng := rand.New(rand.NewPCG(seed, 4))
	for i := range gameClients {
		for range gameJoins {
			ours.tick()
		}
		f := connectFake(tb, ours.server, uint64(i)+1, g.delay(i), g.loss)
		ours.fakes, ours.acks = append(ours.fakes, f), append(ours.acks, nil)
		twin.links[i].delay = g.delay(i)
		plan := &twin.server.peers[i].plan
		*plan = ackedPlan{interval: g.interval, budget: g.budget, phase: i, mean: 100}
		if g.budget > 0 {
			f.peer.SetBudget(g.budget)
		}
		if g.interval > 0 {
			f.peer.SetSendInterval(g.interval)
		}
		if g.view {
			x, y := rng.Float32()*1500-750, rng.Float32()*1500-750
			f.peer.SetInterest(Interest{Grid: grid})
			f.peer.LookFrom(gameRadius, float64(x), float64(y))
			plan.radius, plan.x, plan.y = gameRadius, x, y
		}
		if g.twin != nil {
			*plan = *g.twin
		}
	}
	return ours, twin
}

// BenchmarkGame measures the cost of a client per tick: its acks and its share of Replicate. The
// library and the naive server, which does the same job by brute force, play each row in turns.
// Times are CPU time of the process, with wall-clock time beside it.
//
//   - us/peer-tick: cost of a client per tick; ns/entry: cost of an entity that is sent
//   - entries/peer-tick, B/peer-tick: entities and bytes sent to a client per tick
//   - encoded-%: share of the entries that had to be encoded rather than copied
//   - of-twin: the cost divided by that of the naive server in the same run
func BenchmarkGame(b *testing.B) {
	for i := range gameRows {
		g := &gameRows[i]
		b.Run(g.name, func(b *testing.B) {
			ours, twin := newGameRigs(b, g, scaleSeed(b))
			for range gameWarmUp {
				ours.tick()
				twin.tick()
			}
			before, sent, ticks := ours.server.Stats(), ours.sent(), 0
			var spent, other, wall time.Duration
			for b.Loop() {
				c, w := playTurn(ours)
				spent, wall = spent+c, wall+w
				c, _ = playTurn(twin)
				other += c
				ticks += gameTurn
			}
			ours.check(b)
			after := ours.server.Stats()
			entries := float64(after.Entries - before.Entries)
			n := float64(ticks * gameClients)
			b.ReportMetric(0, "ns/op") // includes both servers and the world
			b.ReportMetric(float64(spent.Nanoseconds())/1e3/n, "us/peer-tick")
			b.ReportMetric(float64(wall.Nanoseconds())/1e3/n, "wall-us/peer-tick")
			b.ReportMetric(float64(spent.Nanoseconds())/entries, "ns/entry")
			b.ReportMetric(entries/n, "entries/peer-tick")
			b.ReportMetric(float64(ours.sent()-sent)/n, "B/peer-tick")
			b.ReportMetric(100*float64(after.Encoded-before.Encoded)/entries, "encoded-%")
			b.ReportMetric(spent.Seconds()/other.Seconds(), "of-twin")
		})
	}
}

// A gameRig reports the CPU time that its server has used so far.
type gameRig interface {
	scaleRig
	used() time.Duration
}

// playTurn returns the CPU time and the wall-clock time that the server of a rig needs for a turn.
func playTurn(r gameRig) (cpu, wall time.Duration) {
	before := r.used()
	for range gameTurn {
		wall += r.tick()
	}
	return r.used() - before, wall
}
