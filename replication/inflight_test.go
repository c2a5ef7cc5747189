package replication

import (
	"testing"

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
