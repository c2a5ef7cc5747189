package replication

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// The cost of a server as the numbers of entities and clients grow. All times are medians of ticks
// and include only Peer.Receive of acks and Replicate, not the world and the clients.
//
// Other processes on the machine disturb the times. Compare figures of one run, best of
// TestScaleReport, which takes turns between the things it compares.

const (
	scaleEntities = 10_000
	scaleWarmUp   = 150 // ticks: more than twice the window
)

// warm plays a rig until every tick costs the same, and frees memory that was needed only until
// then.
func (r *sharedRig) warm() {
	for joining := true; joining; {
		r.tick()
		joining = false
		for _, f := range r.fakes {
			joining = joining || !f.peer.acked.Join.Complete
		}
	}
	for range scaleWarmUp {
		r.tick()
	}
	runtime.GC()
}

func (r *reliableRig) warm() {
	for range scaleWarmUp {
		r.world.step()
	}
	for range 2 { // in the first one everything is new
		r.tick()
	}
	runtime.GC()
}

func median[T time.Duration | float64](values []T) T {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

// play returns the median time of some ticks.
func play(r scaleRig, ticks int) time.Duration {
	times := make([]time.Duration, ticks)
	for i := range times {
		times[i] = r.tick()
	}
	return median(times)
}

// BenchmarkScale has every client see everything, without loss and without a budget:
//
//   - shared is the library, with first baselines of any tick and of every fourth;
//   - naive does the same for each client by itself, see [ackedServer];
//   - reliable does less: it relies on a link that loses nothing, see [reliableServer].
func BenchmarkScale(b *testing.B) {
	load := scaleGame(scaleEntities)
	for _, clients := range []int{16, 64, 256} {
		for _, grid := range []int{1, 4} {
			b.Run(fmt.Sprintf("peers=%d/shared,grid=%d", clients, grid), func(b *testing.B) {
				r := newSharedRig(b, load, clients, 0, scaleSeed(b), WithBaselineInterval(grid))
				r.warm()
				benchmarkTicks(b, r, clients)
				r.check(b)
			})
		}
		b.Run(fmt.Sprintf("peers=%d/naive", clients), func(b *testing.B) {
			r := newAckedRig(b, load, clients, 0, scaleSeed(b))
			r.warm()
			benchmarkTicks(b, r, clients)
		})
		b.Run(fmt.Sprintf("peers=%d/reliable", clients), func(b *testing.B) {
			r := newReliableRig(b, load, clients, scaleSeed(b))
			r.warm()
			benchmarkTicks(b, r, clients)
		})
	}
}

func benchmarkTicks(b *testing.B, r scaleRig, clients int) {
	var times []time.Duration
	sent := r.sent()
	for b.Loop() {
		times = append(times, r.tick())
	}
	tick := float64(median(times))
	b.ReportMetric(tick, "ns/op") // not the time of the loop, which includes the world's steps
	b.ReportMetric(tick/1e6, "ms/tick")
	b.ReportMetric(tick/float64(scaleEntities*clients), "ns/entity-peer")
	b.ReportMetric(float64(r.sent()-sent)/float64(len(times)*clients), "bytes/peer-tick")
}

// marginalClients is the number of clients over which marginal costs are averaged.
const marginalClients = 64

// A marginalPair is the same world twice, with clients and without.
type marginalPair struct {
	with, alone           *sharedRig
	withTimes, aloneTimes []time.Duration
}

// newMarginalPair lets clients join a world that has run for a while.
func newMarginalPair(b *testing.B, load scaleLoad, seed uint64) *marginalPair {
	p := &marginalPair{
		with:  newSharedRig(b, load, 0, 0, seed),
		alone: newSharedRig(b, load, 0, 0, seed),
	}
	p.with.warm()
	p.alone.warm()
	p.with.connect(b, marginalClients, 0)
	p.with.warm()
	return p
}

// touchAll changes every entity of both worlds, spread over some ticks.
func (p *marginalPair) touchAll() {
	const ticks = 128
	for _, r := range []*sharedRig{p.with, p.alone} {
		for tick := range ticks {
			for i := tick; i < len(r.world.parts); i += ticks {
				r.world.parts[i].health.HP--
			}
			r.tick()
		}
		r.warm()
	}
}

// tick plays both worlds, in turns: each for longer than baselines and acknowledgements reach back,
// so that its memory is as warm as in a server with a single world.
func (p *marginalPair) tick() {
	const turn = 64
	for range turn {
		p.withTimes = append(p.withTimes, p.with.tick())
	}
	for range turn {
		p.aloneTimes = append(p.aloneTimes, p.alone.tick())
	}
}

// marginal returns the cost of one more client, in ns per tick.
func (p *marginalPair) marginal() float64 {
	return float64(median(p.withTimes)-median(p.aloneTimes)) / marginalClients
}

// BenchmarkStill has an idle world that all clients have received: they cost almost nothing.
func BenchmarkStill(b *testing.B) {
	for _, entities := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("entities=%d", entities), func(b *testing.B) {
			p := newMarginalPair(b, scaleLoad{entities: entities}, scaleSeed(b))
			sent := p.with.server.Stats().Entries // not packets, because of the keep-alives
			for b.Loop() {
				p.tick()
			}
			if p.with.server.Stats().Entries != sent {
				b.Fatal("something is still being sent: the clients are not up to date")
			}
			p.with.check(b)
			b.ReportMetric(float64(median(p.withTimes)), "ns/op")
			b.ReportMetric(float64(median(p.withTimes))/float64(entities*marginalClients), "ns/entity-peer")
			b.ReportMetric(p.marginal()/float64(entities), "marginal-ns/entity-peer")
		})
	}
}

