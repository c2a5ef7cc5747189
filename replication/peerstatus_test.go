package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestBacklogShowsABudgetThatNeverSuffices: with a budget of some bytes per second, what waits takes far longer than a
// second; with one that suffices, hardly anything waits.
func TestBacklogShowsABudgetThatNeverSuffices(t *testing.T) {
	x := connectedWire(t, testSchema())
	for range 400 {
		x.spawn(ecs.ComponentID[tPosition](x.world))
	}
	x.peer.SetBudget(10)
	x.rounds(300)
	s := x.peer.Stats()
	require.Greater(t, s.Backlog/s.Budget, 60, "seconds")
	require.Less(t, x.client.Stats().Spawns, uint64(400))
	x.peer.SetBudget(50_000)
	x.rounds(60)
	require.Zero(t, x.peer.Stats().Backlog)
	x.requireEqual()
	x.peer.SetBudget(0)
	require.Zero(t, x.peer.Stats().Backlog)
}

// TestNoViewpointCountsGridsWithoutAPlace: a peer with a grid that looks from nowhere sees nothing of it, and counts that.
func TestNoViewpointCountsGridsWithoutAPlace(t *testing.T) {
	x := connectedWire(t, testSchema())
	x.spawn(ecs.ComponentID[tPosition](x.world))
	x.rounds(5)
	require.Zero(t, x.peer.Stats().NoViewpoint)
	x.peer.SetInterest(Interest{Grid: x.server.NewGrid(10, "tPosition.X", "tPosition.Y")})
	x.rounds(7)
	require.EqualValues(t, 7, x.peer.Stats().NoViewpoint)
	require.Zero(t, x.mirror.Stats().Entities.Used)
	x.peer.LookFrom(1000, 0, 0)
	x.rounds(5)
	require.EqualValues(t, 7, x.peer.Stats().NoViewpoint)
	require.Equal(t, 1, x.mirror.Stats().Entities.Used)
}
