package replication

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/mlange-42/arche/ecs"
)

// An EntitySet is a set of entities that the user maintains, for [Interest.Sets]: a team, a room. Any number of peers
// can share one.
type EntitySet struct {
	server *Server
	in     interest.EntitySet
}

// guard returns what finds two goroutines in the set's server, and panics if there is no set.
func (e *EntitySet) guard() *exclusive.Guard {
	if e == nil || e.server == nil {
		panic("replication: there is no entity set: Server.NewEntitySet makes one")
	}
	return &e.server.calls
}

// mustExist is for calls that only read.
func (e *EntitySet) mustExist() { e.guard().Check() }

// Add puts an entity into the set, from the next Replicate on. It does nothing if the entity is in the set or dead. The
// entity may get its [Replicated] component later. It leaves the set when it is removed from the world, but not when it
// only loses its marker.
func (e *EntitySet) Add(entity ecs.Entity) {
	defer e.guard().Leave(e.guard().Enter(exclusive.SetAdd))
	e.server.noticeReset()
	e.in.Add(entity)
}

// Remove takes an entity out of the set, if it is in it, from the next Replicate on.
func (e *EntitySet) Remove(entity ecs.Entity) {
	defer e.guard().Leave(e.guard().Enter(exclusive.SetRemove))
	e.server.noticeReset()
	e.in.Remove(entity)
}

// Len returns the number of entities in the set. Those removed from the world count until the next Replicate.
func (e *EntitySet) Len() int {
	e.mustExist()
	return e.in.Len()
}
