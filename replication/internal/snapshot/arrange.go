package snapshot

import (
	"cmp"
	"slices"

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
}

// leastArranged is the number of new entities from which on they are arranged. Fewer go where there is room.
const leastArranged = 64

// A newcomer is an entity without a slot.
type newcomer struct {
	row    int // of its table
	place  int
	entity ecs.Entity
	marker *marker
}

// newcomers returns the new entities in a table from a row on, where the query is, in the order of their places. It
// returns nothing if there are few, or if they have no position.
func (a *Arrangement) newcomers(c *capture, t *Table, row int, at ecs.Query, slots *SlotTable) (list []newcomer) {
	where := slices.IndexFunc(t.Members, func(m member) bool { return m.Component == a.Component })
	if where < 0 {
		a.next = len(t.slots)
		return nil
	}
	m, q := &t.Members[where], at
	for a.next = row; a.next < len(t.slots); a.next++ {
		if a.next > row {
			q.Next()
		}
		if mark := (*marker)(q.Get(c.Marker)); slots.holds(int(mark.slot)-1, q.Entity()) {
			break
		}
	}
	if a.next-row < leastArranged {
		return nil
	}
	list = make([]newcomer, 0, a.next-row)
	for q = at; row < a.next; row++ {
		if len(list) > 0 {
			q.Next()
		}
		m.values.ReadColumn(c.codes, q.Get(m.id), 1)
		list = append(list, newcomer{row, a.Place(c.codes), q.Entity(), (*marker)(q.Get(c.Marker))})
	}
	slices.SortStableFunc(list, func(a, b newcomer) int { return cmp.Compare(a.place, b.place) })
	return list
}
