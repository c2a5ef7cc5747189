package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestIntervalsPredictFromTicksThatWereSent: steady movement is predicted from two ticks that were
// sent to the peer, whatever its interval and phase.
func TestIntervalsPredictFromTicksThatWereSent(t *testing.T) {
	oneGoroutine(t)
	for interval := 2; interval <= 6; interval++ {
		w := ecs.NewWorld()
		s := NewServer(&w, testSchema(), WithSeed(uint64(interval)))
		position, marker := ecs.ComponentID[tPosition](&w), ReplicatedID(&w)
		var entities []ecs.Entity
		for range 100 {
			entities = append(entities, w.NewEntity(position, marker))
		}
		o := newTruth()
		var ends []*end
		for i := range interval {
			e := connect(s, uint64(i), netsim.Config{Latency: 2}, WithSeed(uint64(i)+1), WithoutCompact())
			e.peer.SetSendInterval(interval)
			ends = append(ends, e)
		}
		before := make([]PeerStats, interval)
		for tick := range 240 {
			for i, e := range entities {
				(*tPosition)(w.Get(e, position)).X += 0.1 * float32(i%5+1)
			}
			tickAll(t, s, o, ends)
			for i, e := range ends {
				if tick == 60 {
					before[i] = e.peer.Stats()
				}
				p := e.peer
				if tick > 60 && p.acked.InInterval() {
					require.Zero(t, (p.acked.Base()+p.acked.Phase)%p.acked.Interval, "the base of interval %d is a tick of the peer's", interval)
				}
			}
		}
		for i, e := range ends {
			now := e.peer.Stats()
			require.Zero(t, now.FullStates-before[i].FullStates)
			each := float64(now.EntityBits-before[i].EntityBits) / float64(now.Updates-before[i].Updates)
			require.Less(t, each, 10.0, "bits of an update with interval %d, phase %d", interval, i)
		}
	}
}

// TestLongRoundTripsPredict: steady movement is predicted at round trips of more than 16 ticks too, from base ticks
// of every step, and most of it is sent in shared packets.
func TestLongRoundTripsPredict(t *testing.T) {
	oneGoroutine(t)
	for _, step := range []int{1, 2, 4} {
		for _, latency := range []int{8, 9, 10, 12} {
			w := ecs.NewWorld()
			s := NewServer(&w, testSchema(), WithSeed(uint64(latency)), WithBaselineInterval(step))
			position, marker := ecs.ComponentID[tPosition](&w), ReplicatedID(&w)
			var entities []ecs.Entity
			for range 700 {
				entities = append(entities, w.NewEntity(position, marker))
			}
			o := newTruth()
			e := connect(s, 1, netsim.Config{Latency: float64(latency)}, WithSeed(2), WithoutCompact())
			var before PeerStats
			var shared uint64
			for tick := range 160 {
				for i, entity := range entities {
					(*tPosition)(w.Get(entity, position)).X += 0.1 * float32(i%5+1)
				}
				tickAll(t, s, o, []*end{e})
				if tick == 80 {
					before, shared = e.peer.Stats(), s.Stats().SharedPackets
				}
			}
			now := e.peer.Stats()
			each := float64(now.EntityBits-before.EntityBits) / float64(now.Updates-before.Updates)
			require.Less(t, each, 10.0, "bits of an update with a latency of %d, step %d", latency, step)
			require.Greater(t, s.Stats().SharedPackets-shared, (now.Packets-before.Packets)/2)
		}
	}
}

// TestOtherSecondBaselinesPredict: where the usual second baseline got lost, another tick takes its place, so that steady
// movement stays predicted under loss.
func TestOtherSecondBaselinesPredict(t *testing.T) {
	oneGoroutine(t)
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(1), WithMTU(150))
	position, marker := ecs.ComponentID[tPosition](&w), ReplicatedID(&w)
	var entities []ecs.Entity
	for range 300 {
		entities = append(entities, w.NewEntity(position, marker))
	}
	o := newTruth()
	e := connect(s, 1, netsim.Config{Latency: 3, Loss: 0.5}, WithSeed(2), WithoutCompact())
	var before PeerStats
	for tick := range 300 {
		for i, entity := range entities {
			(*tPosition)(w.Get(entity, position)).X += 0.05 * float32(i%5+1)
		}
		tickAll(t, s, o, []*end{e})
		if tick == 100 {
			before = e.peer.Stats()
		}
	}
	now := e.peer.Stats()
	each := float64(now.EntityBits-before.EntityBits) / float64(now.Updates-before.Updates)
	require.Less(t, each, 12.0)
}
