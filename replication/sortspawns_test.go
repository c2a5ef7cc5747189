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

// requireCellsInOrder checks that the slots of entities are in the order of their cells.
func (x *sortedCrowd) requireCellsInOrder(entities []ecs.Entity) {
	x.t.Helper()
	slices.SortFunc(entities, func(a, b ecs.Entity) int { return cmp.Compare(x.slotOf(a), x.slotOf(b)) })
	for i := range entities[1:] {
		require.LessOrEqual(x.t, x.cell(entities[i]), x.cell(entities[i+1]))
	}
}

// TestSpawnsAreSortedBetweenOthers: Arche keeps what has the same relation together, and fills the place of what despawns
// with what spawned last, so older entities lie between the new ones.
func TestSpawnsAreSortedBetweenOthers(t *testing.T) {
	x := newSortedCrowd(t)
	child := ecs.ComponentID[rChildOf](x.world)
	rooms := x.crowd(50)
	relate := func(children []ecs.Entity) []ecs.Entity {
		for i, e := range children {
			x.world.Relations().Set(e, child, rooms[i%50])
		}
		return children
	}
	relate(x.crowd(50, child))
	x.rounds(3)
	level := relate(x.crowd(3000, child))
	x.rounds(3)
	x.requireCellsInOrder(level)

	old := x.crowd(2000)
	x.rounds(3)
	late := x.crowd(1000)
	for i := 0; i < len(old); i += 2 {
		x.world.RemoveEntity(old[i])
	}
	x.rounds(3)
	x.requireCellsInOrder(late)
	x.requireEqual()
}

// TestACodecPanicsWhileSpawnsAreSorted: the user sees the codec's own panic, and the world is not locked afterwards.
func TestACodecPanicsWhileSpawnsAreSorted(t *testing.T) {
	type shakyPlace struct {
		X, Y float32 `repl:"range=-100:100,step=0.5"`
		Mood fickle
	}
	left := 0
	schema := NewSchema()
	Register[shakyPlace](schema, With(shaky{&left}))
	x := connectedWire(t, schema)
	x.server.NewGrid(10, "shakyPlace.X", "shakyPlace.Y").SortSpawns()
	id := ecs.ComponentID[shakyPlace](x.world)
	for range 100 {
		x.spawn(id)
	}
	left = 10
	require.PanicsWithValue(t, "the user's", x.server.Replicate)
	require.False(t, x.world.IsLocked())
	x.rounds(10)
	x.requireEqual()
}
