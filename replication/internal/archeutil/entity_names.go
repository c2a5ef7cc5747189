package archeutil

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// EntityNames finds the NetID of an entity.
type EntityNames struct {
	byID    []entityName // by ID in Arche
	Any     bool         // Churned is not empty
	Churned bitset.Set   // IDs in Arche of the entities that got a NetID or lost it since Settle
}

// Add stores the NetID that an entity got.
func (n *EntityNames) Add(e ecs.Entity, id wire.NetID) {
	n.Set(e, id)
	n.noteChurn(e.ID())
}

// Set stores the NetID of an entity.
func (n *EntityNames) Set(e ecs.Entity, id wire.NetID) {
	if more := int(e.ID()) + 1 - len(n.byID); more > 0 {
		n.byID = append(n.byID, make([]entityName, more)...)
	}
	n.byID[e.ID()] = entityName{e.Generation(), id.Slot + 1, id.Generation}
}

// Remove notes that the entity with the given ID in Arche lost its slot. The ID may
// belong to another entity already, with another slot.
func (n *EntityNames) Remove(id uint32, slot int) {
	if n.byID[id].slot == uint32(slot)+1 {
		n.byID[id] = entityName{}
	}
	n.noteChurn(id)
}

// noteChurn notes that an entity got a NetID or lost it.
func (n *EntityNames) noteChurn(id uint32) {
	n.Any = true
	n.Churned = n.Churned.Grown(len(n.byID))
	n.Churned.Add(int(id))
}

// Settle forgets what churned, as all references have been captured since.
func (n *EntityNames) Settle() {
	if n.Any {
		n.Any = false
		clear(n.Churned)
	}
}

// Of returns the words of a reference to an entity, given its ID and generation in Arche. Any
// numbers are allowed; for what is not a replicated entity it returns zeros.
func (n *EntityNames) Of(id, generation uint32) (slot, counter uint32) {
	if uint64(id) < uint64(len(n.byID)) {
		if name := &n.byID[id]; name.slot != 0 && name.entity == generation {
			return name.slot, uint32(name.generation)
		}
	}
	return 0, 0
}

// Name replaces entities by NetIDs in rows of a component that was read from a world.
func (n *EntityNames) Name(c *schema.Component, rows []uint32) {
	for _, i := range c.References {
		for w := c.Columns[i].Word; w < len(rows); w += c.Words {
			rows[w], rows[w+1] = n.Of(rows[w], rows[w+1])
		}
	}
}

// entityName is the NetID of an entity.
type entityName struct {
	entity     uint32 // generation of the entity in Arche
	slot       uint32 // slot+1, or 0 if the entity is not replicated
	generation uint16 // of the slot
}