// BenchmarkSparse has the same hundred movers among few and among many entities: idle entities cost
// a client almost nothing. An entity that has not moved since a client joined is encoded for that
// client alone when it does.
func BenchmarkSparse(b *testing.B) {
	for _, moved := range []bool{true, false} {
		b.Run(fmt.Sprintf("moved=%v", moved), func(b *testing.B) {
			seed := scaleSeed(b)
			few := newMarginalPair(b, scaleLoad{entities: 1_000, movers: 100}, seed)
			many := newMarginalPair(b, scaleLoad{entities: 100_000, movers: 100}, seed)
			if moved {
				few.touchAll()
				many.touchAll()
			}
			for b.Loop() {
				few.tick()
				many.tick()
			}
			few.with.check(b)
			many.with.check(b)
			b.ReportMetric(0, "ns/op") // of four worlds: meaningless
			b.ReportMetric(few.marginal(), "ns/peer-tick@1k")
			b.ReportMetric(many.marginal(), "ns/peer-tick@100k")
			b.ReportMetric(many.marginal()/few.marginal(), "ratio")
		})
	}
}

// TestScaleReport compares the library with its naive servers, and many clients with few.
func TestScaleReport(t *testing.T) {
	if os.Getenv("REPLICATION_SCALE") == "" {
		t.Skip("takes a minute and prints figures only: set REPLICATION_SCALE=1 and use -v to see them")
	}
	const rounds = 5
	type contestant struct {
		name    string
		clients int
		rig     scaleRig
		ticks   int       // per round
		times   []float64 // ns per entity and client, by round
		bytes   float64   // per client and tick
	}
	seed, load := scaleSeed(t), scaleGame(scaleEntities)
	var all []*contestant
	byName := map[string]*contestant{}
	enter := func(name string, clients, ticks int, r interface {
		scaleRig
		warm()
	},
	) {
		r.warm()
		c := &contestant{name: name, clients: clients, rig: r, ticks: ticks}
		all = append(all, c)
		byName[fmt.Sprint(name, clients)] = c
	}
	for _, clients := range []int{16, 64, 256} {
		enter("shared", clients, 20, newSharedRig(t, load, clients, 0, seed))
		enter("shared, 1 % loss", clients, 20, newSharedRig(t, load, clients, 0.01, seed))
		enter("shared, grid of 4", clients, 20, newSharedRig(t, load, clients, 0, seed, WithBaselineInterval(4)))
		enter("naive", clients, min(20, 1280/clients), newAckedRig(t, load, clients, 0, seed))
		enter("naive, 1 % loss", clients, min(20, 1280/clients), newAckedRig(t, load, clients, 0.01, seed))
		enter("reliable", clients, min(20, 1280/clients), newReliableRig(t, load, clients, seed))
	}
	for range rounds {
		for _, c := range all {
			sent := c.rig.sent()
			tick := play(c.rig, c.ticks)
			c.times = append(c.times, float64(tick)/float64(scaleEntities*c.clients))
			c.bytes += float64(c.rig.sent()-sent) / float64(rounds*c.ticks*c.clients)
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%d entities; medians of %d rounds (least..most)\n", scaleEntities, rounds)
	fmt.Fprintf(&out, "%-18s %5s  %-24s %8s  %s\n", "", "peers", "ns per entity and peer", "ms/tick", "bytes per peer and tick")
	for _, c := range all {
		ns := median(c.times)
		fmt.Fprintf(&out, "%-18s %5d  %6.2f (%.2f..%.2f) %14.2f  %8.0f\n", c.name, c.clients,
			ns, slices.Min(c.times), slices.Max(c.times), ns*float64(scaleEntities*c.clients)/1e6, c.bytes)
		if r, ok := c.rig.(*sharedRig); ok {
			r.check(t)
		}
	}
	for _, k := range []struct{ ours, naive string }{{"shared", "naive"}, {"shared, grid of 4", "naive"}, {"shared, 1 % loss", "naive, 1 % loss"}} {
		for _, clients := range []int{16, 64, 256} {
			ours := median(byName[fmt.Sprint(k.ours, clients)].times)
			fmt.Fprintf(&out, "%s, %d peers: %.3f of %s, %.3f of reliable without loss\n", k.ours, clients,
				ours/median(byName[fmt.Sprint(k.naive, clients)].times), k.naive,
				ours/median(byName[fmt.Sprint("reliable", clients)].times))
		}
	}
	for _, loss := range []string{"", ", 1 % loss"} {
		for _, name := range []string{"shared", "naive"} {
			many, few := byName[fmt.Sprint(name, loss, 256)], byName[fmt.Sprint(name, loss, 64)]
			fmt.Fprintf(&out, "%s%s: a tick with 256 peers is %.2f of one with 64\n", name, loss,
				4*median(many.times)/median(few.times))
		}
	}
	t.Log("\n" + out.String())
}
