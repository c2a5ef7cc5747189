package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// tTeam and tWing are registered relations.
type (
	tTeam struct {
		ecs.Relation `repl:"-"`
		Rank         uint8
	}
	tWing struct {
		ecs.Relation `repl:"-"`
		Rank         uint8
	}
)

func relationSchema() *Schema {
	s := NewSchema()
	Register[tPosition](s)
	Register[tHealth](s)
	Register[tTeam](s)
	Register[tWing](s)
	return s
}

// TestALocalRelationComesFirst: an Arche entity has room for one relation, and the client's user
// added one before the server.
func TestALocalRelationComesFirst(t *testing.T) {
	x := connectedWire(t, relationSchema())
	position, team, squad := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tTeam](x.world), ecs.ComponentID[tWing](x.world)
	health := ecs.ComponentID[tHealth](x.world)
	e, other := x.spawn(position), x.spawn(position)
	x.rounds(3)
	m, _ := x.mirrored(e)
	sun := x.mirror.NewEntity()
	orbit := ecs.ComponentID[tOrbit](x.mirror)
	x.mirror.Add(m, orbit)
	x.mirror.Relations().Set(m, orbit, sun)

	x.world.Add(e, team, health)
	x.world.Add(other, team)
	(*tPosition)(x.world.Get(e, position)).X = 4
	(*tTeam)(x.world.Get(other, team)).Rank = 3
	require.NotPanics(t, func() { x.rounds(3) })
	require.EqualValues(t, 1, x.client.Stats().RelationConflicts)
	mirrorTeam := ecs.ComponentID[tTeam](x.mirror)
	require.False(t, x.mirror.Has(m, mirrorTeam))
	require.Equal(t, sun, x.mirror.Relations().Get(m, orbit), "the user's stays")
	require.True(t, x.mirror.Has(m, ecs.ComponentID[tHealth](x.mirror)), "all else comes")
	require.InDelta(t, 4, x.position(e).X, 0.01)
	mirroredOther, _ := x.mirrored(other)
	require.EqualValues(t, 3, (*tTeam)(x.mirror.Get(mirroredOther, mirrorTeam)).Rank, "other entities too")

	// The server's values change, it is removed, another one is added.
	(*tTeam)(x.world.Get(e, team)).Rank = 9
	x.rounds(2)
	x.world.Remove(e, team)
	x.rounds(2)
	x.world.Add(e, squad)
	x.rounds(2)
	require.EqualValues(t, 2, x.client.Stats().RelationConflicts)
	require.True(t, x.mirror.Has(m, orbit))

	// Once the user's relation is removed there is room for the next.
	x.mirror.Remove(m, orbit)
	x.world.Remove(e, squad)
	x.rounds(2)
	x.world.Add(e, team)
	x.rounds(3)
	x.requireEqual()
	require.EqualValues(t, 2, x.client.Stats().RelationConflicts)
}

// TestOneRelationFollowsAnother in one tick: an entity never has two.
func TestOneRelationFollowsAnother(t *testing.T) {
	x := connectedWire(t, relationSchema())
	team, squad := ecs.ComponentID[tTeam](x.world), ecs.ComponentID[tWing](x.world)
	e := x.spawn(team)
	x.rounds(3)
	for i := range 6 {
		if i%2 == 0 {
			x.world.Exchange(e, []ecs.ID{squad}, []ecs.ID{team})
		} else {
			x.world.Exchange(e, []ecs.ID{team}, []ecs.ID{squad})
		}
		require.NotPanics(t, func() { x.rounds(2) })
		x.requireEqual()
	}
	require.Zero(t, x.client.Stats().RelationConflicts)

	// The user removes the server's relation and adds the other registered one.
	m, _ := x.mirrored(e)
	x.mirror.Exchange(m, []ecs.ID{ecs.ComponentID[tWing](x.mirror)}, []ecs.ID{ecs.ComponentID[tTeam](x.mirror)})
	require.NotPanics(t, func() {
		for i := range 4 {
			if i%2 == 0 {
				x.world.Exchange(e, []ecs.ID{squad}, []ecs.ID{team})
			} else {
				x.world.Exchange(e, []ecs.ID{team}, []ecs.ID{squad})
			}
			x.rounds(2)
		}
	})
	x.requireEqual()
}
