package message

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// Directory maps the entities of a world to NetIDs and back. Like components, messages and inputs
// have NetIDs on the wire instead of entities. They are translated once: at the sender as soon as
// the entities have NetIDs, at the receiver when the message is handled or the input is used. An
// entity that the receiver doesn't have by then becomes the zero entity and remains so, since a
// message is only valid at the moment it is handled.
type Directory interface {
	// NameEntities replaces the entities in rows that schema.Component.ReadColumn made by their
	// NetIDs, and those that have none by nothing.
	NameEntities(c *schema.Component, rows []uint32)
	// EntityOf returns the entity with any NetID, or the zero entity if there is none now.
	EntityOf(id wire.NetID) ecs.Entity
}
