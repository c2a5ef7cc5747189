package replication

import (
	"reflect"
	"slices"

	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// applyMirror makes the world show a mirror's newest state.
func (a *applier) applyMirror(slot uint32, m *replica) {
	if a.view.resources.In(int(slot)) {
		a.applyResources(m)
		return
	}
	if m.empty {
		a.removeEntity(slot, m)
		return
	}
	state := m.held.at(m.newest)
	if state == nil {
		return // only where damaged packets get through, for want of a checksum
	}
	if of, facet := a.view.of(state); facet {
		a.applyFacet(slot, m, state, of)
		return
	}
	if m.facet || m.shown && m.generation != state.generation {
		a.removeEntity(slot, m)
	}
	if !m.shown {
		a.spawnEntity(slot, m, state)
		return
	}
	if m.removed || !archeutil.Alive(a.view.world, m.entity) {
		m.removed = true // by the user, who shall have it so
		a.referrers.drop(allComponents, &m.links)
		m.tick, m.shape, m.strings, m.values = state.tick, state.shape, nil, nil
		return
	}
	old := m.held.at(m.tick)
	if m.shape != state.shape {
		a.restructure(m, state)
	}
	a.writeRows(slot, m, state, old)
}

// writeRows gives the entity's components the values of a state. old is what they show, or
// nil if that is not known.
func (a *applier) writeRows(slot uint32, m *replica, state, old *heldState) {
	for k := state.shape.set.Next(0); k >= 0; k = state.shape.set.Next(k + 1) {
		if k == a.schema.Link {
			continue
		}
		comp := &a.schema.Components[k]
		row := state.row(k, comp.Words)
		if old != nil && old.generation == state.generation {
			if was := old.row(k, comp.Words); was != nil && sameRow(was, row) {
				continue
			}
		}
		p := a.view.world.Get(m.entity, a.view.components[k])
		if p != nil {
			if a.hooks.watch(k) {
				a.hooks.noteChange(slot, m, k, p, row, old != nil)
			}
			comp.Write(p, row)
			a.view.holdStrings(m, k, p)
		}
		if comp.Refers() {
			a.refer(slot, m, k, p, row)
		}
	}
	m.tick, m.shape = state.tick, state.shape
}

func (a *applier) removeEntity(slot uint32, m *replica) {
	if m.facet {
		a.detach(m)
		return
	}
	switch {
	case !m.shown || m.removed:
	case a.view.resources.In(int(slot)):
		a.view.removeResources(m)
	case archeutil.Alive(a.view.world, m.entity):
		a.relations.Remove(a.view.world, m.entity)
	}
	a.forgetEntity(slot, m)
}

// forgetEntity notes that the mirror shows nothing any more.
func (a *applier) forgetEntity(slot uint32, m *replica) {
	if m.shown {
		a.referrers.drop(allComponents, &m.links)
		a.referrers.turn(slot)
		if !a.view.resources.In(int(slot)) {
			a.stats.Despawns++
		}
	}
	m.shown, m.removed, m.entity, m.shape, m.strings, m.values = false, false, ecs.Entity{}, nil, nil, nil
}

func (a *applier) spawnEntity(slot uint32, m *replica, state *heldState) {
	x := &a.scratch
	x.add = append(append(x.add[:0], a.view.marker), a.spawnWith...)
	set := &state.shape.set
	for k := set.Next(0); k >= 0; k = set.Next(k + 1) {
		x.add = append(x.add, a.view.components[k])
	}
	if m.entity = a.expected.match(state); m.entity.IsZero() {
		m.entity = a.view.world.NewEntity(x.add...)
	} else {
		a.adopt(m.entity, x.add)
	}
	*(*Mirrored)(a.view.world.Get(m.entity, a.view.marker)) = Mirrored{NetID{slot, state.generation}}
	m.shown, m.removed, m.generation, m.tick, m.shape = true, false, state.generation, state.tick, state.shape
	if a.schema.Mentions {
		a.names.Set(m.entity, wire.NetID{Slot: slot, Generation: state.generation})
	}
	for k := set.Next(0); k >= 0; k = set.Next(k + 1) {
		comp := &a.schema.Components[k]
		p, row := a.view.world.Get(m.entity, a.view.components[k]), state.row(k, comp.Words)
		if p != nil { // or an adopted entity has no room for it
			comp.Write(p, row)
			a.view.holdStrings(m, k, p)
		}
		if comp.Refers() {
			a.refer(slot, m, k, p, row)
		}
	}
	a.referrers.turn(slot)
	a.hooks.noteSpawn(slot, m)
	a.stats.Spawns++
}

// restructure gives the entity the components that came and takes those that went,
// leaving alone what the user added or removed.
func (a *applier) restructure(m *replica, state *heldState) {
	x := &a.scratch
	x.add, x.remove = x.add[:0], x.remove[:0]
	relation := -1
	for k, id := range a.view.components {
		was, is := m.shape.set.Has(k), state.shape.set.Has(k)
		if was == is {
			continue
		}
		if was {
			a.referrers.drop(k, &m.links)
			a.view.dropStrings(m, k)
		}
		switch has := a.view.world.Has(m.entity, id); {
		case is && !has:
			if a.recv.shapes.relations.Has(k) {
				relation = len(x.add)
			}
			x.add = append(x.add, id)
		case was && has:
			x.remove = append(x.remove, id)
		}
	}
	if relation >= 0 {
		if own, ok := a.relations.Of(a.view.world, m.entity); ok && !slices.Contains(x.remove, own) {
			x.add = slices.Delete(x.add, relation, relation+1) // the user added another, and Arche takes one only
			a.stats.RelationConflicts++
		}
	}
	if len(x.add)+len(x.remove) > 0 {
		a.view.world.Exchange(m.entity, x.add, x.remove)
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

// adopt gives a local entity the components of a mirror that it has not. It leaves out a
// relation if the entity has another one.
func (a *applier) adopt(e ecs.Entity, components []ecs.ID) {
	own, related := a.relations.Of(a.view.world, e)
	add := components[:0]
	for _, id := range components {
		if a.view.world.Has(e, id) {
			continue
		}
		if info, _ := ecs.ComponentInfo(a.view.world, id); related && info.IsRelation && id != own {
			a.stats.RelationConflicts++
			continue
		}
		add = append(add, id)
	}
	a.view.world.Add(e, add...)
	a.stats.Adopted++
}

// Resources of a client's world have no identity: one that is there already, added by the user or left of a session with
// another server, is taken over where it is, so that pointers to it stay good.

// applyResources makes the world's resources show the newest state of their slot.
func (a *applier) applyResources(m *replica) {
	state := m.held.at(m.newest)
	if state == nil {
		return // only where damaged packets get through, for want of a checksum
	}
	var old *heldState
	if m.shown {
		old = m.held.at(m.tick)
	}
	set := &a.view.resources.Set
	for k := set.Next(0); k >= 0; k = set.Next(k + 1) {
		was, is := m.shown && m.shape.set.Has(k), state.shape.set.Has(k)
		if was && !is {
			a.referrers.drop(k, &m.links)
			a.view.removeResource(k)
		}
		if !is {
			continue
		}
		comp := &a.schema.Components[k]
		row := state.row(k, comp.Words)
		if was && old != nil && old.shape.set.Has(k) && sameRow(old.row(k, comp.Words), row) {
			continue
		}
		p := a.view.resources.Find(k)
		if p == nil && !was { // else the user removed it, who shall have it so
			a.view.world.Resources().Add(a.view.resources.IDs[k], reflect.New(comp.Typ).Interface())
			p = a.view.resources.Find(k)
		}
		if p != nil {
			if a.hooks.watch(k) {
				a.hooks.noteChange(archeutil.ResourceSlot, m, k, p, row, old != nil)
			}
			comp.Write(p, row)
		}
		if comp.Refers() {
			a.refer(archeutil.ResourceSlot, m, k, p, row)
		}
	}
	m.shown, m.generation, m.tick, m.shape = true, state.generation, state.tick, state.shape
}
