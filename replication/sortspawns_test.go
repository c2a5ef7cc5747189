package replication

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// sortedCrowd is a world with a grid of cells of 10 that sorts spawns.
type sortedCrowd struct {
	*fixture
	rng      *rand.Rand
	grid     *Grid
	position ecs.ID
}

func newSortedCrowd(t *testing.T) *sortedCrowd {
	schema := testSchema()
	Register[cAmmo](schema, OwnerOnly())
	Register[rChildOf](schema)
	x := &sortedCrowd{fixture: connectedWire(t, schema), rng: rand.New(rand.NewPCG(seedOf(t), 1))}
	x.grid = x.server.NewGrid(10, "tPosition.X", "tPosition.Y")
	x.grid.SortSpawns()
	x.position = ecs.ComponentID[tPosition](x.world)
	return x
}

// crowd spawns entities at random places.
func (x *sortedCrowd) crowd(n int, more ...ecs.ID) (entities []ecs.Entity) {
	for range n {
		e := x.spawn(append(more, x.position)...)
		*(*tPosition)(x.world.Get(e, x.position)) = tPosition{X: x.coordinate(), Y: x.coordinate()}
		entities = append(entities, e)
	}
	return entities
}

// coordinate returns one that rounding takes to no other cell.
func (x *sortedCrowd) coordinate() float32 { return float32(x.rng.IntN(200)-100) + 0.5 }

// cell returns the cell of an entity by brute force.
func (x *sortedCrowd) cell(e ecs.Entity) int {
	p := (*tPosition)(x.world.Get(e, x.position))
	return int((p.X+100)/10)*1000 + int((p.Y+100)/10)
}

// requireSorted checks that the slots of entities are in the order of their cells, and in each cell in that of the world.
func (x *sortedCrowd) requireSorted(entities []ecs.Entity) {
	x.t.Helper()
	bySlot := map[int]int{} // indices
	least, most := x.slotOf(entities[0]), 0
	for i, e := range entities {
		slot := x.slotOf(e)
		bySlot[slot], least, most = i, min(least, slot), max(most, slot)
	}
	before := -1
	for slot := least; slot <= most; slot++ {
		i, ok := bySlot[slot]
		if !ok {
			continue
		}
		if before >= 0 {
			a, b := x.cell(entities[before]), x.cell(entities[i])
			require.True(x.t, a < b || a == b && before < i, "slot %d", slot)
		}
		before = i
	}
}

// requireUnsorted checks that the slots of entities are in the order of the world.
func (x *sortedCrowd) requireUnsorted(entities []ecs.Entity) {
	x.t.Helper()
	for i := range entities[1:] {
		require.Less(x.t, x.slotOf(entities[i]), x.slotOf(entities[i+1]))
	}
}

// TestSortSpawns of different kinds, in new slots and in those of others.
func TestSortSpawns(t *testing.T) {
	x := newSortedCrowd(t)
	first := x.crowd(20)
	x.rounds(3)
	level := x.crowd(500)
	health, ammo, child := ecs.ComponentID[tHealth](x.world), ecs.ComponentID[cAmmo](x.world), ecs.ComponentID[rChildOf](x.world)
	few := x.crowd(63, health)
	owned := x.crowd(200, ammo)
	children := x.crowd(200, child)
	for i, e := range children {
		x.world.Relations().Set(e, child, level[i%3])
	}
	for _, e := range owned {
		x.server.SetOwner(e, x.peer)
	}
	x.rounds(3)
	x.requireUnsorted(first)
	x.requireSorted(level)
	x.requireUnsorted(few)
	x.requireSorted(owned)
	slices.SortFunc(owned, func(a, b ecs.Entity) int { return cmp.Compare(x.slotOf(a), x.slotOf(b)) })
	before := 0
	for _, e := range owned { // what has a condition has slots of its own, in the same order
		sub, ok := x.server.snap.Slots.SubEntity(0, x.slotOf(e))
		require.True(t, ok)
		require.Greater(t, sub, before)
		before = sub
	}
	x.requireEqual()
	slices.SortFunc(children, func(a, b ecs.Entity) int { return cmp.Compare(x.slotOf(a), x.slotOf(b)) })
	for i := range children[1:] { // those with one target come first in the world
		require.LessOrEqual(t, x.cell(children[i]), x.cell(children[i+1]))
	}

	for i, e := range level {
		if i%3 == 0 {
			x.world.RemoveEntity(e)
		}
	}
	x.rounds(3)
	late := x.crowd(150) // in slots of the former ones
	x.rounds(3)
	x.requireSorted(late)
	x.requireEqual()

	x.world.Reset()
	again := x.crowd(500)
	x.rounds(3)
	x.requireSorted(again)
	x.requireEqual()
	require.EqualValues(t, len(again), x.server.Stats().Entities)
}
