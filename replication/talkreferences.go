package replication

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/mlange-42/arche/ecs"
)

// Entities in messages and inputs are NetIDs on the wire, as those in components are. They are translated once: at the sender
// when it is known who is who, at the receiver when the message is handed over or the input is asked for. What the other end
// does not have by then is the zero entity, and stays so: a message is a thing of a moment.

// A directory knows the entities of a world by their NetIDs.
type directory interface {
	// nameEntities puts NetIDs in the place of entities, in rows as readColumn leaves them, and nothing in that of others.
	nameEntities(c *schema.Component, rows []uint32)
	// entityOf returns the entity with a NetID, which may be any, or the zero entity if there is none now.
	entityOf(id netID) ecs.Entity
}

// resolve sets the fields of a value that refer to entities to those that the row names. They are zero before.
func (m *messenger) resolve(c *schema.Component, v *messageValue, row []uint32) {
	for _, i := range c.References {
		if words := row[c.Columns[i].Word:][:2]; words[0] != 0 {
			c.WriteEntity(v.address, i, m.entityOf(netID{words[0] - 1, uint16(words[1])}))
		}
	}
}

func (s *snapshot) nameEntities(c *schema.Component, rows []uint32) { s.names.name(c, rows) }

// entityOf returns what a client may have meant. The latest Replicate found it, but the game may have removed it since.
func (s *snapshot) entityOf(id netID) ecs.Entity {
	e, ok := s.entityIn(id.Slot, id.Generation)
	if !ok {
		return ecs.Entity{}
	}
	if slot, ok := s.slotOf(e); !ok || slot != int(id.Slot) {
		return ecs.Entity{}
	}
	return e
}
