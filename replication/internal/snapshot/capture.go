package snapshot

import (
	"math/bits"
	"slices"
	"unsafe"

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
	Marker     ecs.ID
	Owner      uint32   // of the markers that are written
	Components []ecs.ID // by component
	probe      maskProbe
	Tables     map[ecs.Mask]*Table
	Order      []*Table   // the same, oldest first
	codes      []uint32   // of one component in a block of rows
	left       []uint32   // slots whose entities are not in their row of the last capture
	found      bitset.Set // slots whose entities were found in another row
	contested  bool       // another server wrote to the markers; see markers.go
	contests   int        // ticks in a row in which one did

	// Of the link of a sub-entity, when it is new.
	linkSlot    [1]uint32
	linkRow     [2]uint32
	linkChanged [1]uint64
}

// CaptureRows is how many rows are captured together, so that they stay in the nearest
// cache from one pass over them to the next, and sets of them are words.
const CaptureRows = 64

// A Table is what the entities with one set of components share.
type Table struct {
	Filter   ecs.CachedFilter
	Members  []member
	Mask     ecs.Mask
	Set      delta.Set   // of what stands under no condition
	own      int         // bits of that
	width    int         // bits of all
	Weight   float32     // of the components
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
	Component int
	part      int // 1 + that of its condition in the table's parts, 0 if it has none
	id        ecs.ID
	values    *schema.Component
	history   *delta.History
	Blocks    []MemberBlock
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

func (c *capture) Init(w *ecs.World, s *schema.Schema, marker func(*ecs.World) ecs.ID) {
	c.Marker, c.Owner = marker(w), newOwner()
	c.probe.marker = c.Marker
	words := 0
	for i := range s.Components {
		comp := &s.Components[i]
		var id ecs.ID // none for resources
		if !comp.Resource {
			id = ecs.TypeID(w, comp.Typ)
		}
		c.Components = append(c.Components, id)
		words = max(words, comp.Words)
	}
	c.codes = make([]uint32, CaptureRows*words)
	c.Tables = map[ecs.Mask]*Table{}
}

// A goneSlot is a slot whose entity left replication.
type goneSlot struct {
	Slot   int
	Entity ecs.Entity
}

// CaptureWorld brings the slots and histories up to date with the world. It calls old for slots, block by block, whose
// ticks before the limit are to be brought forward to it, so that serial arithmetic holds. Which slots became empty is added
// to Gone, which the caller empties.
func (s *Snapshot) CaptureWorld(old func(b int, slots uint64, limit delta.Tick)) {
	c := &s.Capture
	s.Slots.Reclaim()
	c.probe.masks = c.probe.masks[:0]
	q := s.World.Query(&c.probe)
	q.Count()
	q.Close()
	for i := range c.probe.masks {
		s.table(&c.probe.masks[i]) // panics before anything is captured
	}
	s.findResources() // and this
	for i := range c.probe.masks {
		s.captureTable(s.table(&c.probe.masks[i]))
	}
	for _, t := range c.Order {
		if t.captured != s.Tick { // its archetypes are gone
			c.resize(t, 0)
		}
	}
	s.removeGone()
	for i := range c.probe.masks {
		s.captureReferences(s.table(&c.probe.masks[i]))
	}
	s.captureResources()
	clear(s.Phases.early)
	s.refresh(old)
	c.settleContests()
}

// table returns what is known of the archetypes with the given mask.
func (s *Snapshot) table(mask *ecs.Mask) *Table {
	c := &s.Capture
	if t := c.Tables[*mask]; t != nil {
		return t
	}
	t := &Table{Mask: *mask, Weight: 1}
	for _, id := range ecs.ComponentIDs(s.World) {
		if info, ok := ecs.ComponentInfo(s.World, id); ok && info.IsRelation && mask.Get(id) {
			t.relation = true
		}
	}
	for i, id := range c.Components {
		if mask.Get(id) && !s.Schema.Components[i].Resource {
			m := member{Component: i, id: id, values: &s.Schema.Components[i], history: s.Histories[i]}
			if t.relation {
				m.gathered = m.values.Room(CaptureRows)
			}
			t.refers = t.refers || m.values.Refers()
			t.width += m.values.Layout.Width()
			t.addMember(m, s.Schema.Link)
		}
	}
	if t.width > wire.MaxEntityBits {
		panic("replication: an entity's components take more than 32 KiB: spread them over several entities")
	}
	exclusive := mask.Exclusive()
	t.Filter = s.World.Cache().Register(&exclusive)
	c.Tables[*mask] = t
	c.Order = append(c.Order, t)
	return t
}

func (s *Snapshot) captureTable(t *Table) {
	t.captured = s.Tick
	q := s.World.Query(&t.Filter)
	n := q.Count()
	s.Capture.resize(t, n)
	for first := 0; first < n; first += CaptureRows {
		s.captureBlock(t, first, min(CaptureRows, n-first), &q)
	}
	q.Close()
}

// resize prepares the table for n rows. Who was in a row behind the last has left it.
func (c *capture) resize(t *Table, n int) {
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
	t.together = t.together.Grown((n + CaptureRows - 1) / CaptureRows)
	if t.relation && t.refers {
		t.targets = append(t.targets, make([]ecs.Entity, n-len(t.targets))...)
	}
	for i := range t.Members {
		t.Members[i].grow(n)
	}
}

// captureBlock captures n rows from row first on. The query stands before the first of
// them, and is left at the last.
func (s *Snapshot) captureBlock(t *Table, first, n int, q *ecs.Query) {
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
	together := t.together.Has(first / CaptureRows)
	born := func(slot int) delta.Tick { return s.Slots.Info[slot].Born }
	var changed, subChanged [1]uint64
	for i := range t.Members {
		m := &t.Members[i]
		if m.values.Refers() { // has its turn in captureReferences
			if moved {
				m.Blocks[first/CaptureRows].rows = 0
			}
			continue
		}
		p := m.gathered
		if !t.relation {
			p = start.Get(m.id)
		}
		block := &m.Blocks[first/CaptureRows]
		bytes := m.bytes[uintptr(first)*m.values.Bytes():]
		same := !moved && block.rows == n && (m.values.Once || m.values.SameBytes(bytes, p, n))
		if !same || !block.Rest(m.values.Every) {
			block.clamped = m.values.ReadColumn(s.Capture.codes, p, n)
			switch {
			case m.part != 0:
				facets := t.slotsOf(m, first, n)
				subChanged[0] = 0
				s.setRows(m, facets, born, subChanged[:])
				s.Slots.touchAll(facets, subChanged[0], s.Tick)
			case together && m.values.Every <= 1 && !m.values.Once:
				changed[0] |= m.history.SetNeighbours(int(slots[0]), n, s.Tick, born, s.Capture.codes)
			default:
				s.setRows(m, slots, born, changed[:])
			}
		}
		if !same && m.values.Once {
			block.rows = n
		} else if !same && block.Keep(n) {
			m.keepBytes(first, p, n)
		}
		s.Clamped += uint64(block.clamped)
	}
	if together {
		s.Slots.touchSet(int(slots[0]), changed[0], s.Tick)
		return
	}
	for ; changed[0] != 0; changed[0] &= changed[0] - 1 {
		s.Slots.Touch(int(slots[bits.TrailingZeros64(changed[0])]), s.Tick)
	}
}

// setRows hands the codes of a block to the history of a component.
func (s *Snapshot) setRows(m *member, slots []uint32, born func(slot int) delta.Tick, changed []uint64) {
	if m.values.Every <= 1 && !m.values.Once {
		m.history.SetRows(slots, s.Tick, born, s.Capture.codes, changed)
	} else {
		changed[0] |= s.setScheduled(m, slots, born)
	}
}

// seated finds out whether the slots of the block of rows from first on follow one another.
func (t *Table) seated(first int, slots []uint32) {
	t.together.Add(first / CaptureRows)
	for i, slot := range slots {
		if slot != slots[0]+uint32(i) {
			t.together.Remove(first / CaptureRows)
			return
		}
	}
}

// setScheduled hands the codes of a block to the history of a component that has its turn every
// few ticks, each slot in another one, or once; and returns the rows that are news.
func (s *Snapshot) setScheduled(m *member, slots []uint32, born func(slot int) delta.Tick) (changed uint64) {
	codes, words := s.Capture.codes, m.values.Words
	var scheduled [CaptureRows]uint32
	var rows [CaptureRows]uint8
	n := 0
	for i, slot := range slots {
		if (m.values.Once || !s.Phases.scheduled(slot, s.Tick, m.values.Every)) && m.history.Has(int(slot)) {
			continue // not its turn
		}
		copy(codes[n*words:][:words], codes[i*words:])
		scheduled[n], rows[n] = slot, uint8(i)
		n++
	}
	var among [1]uint64
	m.history.SetRows(scheduled[:n], s.Tick, born, codes, among[:])
	for ; among[0] != 0; among[0] &= among[0] - 1 {
		changed |= 1 << rows[bits.TrailingZeros64(among[0])]
	}
	return changed
}

// identifyRows finds the slots of n entities whose values are neighbours, and reports
// whether any of them was not in its row before.
func (s *Snapshot) identifyRows(t *Table, first, n int, q *ecs.Query) (moved bool) {
	entities, slots := t.entities[first:][:n], t.slots[first:][:n]
	markers := MarkersAt(q.Get(s.Capture.Marker), n)
	if entities[0] == q.Entity() {
		s.Capture.contest(&markers[0], slots[0]) // one of many says enough
	}
	for i := range markers {
		if i > 0 {
			q.Next()
		}
		if e := q.Entity(); entities[i] != e || markers[i].Slot != slots[i]+1 {
			s.seat(t, first+i, e, &markers[i])
			moved = true
		}
	}
	return moved
}

// gather is identifyRows for values that need not be neighbours, which it brings
// together.
func (s *Snapshot) gather(t *Table, first, n int, q *ecs.Query) (moved bool) {
	for i := range n {
		if i > 0 {
			q.Next()
		}
		row, e, mark := first+i, q.Entity(), (*Marker)(q.Get(s.Capture.Marker))
		if t.entities[row] == e {
			s.Capture.contest(mark, t.slots[row])
		}
		if t.entities[row] != e || mark.Slot != t.slots[row]+1 {
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

// seat notes that the entity is in the row now.
func (s *Snapshot) seat(t *Table, row int, e ecs.Entity, m *Marker) {
	c := &s.Capture
	if !t.entities[row].IsZero() {
		c.left = append(c.left, t.slots[row])
	}
	slot := s.identify(e, m, t)
	c.found = c.found.Grown(slot + 1)
	c.found.Add(slot)
	if len(s.Schema.Conditions) > 0 {
		s.seatSubEntities(t, row, slot)
	}
	t.entities[row], t.slots[row] = e, uint32(slot)
}

// removeGone empties the slots of the entities that left their row and were not found
// in another one. Every other entity is where it was.
func (s *Snapshot) removeGone() {
	c := &s.Capture
	slices.Sort(c.left)
	for _, slot := range c.left {
		if int(slot) < len(c.found)*64 && c.found.Has(int(slot)) {
			continue
		}
		if s.Schema.Refers {
			s.names.Remove(s.Slots.Info[slot].Entity.ID(), int(slot), s.Tick)
		}
		s.Despawns++
		s.Gone = append(s.Gone, goneSlot{int(slot), s.Slots.Info[slot].Entity})
		s.removeSubEntities(int(slot))
		s.RawBits -= s.Slots.Info[slot].Width
		s.Slots.Remove(int(slot), s.Tick)
	}
	c.left = c.left[:0]
	clear(c.found)
}

// identify returns the slot of an entity with the given marker, and gives it one if it
// has none.
func (s *Snapshot) identify(e ecs.Entity, m *Marker, t *Table) int {
	slot := int(m.Slot) - 1
	if slot < 0 || slot >= s.Slots.Len() || s.Slots.Info[slot].Entity != e || s.Slots.HoldsSubEntities(slot>>6) {
		if m.owner == s.Capture.Owner {
			s.CopiedMarkers++
		}
		slot = s.Slots.Add(e, s.Tick)
		for _, h := range s.Histories {
			h.Begin(slot)
		}
		*m = Marker{uint32(slot) + 1, s.Capture.Owner}
		if s.Schema.Refers {
			s.names.Add(e, wire.NetID{Slot: uint32(slot), Generation: s.Slots.Info[slot].Generation}, s.Tick)
		}
		s.Slots.Info[slot].Set, s.Slots.Info[slot].Table = t.Set, t
		s.Slots.setWidth(slot, t.own)
		s.Spawns++
		s.RawBits += t.own
		return slot
	}
	s.changeComponents(slot, t)
	return slot
}

// changeComponents gives what is in a slot the components of a table.
func (s *Snapshot) changeComponents(slot int, t *Table) {
	info := &s.Slots.Info[slot]
	info.Table = t
	if info.Set != t.Set {
		for i, h := range s.Histories {
			if info.Set.Has(i) && !t.Set.Has(i) {
				h.Remove(slot, s.Tick)
			}
		}
		s.RawBits += t.own - info.Width
		info.Set, info.Restructured = t.Set, s.Tick
		s.Slots.setWidth(slot, t.own)
		s.Slots.Touch(slot, s.Tick)
		s.Slots.Reshaped.Add(slot)
	}
}

const (
	// RefreshShare is the share of slots that is looked after each tick.
	RefreshShare = 1024
)

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
		for _, t := range []*delta.Tick{&s.Slots.ChangedAt[slot], &s.Slots.ChangedBefore[slot], &info.Born, &info.Restructured} {
			if t.Before(limit) {
				*t = limit
			}
		}
		for _, h := range s.Histories {
			h.Refresh(slot, limit)
		}
	}
}
