package replication

import (
	"slices"

	"github.com/mlange-42/arche/ecs"
)

// applyScratch is scratch memory of Apply.
type applyScratch struct {
	add, remove []ecs.ID
	codes       []uint32 // of a component in the world
}

// show brings the world up to date with what was received. complete reports whether all has come that was there when the session
// began.
func (c *applier) show(complete bool) {
	c.noticeReset()
	c.expire()
	some, foreign := c.outlived(complete)
	c.announce(some, foreign)
	c.takeOver(some, foreign)
	for _, slot := range c.recv.dirty {
		m := c.replicas.add(slot, &c.recv.mirrors)
		m.dirty = false
		c.applyMirror(slot, m)
	}
	c.recv.dirty = c.recv.dirty[:0]
	c.mendReferences()
	c.tell()
	c.tidyShapes()
}

// removeAll removes all that is mirrored.
func (c *applier) removeAll() {
	c.noticeReset()
	if c.hooks.parting {
		c.runHooks(func() { c.announceEnd() })
	}
	for i, page := range c.replicas.pages {
		for j := range page {
			if page[j].shown || page[j].facet {
				page[j].any = false // of resources, all go
				c.removeEntity(uint32(i*mirrorPage+j), &page[j])
			}
		}
	}
	c.recv.forgetMirrors()
	c.replicas.pages = nil
}

func (c *applier) entity(id NetID) (ecs.Entity, bool) {
	m := c.replicas.at(id.Slot)
	if m == nil || !c.intact() || !m.shown || m.removed || m.generation != id.Generation || !alive(c.world, m.entity) {
		return ecs.Entity{}, false
	}
	return m.entity, true
}

func (c *applier) netID(e ecs.Entity) (NetID, bool) {
	if !c.intact() {
		return NetID{}, false
	}
	m := (*Mirrored)(lookUp(c.world, e, c.marker))
	if m == nil {
		return NetID{}, false
	}
	if own, ok := c.entity(m.id); !ok || own != e {
		return NetID{}, false
	}
	return m.id, true
}

func (c *applier) each(fn func(id NetID, e ecs.Entity, tick uint32)) {
	if !c.intact() {
		return
	}
	for i, page := range c.replicas.pages {
		for j := range page {
			m := &page[j]
			if m.shown && !m.removed && alive(c.world, m.entity) {
				fn(NetID{uint32(i*mirrorPage + j), m.generation}, m.entity, uint32(m.tick))
			}
		}
	}
}

// applyMirror makes the world show a mirror's newest state.
func (c *applier) applyMirror(slot uint32, m *replica) {
	if c.resources.in(int(slot)) {
		c.applyResources(m)
		return
	}
	if m.empty {
		c.removeEntity(slot, m)
		return
	}
	state := m.held.at(m.newest)
	if state == nil {
		return // only where damaged packets get through, for want of a checksum
	}
	if of, facet := c.of(state); facet {
		c.applyFacet(slot, m, state, of)
		return
	}
	if m.facet || m.shown && m.generation != state.generation {
		c.removeEntity(slot, m)
	}
	if !m.shown {
		c.spawnEntity(slot, m, state)
		return
	}
	if m.removed || !alive(c.world, m.entity) {
		m.removed = true // by the user, who shall have it so
		c.referrers.drop(allComponents, &m.links)
		m.tick, m.shape, m.strings, m.values = state.tick, state.shape, nil, nil
		return
	}
	old := m.held.at(m.tick)
	if m.shape != state.shape {
		c.restructure(m, state)
	}
	c.writeRows(slot, m, state, old)
}

// writeRows gives the entity's components the values of a state. old is what they show, or
// nil if that is not known.
func (c *applier) writeRows(slot uint32, m *replica, state, old *heldState) {
	for k := state.shape.set.Next(0); k >= 0; k = state.shape.set.Next(k + 1) {
		if k == c.schema.Link {
			continue
		}
		comp := &c.schema.Components[k]
		row := state.row(k, comp.Words)
		if old != nil && old.generation == state.generation {
			if was := old.row(k, comp.Words); was != nil && sameRow(was, row) {
				continue
			}
		}
		p := c.world.Get(m.entity, c.components[k])
		if p != nil {
			if c.hooks.watch(k) {
				c.noteChange(slot, m, k, p, row, old != nil)
			}
			comp.Write(p, row)
			c.holdStrings(m, k, p)
		}
		if comp.Refers() {
			c.refer(slot, m, k, p, row)
		}
	}
	m.tick, m.shape = state.tick, state.shape
}

