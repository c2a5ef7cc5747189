package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// walkers are entities that move at steady speeds.
type walkers struct {
	t        testing.TB
	world    ecs.World
	server   *Server
	position ecs.ID
	entities []ecs.Entity
	speed    float32 // per tick, of the slowest of five
	truth    *truth
	ends     []*end
}

func newWalkers(t testing.TB, n int, speed float32, opts ...ServerOption) *walkers {
	x := &walkers{t: t, world: ecs.NewWorld(), speed: speed, truth: newTruth()}
	x.server = NewServer(&x.world, testSchema(), opts...)
	x.position = ecs.ComponentID[tPosition](&x.world)
	for range n {
		x.entities = append(x.entities, x.world.NewEntity(x.position, ReplicatedID(&x.world)))
	}
	return x
}

// connect adds a client of the coding Packed.
func (x *walkers) connect(link netsim.Config) *end {
	id := uint64(len(x.ends))
	x.ends = append(x.ends, connect(x.server, id+1, link, WithSeed(id+2), WithoutCompact()))
	return x.ends[id]
}

func (x *walkers) tick() {
	for i, e := range x.entities {
		(*tPosition)(x.world.Get(e, x.position)).X += x.speed * float32(i%5+1)
	}
	tickAll(x.t, x.server, x.truth, x.ends)
}

// bitsOfUpdates returns the mean of the updates that a peer was sent since it had other counters.
func bitsOfUpdates(p *Peer, before *PeerStats) float64 {
	now := p.Stats()
	return float64(now.EntityBits-before.EntityBits) / float64(now.Updates-before.Updates)
}

// TestIntervalsPredictFromTicksThatWereSent: steady movement is predicted from two ticks that were
// sent to the peer, whatever its interval and phase.
func TestIntervalsPredictFromTicksThatWereSent(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	for interval := 2; interval <= 6; interval++ {
		x := newWalkers(t, 100, 0.1, WithSeed(uint64(interval)))
		for range interval {
			x.connect(netsim.Config{Latency: 2}).peer.SetSendInterval(interval)
		}
		before := make([]PeerStats, interval)
		for tick := range 240 {
			x.tick()
			for i, e := range x.ends {
				if tick == 60 {
					before[i] = e.peer.Stats()
				}
				p := e.peer
				if tick > 60 && p.acked.InInterval() {
					require.Zero(t, (p.acked.Base()+p.acked.Phase)%p.acked.Interval, "the base of interval %d is a tick of the peer's", interval)
				}
			}
		}
		for i, e := range x.ends {
			require.Zero(t, e.peer.Stats().FullStates-before[i].FullStates)
			require.Less(t, bitsOfUpdates(e.peer, &before[i]), 10.0, "bits of an update with interval %d, phase %d", interval, i)
		}
	}
}

// TestLongRoundTripsPredict: steady movement is predicted at round trips of more than 16 ticks too, from base ticks
// of every step, and most of it is sent in shared packets.
func TestLongRoundTripsPredict(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	for _, step := range []int{1, 2, 4} {
		for _, latency := range []int{8, 9, 10, 12} {
			x := newWalkers(t, 700, 0.1, WithSeed(uint64(latency)), WithBaselineInterval(step))
			e := x.connect(netsim.Config{Latency: float64(latency)})
			for range 81 {
				x.tick()
			}
			before, shared := e.peer.Stats(), x.server.Stats().SharedPackets
			for range 79 {
				x.tick()
			}
			require.Less(t, bitsOfUpdates(e.peer, &before), 10.0, "bits of an update with a latency of %d, step %d", latency, step)
			require.Greater(t, x.server.Stats().SharedPackets-shared, (e.peer.Stats().Packets-before.Packets)/2)
		}
	}
}

// TestOtherSecondBaselinesPredict: where the usual second baseline got lost, another tick takes its place, so that steady
// movement stays predicted under loss.
func TestOtherSecondBaselinesPredict(t *testing.T) {
	oneGoroutine(t)
	x := newWalkers(t, 300, 0.05, WithSeed(1), WithMTU(150))
	e := x.connect(netsim.Config{Latency: 3, Loss: 0.5})
	for range 101 {
		x.tick()
	}
	before := e.peer.Stats()
	for range 199 {
		x.tick()
	}
	require.Less(t, bitsOfUpdates(e.peer, &before), 12.0)
}
