package snapshot

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/mlange-42/arche/ecs"
)

// Which entity gets which of the free slots, where many are new in the same tick. What is near each other is seen by
// the same peers, and these are sent blocks of slots: so neighbours should share blocks, in whatever order the world
// has them.

// An Arrangement arranges new entities by where they are.
type Arrangement struct {
	Component int                    // that has the position
	Place     func(row []uint32) int // the place of a row of that component: near ones often have near numbers
	next      int                    // the first row of the table that was not looked at yet
	list      []newcomer             // scratch memory
}

const (
	// leastArranged is the number of new entities from which on they are arranged. Fewer go where there is room.
	leastArranged = 64
	// mostBetween is how many others may be between new entities that are arranged together.
	mostBetween = 256
)

// A newcomer is an entity without a slot.
type newcomer struct {
	row    int            // of its table
	value  unsafe.Pointer // of the component that has the position
	place  int
	entity ecs.Entity
	marker *marker
}

// newcomers returns the new entities in a table from a row on, where the query is, in the order of their places. Others
// may be between them. It returns nothing if there are few, or if they have no position.
func (a *Arrangement) newcomers(c *capture, t *Table, row int, q ecs.Query, slots *SlotTable) []newcomer {
	a.next = len(t.slots)
	clear(a.list)
	list := a.list[:0]
	where := slices.IndexFunc(t.Members, func(m member) bool { return m.Component == a.Component })
	if where < 0 {
		return nil
	}
	for at, last := row, row; ; q.Next() {
		if mark := (*marker)(q.Get(c.Marker)); !slots.holds(int(mark.slot)-1, q.Entity()) {
			list = append(list, newcomer{row: at, value: q.Get(t.Members[where].id), entity: q.Entity(), marker: mark})
			last = at
		}
		if at++; at == len(t.slots) || at-last > mostBetween {
			a.next = at
			break
		}
	}
	if a.list = list; len(list) < leastArranged {
		return nil
	}
	for i := range list {
		t.Members[where].values.ReadColumn(c.codes, list[i].value, 1)
		list[i].place = a.Place(c.codes)
	}
	slices.SortStableFunc(list, func(a, b newcomer) int { return cmp.Compare(a.place, b.place) })
	return list
}
