package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/mlange-42/arche/ecs"
)

// snapshot is what the world was in the ticks that clients may still need, and what changed in each.
type snapshot struct {
	schema *schema.Schema
	opts   *serverOptions
	stats  *ServerStats

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
