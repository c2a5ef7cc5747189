package replication

import (
	"fmt"

	"github.com/mlange-42/arche/ecs"
)

// A NetID names an entity on the wire and in logs: a dense index, and a counter that
// tells apart the entities which had that index one after the other. The counter
// wraps after 65,536 incarnations.
type NetID struct {
	Slot       uint32
	Generation uint16
}

// String returns the ID as slot and generation, "17.2".
func (id NetID) String() string { return fmt.Sprintf("%d.%d", id.Slot, id.Generation) }

// Replicated is the marker component: a [Server] replicates the entities of its world
// that have it. Add the zero value; the server writes the entity's slot into it.
//
// Don't copy a Replicated from one entity to another: the copy is detected and counted
// ([ServerStats.CopiedMarkers]), and the entity that was found second gets a slot of
// its own.
type Replicated struct {
	slot uint32 // slot+1; 0 before the server has seen the entity
	gen  uint16
}

// ReplicatedID returns the ID of the marker component [Replicated] in a world.
func ReplicatedID(w *ecs.World) ecs.ID { return ecs.ComponentID[Replicated](w) }

// Mirrored is on every entity that a [Client] made, so that systems can query for
// mirrored entities and find out what they mirror.
type Mirrored struct {
	id NetID
}

// NetID returns what the entity mirrors.
func (m *Mirrored) NetID() NetID { return m.id }

// MirroredID returns the ID of the component [Mirrored] in a world.
func MirroredID(w *ecs.World) ecs.ID { return ecs.ComponentID[Mirrored](w) }
