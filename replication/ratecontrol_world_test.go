package replication

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/stretchr/testify/require"
)

// A sharedLine is a crowd that always moves, more than its clients have bandwidth for, and clients
// with adaptive budgets behind one bottleneck of 256 kbit/s with a queue of 300 ms.
type sharedLine struct {
	*loadWorld
	line      *netsim.Bottleneck
	bandwidth int // bytes per tick
	path      linePath
	seed      uint64
	ends      []*end
	samples   []lineSample
}

// A linePath is the path between the server and a client, besides the bottleneck.
type linePath struct {
	roundTrip, jitter time.Duration // jitter in each direction
	loss              float64
	interval          int // ticks
}

func (p linePath) String() string {
	return fmt.Sprintf("%v +-%v, loss %v %%, interval %d", p.roundTrip, p.jitter, 100*p.loss, p.interval)
}

// A lineSample is the state after a tick.
type lineSample struct {
	line      int      // bytes per second
	queue     float64  // queueing delay of the newest byte, in seconds
	budgets   []int    // bytes per second
	delivered []uint64 // bytes so far
}

const (
	lineRate  = 60                            // ticks per second
	lineBytes = 256_000 / 8 / lineRate        // per tick
	lineFull  = float64(lineBytes * lineRate) // per second
)

func newSharedLine(t testing.TB, seed uint64, path linePath) *sharedLine {
	s := &sharedLine{loadWorld: newLoadWorld(t, 1200, loadSchema(), WithTickRate(lineRate)), seed: seed, path: path}
	s.line = netsim.NewBottleneck(lineBytes, 0)
	s.setBandwidth(lineBytes)
	return s
}

// join connects a client with a range of budgets that far exceeds the link.
func (s *sharedLine) join() *end {
	cfg := netsim.Config{
		Latency: netsim.Ticks(s.path.roundTrip/2, lineRate), Jitter: netsim.Ticks(s.path.jitter, lineRate), Loss: s.path.loss,
	}
	e := connect(s.server, s.seed*100+uint64(len(s.ends)), cfg, WithSeed(uint64(len(s.ends))+1))
	cfg.Through = s.line
	e.link.Down.SetConfig(cfg)
	e.peer.SetSendInterval(s.path.interval)
	e.peer.SetBudgetRange(2000, 1_000_000)
	s.ends = append(s.ends, e)
	return e
}

func (s *sharedLine) setBandwidth(bytesPerTick int) {
	s.bandwidth = bytesPerTick
	s.line.SetLimits(bytesPerTick, lineBytes*lineRate*3/10)
}

func (s *sharedLine) run(seconds int) {
	for range seconds * lineRate {
		s.tickAll()
		s.line.Step()
		rate := s.bandwidth * lineRate
		sample := lineSample{line: rate, queue: float64(s.line.Waiting()) / float64(rate)}
		for _, e := range s.ends {
			e.step(s.tb)
			sample.budgets = append(sample.budgets, e.peer.Stats().Budget)
			sample.delivered = append(sample.delivered, e.link.Down.Stats().DeliveredBytes)
		}
		s.samples = append(s.samples, sample)
	}
}

// rate returns the bytes per second that a client received between two times, in seconds.
func (s *sharedLine) rate(client, from, to int) float64 {
	before, after := &s.samples[from*lineRate-1], &s.samples[to*lineRate-1]
	return float64(after.delivered[client]-before.delivered[client]) / float64(to-from)
}

// queue returns the mean queueing delay between two times, in seconds.
func (s *sharedLine) queue(from, to int) (mean float64) {
	samples := s.samples[from*lineRate : to*lineRate]
	for i := range samples {
		mean += samples[i].queue / float64(len(samples))
	}
	return mean
}

// budget returns the mean budget of a client between two times.
func (s *sharedLine) budget(client, from, to int) (mean float64) {
	samples := s.samples[from*lineRate : to*lineRate]
	for i := range samples {
		mean += float64(samples[i].budgets[client]) / float64(len(samples))
	}
	return mean
}

