package interest

import (
	"slices"

	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/mlange-42/arche/ecs"
)

// EntitySet is replication.EntitySet inside.
type EntitySet struct {
	of *Shared

	seated  map[ecs.Entity]int32    // members and their slots
	holders map[int32]ecs.Entity    // members by their slots
	waiting map[ecs.Entity]struct{} // members without a slot
	slots   bitset.Set
	listed  bool // in Shared.Sets, as it has members
}

// NewEntitySet returns an empty set.
func (s *Shared) NewEntitySet() EntitySet {
	return EntitySet{
		of: s, seated: map[ecs.Entity]int32{}, holders: map[int32]ecs.Entity{}, waiting: map[ecs.Entity]struct{}{},
	}
}

// Add adds an entity, if it is alive.
func (e *EntitySet) Add(entity ecs.Entity) {
	if _, ok := e.seated[entity]; !ok && archeutil.Alive(e.of.Snap.World, entity) {
		e.waiting[entity] = struct{}{}
		if !e.listed {
			e.listed = true
			e.of.Sets = append(e.of.Sets, e)
		}
	}
}

// Remove removes an entity.
func (e *EntitySet) Remove(entity ecs.Entity) {
	delete(e.waiting, entity)
	if slot, ok := e.seated[entity]; ok {
		e.unseat(slot)
	}
}

// Len returns the number of entities.
func (e *EntitySet) Len() int {
	return len(e.seated) + len(e.waiting)
}

// UpdateSets finds the slots of the members of all sets, once per tick. It drops empty sets from the list.
func (s *Shared) UpdateSets() {
	s.Sets = slices.DeleteFunc(s.Sets, func(e *EntitySet) bool {
		e.update()
		e.listed = e.Len() > 0
		return !e.listed
	})
}

// update finds the slots of the members.
func (e *EntitySet) update() {
	s := e.of.Snap
	e.slots = e.slots.Grown(s.Slots.Len())
	for b := range s.Slots.ChurnedBlocks.All() {
		for slot := range bitset.Slots(b, s.Slots.Churned[b]&e.slots[b]) {
			member := e.holders[int32(slot)]
			e.unseat(int32(slot))
			e.waiting[member] = struct{}{} // the entity may live and have lost only its marker
		}
	}
	for member := range e.waiting {
		if !archeutil.Alive(s.World, member) {
			delete(e.waiting, member)
		} else if slot, ok := s.SlotOf(member); ok {
			delete(e.waiting, member)
			e.seated[member], e.holders[int32(slot)] = int32(slot), member
			e.slots.Add(slot)
		}
	}
}

// unseat forgets the slot of a member.
func (e *EntitySet) unseat(slot int32) {
	delete(e.seated, e.holders[slot])
	delete(e.holders, slot)
	e.slots.Remove(int(slot))
}

// find adds the slots of the members to a set.
func (e *EntitySet) find(to bitset.Set) {
	for b, word := range e.slots {
		to[b] |= word
	}
}

// Forget empties the set.
func (e *EntitySet) Forget() {
	clear(e.seated)
	clear(e.holders)
	clear(e.waiting)
	clear(e.slots)
}
