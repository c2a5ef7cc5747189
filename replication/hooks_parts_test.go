package replication

import (
	"fmt"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// Hooks for conditional components, for resources, and for references that are filled in later.

// TestHooksReportConditionsAndReferences: components that come and go with owners and conditions
// are reported like all others, and so are references that are filled in when their target arrives.
func TestHooksReportConditionsAndReferences(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	ticks := ticksOf(2000, 450)
	seed := seedOf(t)
	g := newConditionPlay(seed, 30)
	var shadows []*shadow
	for i, cfg := range hostileLinks()[:4] {
		e := g.connect(cfg)
		if i == 1 {
			e.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return (Tick(e.ID())+g.server.Tick()/20)%3 > 0 }})
		}
		shadows = append(shadows, newShadow(e.client, shadowComponent[cPlace], shadowComponent[cAmmo], shadowComponent[cAim], shadowComponent[cGhost],
			shadowComponent[cRank], shadowComponent[cCard], shadowComponent[cHoard], shadowComponent[cSeed], shadowComponent[cDeal])) // all but the relation
	}
	owned := 0
	OnAdd(g.ends[0].client, func(ecs.Entity, *cAmmo) { owned++ })
	for tick := range ticks {
		g.step()
		for i, e := range g.ends {
			switch {
			case i == 2 && tick%200 == 199:
				e.world.Reset()
				clear(shadows[i].entities)
			case i == 3 && tick%250 == 249:
				e.client.Reconnect()
			}
			e.step(t)
			shadows[i].requireEqual(t, e, tick)
			require.Nil(t, e.client.Verify())
		}
	}
	require.Greater(t, owned, ticks/300)
	for i, e := range g.ends {
		e.client.Close()
		require.Empty(t, shadows[i].bad)
		require.Empty(t, shadows[i].entities)
	}
}

// TestHooksOfAConditionInOrder: an entity is reported before its conditional components, and
// removed after them.
func TestHooksOfAConditionInOrder(t *testing.T) {
	schema := NewSchema()
	Register[cPlace](schema)
	Register[cAmmo](schema, OwnerOnly())
	x := connectedWire(t, schema)
	var lines []string
	note := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	requireThat := func(want ...string) {
		t.Helper()
		x.rounds(3)
		require.Equal(t, want, lines)
		lines = nil
	}
	x.client.OnSpawn(func(ecs.Entity) { note("spawn") })
	x.client.OnDespawn(func(ecs.Entity) { note("despawn") })
	OnAdd(x.client, func(_ ecs.Entity, v *cPlace) { note("add place %d", v.X) })
	OnRemove(x.client, func(_ ecs.Entity, v *cPlace) { note("remove place %d", v.X) })
	OnAdd(x.client, func(_ ecs.Entity, v *cAmmo) { note("add ammo %d", v.Rounds) })
	OnRemove(x.client, func(e ecs.Entity, v *cAmmo) {
		require.True(t, x.mirror.Has(e, ecs.ComponentID[cAmmo](x.mirror)), "it is still there")
		note("remove ammo %d", v.Rounds)
	})
	OnChange(x.client, func(e ecs.Entity, before, now *cAmmo) {
		id, ok := x.client.NetID(e)
		require.True(t, ok)
		want, _ := x.server.NetID(x.only())
		require.Equal(t, want, id, "of the entity")
		note("ammo %d to %d", before.Rounds, now.Rounds)
	})
	place, ammo := ecs.ComponentID[cPlace](x.world), ecs.ComponentID[cAmmo](x.world)
	e := x.spawn(place, ammo)
	rounds := func(n uint16) { (*cAmmo)(x.world.Get(e, ammo)).Rounds = n }
	rounds(5)
	x.server.SetOwner(e, x.peer)
	requireThat("spawn", "add place 0", "add ammo 5")
	rounds(6)
	requireThat("ammo 5 to 6")
	m, _ := x.mirrored(e)
	(*cAmmo)(x.mirror.Get(m, ecs.ComponentID[cAmmo](x.mirror))).Rounds = 99
	d := x.client.Verify()
	require.NotNil(t, d, "what stands under a condition is verified as well")
	id, _ := x.server.NetID(e)
	require.Equal(t, Divergence{NetID: id, Entity: m, Tick: d.Tick, Component: "cAmmo", Field: "Rounds", Got: uint16(99), Want: uint16(6)}, *d)
	x.server.SetOwner(e, nil)
	requireThat("remove ammo 99")
	x.server.SetOwner(e, x.peer)
	requireThat("add ammo 6")
	x.world.Remove(e, ammo)
	requireThat("remove ammo 6")
	x.world.Add(e, ammo)
	requireThat("add ammo 0")
	x.mirror.Remove(m, ecs.ComponentID[cAmmo](x.mirror))
	x.world.RemoveEntity(e)
	requireThat("remove place 0", "despawn")
	e = x.spawn(place, ammo)
	rounds(7)
	x.server.SetOwner(e, x.peer)
	requireThat("spawn", "add place 0", "add ammo 7")
	x.world.RemoveEntity(e)
	requireThat("remove place 0", "remove ammo 7", "despawn")
}

// only returns the server's only entity.
func (x *fixture) only() (e ecs.Entity) {
	filter := ecs.All(ReplicatedID(x.world))
	q := x.world.Query(&filter)
	require.True(x.t, q.Next())
	e = q.Entity()
	require.False(x.t, q.Next())
	return e
}

