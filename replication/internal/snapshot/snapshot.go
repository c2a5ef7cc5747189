// Package snapshot captures an Arche world once per tick. It gives each replicated entity a slot,
// keeps the versions of its components by tick, and records which slots changed when.
// Server.Replicate calls it first; interest, ackstate, encode and sender then read what it found.
// It knows nothing of peers.
package snapshot

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/history"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// Counters count what the captures found.
type Counters struct {
	RawBits       int    // all entities at fixed width
	Spawns        uint64 // entities that entered replication
	Despawns      uint64 // entities that left it
	Clamped       uint64 // values out of their field's range, and texts too long for it, counted at every capture
	CopiedMarkers uint64 // entities found with the marker of another entity
}

// Snapshot holds what the world was in the ticks that clients may still need, and what changed in
// each.
type Snapshot struct {
	Schema *schema.Schema
	Opts   *config.ServerOptions
	Counters

	World *ecs.World
	Mark  archeutil.WorldWatch
	Tick  delta.Tick

	Capture   capture
	Histories []*history.Rows // by component
	Slots     SlotTable
	Bases     BaseGrid
	Steady    Steadiness
	Phases    phases
	Gone      []goneSlot // slots that became empty in this tick
	names     archeutil.EntityNames
	Resources serverResources
	Weights   map[ecs.Entity]float32 // set by SetPriority, of entities that have no slot yet
	Bare      Table                  // of sub-entities that have lost their components
}

// Predicts reports whether the states at two baselines can predict the present one.
func (s *Snapshot) Predicts(of BasePair) bool {
	span := of.Base - of.Second
	return span <= delta.MaxSpan && s.Tick-of.Base <= delta.MaxExtrapolation*span
}

// Fresh reports whether a tick is young enough for a baseline.
func (s *Snapshot) Fresh(at delta.Tick) bool { return s.Tick-at <= delta.Tick(s.Opts.Window) }

// Sure reports whether the state of a slot at a tick long ago is certain to be known. It may be
// known by chance, because slots beside it did not change. What a peer is sent must not depend on
// those, which it may not see.
func (s *Snapshot) Sure(slot int, at delta.Tick) bool {
	for _, h := range s.Histories {
		if !h.Sure(slot, at, s.Tick) {
			return false
		}
	}
	return true
}

// BeginColumns begins a block of c with components of some slots, none of whose baselines is before tick oldest.
func (s *Snapshot) BeginColumns(
	c *delta.Columns, b int, slots uint64, components *wire.ComponentSet, oldest delta.Tick,
) {
	c.Begin(oldest)
	for k := range components.All() {
		if rows := s.Histories[k].Block(b << 6); rows != nil {
			c.Add(k, rows, slots)
		}
	}
}

// SlotOf returns the slot of an entity that the latest capture found.
func (s *Snapshot) SlotOf(e ecs.Entity) (slot int, ok bool) {
	if !s.Mark.Intact() {
		return 0, false
	}
	m := (*marker)(archeutil.LookUp(s.World, e, s.Capture.Marker))
	if m == nil {
		return 0, false
	}
	slot = int(m.slot) - 1
	if !s.Slots.holds(slot, e) || !s.Slots.Alive.Has(slot) {
		return 0, false
	}
	return slot, true
}

// A BasePair is a baseline and the second baseline that goes with it.
type BasePair struct{ Base, Second delta.Tick }

// NameEntities replaces entities by NetIDs in rows of a component.
func (s *Snapshot) NameEntities(c *schema.Component, rows []uint32) { s.names.Name(c, rows) }

// EntityOf returns the entity with a NetID, if the latest capture found it and it is still alive and replicated; else
// the zero entity.
func (s *Snapshot) EntityOf(id wire.NetID) ecs.Entity {
	if int64(id.Slot) >= int64(s.Slots.Len()) || s.Resources.In(int(id.Slot)) {
		return ecs.Entity{}
	}
	info := &s.Slots.Info[id.Slot]
	if slot, ok := s.SlotOf(info.Entity); !ok || slot != int(id.Slot) || info.Generation != id.Generation {
		return ecs.Entity{}
	}
	return info.Entity
}

// SettleWeights applies weights that were set before their entity had a slot.
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

// GiveWeight sets the weight of the entity in a slot. Its sub-entities have the same.
func (s *Snapshot) GiveWeight(slot int, weight float32) {
	s.Slots.Info[slot].Weight = weight
	s.Slots.Weights.forgetAll()
}

// Phase sets the phase of a slot, which selects the ticks in which its components with an interval
// are captured. The slots of a group share a phase. The slot is captured once more in the next
// tick: it may miss its tick in the former phase, and with ever new phases it could miss every one.
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
				m.Blocks[j].rows = 0 // otherwise it might count as captured in this phase
			}
		}
	}
}

// RefreshShare is the number of ticks in which every slot is refreshed once.
const RefreshShare = 1024

// refresh brings forward ticks that would become too old to be compared, for a few slots in each
// tick.
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

// refreshSlots brings forward the ticks of slots of a block that are too old.
func (s *Snapshot) refreshSlots(b int, slots uint64) {
	limit := s.Tick - wire.Ancient
	if slots&1 != 0 { // once for the block
		s.Slots.components[b].refresh(s.Slots.Info[b<<6:min(b<<6+64, s.Slots.Len())], limit)
	}
	for slot := range bitset.Slots(b, slots) {
		info := &s.Slots.Info[slot]
		ticks := [...]*delta.Tick{
			&s.Slots.ChangedAt[slot], &s.Slots.ChangedBefore[slot], &info.Born, &info.SetChanged,
		}
		for _, t := range ticks {
			if t.Before(limit) {
				*t = limit
			}
		}
		for _, h := range s.Histories {
			h.Refresh(slot, limit)
		}
	}
}
