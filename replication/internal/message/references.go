package message

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// Entities in messages and inputs are NetIDs on the wire, as those in components are. They are translated once: at the sender
// when it is known who is who, at the receiver when the message is handed over or the input is asked for. What the other end
// does not have by then is the zero entity, and stays so: a message is a thing of a moment.

// A Directory knows the entities of a world by their NetIDs.
type Directory interface {
	// NameEntities puts NetIDs in the place of entities, in rows as schema.Component.ReadColumn leaves them, and nothing in that of others.
	NameEntities(c *schema.Component, rows []uint32)
	// EntityOf returns the entity with a NetID, which may be any, or the zero entity if there is none now.
	EntityOf(id wire.NetID) ecs.Entity
}
