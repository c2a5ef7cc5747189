package apply

import (
	"reflect"
	"slices"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/field"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// How the world changes: entities are spawned, written and removed, resources too, and references point to what came.

// applyReplica makes the world show a replica's newest state.
func (a *Applier) applyReplica(slot uint32, m *replica) {
	if a.View.Resources.In(int(slot)) {
		a.applyResources(m)
		return
	}
	if m.Empty {
		a.removeEntity(slot, m)
		return
	}
	state := m.Held.At(m.Newest)
	if state == nil {
		return // only if damaged packets get through, without a checksum
	}
	if of, isSubEntity := a.View.of(state); isSubEntity {
		a.applySubEntity(slot, m, state, of)
		return
	}
	if m.SubEntity || m.Shown && m.generation != state.Generation {
		a.removeEntity(slot, m)
	}
	if !m.Shown {
		a.spawnEntity(slot, m, state)
		return
	}
	anew := m.ended || m.Held.EndedAfter(m.Tick) // the server removed it and spawned it again
	m.ended = false
	if m.Removed || !archeutil.Alive(a.View.World, m.Entity) {
		if anew {
			a.forgetEntity(slot, m)
			a.spawnEntity(slot, m, state)
			return
		}
		m.Removed = true // by the user; do not respawn it
		a.Referrers.drop(allComponents, &m.Links)
		m.Tick, m.Layout, m.Strings, m.values = state.Tick, state.Layout, nil, nil
		return
	}
	old := m.Held.At(m.Tick)
	if a.forgetRemoved(m, anew) {
		old = nil // so that all rows are written
	}
	a.showState(slot, m, state, old)
}

// update makes the world show the newest state of an entity that has the same components as before, as most have. It
// returns false, and has done nothing, in any other case, which is left to applyReplica.
func (a *Applier) update(slot uint32, m *replica) bool {
	state := m.Held.Newest()
	if !m.Shown || m.Removed || m.ended || m.partly || m.Empty || state == nil || state.Tick != m.Newest ||
		state.Layout != m.Layout || state.Generation != m.generation ||
		!m.Held.HadLayout(m.Layout, m.Tick) || a.View.Resources.In(int(slot)) {
		return false
	}
	if a.Schema.Link >= 0 && state.Layout.Set.Has(a.Schema.Link) {
		return false
	}
	old := m.Held.At(m.Tick)
	if old == nil || old.Layout != state.Layout || old.Generation != state.Generation ||
		!archeutil.Alive(a.View.World, m.Entity) {
		return false
	}
	m.partly = true
	for i := range state.Layout.Coded {
		at := &state.Layout.Coded[i]
		if !state.SameAt(at, old) {
			a.writeRow(slot, m, at, state.RowAt(at))
		}
	}
	m.Tick, m.partly = state.Tick, false
	return true
}

// writeRow writes a row that changed of an entity that is alive, or lets it wait. The entity stays alive while its rows
// are written: see worldView.convert.
func (a *Applier) writeRow(slot uint32, m *replica, at *receive.Place, row []uint32) {
	k, comp := at.Number, at.Comp
	p := a.View.World.GetUnchecked(m.Entity, a.View.Components[k])
	if p == nil || a.View.Withheld.On && a.View.Withheld.has(a.View.World, m.Entity, k) {
		if comp.Refers() {
			a.refer(slot, m, k, nil, row)
		}
		return // the user removed it, or it is withheld
	}
	if a.Hooks.watch(k) {
		a.Hooks.noteChange(slot, m, k, p, row, true)
	}
	if comp.Simple() {
		a.pending.add(k, p, row)
		return
	}
	a.View.write(comp, p, row)
	a.View.holdStrings(m, k, p)
	if comp.Refers() {
		a.refer(slot, m, k, p, row)
	}
}

// showState makes an entity that is alive show a state. old is the state that its components show, or nil if that is
// not known.
func (a *Applier) showState(slot uint32, m *replica, state, old *receive.HeldState) {
	had, left := m.Layout.Set, a.View.Withheld.of(&a.View, m.Entity)
	if m.Layout != state.Layout {
		a.changeComponents(slot, m, state)
	}
	if !archeutil.Alive(a.View.World, m.Entity) {
		return // a listener of the world removed it when its components changed
	}
	if m.partly {
		old = nil
	}
	m.partly = true
	for k := range state.Layout.Set.All() {
		if k == a.Schema.Link {
			continue
		}
		comp := &a.Schema.Components[k]
		row := state.Row(k, comp.Words)
		if old != nil && old.Generation == state.Generation {
			if was := old.Row(k, comp.Words); was != nil && receive.SameRow(was, row) {
				continue
			}
		}
		if had.Has(k) && !left.Has(k) && a.Hooks.watch(k) { // the others are noted already
			if p := a.View.World.Get(m.Entity, a.View.Components[k]); p != nil {
				a.Hooks.noteChange(slot, m, k, p, row, old != nil)
			}
		}
		a.fill(slot, m, k, row, &left)
	}
	m.Tick, m.partly = state.Tick, false
}

// fill writes a row into a component of an entity that is alive, unless it is one of those that are left alone.
func (a *Applier) fill(slot uint32, m *replica, k int, row []uint32, left *wire.ComponentSet) {
	comp := &a.Schema.Components[k]
	var p unsafe.Pointer
	if !left.Has(k) {
		p = a.View.World.Get(m.Entity, a.View.Components[k])
	}
	if p != nil { // nil: the user removed it, or the entity has another relation already
		a.View.write(comp, p, row)
		a.View.holdStrings(m, k, p)
		if comp.Refers() && a.View.Withheld.has(a.View.World, m.Entity, k) {
			a.Referrers.fresh = append(a.Referrers.fresh, target{slot, uint16(k)})
		}
	}
	if comp.Refers() {
		a.refer(slot, m, k, p, row)
	}
}

// removeEntity removes what a slot shows: an entity, the components of a sub-entity, or resources.
func (a *Applier) removeEntity(slot uint32, m *replica) {
	if m.SubEntity {
		a.detach(m)
		return
	}
	switch {
	case !m.Shown || m.Removed:
	case a.View.Resources.In(int(slot)):
		a.View.removeResources(m)
	case archeutil.Alive(a.View.World, m.Entity):
		a.relations.Remove(a.View.World, m.Entity)
	}
	a.forgetEntity(slot, m)
}

// forgetEntity notes that the world shows nothing of a slot.
func (a *Applier) forgetEntity(slot uint32, m *replica) {
	if m.Shown {
		a.Referrers.drop(allComponents, &m.Links)
		a.Referrers.noteChurn(slot)
		if !a.View.Resources.In(int(slot)) {
			a.stats.Despawns++
		}
	}
	m.Shown, m.Removed, m.ended, m.partly, m.targeted = false, false, false, false, false
	m.Entity, m.Layout, m.Strings, m.values = ecs.Entity{}, nil, nil, nil
}

// forgetRemoved notes that an entity lacks the components that the user removed and the server has added anew since, so
// that they are added again. It reports whether there are any. If the server spawned the entity anew, it has added all.
func (a *Applier) forgetRemoved(m *replica, anew bool) bool {
	has := m.Layout.Set
	var kept wire.ComponentSet // what the server has not removed since
	if !anew {
		if kept = m.Held.Kept(has, m.Tick); kept == has {
			return false
		}
	}
	for k := range has.All() {
		if k != a.Schema.Link && !kept.Has(k) && !a.View.World.Has(m.Entity, a.View.Components[k]) {
			a.Referrers.drop(k, &m.Links)
			a.View.dropStrings(m, k)
			has.Toggle(k)
		}
	}
	l := a.recv.Layouts.Of(has)
	if l == nil || l == m.Layout { // there are too many layouts, or all components
		return false
	}
	m.Layout = l
	return true
}

// spawnEntity makes the world show the first state of a slot, with a new entity or an expected one.
func (a *Applier) spawnEntity(slot uint32, m *replica, state *receive.HeldState) {
	x := &a.scratch
	x.add = append(append(x.add[:0], a.View.Marker), a.spawnWith...)
	set := &state.Layout.Set
	for k := range set.All() {
		x.add = append(x.add, a.View.Components[k])
	}
	m.Entity = a.Expected.match(state)
	left := a.View.Withheld.of(&a.View, m.Entity)
	if m.Entity.IsZero() {
		m.Entity = a.View.World.NewEntity(x.add...)
	} else {
		a.adopt(m.Entity, x.add)
	}
	m.Shown, m.Removed, m.generation, m.Tick, m.Layout = true, false, state.Generation, state.Tick, state.Layout
	if !archeutil.Alive(a.View.World, m.Entity) {
		m.Removed = true // by a listener of the world
		return
	}
	id := wire.NetID{Slot: slot, Generation: state.Generation}
	if marker := (*Mirrored)(a.View.World.Get(m.Entity, a.View.Marker)); marker != nil { // else a listener removed it
		*marker = Mirrored{ID: id, By: a}
	}
	if a.Schema.MessagesRefer {
		a.names.Set(m.Entity, id)
	}
	a.Referrers.noteChurn(slot)
	a.Hooks.noteSpawn(slot, m)
	a.stats.Spawns++
	m.partly = true
	for k := range set.All() {
		a.fill(slot, m, k, state.Row(k, a.Schema.Components[k].Words), &left)
	}
	m.partly = false
}

// changeComponents adds the components that came and removes those that went. It leaves alone what
// the user added or removed. Hooks are called for those that came.
func (a *Applier) changeComponents(slot uint32, m *replica, state *receive.HeldState) {
	x := &a.scratch
	x.add, x.remove = x.add[:0], x.remove[:0]
	relation := -1
	for k, id := range a.View.Components {
		was, is := m.Layout.Set.Has(k), state.Layout.Set.Has(k)
		if was == is {
			continue
		}
		if was {
			a.Referrers.drop(k, &m.Links)
			a.View.dropStrings(m, k)
		} else if a.Hooks.watch(k) {
			a.Hooks.noteAdd(slot, m, k)
		}
		switch has := a.View.World.Has(m.Entity, id); {
		case is && !has:
			if a.recv.Layouts.Relations.Has(k) {
				relation, m.targeted = len(x.add), false
			}
			x.add = append(x.add, id)
		case was && has:
			x.remove = append(x.remove, id)
		}
	}
	if relation >= 0 {
		if own, ok := a.relations.Of(a.View.World, m.Entity); ok && !slices.Contains(x.remove, own) {
			// The user added another relation, and Arche allows only one.
			x.add = slices.Delete(x.add, relation, relation+1)
			a.stats.RelationConflicts++
		}
	}
	if len(x.add)+len(x.remove) > 0 {
		a.View.World.Exchange(m.Entity, x.add, x.remove)
	}
	m.Layout = state.Layout
}

// adopt adds to a local entity the components that it lacks. It leaves out a relation if the entity
// has another one.
func (a *Applier) adopt(e ecs.Entity, components []ecs.ID) {
	own, related := a.relations.Of(a.View.World, e)
	add := components[:0]
	for _, id := range components {
		if a.View.World.Has(e, id) {
			continue
		}
		if info, _ := ecs.ComponentInfo(a.View.World, id); related && info.IsRelation && id != own {
			a.stats.RelationConflicts++
			continue
		}
		add = append(add, id)
	}
	a.View.World.Add(e, add...)
	a.stats.Adopted++
}

// Resources have no identity. One that is in the client's world already, added by the user or left
// from a session with another server, is taken over in place, so that pointers to it stay valid.

// applyResources makes the world's resources show the newest state of their slot.
func (a *Applier) applyResources(m *replica) {
	state := m.Held.At(m.Newest)
	if state == nil {
		return // as in applyReplica
	}
	old, kept := shownResources(m)
	m.partly = true
	set := &a.View.Resources.Set
	for k := range set.All() {
		was, is := m.Shown && m.Layout.Set.Has(k), state.Layout.Set.Has(k)
		if was && !is {
			a.Referrers.drop(k, &m.Links)
			a.View.removeResource(k)
		}
		if !is {
			continue
		}
		comp := &a.Schema.Components[k]
		row := state.Row(k, comp.Words)
		if kept.Has(k) && old != nil && old.Layout.Set.Has(k) && receive.SameRow(old.Row(k, comp.Words), row) {
			continue
		}
		p := a.View.Resources.Find(k)
		comes := p == nil && !kept.Has(k) // otherwise the user removed it; do not add it again
		if comes {
			a.View.World.Resources().Add(a.View.Resources.IDs[k], reflect.New(comp.Typ).Interface())
			p = a.View.Resources.Find(k)
		}
		if p != nil {
			if a.Hooks.watch(k) {
				a.noteResource(m, k, p, row, comes && was, old != nil && kept.Has(k))
			}
			a.View.write(comp, p, row)
		}
		if comp.Refers() {
			a.refer(archeutil.ResourceSlot, m, k, p, row)
		}
	}
	m.Shown, m.generation, m.Tick, m.Layout, m.partly = true, state.Generation, state.Tick, state.Layout, false
}

// shownResources returns the state that the world's resources show, or nil if that is not known, and those of them that
// the server has not removed since.
func shownResources(m *replica) (old *receive.HeldState, kept wire.ComponentSet) {
	if !m.Shown {
		return nil, wire.ComponentSet{}
	}
	if !m.partly {
		old = m.Held.At(m.Tick)
	}
	return old, m.Held.Kept(m.Layout.Set, m.Tick)
}

// noteResource is hooks.noteChange for a resource. anew reports that the server removed it and added it again.
func (a *Applier) noteResource(m *replica, k int, p unsafe.Pointer, row []uint32, anew, differs bool) {
	if anew {
		a.Hooks.noteAdd(archeutil.ResourceSlot, m, k)
		return
	}
	a.Hooks.noteChange(archeutil.ResourceSlot, m, k, p, row, differs)
}

// refer sets the references of a component to those of the row. p is the address of the component,
// or nil if the user removed it, or if it is withheld.
func (a *Applier) refer(slot uint32, m *replica, component int, p unsafe.Pointer, row []uint32) {
	comp := &a.Schema.Components[component]
	a.Referrers.drop(component, &m.Links)
	for _, i := range comp.References {
		words := row[comp.Columns[i].Word:][:2]
		l := Link{
			Holder: slot, Component: uint16(component), column: uint16(i),
			Slot: words[0] - 1, generation: uint16(words[1]),
		}
		if words[0] != 0 {
			a.Referrers.add(l, &m.Links)
		}
		switch {
		case p == nil:
		case comp.Columns[i].Codec.Op == field.OpRelation:
			a.Referrers.retarget = append(a.Referrers.retarget, target{slot, uint16(component)})
		default:
			comp.WriteEntity(p, i, a.View.Named(words))
		}
	}
}

// mendReferences updates the references to entities that came or went in this Frame.
func (a *Applier) mendReferences() {
	r := &a.Referrers
	for _, slot := range r.churned {
		for i := *r.head(slot); i != 0; i = r.Links[i].Next {
			a.mend(&r.Links[i])
		}
	}
	r.churned = r.churned[:0]
	a.settleSubEntities()
	for _, t := range r.retarget {
		a.setTarget(t)
	}
	r.retarget, r.fresh = r.retarget[:0], r.fresh[:0]
}

// withheld reports whether the references of a replica's component are left alone. Those of one that came in this Frame
// are not.
func (a *Applier) withheld(m *replica, t target) bool {
	return a.View.Withheld.has(a.View.World, m.Entity, int(t.component)) && !slices.Contains(a.Referrers.fresh, t)
}

// mend updates one reference to an entity that came or went.
func (a *Applier) mend(l *Link) {
	if int(l.Component) == a.Schema.Link {
		a.Referrers.Unsettled = append(a.Referrers.Unsettled, l.Holder)
		return
	}
	comp := &a.Schema.Components[l.Component]
	if comp.Columns[l.column].Codec.Op == field.OpRelation {
		a.Referrers.retarget = append(a.Referrers.retarget, target{l.Holder, l.Component})
		return
	}
	m := a.View.Replicas.At(l.Holder)
	p := a.View.place(m, int(l.Component))
	if p == nil || a.withheld(m, target{l.Holder, l.Component}) {
		return // nil: the user removed it
	}
	e, _ := a.View.Entity(wire.NetID{Slot: l.Slot, Generation: l.generation})
	if comp.ReadEntity(p, int(l.column)) != e {
		a.Hooks.noteMend(l.Holder, m, int(l.Component), p)
		comp.WriteEntity(p, int(l.column), e)
	}
}

// setTarget sets the target of a relation to the entity that it refers to, or to the zero entity if
// that is not here.
func (a *Applier) setTarget(t target) {
	m := a.View.Replicas.At(t.holder)
	id := a.View.Components[t.component]
	if !m.Shown || m.Removed || !archeutil.Alive(a.View.World, m.Entity) || !a.View.World.Has(m.Entity, id) {
		return // removed by the user, or with its entity by the server
	}
	if a.withheld(m, t) {
		return
	}
	relations := a.View.World.Relations()
	if a.View.Replaced.Has(int(t.component)) && m.targeted { // package interpolation sets it
		if is := relations.Get(m.Entity, id); is.IsZero() || archeutil.Alive(a.View.World, is) {
			return
		}
	}
	m.targeted = true
	var e ecs.Entity
	for i := m.Links; i != 0; i = a.Referrers.Links[i].Sibling {
		if l := &a.Referrers.Links[i]; l.Component == t.component && l.column == 0 {
			e, _ = a.View.Entity(wire.NetID{Slot: l.Slot, Generation: l.generation})
		}
	}
	if relations.Get(m.Entity, id) != e { // Set always allocates
		a.Hooks.noteMend(t.holder, m, int(t.component), a.View.World.Get(m.Entity, id))
		relations.Set(m.Entity, id, e)
	}
}
