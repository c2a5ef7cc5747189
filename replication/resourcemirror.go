package replication

import "reflect"

// This file is the client's half of resources: rows to the resources of its world. They
// have no identity: one that is there already, added by the user or left of a session with
// another server, is taken over where it is, so that pointers to it stay good.

// applyResources makes the world's resources show the newest state of their slot.
func (c *applier) applyResources(m *replica) {
	state := m.held.at(m.newest)
	if state == nil {
		return // only where damaged packets get through, for want of a checksum
	}
	var old *heldState
	if m.shown {
		old = m.held.at(m.tick)
	}
	set := &c.resources.set
	for k := set.Next(0); k >= 0; k = set.Next(k + 1) {
		was, is := m.shown && m.shape.set.Has(k), state.shape.set.Has(k)
		if was && !is {
			c.referrers.drop(k, &m.links)
			c.removeResource(k)
		}
		if !is {
			continue
		}
		comp := &c.schema.Components[k]
		row := state.row(k, comp.Words)
		if was && old != nil && old.shape.set.Has(k) && sameRow(old.row(k, comp.Words), row) {
			continue
		}
		p := c.resources.find(k)
		if p == nil && !was { // else the user removed it, who shall have it so
			c.world.Resources().Add(c.resources.ids[k], reflect.New(comp.Typ).Interface())
			p = c.resources.find(k)
		}
		if p != nil {
			if c.hooks.watch(k) {
				c.noteChange(resourceSlot, m, k, p, row, old != nil)
			}
			comp.Write(p, row)
		}
		if comp.Refers() {
			c.refer(resourceSlot, m, k, p, row)
		}
	}
	m.shown, m.generation, m.tick, m.shape = true, state.generation, state.tick, state.shape
}

// removeResources removes what is left of a session that is over. What the present one has
// as well is about to be taken over.
func (c *applier) removeResources(m *replica) {
	var next *heldState
	if m.any {
		next = m.held.at(m.newest)
	}
	set := &m.shape.set
	for k := set.Next(0); k >= 0; k = set.Next(k + 1) {
		if next == nil || !next.shape.set.Has(k) {
			c.removeResource(k)
		}
	}
}

// removeResource removes a resource, unless the user did.
func (c *applier) removeResource(component int) {
	if r, id := c.world.Resources(), c.resources.ids[component]; r.Has(id) {
		r.Remove(id)
	}
}
