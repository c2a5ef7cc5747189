package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

func TestReplicateWorksOnALockedWorld(t *testing.T) {
	x, e, move := crowd(t, 5)
	x.spawn(ecs.ComponentID[tHealth](x.world)) // with a new component set
	filter := ecs.All()
	q := x.world.Query(filter)
	move(e[0], 1)
	require.NotPanics(t, func() { x.rounds(3) })
	q.Close()
	require.False(t, x.world.IsLocked(), "all locks are given back")
	x.requireEqual()
}

func TestApplyOnALockedWorldPanicsWithAdvice(t *testing.T) {
	x, _, _ := crowd(t, 1)
	q := x.mirror.Query(ecs.All())
	defer q.Close()
	require.PanicsWithValue(t, "replication: Frame on a locked world: call it outside of queries, since it adds and removes entities",
		func() { _ = x.client.Apply() })
}
