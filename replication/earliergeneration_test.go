package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestLateAckOfAnEarlierGeneration: the next entity in a slot was sent in parts and changed
// meanwhile, and then the ack of a packet about the previous entity arrives. That packet's state is
// not a baseline of the new entity.
func TestLateAckOfAnEarlierGeneration(t *testing.T) {
	x := connectedWire(t, testSchema(), WithMTU(100))
	position, bulk := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tBulk](x.world)
	e := x.spawn(position)
	move := func(to float32) { (*tPosition)(x.world.Get(e, position)).X = to }
	x.rounds(3)
	move(50)
	late := x.replicate()
	x.rounds(2)
	slot, _ := x.server.NetID(e)
	x.world.RemoveEntity(e)
	x.round()

	e = x.spawn(position, bulk)
	for i := range 40 {
		(*tBulk)(x.world.Get(e, bulk)).Cells[i] = 0x9e3779b97f4a7c15 * uint64(i+1)
	}
	parts := x.replicate()
	require.Greater(t, len(parts), 2)
	next, _ := x.server.NetID(e)
	require.Equal(t, slot.Slot, next.Slot)
	x.deliver(parts...)
	acks := x.apply()
	x.world.Remove(e, bulk)
	x.replicate()
	x.answer(acks...)
	x.replicate()

	x.deliver(late...)
	x.answer(x.apply()...)
	x.replicate()
	at, ok := x.peer.acked.Acks.Holds(int(next.Slot))
	require.True(t, ok)
	require.False(t, at.Before(x.server.snap.Slots.Info[next.Slot].Born), "the baseline is of tick %d", at)
	for i := range 40 {
		move(float32(i % 20))
		x.round()
	}
	require.Zero(t, x.client.Stats().MissingBaselines)
	require.Zero(t, x.client.Stats().RefusedPackets)
	x.requireEqual()
}
