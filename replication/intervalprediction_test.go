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
