package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestPrioritiesOfEntitiesThatAreNotReplicatedYet take effect with the first Replicate that finds
// them.
func TestPrioritiesOfEntitiesThatAreNotReplicatedYet(t *testing.T) {
	x := connectedWire(t, testSchema())
	position := ecs.ComponentID[tPosition](x.world)
	weight := func(e ecs.Entity) float32 {
		id, ok := x.server.NetID(e)
		require.True(t, ok)
		return x.server.snap.Slots.Info[id.Slot].Weight
	}
	early, late, dead := x.spawn(position), x.world.NewEntity(position), x.spawn(position)
	x.server.SetPriority(early, 2)
	x.server.SetPriority(early, 3) // the last call counts
	x.server.SetPriority(late, 4)
	x.server.SetPriority(dead, 5)
	x.world.RemoveEntity(dead)
	x.server.SetPriority(dead, 5)
	heir := x.spawn(position)
	require.Equal(t, dead.ID(), heir.ID())
	x.rounds(2)
	require.EqualValues(t, 3, weight(early))
	require.EqualValues(t, 1, weight(heir))
	require.Len(t, x.server.snap.Weights, 1)
	x.world.Add(late, ReplicatedID(x.world))
	x.rounds(2)
	require.EqualValues(t, 4, weight(late))
	require.Empty(t, x.server.snap.Weights)
	x.server.SetPriority(late, 6)
	require.EqualValues(t, 6, weight(late))

	// A weight lasts as long as the entity is replicated, and not beyond a reset of the world.
	x.world.Remove(late, ReplicatedID(x.world))
	x.rounds(2)
	x.world.Add(late, ReplicatedID(x.world))
	x.rounds(2)
	require.EqualValues(t, 1, weight(late))
	fresh := x.spawn(position)
	x.server.SetPriority(fresh, 7)
	x.world.Reset()
	for {
		if e := x.spawn(position); e == fresh {
			break
		}
	}
	x.rounds(2)
	require.EqualValues(t, 1, weight(fresh))
}

// TestAPriorityBeforeTheFirstReplicateCounts: with a budget for a few of many entities, the first
// packet has those with a weight.
func TestAPriorityBeforeTheFirstReplicateCounts(t *testing.T) {
	x := newWire(t, testSchema())
	position := ecs.ComponentID[tPosition](x.world)
	var heavy []ecs.Entity
	for i := range 2000 {
		e := x.spawn(position)
		if i%100 == 99 {
			heavy = append(heavy, e)
			x.server.SetPriority(e, 50)
		}
	}
	x.peer.SetBudget(6000)
	for range 12 {
		x.round()
	}
	shown := 0
	for range x.client.Entities() {
		shown++
	}
	require.Less(t, shown, 1000, "the budget is small")
	for _, e := range heavy {
		_, ok := x.mirrored(e)
		require.True(t, ok, "%v of weight 50 among %d", e, shown)
	}
}

// TestWeightsAreThoseOfNow: weights are read again for each budget, if they changed while no peer
// had one.
func TestWeightsAreThoseOfNow(t *testing.T) {
	schema := NewSchema()
	Register[tPosition](schema)
	Register[tHealth](schema, Priority(8))
	c := newLoadWorld(t, 100, schema)
	m := c.join(5, 0)
	m.peer.SetBudget(100_000)
	for range 5 {
		c.tickAll()
	}
	m.peer.SetBudget(0)
	c.replicate()
	c.world.Add(c.entities[7], ecs.ComponentID[tHealth](&c.world))
	c.replicate()
	m.peer.SetBudget(100_000)
	c.replicate()
	for slot := range c.server.snap.Slots.Len() {
		weight := 0
		for i, plane := range c.server.snap.Slots.Weights.Blocks[slot>>6].Planes {
			weight |= int(plane>>(slot&63)&1) << i
		}
		require.Equal(t, int(c.server.snap.Slots.Weight(slot)*snapshot.WeightUnit), weight, "slot %d", slot)
	}
	id, _ := c.server.NetID(c.entities[7])
	require.EqualValues(t, 8, c.server.snap.Slots.Weight(int(id.Slot)))
}
