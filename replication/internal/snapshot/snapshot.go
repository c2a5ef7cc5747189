// Package snapshot captures an Arche world once per tick: slots, their versions, and what changed when.
package snapshot

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/mlange-42/arche/ecs"
)

// Counters count what the captures found.
type Counters struct {
	RawBits       int    // of the codes of all entities at fixed width
	Spawns        uint64 // entities that entered replication
	Despawns      uint64 // entities that left it
	Clamped       uint64 // values out of their field's range, and texts too long for it, at every capture
	CopiedMarkers uint64 // entities found with the marker of another one
}

// Snapshot is what the world was in the ticks that clients may still need, and what changed in each.
type Snapshot struct {
	Schema *schema.Schema
	Opts   *config.ServerOptions
	Counters

	World *ecs.World
	Mark  archeutil.WorldWatch
	Tick  delta.Tick

	Capture   capture
	Histories []*delta.History // by component
	Slots     SlotTable
	Phases    phases
	Gone      []goneSlot // that the present tick found empty
	names     archeutil.EntityNames
	Resources serverResources
	Weights   map[ecs.Entity]float32 // of SetPriority, for entities that have no slot yet
	Bare      Table                  // of sub-entities without components
}

// Predicts reports whether what an entity was at these ticks is good to tell what it is now.
func (s *Snapshot) Predicts(of BasePair) bool {
	span := of.Base - of.Second
	return span <= delta.MaxSpan && s.Tick-of.Base <= delta.MaxExtrapolation*span
}

// Fresh reports whether a tick is young enough for a baseline.
func (s *Snapshot) Fresh(at delta.Tick) bool { return s.Tick-at <= delta.Tick(s.Opts.Window) }

// Sure reports whether the state of a slot at a tick long ago is sure to be known. It may be by chance, for want of changes in
// the slots beside it; but what a peer is sent must not depend on those, which it may not see.
func (s *Snapshot) Sure(slot int, at delta.Tick) bool {
	for _, h := range s.Histories {
		if !h.Sure(slot, at, s.Tick) {
			return false
		}
	}
	return true
}

// SlotOf returns the slot of an entity that the latest capture found.
func (s *Snapshot) SlotOf(e ecs.Entity) (slot int, ok bool) {
	if !s.Mark.Intact() {
		return 0, false
	}
	m := (*Marker)(archeutil.LookUp(s.World, e, s.Capture.Marker))
	if m == nil {
		return 0, false
	}
	slot = int(m.Slot) - 1
	if slot < 0 || slot >= s.Slots.Len() || !s.Slots.Alive.Has(slot) || s.Slots.Info[slot].Entity != e || s.Slots.HoldsSubEntities(slot>>6) {
		return 0, false
	}
	return slot, true
}