// A spread is the mean, minimum and maximum of some figures.
type spread struct{ n, mean, least, most float64 }

func (s *spread) add(x float64) {
	if s.n == 0 {
		s.least, s.most = x, x
	}
	s.n++
	s.mean += (x - s.mean) / s.n
	s.least, s.most = min(s.least, x), max(s.most, x)
}

func (s spread) String() string { return fmt.Sprintf("%.2f (%.2f to %.2f)", s.mean, s.least, s.most) }

// linePaths are the paths for tests of adaptive budgets.
func linePaths(loss float64) (paths []linePath) {
	for _, roundTrip := range []time.Duration{30, 100, 150} {
		for _, interval := range []int{1, 3} {
			for _, jitter := range []time.Duration{0, 10} {
				if testing.Short() && (jitter > 0) != (interval > 1) {
					continue
				}
				paths = append(paths, linePath{roundTrip * time.Millisecond, jitter * time.Millisecond, loss, interval})
			}
		}
	}
	return paths
}

// lineLosses are the packet losses for these tests.
var lineLosses = []float64{0, 0.02}

// seedsFlag sets the number of seeds; the figures in docs/interest-and-priority.md use 6.
var seedsFlag = flag.Uint64("budget.seeds", 1, "seeds per path that adaptive budgets are tested with")

// TestBudgetRangeFindsTheLinkCapacity: from the fifth second on a client gets at least four fifths
// of the link, with a short queue, also if 2 % of its packets are lost at random. A rise of
// capacity is found within five seconds, a drop within one.
func TestBudgetRangeFindsTheLinkCapacity(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	seed := seedOf(t)
	for _, loss := range lineLosses {
		var goodputs, queues, gains spread
		for _, path := range linePaths(loss) {
			t.Run(path.String(), func(t *testing.T) {
				var goodput, queue, doubled, halved spread
				for i := range *seedsFlag {
					s := newSharedLine(t, seed+i, path)
					s.join()
					s.run(15)
					goodput.add(s.rate(0, 5, 15) / lineFull)
					queue.add(s.queue(5, 15))
					s.setBandwidth(2 * lineBytes)
					s.run(7)
					found := 0.0 // in the best second of five
					for second := range 5 {
						found = max(found, s.rate(0, 15+second, 16+second))
					}
					doubled.add(found / lineFull / 2)
					s.setBandwidth(lineBytes)
					s.run(3)
					halved.add(s.budget(0, 23, 24) / lineFull)
				}
				t.Logf("goodput %v, queue %v s, doubled %v, halved %v", goodput, queue, doubled, halved)
				require.Greater(t, goodput.least, 0.6) // of ten seconds, once in 200 games less than 0.75
				require.LessOrEqual(t, goodput.most, 1.01)
				goodputs.add(goodput.mean)
				require.Greater(t, doubled.least, 0.4)
				gains.add(doubled.mean)
				require.Less(t, halved.most, 1.1)
				require.Less(t, queue.most, 0.09)
				queues.add(queue.mean)
			})
		}
		t.Logf("loss %v: goodput %v, queues %v s, doubled %v", loss, goodputs, queues, gains)
		require.Greater(t, goodputs.mean, 0.8)
		require.Greater(t, gains.mean, 0.85-7*loss) // of random losses, some look like a full link
		require.Less(t, queues.mean, 0.06)
	}
}

