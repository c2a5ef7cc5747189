package replication

import "github.com/mlange-42/arche/ecs"

// An EntitySet is a set of entities kept by the user, for [Interest.Sets]: a team, a
// room, what is relevant to everybody. Any number of peers can share one.
type EntitySet struct {
	server  *Server
	members map[ecs.Entity]struct{}
	slots   bitset // of the members that have one
	stale   bool   // slots is not up to date
}

// NewEntitySet returns an empty set.
func (s *Server) NewEntitySet() *EntitySet {
	e := &EntitySet{server: s, members: map[ecs.Entity]struct{}{}}
	s.sets = append(s.sets, e)
	return e
}

// Add puts an entity into the set. Adding one that is in it does nothing. It may get its
// [Replicated] component later. Entities that end leave the set by themselves.
func (e *EntitySet) Add(entity ecs.Entity) {
	e.members[entity] = struct{}{}
	e.stale = true
}

// Remove takes an entity out of the set, if it is in it.
func (e *EntitySet) Remove(entity ecs.Entity) {
	delete(e.members, entity)
	e.stale = true
}

// Len returns the number of entities in the set.
func (e *EntitySet) Len() int { return len(e.members) }

// update brings the slots up to date with the world, once per tick.
func (e *EntitySet) update() {
	s := e.server
	turned := false
	for _, word := range s.slots.turned {
		turned = turned || word != 0
	}
	if !e.stale && !turned {
		return
	}
	e.stale = false
	e.slots = e.slots.grown(s.slots.len())
	clear(e.slots)
	for entity := range e.members {
		if !s.world.Alive(entity) {
			delete(e.members, entity)
			continue
		}
		if id, ok := s.NetID(entity); ok {
			e.slots.set(int(id.Slot))
		}
	}
}

// find adds the members to a set of slots.
func (e *EntitySet) find(to bitset) {
	for b, word := range e.slots {
		to[b] |= word
	}
}
