package archeutil

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// EntityNames tells by which NetID the entities of a world go.
type EntityNames struct {
	byID    []entityName // by the entity's ID in Arche
	Changed delta.Tick   // when an entity got a NetID or lost it
	Churned bitset.Set   // those that did so then, by ID
}

// Add notes that the entity has got a NetID.
func (n *EntityNames) Add(e ecs.Entity, id wire.NetID, now delta.Tick) {
	n.Set(e, id)
	n.noteChurn(e.ID(), now)
}

// Set notes the NetID of an entity.
func (n *EntityNames) Set(e ecs.Entity, id wire.NetID) {
	if more := int(e.ID()) + 1 - len(n.byID); more > 0 {
		n.byID = append(n.byID, make([]entityName, more)...)
	}
	n.byID[e.ID()] = entityName{e.Generation(), id.Slot + 1, id.Generation}
}

// Remove notes that the entity with the given ID in Arche has lost the slot. It may be
// another entity already, with another slot.
func (n *EntityNames) Remove(id uint32, slot int, now delta.Tick) {
	if n.byID[id].slot == uint32(slot)+1 {
		n.byID[id] = entityName{}
	}
	n.noteChurn(id, now)
}

// noteChurn notes that in tick now an entity got a NetID or lost it.
func (n *EntityNames) noteChurn(id uint32, now delta.Tick) {
	if n.Changed != now {
		n.Changed = now
		clear(n.Churned)
	}
	n.Churned = n.Churned.Grown(len(n.byID))
	n.Churned.Add(int(id))
}

// Of returns the words of a reference to an entity, given its ID and generation in Arche.
// Any numbers may be given: what is not an entity of this world has no name.
func (n *EntityNames) Of(id, generation uint32) (slot, counter uint32) {
	if uint64(id) < uint64(len(n.byID)) {
		if name := &n.byID[id]; name.slot != 0 && name.entity == generation {
			return name.slot, uint32(name.generation)
		}
	}
	return 0, 0
}

// Name puts NetIDs in the place of entities, in rows as readColumn leaves them.
func (n *EntityNames) Name(c *schema.Component, rows []uint32) {
	for _, i := range c.References {
		for w := c.Columns[i].Word; w < len(rows); w += c.Words {
			rows[w], rows[w+1] = n.Of(rows[w], rows[w+1])
		}
	}
}

type entityName struct {
	entity     uint32 // generation of the entity
	slot       uint32 // slot+1, or 0 if the entity is not replicated
	generation uint16 // of the slot
}
