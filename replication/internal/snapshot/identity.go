package snapshot

import (
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// Which slot each entity has. Capture meets entities row by row; this file recognises those that it
// knows, and gives slots to new ones and to sub-entities.

// A goneSlot is a slot whose entity left replication.
type goneSlot struct {
	Slot   int
	Entity ecs.Entity
}

// identifyRows finds the slots of n entities whose values are contiguous, and reports whether any
// of them was not in its row before.
func (s *Snapshot) identifyRows(t *Table, first, n int, q *ecs.Query) (moved bool) {
	entities, slots := t.entities[first:][:n], t.slots[first:][:n]
	markers := markersAt(q.Get(s.Capture.Marker), n)
	if entities[0] == q.Entity() {
		s.Capture.contest(&markers[0], slots[0]) // one marker of the block is enough
	}
	all := s.Capture.resumes
	for i := range markers {
		if i > 0 {
			q.Next()
		}
		if e := q.Entity(); all || entities[i] != e || markers[i].slot != slots[i]+1 {
			s.arrange(t, first+i, q)
			s.seat(t, first+i, e, &markers[i])
			moved = true
		}
	}
	return moved
}

// gather is identifyRows for values that may not be contiguous. It copies them into contiguous
// memory.
func (s *Snapshot) gather(t *Table, first, n int, q *ecs.Query) (moved bool) {
	for i := range n {
		if i > 0 {
			q.Next()
		}
		row, e, mark := first+i, q.Entity(), (*marker)(q.Get(s.Capture.Marker))
		if t.entities[row] == e {
			s.Capture.contest(mark, t.slots[row])
		}
		if s.Capture.resumes || t.entities[row] != e || mark.slot != t.slots[row]+1 {
			s.arrange(t, row, q)
			s.seat(t, row, e, mark)
			moved = true
		}
		for j := range t.Members {
			m := &t.Members[j]
			switch {
			case !m.values.Refers():
				m.values.CopyTo(m.gathered, i, q.Get(m.id))
			case m.values.Targeted():
				t.findTarget(row, m, q)
			}
		}
	}
	return moved
}

// arrange gives slots to new entities from a row on, where the query is, if there are many: see Arrangement.
func (s *Snapshot) arrange(t *Table, row int, q *ecs.Query) {
	a := s.Capture.Arrangement
	if a == nil || row < a.next {
		return
	}
	list := a.newcomers(&s.Capture, t, row, *q, &s.Slots)
	for i := range list {
		s.identify(t, list[i].row, list[i].entity, list[i].marker)
	}
}

// seat records that an entity is in a row now.
func (s *Snapshot) seat(t *Table, row int, e ecs.Entity, m *marker) {
	c := &s.Capture
	if !t.entities[row].IsZero() {
		c.left = append(c.left, t.slots[row])
	}
	t.entities[row], t.slots[row] = e, uint32(s.identify(t, row, e, m))
}

// identify returns the slot of the entity in a row, which has the given marker. An entity without a slot gets one.
func (s *Snapshot) identify(t *Table, row int, e ecs.Entity, m *marker) int {
	slot := int(m.slot) - 1
	if s.Slots.holds(slot, e) {
		s.changeComponents(slot, t)
	} else {
		if m.owner == s.Capture.Owner {
			s.CopiedMarkers++
		}
		slot = s.Slots.Add(e, s.Tick)
		for _, h := range s.Histories {
			h.Begin(slot)
		}
		*m = marker{uint32(slot) + 1, s.Capture.Owner}
		if s.Schema.Refers {
			s.names.Add(e, wire.NetID{Slot: uint32(slot), Generation: s.Slots.Info[slot].Generation})
		}
		s.Slots.Info[slot].Table = t
		s.Slots.setComponents(slot, &t.Set, s.Tick)
		s.setWidth(slot, t.own)
		s.Spawns++
	}
	if len(s.Schema.Conditions) > 0 {
		s.seatSubEntities(t, row, slot)
	}
	return slot
}

// setWidth sets the bits of all codes of a slot at fixed width.
func (s *Snapshot) setWidth(slot, bits int) {
	s.RawBits += bits - int(s.Slots.Widths[slot])
	s.Slots.Widths[slot] = int32(bits)
}

// changeComponents gives the entity or sub-entity in a slot the components of a table.
func (s *Snapshot) changeComponents(slot int, t *Table) {
	info := &s.Slots.Info[slot]
	info.Table = t
	if info.Set != t.Set {
		for i, h := range s.Histories {
			if info.Set.Has(i) && !t.Set.Has(i) {
				h.Remove(slot, s.Tick)
			}
		}
		s.setWidth(slot, t.own)
		s.Slots.setComponents(slot, &t.Set, s.Tick)
		s.Slots.Touch(slot, s.Tick)
		s.Slots.SetChanged.Add(slot)
	}
}

// removeGone empties the slots of the entities that left their row and were not found in another
// one. All other entities are where they were.
func (s *Snapshot) removeGone() {
	c := &s.Capture
	slices.Sort(c.left)
	for _, slot := range slices.Compact(c.left) {
		m := (*marker)(archeutil.LookUp(s.World, s.Slots.Info[slot].Entity, c.Marker))
		if m != nil && m.slot == slot+1 {
			continue
		}
		if s.Schema.Refers {
			s.names.Remove(s.Slots.Info[slot].Entity.ID(), int(slot))
		}
		s.Despawns++
		s.Gone = append(s.Gone, goneSlot{int(slot), s.Slots.Info[slot].Entity})
		s.removeSubEntities(int(slot))
		s.setWidth(int(slot), 0)
		s.Slots.Remove(int(slot), s.Tick)
		if m != nil {
			s.Slots.moved.Add(int(slot))
		}
	}
	c.left = c.left[:0]
}

// seatSubEntities gives the entity in a row its sub-entities.
func (s *Snapshot) seatSubEntities(t *Table, row, slot int) {
	for k := range s.Schema.Conditions {
		var as *Table
		var at *uint32
		for i := range t.parts {
			if t.parts[i].condition == k {
				as, at = t.parts[i].as, &t.parts[i].slots[row]
			}
		}
		sub, ok := s.Slots.SubEntity(k, slot)
		switch {
		case ok && as == nil:
			s.changeComponents(sub, &s.Bare)
		case ok:
			s.changeComponents(sub, as)
			*at = uint32(sub)
		case as != nil:
			*at = uint32(s.addSubEntity(k, slot, as))
		}
	}
}

// addSubEntity adds a sub-entity under a condition to the entity in a slot.
func (s *Snapshot) addSubEntity(condition, of int, as *Table) int {
	t := &s.Slots
	slot := t.addTo(condition+1, t.Info[of].Entity, s.Tick)
	for _, h := range s.Histories {
		h.Begin(slot)
	}
	info := &t.Info[slot]
	info.Of, info.Table = uint32(of), as
	t.setComponents(slot, &as.Set, s.Tick)
	s.setWidth(slot, as.own)
	t.SubEntityCount++
	list := &t.subEntityOf[condition]
	if more := of + 1 - len(*list); more > 0 {
		*list = append(*list, make([]uint32, more)...)
	}
	(*list)[of] = uint32(slot) + 1
	c := &s.Capture
	c.linkSlot[0], c.linkRow = uint32(slot), [2]uint32{uint32(of) + 1, uint32(t.Info[of].Generation)}
	s.Histories[s.Schema.Link].SetRows(c.linkSlot[:], s.Tick, s.bornAt, c.linkRow[:], c.linkChanged[:])
	return slot
}

// bornAt returns when the entity in a slot entered replication.
func (s *Snapshot) bornAt(slot int) delta.Tick { return s.Slots.Info[slot].Born }

// removeSubEntities removes the sub-entities of the entity in a slot.
func (s *Snapshot) removeSubEntities(of int) {
	for k := range s.Schema.Conditions {
		if sub, ok := s.Slots.SubEntity(k, of); ok {
			s.Slots.subEntityOf[k][of] = 0
			s.setWidth(sub, 0)
			s.Slots.Remove(sub, s.Tick)
			s.Slots.SubEntityCount--
		}
	}
}

// mostReseated bounds the entities that are given other slots in a tick, since clients that show them make new
// replicas.
const mostReseated = 32

// Reseat makes the next capture give lower slots to entities in slots from a limit on, or with a sub-entity there: some
// of them, where lower ones are free, and only if all entities have room below the limit. Then a client that has no
// other slots gets them, after a time with more entities. lose is called for each before it loses its slot. It reports
// whether there are any.
func (s *Snapshot) Reseat(limit int, lose func(slot int, e ecs.Entity)) bool {
	t := &s.Slots
	entities := t.Live - t.SubEntityCount
	if s.Resources.Any && t.Alive.Has(archeutil.ResourceSlot) {
		entities--
	}
	if int(SlotsFor(entities, len(s.Schema.Conditions), s.Resources.Any)) > limit {
		return false
	}
	free, n := t.freeBelow(limit), 0
	for b := limit >> 6; b < len(t.Alive); b++ {
		beyond := t.Alive[b]
		if b == limit>>6 {
			beyond &= ^uint64(0) << (limit & 63)
		}
		for slot := range bitset.Slots(b, beyond) {
			of := int(t.Info[slot].Of)
			e := t.Info[of].Entity
			m := (*marker)(archeutil.LookUp(s.World, e, s.Capture.Marker))
			if m == nil || int(m.slot) != of+1 || !s.takeAll(free, of) {
				continue
			}
			if lose(of, e); t.Info[of].Weight != 1 {
				if s.Weights == nil {
					s.Weights = map[ecs.Entity]float32{}
				}
				s.Weights[e] = t.Info[of].Weight
			}
			*m = marker{}
			if n++; n == mostReseated {
				return true
			}
		}
	}
	return n > 0
}

// takeAll takes free slots for an entity and its sub-entities, and returns false if there are too few.
func (s *Snapshot) takeAll(free []int, slot int) bool {
	needs := func(class int) bool {
		if class == 0 {
			return true
		}
		_, ok := s.Slots.SubEntity(class-1, slot)
		return ok
	}
	for class := range s.Slots.pools {
		if needs(class) && free[class] == 0 {
			return false
		}
	}
	for class := range s.Slots.pools {
		if needs(class) {
			free[class]--
		}
	}
	return true
}
