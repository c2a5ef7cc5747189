package snapshot

import (
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/mlange-42/arche/ecs"
)

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

// A tablePart is what the entities of a table have under one condition.
type tablePart struct {
	condition int
	as        *Table   // of sub-entities: set and weight
	slots     []uint32 // of the sub-entities, by row
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

// findTarget notes the target of the row that the query is at.
func (t *Table) findTarget(row int, m *member, q *ecs.Query) {
	// Who gets another target leaves its archetype, but may have the same row in the next.
	if target := q.Relation(m.id); t.targets[row] != target {
		t.targets[row] = target
		m.Blocks[row/CaptureRows].rows = 0
	}
}