// TestHooksOfResources: hooks of resources are called with the zero entity.
func TestHooksOfResources(t *testing.T) {
	schema := NewSchema()
	RegisterResource[kMatch](schema)
	RegisterResource[rsWeather](schema)
	x := connectedWire(t, schema)
	var lines []string
	OnAdd(x.client, func(e ecs.Entity, v *kMatch) {
		require.True(t, e.IsZero())
		lines = append(lines, fmt.Sprint("add ", v.Round, " ", v.Leader.IsZero()))
	})
	OnChange(x.client, func(e ecs.Entity, before, now *kMatch) {
		require.True(t, e.IsZero())
		lines = append(lines, fmt.Sprint(before.Round, " ", before.Leader.IsZero(), " to ", now.Round, " ", now.Leader.IsZero()))
	})
	OnRemove(x.client, func(e ecs.Entity, v *kMatch) {
		require.True(t, e.IsZero())
		require.Same(t, resourceOf[kMatch](x.mirror), v, "it is still there")
		lines = append(lines, fmt.Sprint("remove ", v.Round))
	})
	requireThat := func(want ...string) {
		t.Helper()
		x.rounds(3)
		require.Equal(t, want, lines)
		lines = nil
	}
	require.PanicsWithValue(t, "replication: Expect: kMatch is a resource, which no entity has: expect by a component",
		func() { Expect[kMatch](x.client, x.mirror.NewEntity(), 0) })
	match := setResource(x.world, kMatch{Round: 1})
	requireThat("add 1 true")
	match.Round = 2
	requireThat("1 true to 2 true")
	match.Leader = x.world.NewEntity()
	x.rounds(2)
	require.Empty(t, lines)
	x.world.Add(match.Leader, ReplicatedID(x.world))
	requireThat("2 true to 2 false")
	x.world.RemoveEntity(match.Leader)
	requireThat("2 false to 2 true")
	x.mirror.Reset()
	requireThat("add 2 true")
	dropResource[kMatch](x.world)
	requireThat("remove 2")
	setResource(x.world, kMatch{Round: 3})
	requireThat("add 3 true")
	x.client.Close()
	require.Equal(t, []string{"remove 3"}, lines)
	require.Nil(t, resourceOf[kMatch](x.mirror))
}

// TestReferencesThatAreFilledInAreChanges: a reference is set when its target arrives and zeroed
// when the target goes, and each is one change. A component that arrived in the same Apply has no
// extra change, and there are never two for one.
func TestReferencesThatAreFilledInAreChanges(t *testing.T) {
	x := connectedWire(t, referenceSchema())
	child, target := ecs.ComponentID[rChildOf](x.world), ecs.ComponentID[rTarget](x.world)
	var lines []string
	text := func(e ecs.Entity) string {
		id, ok := x.client.NetID(e)
		if !ok {
			return "nobody"
		}
		return id.String()
	}
	OnChange(x.client, func(_ ecs.Entity, before, now *rTarget) {
		was := "somebody"
		if before.Entity.IsZero() {
			was = "nobody"
		}
		lines = append(lines, fmt.Sprint(was, " to ", text(now.Entity)))
	})
	OnChange(x.client, func(e ecs.Entity, _, _ *rChildOf) {
		lines = append(lines, "child of "+text(x.mirror.Relations().Get(e, ecs.ComponentID[rChildOf](x.mirror))))
	})
	requireThat := func(want ...string) {
		t.Helper()
		x.rounds(3)
		require.ElementsMatch(t, want, lines)
		lines = nil
	}
	at := func(e, to ecs.Entity) {
		(*rTarget)(x.world.Get(e, target)).Entity = to
		x.world.Relations().Set(e, child, to)
	}
	e, b := x.spawn(child, target), x.spawn()
	at(e, b)
	requireThat() // all arrive at once
	late := x.world.NewEntity()
	at(e, late)
	requireThat("somebody to nobody", "child of nobody")
	x.world.Add(late, ReplicatedID(x.world))
	id := func(e ecs.Entity) string {
		x.rounds(3)
		id, ok := x.server.NetID(e)
		require.True(t, ok)
		return id.String()
	}
	name := id(late)
	requireThat("nobody to "+name, "child of "+name)
	x.world.RemoveEntity(late)
	requireThat("somebody to nobody", "child of nobody")
	at(e, b)
	requireThat("nobody to "+id(b), "child of "+id(b))
	// Out of view and back.
	hidden := true
	x.peer.SetInterest(Interest{Visible: func(other ecs.Entity) bool { return other != b || !hidden }})
	requireThat("somebody to nobody", "child of nobody")
	hidden = false
	requireThat("nobody to "+id(b), "child of "+id(b))
	x.world.RemoveEntity(b)
	x.world.RemoveEntity(e)
	requireThat()
}

// TestADivergenceUnderAConditionNamesTheEntity: it names the entity, not the slot that the
// components are sent in.
func TestADivergenceUnderAConditionNamesTheEntity(t *testing.T) {
	schema := NewSchema()
	Register[cPlace](schema)
	Register[cAmmo](schema, OwnerOnly())
	x := connectedWire(t, schema, WithStateHash(1))
	e := x.spawn(ecs.ComponentID[cPlace](x.world), ecs.ComponentID[cAmmo](x.world))
	x.server.SetOwner(e, x.peer)
	x.rounds(10)
	require.Nil(t, x.client.Divergence())
	id, _ := x.server.NetID(e)
	slot, ok := x.server.snap.Slots.SubEntity(0, int(id.Slot))
	require.True(t, ok)
	m := x.client.apply.View.Replicas.At(uint32(slot))
	state := m.Held.At(m.Newest)
	state.Row(1, 1)[0] = 9
	x.rounds(1)
	d := x.client.Divergence()
	require.NotNil(t, d)
	mirrored, _ := x.mirrored(e)
	require.Equal(t, Divergence{NetID: id, Entity: mirrored, Tick: d.Tick, Component: "cAmmo", Field: "Rounds", Got: uint16(9)}, *d)
}
