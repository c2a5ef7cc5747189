package apply

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// Withheld is what Show leaves alone, for package predict, which writes it: components of entities with a marker. If
// the server adds one of them that the entity lacks, the entity gets it with its value.
type Withheld struct {
	On         bool
	Components wire.ComponentSet // no resources
	Marker     ecs.ID            // of a component in the client's world
}

// Marks reports whether an entity has the marker. It accepts any handle.
func (h *Withheld) Marks(w *ecs.World, e ecs.Entity) bool {
	return h.On && archeutil.Alive(w, e) && w.HasUnchecked(e, h.Marker)
}

// has reports whether component k of an entity is withheld. The entity is alive, or zero for resources.
func (h *Withheld) has(w *ecs.World, e ecs.Entity, k int) bool {
	return h.On && h.Components.Has(k) && !e.IsZero() && w.HasUnchecked(e, h.Marker)
}

// of returns the components that an entity has and that are withheld, before others are added to it.
func (h *Withheld) of(v *worldView, e ecs.Entity) (set wire.ComponentSet) {
	if !h.Marks(v.World, e) {
		return set
	}
	for k := range h.Components.All() {
		if v.World.HasUnchecked(e, v.Components[k]) {
			set.Add(k)
		}
	}
	return set
}
