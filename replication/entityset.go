package replication

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/mlange-42/arche/ecs"
)

// An EntitySet is a set of entities kept by the user, for [Interest.Sets]: a team, a
// room, what is relevant to everybody. Any number of peers can share one.
type EntitySet struct {
	server *Server
	in     entitySet
}

// NewEntitySet returns an empty set.
func (s *Server) NewEntitySet() *EntitySet {
	s.mustExist()
	e := &EntitySet{server: s}
	e.in.snap = &s.snap
	e.in.seated, e.in.holders, e.in.waiting = map[ecs.Entity]int32{}, map[int32]ecs.Entity{}, map[ecs.Entity]struct{}{}
	s.interest.sets = append(s.interest.sets, &e.in)
	return e
}

// mustExist panics if the set is nil, or zero.
func (e *EntitySet) mustExist() {
	if e == nil || e.server == nil {
		panic("replication: there is no entity set: Server.NewEntitySet makes one")
	}
}

// Add puts an entity into the set, from the next Replicate on. Adding one that is in it
// does nothing. It may get its [Replicated] component later. Entities that are removed from
// the world leave the set by themselves, one that only loses its marker stays, and a dead one
// is not taken.
func (e *EntitySet) Add(entity ecs.Entity) {
	e.mustExist()
	e.server.noticeReset()
	e.in.add(entity)
}

func (e *entitySet) add(entity ecs.Entity) {
	if _, ok := e.seated[entity]; !ok && alive(e.snap.world, entity) {
		e.waiting[entity] = struct{}{}
	}
}

// Remove takes an entity out of the set, if it is in it, from the next Replicate on.
func (e *EntitySet) Remove(entity ecs.Entity) {
	e.mustExist()
	e.server.noticeReset()
	e.in.remove(entity)
}

func (e *entitySet) remove(entity ecs.Entity) {
	delete(e.waiting, entity)
	if slot, ok := e.seated[entity]; ok {
		e.unseat(slot)
	}
}

// Len returns the number of entities in the set. Those that ended count until the next
// Replicate.
func (e *EntitySet) Len() int {
	e.mustExist()
	return e.in.len()
}

func (e *entitySet) len() int {
	return len(e.seated) + len(e.waiting)
}

// update brings the slots up to date with the world, once per tick.
func (e *entitySet) update() {
	s := e.snap
	e.slots = e.slots.Grown(s.slots.len())
	for b, word := range s.slots.turned {
		for slot := range bitset.Slots(b, word&e.slots[b]) {
			member := e.holders[int32(slot)]
			e.unseat(int32(slot))
			e.waiting[member] = struct{}{} // it may only have lost its marker
		}
	}
	for member := range e.waiting {
		if !alive(s.world, member) {
			delete(e.waiting, member)
		} else if slot, ok := s.slotOf(member); ok {
			delete(e.waiting, member)
			e.seated[member], e.holders[int32(slot)] = int32(slot), member
			e.slots.Add(slot)
		}
	}
}

func (e *entitySet) unseat(slot int32) {
	delete(e.seated, e.holders[slot])
	delete(e.holders, slot)
	e.slots.Remove(int(slot))
}

// find adds the members to a set of slots.
func (e *entitySet) find(to bitset.Set) {
	for b, word := range e.slots {
		to[b] |= word
	}
}
