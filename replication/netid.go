package replication

import (
	"fmt"

	"github.com/mlange-42/arche/ecs"
)

// A NetID names an entity on the wire and in logs: a dense index, and a counter that
// tells apart the entities which had that index one after the other. The counter
// wraps after 65,536 incarnations of 2 ticks or more each: an ID names one entity for
// 131,072 ticks at least.
type NetID struct {
	Slot       uint32
	Generation uint16
}

// String returns the ID as slot and generation, "17.2".
func (id NetID) String() string { return fmt.Sprintf("%d.%d", id.Slot, id.Generation) }

// Mirrored is on every entity that a [Client] made, so that systems can query for
// mirrored entities and find out what they mirror.
type Mirrored struct {
	id NetID
}

// NetID returns what the entity mirrors.
//
// Panics if m is nil, which is what the world has of an entity that mirrors nothing.
func (m *Mirrored) NetID() NetID {
	if m == nil {
		panic("replication: the entity mirrors nothing: ask Client.NetID, or query for entities with Mirrored")
	}
	return m.id
}

// MirroredID returns the ID of the component [Mirrored] in a world.
func MirroredID(w *ecs.World) ecs.ID {
	if w == nil {
		panic("replication: MirroredID needs a world")
	}
	return ecs.ComponentID[Mirrored](w)
}
