package snapshot

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
)

// The components of an entity that stand under one condition are its sub-entity: they have a
// slot of their own, which is sent to those for whom the condition holds, like an entity of
// its own: with baselines, acknowledgements and a turn in the budget that nobody else knows
// of. All that is kept per peer works on slots and need not know of conditions.
//
// A sub-entity's row begins with a link, a reference to its entity. Clients put its components
// on that entity; see attach.go. An entity keeps a sub-entity to its end once it has it, with
// the link only if need be: so there is never more than one of a condition.
//
// Sub-entities have blocks of slots of their own, a class for each condition. So the slots of
// entities stay neighbours, and their numbers say nothing of sub-entities but how many blocks
// these have.

// Class returns the class of the slots of a block.
func (t *SlotTable) Class(b int) int {
	if b >= len(t.Classes) {
		return 0
	}
	return int(t.Classes[b])
}

// HoldsSubEntities reports whether the slots of a block are for sub-entities.
func (t *SlotTable) HoldsSubEntities(b int) bool { return t.Class(b) != 0 }

// SubEntity returns the slot of the sub-entity under a condition of what is in a slot, if it has one.
func (t *SlotTable) SubEntity(condition, slot int) (sub int, ok bool) {
	list := t.subEntityOf[condition]
	if slot >= len(list) || list[slot] == 0 {
		return 0, false
	}
	return int(list[slot]) - 1, true
}

// A tablePart is what the entities of a table have under one condition.
type tablePart struct {
	condition int
	as        *Table   // of sub-entities: set and weight
	slots     []uint32 // of the sub-entities, by row
}

// addMember adds a component to the table, or to the part of its condition.
func (t *Table) addMember(m member, link int) {
	if m.values.Class == 0 {
		t.Set.Add(m.Component)
		t.own += m.values.Layout.Width()
		t.Weight = max(t.Weight, m.values.Priority)
		t.Members = append(t.Members, m)
		return
	}
	for i := range t.parts {
		if t.parts[i].condition == m.values.Class-1 {
			m.part = i + 1
		}
	}
	if m.part == 0 {
		t.parts = append(t.parts, tablePart{condition: m.values.Class - 1, as: &Table{Weight: 1}})
		m.part = len(t.parts)
		t.parts[m.part-1].as.Set.Add(link)
	}
	as := t.parts[m.part-1].as
	as.Set.Add(m.Component)
	as.own += m.values.Layout.Width()
	as.Weight = max(as.Weight, m.values.Priority)
	t.Members = append(t.Members, m)
}

// slotsOf returns the slots of n rows that a member's values go to.
func (t *Table) slotsOf(m *member, first, n int) []uint32 {
	if m.part == 0 {
		return t.slots[first:][:n]
	}
	return t.parts[m.part-1].slots[first:][:n]
}

// resizeParts prepares the parts for n rows.
func (t *Table) resizeParts(n int) {
	for i := range t.parts {
		p := &t.parts[i]
		if n <= len(p.slots) {
			p.slots = p.slots[:n]
		} else {
			p.slots = append(p.slots, make([]uint32, n-len(p.slots))...)
		}
	}
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

// addSubEntity adds a sub-entity to what is in a slot.
func (s *Snapshot) addSubEntity(condition, of int, as *Table) int {
	t := &s.Slots
	slot := t.AddTo(condition+1, t.Info[of].Entity, s.Tick)
	for _, h := range s.Histories {
		h.Begin(slot)
	}
	info := &t.Info[slot]
	info.Of, info.Set, info.Table = uint32(of), as.Set, as
	t.setWidth(slot, as.own)
	t.SubEntityCount++
	s.RawBits += as.own
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

// bornAt returns when what is in a slot began.
func (s *Snapshot) bornAt(slot int) delta.Tick { return s.Slots.Info[slot].Born }

// removeSubEntities removes the sub-entities of what is in a slot.
func (s *Snapshot) removeSubEntities(of int) {
	for k := range s.Schema.Conditions {
		if sub, ok := s.Slots.SubEntity(k, of); ok {
			s.Slots.subEntityOf[k][of] = 0
			s.RawBits -= s.Slots.Info[sub].Width
			s.Slots.Remove(sub, s.Tick)
			s.Slots.SubEntityCount--
		}
	}
}

// touchAll notes that something changed in slots, of which news has the rows.
func (t *SlotTable) touchAll(slots []uint32, changed uint64, now delta.Tick) {
	for ; changed != 0; changed &= changed - 1 {
		t.Touch(int(slots[bits.TrailingZeros64(changed)]), now)
	}
}