// TestBudgetRangesShareALink: two clients behind one bottleneck get about the same, also if one
// joins later.
func TestBudgetRangesShareALink(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	seed := seedOf(t)
	var shares, queues spread
	for _, loss := range lineLosses {
		for _, path := range linePaths(loss) {
			t.Run(path.String(), func(t *testing.T) {
				var share, late, queue, goodput spread
				for i := range *seedsFlag {
					for _, head := range []int{0, 8} { // seconds that the first client is alone
						s := newSharedLine(t, seed+i, path)
						s.join()
						s.run(head)
						s.join()
						s.run(30)
						a, b := s.rate(0, head+10, head+30), s.rate(1, head+10, head+30)
						if head > 0 {
							late.add(min(a/b, b/a))
						} else {
							share.add(min(a/b, b/a))
						}
						queue.add(s.queue(head+10, head+30))
						goodput.add((a + b) / lineFull)
					}
				}
				t.Logf("share %v, one later %v, queue %v s, goodput %v", share, late, queue, goodput)
				require.Greater(t, min(share.least, late.least), 0.5)
				require.Greater(t, goodput.mean, 0.8)
				require.Less(t, queue.most, 0.09)
				shares.add(share.mean)
				shares.add(late.mean)
				queues.add(queue.mean)
			})
		}
	}
	t.Logf("shares %v, queues %v s", shares, queues)
	require.Greater(t, shares.mean, 0.85)
	require.Less(t, queues.mean, 0.05)
}

// TestBudgetRangeOfASilentClient: a client that stops sending soon gets the minimum, which leaves
// the link to the other.
func TestBudgetRangeOfASilentClient(t *testing.T) {
	oneGoroutine(t)
	s := newSharedLine(t, seedOf(t), linePath{roundTrip: 50 * time.Millisecond, interval: 1})
	silent, other := s.join(), s.join()
	s.run(10)
	require.Greater(t, silent.peer.Stats().Budget, 5000)
	silent.link.Up.SetConfig(netsim.Config{Loss: 1})
	s.run(10)
	require.Equal(t, 2000, silent.peer.Stats().Budget)
	s.run(10)
	require.Greater(t, s.rate(1, 20, 30)/lineFull, 0.75)
	require.LessOrEqual(t, other.peer.Stats().Budget, 1_000_000)
	silent.link.Up.SetConfig(netsim.Config{})
	s.run(10)
	require.Greater(t, silent.peer.Stats().Budget, 5000, "it is back")
}

// TestBudgetRangeOfAClientThatAcknowledgesAll: its budget is the maximum, and its packets stay
// within that.
func TestBudgetRangeOfAClientThatAcknowledgesAll(t *testing.T) {
	const most = 40_000
	c := newLoadWorld(t, 1200, loadSchema())
	m := c.join(1, 0) // every packet is acknowledged in the next tick
	m.peer.SetBudgetRange(1000, most)
	for range 10 * lineRate {
		c.tickAll()
		require.LessOrEqual(t, m.peer.Stats().Budget, most)
	}
	require.Equal(t, most, m.peer.Stats().Budget)
	requireWithin(t, m.sizes[60:], most, lineRate, depthOf(m.peer, most))
}

// TestBudgetRangeIsSetAndUnset: the latest setting applies, the range may change, and a new session
// begins with the minimum.
func TestBudgetRangeIsSetAndUnset(t *testing.T) {
	x := connectedWire(t, messageSchema())
	p := x.peer
	require.Zero(t, p.Stats().Budget)
	p.SetBudgetRange(3000, 9000)
	require.Equal(t, 3000, p.Stats().Budget)
	p.SetBudgetRange(5000, 9000)
	require.Equal(t, 5000, p.Stats().Budget)
	p.SetBudget(700)
	require.Equal(t, 700, p.Stats().Budget)
	p.SetBudgetRange(5000, 9000)
	p.out.Budget.Control.Rate = 8000
	p.reset()
	require.Equal(t, 5000, p.Stats().Budget)
	p.SetBudget(0)
	require.Zero(t, p.Stats().Budget)
	require.Nil(t, p.out.Budget.Control)
	for _, of := range [][2]int{{0, 100}, {-1, 100}, {200, 100}} {
		require.Panics(t, func() { p.SetBudgetRange(of[0], of[1]) })
	}
}
