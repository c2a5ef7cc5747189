package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/mlange-42/arche/ecs"
)

// counters count what the captures found.
type counters struct {
	rawBits       int    // of the codes of all entities at fixed width
	spawns        uint64 // entities that entered replication
	despawns      uint64 // entities that left it
	clamped       uint64 // values out of their field's range, and texts too long for it, at every capture
	copiedMarkers uint64 // entities found with the marker of another one
}

// snapshot is what the world was in the ticks that clients may still need, and what changed in each.
type snapshot struct {
	schema *schema.Schema
	opts   *serverOptions
	counters

	world *ecs.World
	mark  worldWatch
	tick  delta.Tick

	capture   capture
	histories []*delta.History // by component
	slots     slotTable
	phases    phases
	gone      []goneSlot // that the present tick found empty
	names     entityNames
	resources serverResources
	weights   map[ecs.Entity]float32 // of SetPriority, for entities that have no slot yet
	bare      table                  // of facets without components
}
