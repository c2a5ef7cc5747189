package replication

import (
	"maps"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

func TestEntitySets(t *testing.T) {
	x := connectedWire(t, testSchema())
	position, marker := ecs.ComponentID[tPosition](x.world), ReplicatedID(x.world)
	a, b, c := x.spawn(position), x.spawn(position), x.spawn(position)
	one, two := x.server.NewEntitySet(), x.server.NewEntitySet()
	x.peer.SetInterest(Interest{Sets: []*EntitySet{one, two}})
	twin := x.server.Connect(func([]byte) error { return nil })
	twin.SetInterest(Interest{Sets: []*EntitySet{two}}) // shares a set, never connects
	x.rounds(4)
	x.requireSeen()
	one.Add(a)
	one.Add(a)
	two.Add(a)
	two.Add(b)
	require.Equal(t, 1, one.Len())
	x.rounds(4)
	x.requireSeen(a, b)
	one.Remove(a)
	one.Remove(c)
	x.rounds(4)
	x.requireSeen(a, b) // still in the other
	two.Remove(b)
	two.Add(b) // within a tick: no effect
	despawns := x.client.Stats().Despawns
	x.rounds(4)
	x.requireSeen(a, b)
	require.Equal(t, despawns, x.client.Stats().Despawns)
	two.Remove(a)
	x.rounds(4)
	x.requireSeen(b)

	t.Run("an entity gets its marker later", func(t *testing.T) {
		e := x.world.NewEntity(position)
		one.Add(e)
		x.rounds(4)
		x.requireSeen(b)
		x.world.Add(e, marker)
		x.rounds(4)
		x.requireSeen(b, e)
		x.world.Remove(e, marker)
		x.rounds(4)
		x.requireSeen(b)
		require.Equal(t, 1, one.Len())
		x.world.Add(e, marker) // may get another slot
		x.rounds(4)
		x.requireSeen(b, e)
		one.Remove(e)
		require.Zero(t, one.Len())
	})
	t.Run("entities end", func(t *testing.T) {
		e, bare := x.spawn(position), x.world.NewEntity(position)
		one.Add(e)
		one.Add(bare)
		x.rounds(4)
		x.requireSeen(b, e)
		slot := x.slotOf(e)
		x.world.RemoveEntity(e)
		x.world.RemoveEntity(bare)
		again, anew := x.spawn(position), x.world.NewEntity(position) // recycle Arche's IDs
		require.True(t, again.ID() == bare.ID() || again.ID() == e.ID())
		x.rounds(4)
		require.Zero(t, one.Len())
		x.requireSeen(b)
		next := x.spawn(position)
		x.rounds(4)
		require.Equal(t, slot, x.slotOf(next), "of the slot that was a member's")
		x.requireSeen(b)
		one.Add(e) // dead
		x.rounds(2)
		require.Zero(t, one.Len())
		x.world.RemoveEntity(anew)
	})
	t.Run("the world is reset", func(t *testing.T) {
		one.Add(x.world.NewEntity(position)) // has no slot
		x.world.Reset()
		require.NotPanics(t, func() { x.rounds(4) })
		x.requireSeen()
		require.Zero(t, one.Len()+two.Len())
		e := x.spawn(position)
		x.rounds(4)
		x.requireSeen()
		two.Add(e)
		x.rounds(4)
		x.requireSeen(e)
	})
}

// TestEmptySetsTakeNoTime: the server updates sets that have members only, so a set that nobody uses any more is gone.
func TestEmptySetsTakeNoTime(t *testing.T) {
	x := connectedWire(t, testSchema())
	e := x.spawn(ecs.ComponentID[tPosition](x.world))
	sets := make([]*EntitySet, 10)
	for i := range sets {
		sets[i] = x.server.NewEntitySet()
		sets[i].Add(e)
	}
	x.peer.SetInterest(Interest{Sets: sets[:1]})
	shown := func() bool {
		x.rounds(3)
		return len(maps.Collect(x.client.Entities())) == 1
	}
	require.True(t, shown())
	require.Len(t, x.server.interest.Sets, 10)
	for _, set := range sets {
		set.Remove(e)
	}
	require.False(t, shown())
	require.Empty(t, x.server.interest.Sets)
	sets[0].Add(e)
	sets[0].Add(e)
	require.Len(t, x.server.interest.Sets, 1)
	require.True(t, shown())
	x.world.RemoveEntity(e)
	require.False(t, shown())
	require.Empty(t, x.server.interest.Sets)
}
