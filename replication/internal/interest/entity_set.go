package interest

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/mlange-42/arche/ecs"
)

// EntitySet is replication.EntitySet inside.
type EntitySet struct {
	Snap *snapshot.Snapshot

	Seated  map[ecs.Entity]int32    // members and their slots
	Holders map[int32]ecs.Entity    // members by their slots
	Waiting map[ecs.Entity]struct{} // members without a slot
	slots   bitset.Set
}

// Add adds an entity, if it is alive.
func (e *EntitySet) Add(entity ecs.Entity) {
	if _, ok := e.Seated[entity]; !ok && archeutil.Alive(e.Snap.World, entity) {
		e.Waiting[entity] = struct{}{}
	}
}

// Remove removes an entity.
func (e *EntitySet) Remove(entity ecs.Entity) {
	delete(e.Waiting, entity)
	if slot, ok := e.Seated[entity]; ok {
		e.unseat(slot)
	}
}

// Len returns the number of entities.
func (e *EntitySet) Len() int {
	return len(e.Seated) + len(e.Waiting)
}

// Update finds the slots of the members, once per tick.
func (e *EntitySet) Update() {
	s := e.Snap
	e.slots = e.slots.Grown(s.Slots.Len())
	for b, word := range s.Slots.Churned {
		for slot := range bitset.Slots(b, word&e.slots[b]) {
			member := e.Holders[int32(slot)]
			e.unseat(int32(slot))
			e.Waiting[member] = struct{}{} // the entity may live and have lost only its marker
		}
	}
	for member := range e.Waiting {
		if !archeutil.Alive(s.World, member) {
			delete(e.Waiting, member)
		} else if slot, ok := s.SlotOf(member); ok {
			delete(e.Waiting, member)
			e.Seated[member], e.Holders[int32(slot)] = int32(slot), member
			e.slots.Add(slot)
		}
	}
}

// unseat forgets the slot of a member.
func (e *EntitySet) unseat(slot int32) {
	delete(e.Seated, e.Holders[slot])
	delete(e.Holders, slot)
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
	clear(e.Seated)
	clear(e.Holders)
	clear(e.Waiting)
	clear(e.slots)
}
