package snapshot

import (
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/history"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// The tables that capture works on: one for each set of components that the world has.

// A Table holds what the entities with one set of components share.
type Table struct {
	Filter   ecs.CachedFilter
	Members  []member
	Mask     ecs.Mask
	Set      wire.ComponentSet // components without condition
	own      int               // their bits at fixed width
	width    int               // bits of all components
	Weight   float32           // the largest of the components' weights
	parts    []tablePart       // components under conditions
	relation bool              // rows are contiguous only within one relation target
	refers   bool              // some members refer to entities
	captured delta.Tick        // when it was captured last

	// The entity and slot of each row at the last capture. A zero entity means none.
	entities []ecs.Entity
	slots    []uint32
	together bitset.Set   // blocks of rows whose slots are consecutive
	targets  []ecs.Entity // by row, if a member is a relation
}

// A tablePart has the components of a table under one condition.
type tablePart struct {
	condition int
	as        *Table   // set and weight of the sub-entities
	slots     []uint32 // of the sub-entities, by row
}

// A member is a replicated component of a table.
type member struct {
	Component int
	part      int // 1 + the index in Table.parts, or 0 if it has no condition
	id        ecs.ID
	values    *schema.Component
	history   *history.Rows
	Blocks    []MemberBlock
	bytes     []byte         // of the values of each block, if they are kept
	strings   []string       // the strings in them
	gathered  unsafe.Pointer // copies of the values of a block that are not contiguous
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

// slotsOf returns the slots of n rows for a member: those of the entities, or of their
// sub-entities.
func (t *Table) slotsOf(m *member, first, n int) []uint32 {
	if m.part == 0 {
		return t.slots[first:][:n]
	}
	return t.parts[m.part-1].slots[first:][:n]
}

// resize prepares the table for n rows. The entities of rows from n on have left it.
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

// seated records that a block of rows, from row first on, has other entities than before: whether their slots are
// consecutive, and that the bytes that are kept are of no use.
func (t *Table) seated(first int, slots []uint32) {
	for i := range t.Members {
		if b := &t.Members[i].Blocks[first/CaptureRows]; b.rows > 0 {
			b.rows = ofOthers
		}
	}
	t.together.Add(first / CaptureRows)
	for i, slot := range slots {
		if slot != slots[0]+uint32(i) {
			t.together.Remove(first / CaptureRows)
			return
		}
	}
}

// findTarget records the relation target of the row that the query is at.
func (t *Table) findTarget(row int, m *member, q *ecs.Query) {
	// An entity with a new target moves to another archetype, but may get the same row there.
	if target := q.Relation(m.id); t.targets[row] != target {
		t.targets[row] = target
		m.Blocks[row/CaptureRows].rows = 0
	}
}
