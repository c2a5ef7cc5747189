package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestAStateThatIsNotNeededAnyMoreIsAcknowledged: the state arrives so late that newer ones have
// replaced it.
func TestAStateThatIsNotNeededAnyMoreIsAcknowledged(t *testing.T) {
	x, _, _ := crowd(t, 1, WithWindow(8))
	position := ecs.ComponentID[tPosition](x.world)
	e := x.spawn(position)
	late := x.replicate() // full states
	require.Len(t, late, 1)
	for i := range 25 {
		(*tPosition)(x.world.Get(e, position)).X = float32(1 + i%7)
		x.round()
	}
	held := &x.client.recv.Replicas.At(uint32(x.slotOf(e))).Held
	n, stats := held.N, x.client.Stats()
	require.NoError(t, x.client.Receive(late[0]))
	require.Equal(t, n, held.N)
	require.Equal(t, stats.Outdated+1, x.client.Stats().Outdated)
	acked := x.peer.Stats().Acked
	x.answer(x.apply()...)
	require.Equal(t, acked+1, x.peer.Stats().Acked)
	x.rounds(3)
	x.requireEqual()
}
