package replication

import (
	"math/bits"
	"slices"
	"unsafe" // for the name of the type that Arche hands out; no pointer is computed or converted here

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// capture is the once-per-tick pass over the world: table by table and 64 rows at a
// time, it quantises the registered components column by column, and hands the codes to
// the histories.
//
// What a tick costs depends on what changed since the last: rows in which the same
// entity is as before need not be identified, and blocks of values whose bytes are as
// before need not be quantised. For that it keeps, per replicated entity, 12 bytes and a
// copy of its components.
type capture struct {
	marker     ecs.ID
	owner      uint32   // of the markers that are written
	components []ecs.ID // by component
	probe      maskProbe
	tables     map[ecs.Mask]*table
	order      []*table   // the same, oldest first
	codes      []uint32   // of one component in a block of rows
	left       []uint32   // slots whose entities are not in their row of the last capture
	found      bitset.Set // slots whose entities were found in another row
	contested  bool       // another server wrote to the markers; see marker.go
	contests   int        // ticks in a row in which one did

	// Of the link of a facet, when it is new.
	linkSlot [1]uint32
	linkRow  [2]uint32
	linkNews [1]uint64
}

// captureRows is how many rows are captured together, so that they stay in the nearest
// cache from one pass over them to the next, and sets of them are words.
const captureRows = 64

// A table is what the entities with one set of components share.
type table struct {
	filter   ecs.CachedFilter
	members  []member
	mask     ecs.Mask
	set      delta.Set   // of what stands under no condition
	own      int         // bits of that
	width    int         // bits of all
	weight   float32     // of the components
	parts    []tablePart // what stands under conditions
	relation bool        // one mask, but a run of rows in memory for every relation target
	refers   bool        // some members refer to entities
	captured delta.Tick

	// Who was in which row at the last capture; nobody where the entity is zero.
	entities []ecs.Entity
	slots    []uint32
	together bitset.Set   // blocks of rows whose slots follow one another
	targets  []ecs.Entity // of a relation among the members
}

// A member is a component that the entities of a table have.
type member struct {
	component int
	part      int // 1 + that of its condition in the table's parts, 0 if it has none
	id        ecs.ID
	values    *schema.Component
	history   *delta.History
	blocks    []memberBlock
	bytes     []byte         // of the values of each block, if it keeps them
	strings   []string       // in them
	gathered  unsafe.Pointer // room for the values of a block that are not neighbours
}

// maskProbe is a filter that matches nothing and notes the masks that it is asked about.
type maskProbe struct {
	marker ecs.ID
	masks  []ecs.Mask
}

// Matches implements [ecs.Filter].
func (p *maskProbe) Matches(mask *ecs.Mask) bool {
	if mask.Get(p.marker) {
		p.masks = append(p.masks, *mask)
	}
	return false
}

func (c *capture) init(w *ecs.World, s *schema.Schema, marker func(*ecs.World) ecs.ID) {
	c.marker, c.owner = marker(w), newOwner()
	c.probe.marker = c.marker
	words := 0
	for i := range s.Components {
		comp := &s.Components[i]
		var id ecs.ID // none for resources
		if !comp.Resource {
			id = ecs.TypeID(w, comp.Typ)
		}
		c.components = append(c.components, id)
		words = max(words, comp.Words)
	}
	c.codes = make([]uint32, captureRows*words)
	c.tables = map[ecs.Mask]*table{}
}

// A goneSlot is a slot whose entity left replication.
type goneSlot struct {
	slot   int
	entity ecs.Entity
}

// captureWorld brings the slots and histories up to date with the world. It calls old for slots, block by block, whose
// ticks before the limit are to be brought forward to it, so that serial arithmetic holds. Which slots became empty is in
// gone.
func (s *snapshot) captureWorld(old func(b int, slots uint64, limit delta.Tick)) {
	c := &s.capture
	s.slots.reclaim()
	c.probe.masks = c.probe.masks[:0]
	q := s.world.Query(&c.probe)
	q.Count()
	q.Close()
	for i := range c.probe.masks {
		s.table(&c.probe.masks[i]) // panics before anything is captured
	}
	s.findResources() // and this
	for i := range c.probe.masks {
		s.captureTable(s.table(&c.probe.masks[i]))
	}
	for _, t := range c.order {
		if t.captured != s.tick { // its archetypes are gone
			c.resize(t, 0)
		}
	}
	s.removeGone()
	for i := range c.probe.masks {
		s.captureReferences(s.table(&c.probe.masks[i]))
	}
	s.captureResources()
	clear(s.phases.early)
	s.refresh(old)
	c.settleContests()
}

// table returns what is known of the archetypes with the given mask.
func (s *snapshot) table(mask *ecs.Mask) *table {
	c := &s.capture
	if t := c.tables[*mask]; t != nil {
		return t
	}
	t := &table{mask: *mask, weight: 1}
	for _, id := range ecs.ComponentIDs(s.world) {
		if info, ok := ecs.ComponentInfo(s.world, id); ok && info.IsRelation && mask.Get(id) {
			t.relation = true
		}
	}
	for i, id := range c.components {
		if mask.Get(id) && !s.schema.Components[i].Resource {
			m := member{component: i, id: id, values: &s.schema.Components[i], history: s.histories[i]}
			if t.relation {
				m.gathered = m.values.Room(captureRows)
			}
			t.refers = t.refers || m.values.Refers()
			t.width += m.values.Layout.Width()
			t.addMember(m, s.schema.Link)
		}
	}
	if t.width > wire.MaxEntityBits {
		panic("replication: an entity's components take more than 32 KiB: spread them over several entities")
	}
	exclusive := mask.Exclusive()
	t.filter = s.world.Cache().Register(&exclusive)
	c.tables[*mask] = t
	c.order = append(c.order, t)
	return t
}

func (s *snapshot) captureTable(t *table) {
	t.captured = s.tick
	q := s.world.Query(&t.filter)
	n := q.Count()
	s.capture.resize(t, n)
	for first := 0; first < n; first += captureRows {
		s.captureBlock(t, first, min(captureRows, n-first), &q)
	}
	q.Close()
}

// resize prepares the table for n rows. Who was in a row behind the last has left it.
func (c *capture) resize(t *table, n int) {
	for i := n; i < len(t.entities); i++ {
		if !t.entities[i].IsZero() {
			c.left = append(c.left, t.slots[i])
		}
	}
	if n <= len(t.entities) {
		clear(t.entities[n:])
		t.entities, t.slots = t.entities[:n], t.slots[:n]
		t.targets = t.targets[:min(n, len(t.targets))]
		t.resizeParts(n)
		return
	}
	t.resizeParts(n)
	t.entities = append(t.entities, make([]ecs.Entity, n-len(t.entities))...)
	t.slots = append(t.slots, make([]uint32, n-len(t.slots))...)
	t.together = t.together.Grown((n + captureRows - 1) / captureRows)
	if t.relation && t.refers {
		t.targets = append(t.targets, make([]ecs.Entity, n-len(t.targets))...)
	}
	for i := range t.members {
		t.members[i].grow(n)
	}
}

// captureBlock captures n rows from row first on. The query stands before the first of
// them, and is left at the last.
func (s *snapshot) captureBlock(t *table, first, n int, q *ecs.Query) {
	q.Next()
	start := *q
	var moved bool
	if t.relation {
		moved = s.gather(t, first, n, q)
	} else {
		moved = s.identifyRows(t, first, n, q)
	}
	slots := t.slots[first:][:n]
	if moved {
		t.seated(first, slots)
	}
	together := t.together.Has(first / captureRows)
	born := func(slot int) delta.Tick { return s.slots.info[slot].born }
	var news, facetNews [1]uint64
	for i := range t.members {
		m := &t.members[i]
		if m.values.Refers() { // has its turn in captureReferences
			if moved {
				m.blocks[first/captureRows].rows = 0
			}
			continue
		}
		p := m.gathered
		if !t.relation {
			p = start.Get(m.id)
		}
		block := &m.blocks[first/captureRows]
		bytes := m.bytes[uintptr(first)*m.values.Bytes():]
		same := !moved && block.rows == n && (m.values.Once || m.values.SameBytes(bytes, p, n))
		if !same || !block.rest(m.values.Every) {
			block.clamped = m.values.ReadColumn(s.capture.codes, p, n)
			switch {
			case m.part != 0:
				facets := t.slotsOf(m, first, n)
				facetNews[0] = 0
				s.setRows(m, facets, born, facetNews[:])
				s.slots.touchAll(facets, facetNews[0], s.tick)
			case together && m.values.Every <= 1 && !m.values.Once:
				news[0] |= m.history.SetNeighbours(int(slots[0]), n, s.tick, born, s.capture.codes)
			default:
				s.setRows(m, slots, born, news[:])
			}
		}
		if !same && m.values.Once {
			block.rows = n
		} else if !same && block.keep(n) {
			m.keepBytes(first, p, n)
		}
		s.clamped += uint64(block.clamped)
	}
	if together {
		s.slots.touchSet(int(slots[0]), news[0], s.tick)
		return
	}
	for ; news[0] != 0; news[0] &= news[0] - 1 {
		s.slots.touch(int(slots[bits.TrailingZeros64(news[0])]), s.tick)
	}
}

// setRows hands the codes of a block to the history of a component.
func (s *snapshot) setRows(m *member, slots []uint32, born func(slot int) delta.Tick, news []uint64) {
	if m.values.Every <= 1 && !m.values.Once {
		m.history.SetRows(slots, s.tick, born, s.capture.codes, news)
	} else {
		news[0] |= s.setDue(m, slots, born)
	}
}

// seated finds out whether the slots of the block of rows from first on follow one another.
func (t *table) seated(first int, slots []uint32) {
	t.together.Add(first / captureRows)
	for i, slot := range slots {
		if slot != slots[0]+uint32(i) {
			t.together.Remove(first / captureRows)
			return
		}
	}
}

// setDue hands the codes of a block to the history of a component that has its turn every
// few ticks, each slot in another one, or once; and returns the rows that are news.
func (s *snapshot) setDue(m *member, slots []uint32, born func(slot int) delta.Tick) (news uint64) {
	codes, words := s.capture.codes, m.values.Words
	var due [captureRows]uint32
	var rows [captureRows]uint8
	n := 0
	for i, slot := range slots {
		if (m.values.Once || !s.phases.turn(slot, s.tick, m.values.Every)) && m.history.Has(int(slot)) {
			continue // not its turn
		}
		copy(codes[n*words:][:words], codes[i*words:])
		due[n], rows[n] = slot, uint8(i)
		n++
	}
	var among [1]uint64
	m.history.SetRows(due[:n], s.tick, born, codes, among[:])
	for ; among[0] != 0; among[0] &= among[0] - 1 {
		news |= 1 << rows[bits.TrailingZeros64(among[0])]
	}
	return news
}

// identifyRows finds the slots of n entities whose values are neighbours, and reports
// whether any of them was not in its row before.
func (s *snapshot) identifyRows(t *table, first, n int, q *ecs.Query) (moved bool) {
	entities, slots := t.entities[first:][:n], t.slots[first:][:n]
	markers := markersAt(q.Get(s.capture.marker), n)
	if entities[0] == q.Entity() {
		s.capture.contest(&markers[0], slots[0]) // one of many says enough
	}
	for i := range markers {
		if i > 0 {
			q.Next()
		}
		if e := q.Entity(); entities[i] != e || markers[i].slot != slots[i]+1 {
			s.seat(t, first+i, e, &markers[i])
			moved = true
		}
	}
	return moved
}

// gather is identifyRows for values that need not be neighbours, which it brings
// together.
func (s *snapshot) gather(t *table, first, n int, q *ecs.Query) (moved bool) {
	for i := range n {
		if i > 0 {
			q.Next()
		}
		row, e, mark := first+i, q.Entity(), (*marker)(q.Get(s.capture.marker))
		if t.entities[row] == e {
			s.capture.contest(mark, t.slots[row])
		}
		if t.entities[row] != e || mark.slot != t.slots[row]+1 {
			s.seat(t, row, e, mark)
			moved = true
		}
		for j := range t.members {
			m := &t.members[j]
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

// seat notes that the entity is in the row now.
func (s *snapshot) seat(t *table, row int, e ecs.Entity, m *marker) {
	c := &s.capture
	if !t.entities[row].IsZero() {
		c.left = append(c.left, t.slots[row])
	}
	slot := s.identify(e, m, t)
	c.found = c.found.Grown(slot + 1)
	c.found.Add(slot)
	if len(s.schema.Conditions) > 0 {
		s.seatFacets(t, row, slot)
	}
	t.entities[row], t.slots[row] = e, uint32(slot)
}

// removeGone empties the slots of the entities that left their row and were not found
// in another one. Every other entity is where it was.
func (s *snapshot) removeGone() {
	c := &s.capture
	s.gone = s.gone[:0]
	slices.Sort(c.left)
	for _, slot := range c.left {
		if int(slot) < len(c.found)*64 && c.found.Has(int(slot)) {
			continue
		}
		if s.schema.Refers {
			s.names.remove(s.slots.info[slot].entity.ID(), int(slot), s.tick)
		}
		s.despawns++
		s.gone = append(s.gone, goneSlot{int(slot), s.slots.info[slot].entity})
		s.removeFacets(int(slot))
		s.rawBits -= s.slots.info[slot].width
		s.slots.remove(int(slot), s.tick)
	}
	c.left = c.left[:0]
	clear(c.found)
}

// identify returns the slot of an entity with the given marker, and gives it one if it
// has none.
func (s *snapshot) identify(e ecs.Entity, m *marker, t *table) int {
	slot := int(m.slot) - 1
	if slot < 0 || slot >= s.slots.len() || s.slots.info[slot].entity != e || s.slots.facets(slot>>6) {
		if m.owner == s.capture.owner {
			s.copiedMarkers++
		}
		slot = s.slots.add(e, s.tick)
		for _, h := range s.histories {
			h.Begin(slot)
		}
		*m = marker{uint32(slot) + 1, s.capture.owner}
		if s.schema.Refers {
			s.names.add(e, netID{uint32(slot), s.slots.info[slot].generation}, s.tick)
		}
		s.slots.info[slot].set, s.slots.info[slot].table = t.set, t
		s.slots.setWidth(slot, t.own)
		s.spawns++
		s.rawBits += t.own
		return slot
	}
	s.restructure(slot, t)
	return slot
}

// restructure gives what is in a slot the components of a table.
func (s *snapshot) restructure(slot int, t *table) {
	info := &s.slots.info[slot]
	info.table = t
	if info.set != t.set {
		for i, h := range s.histories {
			if info.set.Has(i) && !t.set.Has(i) {
				h.Remove(slot, s.tick)
			}
		}
		s.rawBits += t.own - info.width
		info.set, info.restructured = t.set, s.tick
		s.slots.setWidth(slot, t.own)
		s.slots.touch(slot, s.tick)
		s.slots.reshaped.Add(slot)
	}
}

const (
	// ancient is the age at which ticks are brought forward so that serial arithmetic
	// keeps telling before from after.
	ancient = 1 << 30
	// refreshShare is the share of slots that is looked after each tick.
	refreshShare = 1024
)

// refresh looks after ticks that would become too old to be compared, a few slots each
// time it is called.
func (s *snapshot) refresh(old func(b int, slots uint64, limit delta.Tick)) {
	n := s.slots.len()
	first := int(uint32(s.tick)%refreshShare) * n / refreshShare
	last := int(uint32(s.tick)%refreshShare+1) * n / refreshShare
	for slot := first; slot < last; { // block by block
		b, end := slot>>6, min(last, (slot|63)+1)
		slots := ^uint64(0) << (slot & 63) & (^uint64(0) >> (63 - (end-1)&63))
		old(b, slots, s.tick-ancient)
		s.refreshSlots(b, slots)
		slot = end
	}
}

// refreshSlots brings the ticks of slots of a block forward that are too old.
func (s *snapshot) refreshSlots(b int, slots uint64) {
	limit := s.tick - ancient
	for slot := range bitset.Slots(b, slots) {
		info := &s.slots.info[slot]
		for _, t := range []*delta.Tick{&s.slots.changed[slot], &s.slots.previous[slot], &info.born, &info.restructured} {
			if t.Before(limit) {
				*t = limit
			}
		}
		for _, h := range s.histories {
			h.Refresh(slot, limit)
		}
	}
}
