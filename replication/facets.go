package replication

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
)

// The components of an entity that stand under one condition are its facet: they have a
// slot of their own, which is sent to those for whom the condition holds, like an entity of
// its own: with baselines, acknowledgements and a turn in the budget that nobody else knows
// of. All that is kept per peer works on slots and need not know of conditions.
//
// A facet's row begins with a link, a reference to its entity. Clients put its components
// on that entity; see attach.go. An entity keeps a facet to its end once it has it, with
// the link only if need be: so there is never more than one of a condition.
//
// Facets have blocks of slots of their own, a class for each condition. So the slots of
// entities stay neighbours, and their numbers say nothing of facets but how many blocks
// these have.

// class returns the class of the slots of a block.
func (t *slotTable) class(b int) int {
	if b >= len(t.classes) {
		return 0
	}
	return int(t.classes[b])
}

// facets reports whether the slots of a block are for facets.
func (t *slotTable) facets(b int) bool { return t.class(b) != 0 }

// facet returns the slot of the facet under a condition of what is in a slot, if it has one.
func (t *slotTable) facet(condition, slot int) (facet int, ok bool) {
	list := t.facetOf[condition]
	if slot >= len(list) || list[slot] == 0 {
		return 0, false
	}
	return int(list[slot]) - 1, true
}

// A tablePart is what the entities of a table have under one condition.
type tablePart struct {
	condition int
	as        *table   // of facets: set and weight
	slots     []uint32 // of the facets, by row
}

// addMember adds a component to the table, or to the part of its condition.
func (t *table) addMember(m member, link int) {
	if m.values.Class == 0 {
		t.set.Add(m.component)
		t.own += m.values.Layout.Width()
		t.weight = max(t.weight, m.values.Priority)
		t.members = append(t.members, m)
		return
	}
	for i := range t.parts {
		if t.parts[i].condition == m.values.Class-1 {
			m.part = i + 1
		}
	}
	if m.part == 0 {
		t.parts = append(t.parts, tablePart{condition: m.values.Class - 1, as: &table{weight: 1}})
		m.part = len(t.parts)
		t.parts[m.part-1].as.set.Add(link)
	}
	as := t.parts[m.part-1].as
	as.set.Add(m.component)
	as.own += m.values.Layout.Width()
	as.weight = max(as.weight, m.values.Priority)
	t.members = append(t.members, m)
}

// slotsOf returns the slots of n rows that a member's values go to.
func (t *table) slotsOf(m *member, first, n int) []uint32 {
	if m.part == 0 {
		return t.slots[first:][:n]
	}
	return t.parts[m.part-1].slots[first:][:n]
}

// resizeParts prepares the parts for n rows.
func (t *table) resizeParts(n int) {
	for i := range t.parts {
		p := &t.parts[i]
		if n <= len(p.slots) {
			p.slots = p.slots[:n]
		} else {
			p.slots = append(p.slots, make([]uint32, n-len(p.slots))...)
		}
	}
}

// seatFacets gives the entity in a row its facets.
func (s *snapshot) seatFacets(t *table, row, slot int) {
	for k := range s.schema.Conditions {
		var as *table
		var at *uint32
		for i := range t.parts {
			if t.parts[i].condition == k {
				as, at = t.parts[i].as, &t.parts[i].slots[row]
			}
		}
		facet, ok := s.slots.facet(k, slot)
		switch {
		case ok && as == nil:
			s.restructure(facet, &s.bare)
		case ok:
			s.restructure(facet, as)
			*at = uint32(facet)
		case as != nil:
			*at = uint32(s.addFacet(k, slot, as))
		}
	}
}

// addFacet adds a facet to what is in a slot.
func (s *snapshot) addFacet(condition, of int, as *table) int {
	t := &s.slots
	slot := t.addTo(condition+1, t.info[of].entity, s.tick)
	for _, h := range s.histories {
		h.Begin(slot)
	}
	info := &t.info[slot]
	info.of, info.set, info.table = uint32(of), as.set, as
	t.setWidth(slot, as.own)
	t.faceted++
	s.rawBits += as.own
	list := &t.facetOf[condition]
	if more := of + 1 - len(*list); more > 0 {
		*list = append(*list, make([]uint32, more)...)
	}
	(*list)[of] = uint32(slot) + 1
	c := &s.capture
	c.linkSlot[0], c.linkRow = uint32(slot), [2]uint32{uint32(of) + 1, uint32(t.info[of].generation)}
	s.histories[s.schema.Link].SetRows(c.linkSlot[:], s.tick, s.bornAt, c.linkRow[:], c.linkNews[:])
	return slot
}

// bornAt returns when what is in a slot began.
func (s *snapshot) bornAt(slot int) delta.Tick { return s.slots.info[slot].born }

// removeFacets removes the facets of what is in a slot.
func (s *snapshot) removeFacets(of int) {
	for k := range s.schema.Conditions {
		if facet, ok := s.slots.facet(k, of); ok {
			s.slots.facetOf[k][of] = 0
			s.rawBits -= s.slots.info[facet].width
			s.slots.remove(facet, s.tick)
			s.slots.faceted--
		}
	}
}

// touchAll notes that something changed in slots, of which news has the rows.
func (t *slotTable) touchAll(slots []uint32, news uint64, now delta.Tick) {
	for ; news != 0; news &= news - 1 {
		t.touch(int(slots[bits.TrailingZeros64(news)]), now)
	}
}
