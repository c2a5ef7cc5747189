package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/mlange-42/arche/ecs/event"
	"github.com/mlange-42/arche/listener"
	"github.com/stretchr/testify/require"
)

// Arche calls a world's listener in the middle of Frame, and it may change the world.

// TestListenerRemovesWhatSpawns: the entity counts as removed by the user. It comes again when the server spawns it anew.
func TestListenerRemovesWhatSpawns(t *testing.T) {
	x := connectedWire(t, testSchema())
	position, health := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tHealth](x.world)
	removes := true
	x.client.OnSpawn(func(ecs.Entity) { require.False(t, removes, "the entity is gone") })
	l := listener.NewCallback(func(w *ecs.World, e ecs.EntityEvent) {
		if removes {
			w.RemoveEntity(e.Entity)
		}
	}, event.EntityCreated)
	x.mirror.SetListener(&l)
	e := x.spawn(position)
	x.rounds(3)
	(*tPosition)(x.world.Get(e, position)).X = 1
	x.rounds(3)
	x.world.Add(e, health)
	x.rounds(3)
	require.Zero(t, x.mirror.Stats().Entities.Used)

	removes = false
	x.world.RemoveEntity(e)
	x.rounds(3)
	x.spawn(position, health)
	x.rounds(3)
	x.requireEqual()
}

// TestListenerRemovesTheMarker: the entity is updated nevertheless.
func TestListenerRemovesTheMarker(t *testing.T) {
	x := connectedWire(t, testSchema())
	position := ecs.ComponentID[tPosition](x.world)
	l := listener.NewCallback(func(w *ecs.World, e ecs.EntityEvent) { w.Remove(e.Entity, MirroredID(w)) }, event.EntityCreated)
	x.mirror.SetListener(&l)
	e := x.spawn(position)
	x.rounds(3)
	(*tPosition)(x.world.Get(e, position)).X = 1
	x.rounds(3)
	require.EqualValues(t, 1, x.position(e).X)
}

// TestListenerRemovesWhatChanges: an entity goes when the server adds a component or removes one, also one under a
// condition.
func TestListenerRemovesWhatChanges(t *testing.T) {
	for name, change := range map[string]func(x *fixture, e ecs.Entity){
		"added":   func(x *fixture, e ecs.Entity) { x.world.Add(e, ecs.ComponentID[tHealth](x.world)) },
		"removed": func(x *fixture, e ecs.Entity) { x.world.Remove(e, ecs.ComponentID[tFrozen](x.world)) },
		"conditional": func(x *fixture, e ecs.Entity) {
			x.world.Add(e, ecs.ComponentID[cAmmo](x.world))
		},
	} {
		t.Run(name, func(t *testing.T) {
			schema := testSchema()
			Register[cAmmo](schema, OwnerOnly())
			x := connectedWire(t, schema)
			e := x.spawn(ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tFrozen](x.world))
			x.server.SetOwner(e, x.peer)
			x.rounds(3)
			require.Equal(t, 1, x.mirror.Stats().Entities.Used)
			OnAdd(x.client, func(ecs.Entity, *tHealth) { require.Fail(t, "the entity is gone") })
			l := listener.NewCallback(func(w *ecs.World, e ecs.EntityEvent) {
				if !e.EventTypes.Contains(event.EntityRemoved) {
					w.RemoveEntity(e.Entity)
				}
			}, event.ComponentAdded|event.ComponentRemoved)
			x.mirror.SetListener(&l)
			change(x, e)
			x.rounds(3)
			require.Zero(t, x.mirror.Stats().Entities.Used)
			x.mirror.SetListener(nil)
			other := x.spawn(ecs.ComponentID[tPosition](x.world))
			x.rounds(3)
			_, ok := x.mirrored(other)
			require.True(t, ok)
		})
	}
}

// TestListenerMovesOtherEntities: rows that wait to be written must not be written to where the entity was.
func TestListenerMovesOtherEntities(t *testing.T) {
	x := connectedWire(t, testSchema())
	position, health := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tHealth](x.world)
	local := ecs.ComponentID[tLocal](x.mirror)
	var entities []ecs.Entity
	for range 300 {
		entities = append(entities, x.spawn(position))
	}
	x.rounds(5)
	next := 0
	l := listener.NewCallback(func(w *ecs.World, _ ecs.EntityEvent) {
		if m, ok := x.mirrored(entities[next]); ok && !w.Has(m, local) {
			w.Add(m, local)
		}
		next = (next + 7) % len(entities)
	}, event.EntityCreated|event.ComponentAdded)
	x.mirror.SetListener(&l)
	for i, e := range entities {
		if i%3 == 0 {
			x.world.Add(e, health)
		}
		(*tPosition)(x.world.Get(e, position)).Y++
		if i%10 == 0 {
			x.spawn(position)
		}
	}
	x.rounds(5)
	require.NotZero(t, next)
	x.requireEqual()
	require.Nil(t, x.client.Verify())
}

// TestListenerMustNotCallTheClient: what a listener does happens in the middle of Frame.
func TestListenerMustNotCallTheClient(t *testing.T) {
	x := connectedWire(t, testSchema())
	for name, call := range map[string]func(){
		"Frame":   func() { _ = x.client.Frame(0) },
		"Close":   func() { x.client.Close() },
		"Receive": func() { _ = x.client.Receive(nil) },
	} {
		l := listener.NewCallback(func(*ecs.World, ecs.EntityEvent) { call() }, event.EntityCreated)
		x.mirror.SetListener(&l)
		e := x.spawn(ecs.ComponentID[tPosition](x.world))
		sentence := "replication: " + name + " in a function that Frame or Close calls, such as Arche's listener: " +
			"the Frame that called it has not ended; note it and do so afterwards"
		require.PanicsWithValue(t, sentence, func() { x.rounds(3) })
		x.mirror.SetListener(nil)
		x.world.RemoveEntity(e)
		x.rounds(5)
		x.requireEqual()
	}
}