func (c *applier) removeEntity(slot uint32, m *replica) {
	if m.facet {
		c.detach(m)
		return
	}
	switch {
	case !m.shown || m.removed:
	case c.resources.in(int(slot)):
		c.removeResources(m)
	case alive(c.world, m.entity):
		c.relations.remove(c.world, m.entity)
	}
	c.forgetEntity(slot, m)
}

// forgetEntity notes that the mirror shows nothing any more.
func (c *applier) forgetEntity(slot uint32, m *replica) {
	if m.shown {
		c.referrers.drop(allComponents, &m.links)
		c.referrers.turn(slot)
		if !c.resources.in(int(slot)) {
			c.stats.Despawns++
		}
	}
	m.shown, m.removed, m.entity, m.shape, m.strings, m.values = false, false, ecs.Entity{}, nil, nil, nil
}

func (c *applier) spawnEntity(slot uint32, m *replica, state *heldState) {
	a := &c.scratch
	a.add = append(append(a.add[:0], c.marker), c.spawnWith...)
	set := &state.shape.set
	for k := set.Next(0); k >= 0; k = set.Next(k + 1) {
		a.add = append(a.add, c.components[k])
	}
	if m.entity = c.match(state); m.entity.IsZero() {
		m.entity = c.world.NewEntity(a.add...)
	} else {
		c.adopt(m.entity, a.add)
	}
	*(*Mirrored)(c.world.Get(m.entity, c.marker)) = Mirrored{NetID{slot, state.generation}}
	m.shown, m.removed, m.generation, m.tick, m.shape = true, false, state.generation, state.tick, state.shape
	if c.schema.Mentions {
		c.names.set(m.entity, NetID{slot, state.generation})
	}
	for k := set.Next(0); k >= 0; k = set.Next(k + 1) {
		comp := &c.schema.Components[k]
		p, row := c.world.Get(m.entity, c.components[k]), state.row(k, comp.Words)
		if p != nil { // or an adopted entity has no room for it
			comp.Write(p, row)
			c.holdStrings(m, k, p)
		}
		if comp.Refers() {
			c.refer(slot, m, k, p, row)
		}
	}
	c.referrers.turn(slot)
	c.noteSpawn(slot, m)
	c.stats.Spawns++
}

// restructure gives the entity the components that came and takes those that went,
// leaving alone what the user added or removed.
func (c *applier) restructure(m *replica, state *heldState) {
	a := &c.scratch
	a.add, a.remove = a.add[:0], a.remove[:0]
	relation := -1
	for k, id := range c.components {
		was, is := m.shape.set.Has(k), state.shape.set.Has(k)
		if was == is {
			continue
		}
		if was {
			c.referrers.drop(k, &m.links)
			c.dropStrings(m, k)
		}
		switch has := c.world.Has(m.entity, id); {
		case is && !has:
			if c.recv.shapes.relations.Has(k) {
				relation = len(a.add)
			}
			a.add = append(a.add, id)
		case was && has:
			a.remove = append(a.remove, id)
		}
	}
	if relation >= 0 {
		if own, ok := c.relations.of(c.world, m.entity); ok && !slices.Contains(a.remove, own) {
			a.add = slices.Delete(a.add, relation, relation+1) // the user added another, and Arche takes one only
			c.stats.RelationConflicts++
		}
	}
	if len(a.add)+len(a.remove) > 0 {
		c.world.Exchange(m.entity, a.add, a.remove)
	}
}

func sameRow(a, b []uint32) bool {
	if len(a) > 0 && &a[0] == &b[0] {
		return true // shared
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// tidyShapes makes shapes be forgotten, if it is time. It is called between two packets.
func (c *applier) tidyShapes() {
	if !c.recv.crowded() {
		return
	}
	used := map[*shape]bool{}
	for _, page := range c.replicas.pages {
		for i := range page {
			used[page[i].shape] = true
		}
	}
	c.recv.sweepShapes(used)
}
