// Package snapshot captures an Arche world once per tick: slots, their versions, and what changed when.
package snapshot

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
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

// A BasePair is two baselines that go together.
type BasePair struct{ Base, Second delta.Tick }

// EntityIn returns the entity in a slot, if it is the one of the given generation.
func (s *Snapshot) EntityIn(slot uint32, generation uint16) (ecs.Entity, bool) {
	if !s.Mark.Intact() || int64(slot) >= int64(s.Slots.Len()) || s.Slots.HoldsSubEntities(int(slot>>6)) || !s.Slots.Alive.Has(int(slot)) ||
		s.Slots.Info[slot].Generation != generation || s.Resources.In(int(slot)) {
		return ecs.Entity{}, false
	}
	return s.Slots.Info[slot].Entity, true
}

func (s *Snapshot) NameEntities(c *schema.Component, rows []uint32) { s.names.Name(c, rows) }

// EntityOf returns what a client may have meant. The latest Replicate found it, but the game may have removed it since.
func (s *Snapshot) EntityOf(id wire.NetID) ecs.Entity {
	e, ok := s.EntityIn(id.Slot, id.Generation)
	if !ok {
		return ecs.Entity{}
	}
	if slot, ok := s.SlotOf(e); !ok || slot != int(id.Slot) {
		return ecs.Entity{}
	}
	return e
}

// SettleWeights gives weights to entities that had no slot when these were set.
func (s *Snapshot) SettleWeights() {
	for e, weight := range s.Weights {
		if slot, ok := s.SlotOf(e); ok {
			s.GiveWeight(slot, weight)
			delete(s.Weights, e)
		} else if !archeutil.Alive(s.World, e) {
			delete(s.Weights, e)
		}
	}
}

// GiveWeight gives a weight to what is in a slot. What it has under conditions has slots of its own.
func (s *Snapshot) GiveWeight(slot int, weight float32) {
	s.Slots.Info[slot].Weight = weight
	s.Slots.Weights.forgetAll()
}

// Phase sets when the components of a slot are looked at that have their turn every few
// ticks: those of a group together. The slot has one turn more, in the next tick: its turn in
// the former phase may be lost, and by moving again and again it could lose every one.
func (s *Snapshot) Phase(slot int, phase uint32) {
	if s.Phases.of[slot] == phase {
		return
	}
	s.Phases.of[slot] = phase
	if !s.Slots.Alive.Has(slot) {
		return
	}
	s.Phases.early = s.Phases.early.Grown(s.Slots.Len())
	s.Phases.early.Add(slot)
	for i := range s.Slots.Info[slot].Table.Members {
		m := &s.Slots.Info[slot].Table.Members[i]
		for j := range m.Blocks {
			if m.values.Every > 1 {
				m.Blocks[j].rows = 0 // else it might be thought to have had its turn
			}
		}
	}
}

// RefreshShare is the share of slots that is looked after each tick.
const RefreshShare = 1024

// refresh looks after ticks that would become too old to be compared, a few slots each
// time it is called.
func (s *Snapshot) refresh(old func(b int, slots uint64, limit delta.Tick)) {
	n := s.Slots.Len()
	first := int(uint32(s.Tick)%RefreshShare) * n / RefreshShare
	last := int(uint32(s.Tick)%RefreshShare+1) * n / RefreshShare
	for slot := first; slot < last; { // block by block
		b, end := slot>>6, min(last, (slot|63)+1)
		slots := ^uint64(0) << (slot & 63) & (^uint64(0) >> (63 - (end-1)&63))
		old(b, slots, s.Tick-wire.Ancient)
		s.refreshSlots(b, slots)
		slot = end
	}
}

// refreshSlots brings the ticks of slots of a block forward that are too old.
func (s *Snapshot) refreshSlots(b int, slots uint64) {
	limit := s.Tick - wire.Ancient
	for slot := range bitset.Slots(b, slots) {
		info := &s.Slots.Info[slot]
		for _, t := range []*delta.Tick{&s.Slots.ChangedAt[slot], &s.Slots.ChangedBefore[slot], &info.Born, &info.SetChanged} {
			if t.Before(limit) {
				*t = limit
			}
		}
		for _, h := range s.Histories {
			h.Refresh(slot, limit)
		}
	}
}
