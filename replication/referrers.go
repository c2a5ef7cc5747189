package replication

import (
	"unsafe" // for the name of the type that Arche hands out; no pointer is computed or converted here

	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// This file is the client's half of references: NetIDs to entities. What a row names may
// not be here yet, be out of the client's view or gone; then the field is the zero entity.
// The client remembers who refers to which wire.NetID, and when an entity comes or goes it
// mends the fields that refer to it, at the end of [Client.Apply].

// referrers knows the references in everything that is shown. There is a link for each of
// them that names an entity, whether that is here or not, so their number is bounded by
// that of the fields of the mirrored entities.
type referrers struct {
	links []link // the first one is none
	free  uint32 // the first of those that are not in use, by sibling
	heads [][]uint32
	limit uint32 // slots from here on are never mirrored

	turned   []uint32 // slots whose entity came or went in this Apply, and that somebody refers to
	retarget []target // relations whose targets have to be looked at in this Apply

	unsettled []uint32 // facets whose entity came or went in this Apply
}

// A link is a reference. Those to a slot form a list, as do those of a holder.
type link struct {
	holder     uint32 // slot of the entity with the reference
	component  uint16
	column     uint16
	slot       uint32 // that it refers to
	generation uint16
	next, prev uint32 // to the same slot; prev is 0 for the first
	sibling    uint32 // of the same holder
}

// target is the relation of an entity.
type target struct {
	holder    uint32
	component uint16
}

// headsPage is how many slots share a page of heads: like that of mirrors, a table in
// pages can't be made huge by naming a slot far out.
const headsPage = 256

// head returns where the list of links to a slot begins, or nil if there is none.
func (r *referrers) head(slot uint32) *uint32 {
	if i := int(slot / headsPage); i < len(r.heads) && r.heads[i] != nil {
		return &r.heads[i][slot%headsPage]
	}
	return nil
}

// add returns a new link from a holder, whose list begins at first, to a slot.
func (r *referrers) add(l link, first *uint32) {
	if l.slot >= r.limit {
		return
	}
	page := int(l.slot / headsPage)
	if page >= len(r.heads) {
		r.heads = append(r.heads, make([][]uint32, page+1-len(r.heads))...)
	}
	if r.heads[page] == nil {
		r.heads[page] = make([]uint32, headsPage)
	}
	head := &r.heads[page][l.slot%headsPage]
	if len(r.links) == 0 {
		r.links = append(r.links, link{})
	}
	i := r.free
	if i == 0 {
		i = uint32(len(r.links))
		r.links = append(r.links, link{})
	} else {
		r.free = r.links[i].sibling
	}
	l.next, l.sibling = *head, *first
	if *head != 0 {
		r.links[*head].prev = i
	}
	r.links[i] = l
	*head, *first = i, i
}

// drop removes the links of a component of a holder, whose list begins at first; of all
// its components if that is allComponents.
func (r *referrers) drop(component int, first *uint32) {
	at := first
	for *at != 0 {
		i := *at
		l := &r.links[i]
		if component != allComponents && int(l.component) != component {
			at = &l.sibling
			continue
		}
		*at = l.sibling
		if l.prev != 0 {
			r.links[l.prev].next = l.next
		} else {
			*r.head(l.slot) = l.next
		}
		if l.next != 0 {
			r.links[l.next].prev = l.prev
		}
		*l = link{sibling: r.free}
		r.free = i
	}
}

const allComponents = -1

// turn notes that the entity in a slot came or went.
func (r *referrers) turn(slot uint32) {
	if head := r.head(slot); head != nil && *head != 0 {
		r.turned = append(r.turned, slot)
	}
}

// refer makes the references of a component be those of the row. p is where the component
// is, nil if the user removed it.
func (a *applier) refer(slot uint32, m *replica, component int, p unsafe.Pointer, row []uint32) {
	comp := &a.schema.Components[component]
	a.referrers.drop(component, &m.links)
	for _, i := range comp.References {
		words := row[comp.Columns[i].Word:][:2]
		l := link{holder: slot, component: uint16(component), column: uint16(i), slot: words[0] - 1, generation: uint16(words[1])}
		var e ecs.Entity
		if words[0] != 0 {
			a.referrers.add(l, &m.links)
			e, _ = a.view.entity(wire.NetID{Slot: l.slot, Generation: l.generation})
		}
		switch {
		case comp.Columns[i].Codec.Op == schema.OpRelation:
			a.referrers.retarget = append(a.referrers.retarget, target{slot, uint16(component)})
		case p != nil:
			comp.WriteEntity(p, i, e)
		}
	}
}

// mendReferences brings the references to what came and went up to date.
func (a *applier) mendReferences() {
	r := &a.referrers
	for _, slot := range r.turned {
		for i := *r.head(slot); i != 0; i = r.links[i].next {
			a.mend(&r.links[i])
		}
	}
	r.turned = r.turned[:0]
	a.settleFacets()
	for _, t := range r.retarget {
		a.setTarget(t)
	}
	r.retarget = r.retarget[:0]
}

func (a *applier) mend(l *link) {
	if int(l.component) == a.schema.Link {
		a.referrers.unsettled = append(a.referrers.unsettled, l.holder)
		return
	}
	comp := &a.schema.Components[l.component]
	if comp.Columns[l.column].Codec.Op == schema.OpRelation {
		a.referrers.retarget = append(a.referrers.retarget, target{l.holder, l.component})
		return
	}
	m := a.view.replicas.at(l.holder)
	p := a.view.place(m, int(l.component))
	if p == nil {
		return // the user removed it
	}
	if e, _ := a.view.entity(wire.NetID{Slot: l.slot, Generation: l.generation}); comp.ReadEntity(p, int(l.column)) != e {
		a.hooks.noteMend(l.holder, m, int(l.component), p)
		comp.WriteEntity(p, int(l.column), e)
	}
}

// setTarget makes the target of a mirrored relation be what it refers to, if that is here,
// or the zero entity.
func (a *applier) setTarget(t target) {
	m := a.view.replicas.at(t.holder)
	id := a.view.components[t.component]
	if !m.shown || m.removed || !archeutil.Alive(a.view.world, m.entity) || !a.view.world.Has(m.entity, id) {
		return // by the user; or both by the server
	}
	var e ecs.Entity
	for i := m.links; i != 0; i = a.referrers.links[i].sibling {
		if l := &a.referrers.links[i]; l.component == t.component && l.column == 0 {
			e, _ = a.view.entity(wire.NetID{Slot: l.slot, Generation: l.generation})
		}
	}
	if relations := a.view.world.Relations(); relations.Get(m.entity, id) != e { // Set would allocate even then
		a.hooks.noteMend(t.holder, m, int(t.component), a.view.world.Get(m.entity, id))
		relations.Set(m.entity, id, e)
	}
}

// linked returns the slot and the generation that a facet is known to link to.
func (r *referrers) linked(component int, m *replica) (id wire.NetID, ok bool) {
	for i := m.links; i != 0; i = r.links[i].sibling {
		if l := &r.links[i]; int(l.component) == component {
			return wire.NetID{Slot: l.slot, Generation: l.generation}, true
		}
	}
	return wire.NetID{}, false
}
