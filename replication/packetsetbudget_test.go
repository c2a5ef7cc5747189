package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestSharedPacketsKeepToTheBudget: a budget that was ample for a long time is too small when
// everything moves at once, and a shared packet is not sent just because it exists.
func TestSharedPacketsKeepToTheBudget(t *testing.T) {
	const rate = 12000
	x := connectedWire(t, testSchema())
	position := ecs.ComponentID[tPosition](x.world)
	var entities []ecs.Entity
	for range 2000 {
		entities = append(entities, x.spawn(position))
	}
	x.rounds(60)
	x.peer.SetBudget(rate)
	shared := x.server.Stats().SharedPackets
	for range 120 {
		(*tPosition)(x.world.Get(entities[0], position)).X++
		x.round()
	}
	require.Greater(t, x.server.Stats().SharedPackets, shared)
	for i, e := range entities {
		p := (*tPosition)(x.world.Get(e, position))
		p.X, p.Y, p.Z = p.X+0.1*float32(i%9), p.Y+0.1*float32(i%7), p.Z+0.1*float32(i%5)
	}
	before := x.peer.Stats().Bytes
	x.round()
	require.LessOrEqual(t, x.peer.Stats().Bytes-before, uint64(rate/8+2*1200))
	x.rounds(300)
	x.requireEqual()
}
