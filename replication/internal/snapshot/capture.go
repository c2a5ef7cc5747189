package snapshot

import (
	"math/bits"
	"slices"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/history"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// capture is the pass over the world in each tick: table by table and 64 rows at a time, it
// quantises the registered components column by column and hands the codes to the histories.
//
// Its cost depends on what changed since the last tick. Rows with the same entity as before need no
// identification, and blocks of values with the same bytes need no quantisation. For that it keeps
// 12 bytes per replicated entity and a copy of its components.
type capture struct {
	Marker      ecs.ID
	Owner       uint32   // which the server's markers carry
	Components  []ecs.ID // by component
	probe       archeutil.MaskProbe
	Tables      map[ecs.Mask]*Table
	Order       []*Table     // the tables, oldest first
	present     []*Table     // those that the world has entities of in this tick
	Arrangement *Arrangement // of new entities, or nil
	codes       []uint32     // of one component in a block of rows
	values      unsafe.Pointer
	scheduled   [CaptureRows]uint8 // the values that the codes are of, if they are not of all
	some        bool               // they are not
	left        []uint32           // slots whose entities are not in their row of the last capture
	contested   bool               // another server wrote to the markers; see markers.go
	contests    int                // consecutive ticks in which one did
	ended       delta.Tick         // the last tick whose capture ended
	resumes     bool               // a function of the user's panicked in the capture before: no row is known

	// Scratch memory for the link of a new sub-entity.
	linkSlot    [1]uint32
	linkRow     [2]uint32
	linkChanged [1]uint64
}

// CaptureRows is how many rows are captured together, so that they stay in the nearest cache
// between passes, and sets of them fit into a word.
const CaptureRows = 64

// Init prepares captures of a world into histories of the components.
func (c *capture) Init(w *ecs.World, s *schema.Schema, marker func(*ecs.World) ecs.ID, histories []*history.Rows) {
	c.Marker, c.Owner = marker(w), newOwner()
	c.probe.Wanted = ecs.All(c.Marker)
	words := 0
	for i := range s.Components {
		comp := &s.Components[i]
		var id ecs.ID // none for resources
		if !comp.Resource {
			id = ecs.TypeID(w, comp.Typ)
		}
		c.Components = append(c.Components, id)
		words = max(words, comp.Words)
		if comp.Holds() {
			histories[i].Keep(comp.Near(), func(i int, row, recorded []uint32) bool {
				return c.keeps(comp, i, row, recorded)
			})
		}
	}
	c.codes = make([]uint32, CaptureRows*words)
	c.Tables = map[ecs.Mask]*Table{}
}

// keeps reports whether row i of the codes of a component is no change, though it differs from the recorded one. The
// history of the component asks.
func (c *capture) keeps(comp *schema.Component, i int, row, recorded []uint32) bool {
	if c.some {
		i = int(c.scheduled[i])
	}
	return comp.Keeps(row, recorded, unsafe.Add(c.values, uintptr(i)*comp.Size))
}

// CaptureWorld captures the world for the present tick. It calls old, block by block, for slots
// whose ticks before the limit must be brought forward to it, so that serial arithmetic holds. It
// adds to Gone the slots that became empty; the caller empties Gone.
func (s *Snapshot) CaptureWorld(old func(b int, slots uint64, limit delta.Tick)) {
	c := &s.Capture
	c.resumes, c.some = c.ended != s.Tick-1, false
	s.Slots.Reclaim(s.Tick)
	c.probe.Find(s.World)
	for i := range c.probe.Masks {
		if i == len(c.present) {
			c.present = append(c.present, nil)
		}
		mask := &c.probe.Masks[i]
		if t := c.present[i]; t == nil || t.Mask != *mask { // another one than in the tick before
			c.present[i] = s.table(mask) // panics before anything is captured
		}
	}
	c.present = c.present[:len(c.probe.Masks)]
	s.findResources() // and this
	for _, t := range c.present {
		s.captureTable(t)
	}
	for _, t := range c.Order {
		if t.captured != s.Tick { // the world no longer has such entities
			c.resize(t, 0)
		}
	}
	s.removeGone()
	for _, t := range c.present {
		s.captureReferences(t)
	}
	s.captureResources()
	c.values = nil // so that it can be freed
	clear(s.Phases.early)
	s.names.Settle()
	c.ended = s.Tick
	s.refresh(old)
	c.settleContests()
}

// Unmarked returns how many entities have components of the schema, but not the marker.
func (s *Snapshot) Unmarked() int {
	var wanted ecs.Mask
	for i, id := range s.Capture.Components {
		if !s.Schema.Components[i].Resource {
			wanted.Set(id, true)
		}
	}
	return archeutil.CountUnmarked(s.World, wanted, s.Capture.Marker)
}

// table returns the table of the entities with the given mask, and makes it if there is none.
func (s *Snapshot) table(mask *ecs.Mask) *Table {
	c := &s.Capture
	if t := c.Tables[*mask]; t != nil {
		return t
	}
	t := &Table{Mask: *mask, Weight: 1, relation: archeutil.HasRelation(s.World, mask)}
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

// captureTable captures all rows of a table, except for components that refer to entities.
func (s *Snapshot) captureTable(t *Table) {
	t.captured = s.Tick
	q := s.World.Query(&t.Filter)
	n, first := q.Count(), 0
	defer func() {
		q.Close()
		// If a codec panicked, what was captured of this block before is not noted as a change yet.
		for i := first; i < min(first+CaptureRows, n); i++ {
			if !t.entities[i].IsZero() {
				s.Slots.Touch(int(t.slots[i]), s.Tick)
			}
		}
	}()
	s.Capture.resize(t, n)
	if a := s.Capture.Arrangement; a != nil {
		a.next = 0
	}
	for ; first < n; first += CaptureRows {
		s.captureBlock(t, first, min(CaptureRows, n-first), &q)
	}
}

// captureBlock captures n rows from row first on. The query is before the first of them;
// captureBlock leaves it at the last.
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
		if m.values.Refers() { // captureReferences does that later
			continue
		}
		p := m.gathered
		if !t.relation {
			p = start.Get(m.id)
		}
		block := &m.Blocks[first/CaptureRows]
		bytes := m.bytes[uintptr(first)*m.values.Bytes():]
		same := block.rows == n && (m.values.Once || m.values.SameBytes(bytes, p, n))
		if !same || !block.rest(m.values.Every) {
			block.clamped = m.values.ReadColumn(s.Capture.codes, p, n)
			s.Capture.values = p
			switch {
			case m.part != 0:
				subEntities := t.slotsOf(m, first, n)
				subChanged[0] = 0
				s.setRows(m, subEntities, born, subChanged[:])
				s.Slots.touchAll(subEntities, subChanged[0], s.Tick)
			case together && m.values.Every <= 1 && !m.values.Once:
				changed[0] |= m.history.SetNeighbours(int(slots[0]), n, s.Tick, born, s.Capture.codes)
			default:
				s.setRows(m, slots, born, changed[:])
			}
		}
		if !same {
			m.keep(first, p, n)
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

// setRows hands the codes of a block to the history of a component. It adds the rows that changed
// to changed.
func (s *Snapshot) setRows(m *member, slots []uint32, born func(slot int) delta.Tick, changed []uint64) {
	if m.values.Every <= 1 && !m.values.Once {
		m.history.SetRows(slots, s.Tick, born, s.Capture.codes, changed)
	} else {
		changed[0] |= s.setScheduled(m, slots, born)
	}
}

// setScheduled is setRows for a component that is captured once, or every few ticks in each slot.
// It returns the rows that changed.
func (s *Snapshot) setScheduled(m *member, slots []uint32, born func(slot int) delta.Tick) (changed uint64) {
	codes, words := s.Capture.codes, m.values.Words
	var scheduled [CaptureRows]uint32
	rows := &s.Capture.scheduled
	n := 0
	for i, slot := range slots {
		wanted := !m.values.Once && (s.Capture.resumes || s.Phases.scheduled(slot, s.Tick, m.values.Every))
		if !wanted && m.history.Has(int(slot)) {
			continue // in another tick
		}
		copy(codes[n*words:][:words], codes[i*words:])
		scheduled[n], rows[n] = slot, uint8(i)
		n++
	}
	var among [1]uint64
	s.Capture.some = true
	m.history.SetRows(scheduled[:n], s.Tick, born, codes, among[:])
	s.Capture.some = false
	for ; among[0] != 0; among[0] &= among[0] - 1 {
		changed |= 1 << rows[bits.TrailingZeros64(among[0])]
	}
	return changed
}

// findResources finds the resources of the world. In the first tick, it gives them their slot.
func (s *Snapshot) findResources() {
	r := &s.Resources
	for i := range r.members {
		k := r.members[i].Component
		r.at[k] = r.Find(k)
	}
	if !r.Any || s.Slots.Len() > 0 {
		return
	}
	slot := s.Slots.Add(ecs.Entity{}, s.Tick)
	for _, h := range s.Histories {
		h.Begin(slot)
	}
	s.Slots.Info[slot].Table = &r.table
}

// captureResources captures the resources as a table with one row. It comes last, since they may
// refer to entities.
func (s *Snapshot) captureResources() {
	r := &s.Resources
	if !r.Any {
		return
	}
	var set wire.ComponentSet
	for i := range r.members {
		if k := r.members[i].Component; r.at[k] != nil {
			set.Add(k)
		}
	}
	if set != s.Slots.Info[archeutil.ResourceSlot].Set {
		s.changeResources(set)
	}
	for i := range r.table.Members {
		m := &r.table.Members[i]
		s.captureReferrer(&r.table, m, r.at[m.Component], 0, 1)
		r.at[m.Component] = nil // so that it can be freed
	}
}

// changeResources records which resources exist from now on.
func (s *Snapshot) changeResources(set wire.ComponentSet) {
	r, info := &s.Resources, &s.Slots.Info[archeutil.ResourceSlot]
	t := &r.table
	t.Members, t.Set, t.width, t.Weight = t.Members[:0], set, 0, 1
	for i := range r.members {
		m := &r.members[i]
		switch was, is := info.Set.Has(m.Component), set.Has(m.Component); {
		case was && !is:
			m.history.Remove(archeutil.ResourceSlot, s.Tick)
		case is && !was:
			m.Blocks[0].rows = 0 // the kept bytes are of a former value
			fallthrough
		case is:
			t.Members = append(t.Members, *m)
			t.width += m.values.Layout.Width()
			t.Weight = max(t.Weight, m.values.Priority)
		}
	}
	s.setWidth(archeutil.ResourceSlot, t.width)
	s.Slots.setComponents(archeutil.ResourceSlot, &set, s.Tick)
	s.Slots.Touch(archeutil.ResourceSlot, s.Tick)
}

// References. An ecs.Entity means something in its own world only. On the wire it is the [NetID] of
// the entity, or nothing if that is not replicated or does not exist; in a row, it is slot+1 and
// generation. Here the server turns entities into NetIDs; package apply turns them back.
//
// The bytes of a component don't show what happens to the entities it refers to: one may die, or
// enter replication in the same tick, in a table that is captured later. So components with
// references are captured after all others, when all slots are known. Unchanged bytes prove nothing
// if an entity that they refer to came or went.
//
// A relation of Arche is a component whose first field is an embedded [ecs.Relation]. Its target is
// not in the component's memory: Arche keeps the entities with the same components and target
// together, in an archetype of their own. Here the target is the first column of the component's
// row, a reference like others.

// captureReferences captures the components of a table that refer to entities. captureTable has
// recorded the targets of relations.
func (s *Snapshot) captureReferences(t *Table) {
	n := len(t.slots)
	if !t.refers || n == 0 {
		return
	}
	// Most relations have no fields besides their target, and need no visit.
	visits := slices.ContainsFunc(t.Members, func(m member) bool { return m.values.Refers() && m.values.Size > 0 })
	q := s.World.Query(&t.Filter)
	defer q.Close()
	for first := 0; first < n; first += CaptureRows {
		rows := min(CaptureRows, n-first)
		switch {
		case t.relation && visits:
			s.gatherReferences(t, rows, &q)
		case t.relation:
		case first == 0:
			q.Next()
		default:
			q.Step(CaptureRows)
		}
		for i := range t.Members {
			m := &t.Members[i]
			if m.values.Refers() {
				p := m.gathered
				if !t.relation {
					p = q.Get(m.id)
				}
				s.captureReferrer(t, m, p, first, rows)
			}
		}
	}
}

// captureReferrer captures n rows, from row first on, of a component that refers to entities. Their
// values begin at p.
func (s *Snapshot) captureReferrer(t *Table, m *member, p unsafe.Pointer, first, n int) {
	slots := t.slotsOf(m, first, n)
	born := func(slot int) delta.Tick { return s.Slots.Info[slot].Born }
	block, bytes := &m.Blocks[first/CaptureRows], m.bytes[uintptr(first)*m.values.Bytes():]
	same := block.rows == n && (m.values.Once || m.values.SameBytes(bytes, p, n)) &&
		(m.values.Once || !s.names.Any || !s.refersToChurned(t, m, p, first, n))
	if !same || !block.rest(m.values.Every) {
		codes := s.Capture.codes[:n*m.values.Words]
		block.clamped = m.values.ReadColumn(codes, p, n)
		s.Capture.values = p
		if m.values.Targeted() {
			archeutil.PutTargets(codes, m.values.Words, t.targets[first:][:n])
		}
		s.names.Name(m.values, codes)
		var changed [1]uint64
		s.setRows(m, slots, born, changed[:])
		s.Slots.touchAll(slots, changed[0], s.Tick)
	}
	if !same {
		m.keep(first, p, n)
	}
	s.Clamped += uint64(block.clamped)
}

// refersToChurned reports whether one of n values of a component, from row first on, refers to an
// entity that got a NetID or lost it in this tick.
func (s *Snapshot) refersToChurned(t *Table, m *member, p unsafe.Pointer, first, n int) bool {
	if m.values.Targeted() {
		for _, e := range t.targets[first:][:n] {
			if s.names.Churned.Holds(e.ID()) {
				return true
			}
		}
	}
	return m.values.RefersToAny(p, n, s.names.Churned)
}

// gatherReferences copies the next n values of components that refer to entities into contiguous
// memory.
func (s *Snapshot) gatherReferences(t *Table, n int, q *ecs.Query) {
	for i := range n {
		q.Next()
		for j := range t.Members {
			if m := &t.Members[j]; m.values.Refers() {
				m.values.CopyTo(m.gathered, i, q.Get(m.id))
			}
		}
	}
}
