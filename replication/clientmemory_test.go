package replication

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestAbandonedPartsMakeRoom: parts of entities that are gone do not block the assembly of others.
func TestAbandonedPartsMakeRoom(t *testing.T) {
	x := connectedWire(t, testSchema(), WithMTU(128))
	bulk := ecs.ComponentID[tBulk](x.world)
	var entities []ecs.Entity
	for range receive.MaxAssemblies + 10 {
		entities = append(entities, x.spawn(bulk))
	}
	for i, p := range x.replicate() {
		if i%3 == 0 { // some parts of all
			x.deliver(p)
		}
	}
	for _, e := range entities {
		x.world.RemoveEntity(e)
	}
	x.rounds(10)
	x.requireEqual()
	for range 10 {
		x.spawn(bulk)
	}
	x.rounds(100)
	x.requireEqual()
}

// TestMoreComponentSetsThanAClientKnows: over time a game may have any number of them.
func TestMoreComponentSetsThanAClientKnows(t *testing.T) {
	const tags = 13
	s := NewSchema()
	for i := range tags {
		RegisterType(s, reflect.StructOf([]reflect.StructField{{Name: fmt.Sprintf("F%d", i), Type: reflect.TypeFor[bool]()}}), Name(fmt.Sprintf("Tag%d", i)))
	}
	x := connectedWire(t, s, WithWindow(8))
	e := x.spawn()
	x.rounds(3)
	for k := range tags { // as if so many had been used already
		x.client.recv.Layouts.Of(wire.ComponentSet{1 << k})
	}
	for n := uint64(0); len(x.client.recv.Layouts.Known) < receive.MaxLayouts; n++ {
		x.client.recv.Layouts.Of(wire.ComponentSet{n})
	}
	for n := 1; n < 1<<tags; n += 37 {
		for i := range tags {
			if id := ecs.TypeID(x.world, s.raw.Components[i].Typ); x.world.Has(e, id) != (n>>i&1 != 0) {
				if x.world.Has(e, id) {
					x.world.Remove(e, id)
				} else {
					x.world.Add(e, id)
				}
			}
		}
		x.round()
	}
	x.rounds(3)
	x.requireEqual()
	require.LessOrEqual(t, x.client.Stats().RefusedPackets, uint64(1), "until the next Apply")
	require.Less(t, len(x.client.recv.Layouts.Known), receive.MaxLayouts)
}

// TestClientsHoldStatesForTwoWindows, and not longer: they take memory.
func TestClientsHoldStatesForTwoWindows(t *testing.T) {
	for _, window := range []int{8, 16, 64} {
		x, e, move := crowd(t, 1, WithWindow(window))
		for i := range 8 * window {
			move(e[0], float32(1-i%2*2))
			x.round()
		}
		held := &x.client.recv.Replicas.At(0).Held
		for age := range delta.Tick(2 * window) {
			require.NotNil(t, held.At(x.server.snap.Tick-age), "window %d, %d ticks old", window, age)
		}
		require.EqualValues(t, 2*window+1, held.N, "window %d: and one that is as old as that", window)
		require.LessOrEqual(t, len(held.Ring), 2*window+2, "window %d: it has room for no more than it needs", window)
	}
}
