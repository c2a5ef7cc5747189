package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestInFlightNeverFalls: what was sent and what waits add up while first states are on their way, be they lost or large.
func TestInFlightNeverFalls(t *testing.T) {
	x := connectedWire(t, testSchema(), WithMTU(400))
	for range 3 {
		fillBulk(x, x.spawn(ecs.ComponentID[tBulk](x.world)), 1)
		x.spawn(ecs.ComponentID[tPosition](x.world))
	}
	last := x.peer.Stats()
	counted := func(s PeerStats) uint64 {
		return s.UpToDate + s.OverBudget + s.InFlight + s.Updates + s.FullStates + s.KeyframeFallbacks
	}
	for tick := range 60 {
		packets := x.replicate()
		if tick%3 > 0 {
			x.deliver(packets...)
		}
		x.answer(x.apply()...)
		now := x.peer.Stats()
		require.GreaterOrEqual(t, int64(now.InFlight), int64(last.InFlight), "tick %d", tick)
		require.EqualValues(t, 6, counted(now)-counted(last), "tick %d", tick)
		last = now
	}
	x.requireEqual()
}

// TestInFlightOverLongRoundTrips: over a path with a round trip of more ticks than changes are remembered for, moving
// entities are in flight, and the others up to date.
func TestInFlightOverLongRoundTrips(t *testing.T) {
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(1), WithWindow(120))
	position, marker := ecs.ComponentID[tPosition](&w), ReplicatedID(&w)
	var all []ecs.Entity
	for range 10 {
		all = append(all, w.NewEntity(position, marker))
	}
	e := connect(s, 1, netsim.Config{Latency: 20}, WithSeed(1))
	var was PeerStats
	for tick := range 450 {
		if tick > 300 {
			for _, x := range all[:3] {
				(*tPosition)(w.Get(x, position)).X += 0.25
			}
		}
		s.Replicate()
		if is := e.peer.Stats(); tick > 350 {
			require.GreaterOrEqual(t, is.InFlight, was.InFlight)
			require.Equal(t, was.UpToDate+7, is.UpToDate)
		}
		was = e.peer.Stats()
		e.step(t)
	}
}
