package interest

import (
	"slices"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
)

// A Company collects slots that a peer is sent together: a slot, those that are in a group with it, those in groups
// with these, and so on. It is scratch memory.
type Company struct {
	Slots  []int32    // the first slot comes first
	has    bitset.Set // the same
	groups []*Group
}

// Begin begins with a slot of so many.
func (c *Company) Begin(slot, slots int) {
	for _, s := range c.Slots {
		c.has.Remove(int(s))
	}
	c.has = c.has.Grown(slots)
	c.Slots, c.groups = c.Slots[:0], c.groups[:0]
	c.join(int32(slot))
}

// Complete adds all others. travels reports whether the peer is sent a slot together with a group that the slot is
// bound to.
func (c *Company) Complete(of *groups, travels func(g *Group, slot int32) bool) {
	for i := 0; i < len(c.Slots); i++ {
		slot := c.Slots[i]
		for _, g := range of.BySlot[slot] {
			if slices.Contains(c.groups, g) || !travels(g, slot) {
				continue
			}
			c.groups = append(c.groups, g)
			for _, m := range g.Members {
				if m.Slot >= 0 && travels(g, m.Slot) {
					c.join(m.Slot)
				}
			}
			for _, f := range g.Former {
				if travels(g, f.Slot) {
					c.join(f.Slot)
				}
			}
		}
	}
}

// join adds a slot.
func (c *Company) join(slot int32) {
	if !c.has.Has(int(slot)) {
		c.has.Add(int(slot))
		c.Slots = append(c.Slots, slot)
	}
}
