package replication

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/mlange-42/arche/ecs"
)

// A Group is a set of entities that appear, change and end together at every client, such as a ship and its turrets.
// After each [Client.Frame] a client shows all of them as they were in one tick of the server, or none; a group is
// visible to a peer if any of its entities is.
//
// An entity can be in one group at a time. Clients see it join and leave together with the rest of the group. An entity
// that is removed from the world leaves the group by itself; one that only loses its marker is a member again when it
// gets another.
//
// All that a client lacks of a group must fit into one packet, at the latest when the client gets its full state: with
// the default MTU that is about 1100 bytes at the widths of the schema, and at most some 32,000 words of 32 bits, where
// a text counts with its max. If a group does not fit, its entities are sent one by one, and may show different ticks
// until all have arrived; [PeerStats.SplitGroups] counts that.
type Group struct {
	server *Server
	in     interest.Group
}

// guard returns what finds two goroutines in the group's server, and panics if there is no group.
func (g *Group) guard() *exclusive.Guard {
	if g == nil || g.server == nil {
		panic("replication: there is no group: Server.NewGroup makes one")
	}
	return &g.server.calls
}

// mustExist is for calls that only read.
func (g *Group) mustExist() { g.guard().Check() }

// Add puts an entity into the group, from the next Replicate on. It does nothing if the entity is in the group or dead.
// The entity may get its [Replicated] component later. Entities that should appear together must be in it when the
// first of them is replicated.
//
// Panics if the entity is in another group.
func (g *Group) Add(e ecs.Entity) {
	defer g.guard().Leave(g.guard().Enter(exclusive.GroupAdd))
	g.server.noticeReset()
	g.in.Add(e)
}

// Remove takes an entity out of the group, if it is in it, from the next Replicate on.
func (g *Group) Remove(e ecs.Entity) {
	defer g.guard().Leave(g.guard().Enter(exclusive.GroupRemove))
	g.server.noticeReset()
	g.in.Remove(e)
}

// Len returns the number of entities in the group. Those removed from the world count until the next Replicate.
func (g *Group) Len() int {
	g.mustExist()
	return len(g.in.Members)
}
