package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestSlotsThatAreNewBetweenTwoSends: a peer with a view and a send interval is sent what spawned in a tick between
// two sends, also if it got a slot of a block that was new in an earlier one of these ticks.
func TestSlotsThatAreNewBetweenTwoSends(t *testing.T) {
	const interval = 8
	x := connectedWire(t, testSchema())
	position := ecs.ComponentID[tPosition](x.world)
	x.spawn(position)
	x.peer.SetInterest(Interest{Visible: func(ecs.Entity) bool { return true }})
	x.peer.SetSendInterval(interval)
	x.rounds(5 * interval)
	for !x.peer.acked.InInterval() {
		x.round()
	}
	x.round()
	for range 70 {
		x.spawn(position)
	}
	x.round()
	x.spawn(position)
	x.round()
	require.True(t, x.peer.out.Rests)
	x.rounds(10 * interval)
	x.requireEqual()
}
