package apply

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// This file is the client's half of facets: a slot whose state has a link is no entity,
// but components of the entity that it links to. They are put on it while it is here, and
// go when the facet does; when the entity goes, they go with it. The link is a reference
// like others: its referrers are told when the entity comes or goes.

// applyFacet makes the entity show a facet's newest state, if it is here.
func (a *Applier) applyFacet(slot uint32, m *replica, state *receive.HeldState, of wire.NetID) {
	if m.Shown {
		a.removeEntity(slot, m) // what the slot held before was no facet
	}
	e, here := a.View.Entity(of)
	if m.Facet && (m.Entity != e || m.generation != state.Generation) {
		a.detach(m)
	}
	if !m.Facet {
		m.Facet = true
		a.Referrers.add(Link{Holder: slot, Component: uint16(a.Schema.Link), Slot: of.Slot, generation: of.Generation}, &m.Links)
		m.generation = state.Generation
	}
	if !here {
		return // until it comes
	}
	if m.Entity != e {
		m.Entity, m.Shape, m.Tick = e, a.recv.Bare, state.Tick
		a.restructure(m, state)
		a.writeRows(slot, m, state, nil)
		return
	}
	old := m.Held.At(m.Tick)
	if m.Shape != state.Shape {
		a.restructure(m, state)
	}
	a.writeRows(slot, m, state, old)
}

// detach takes the components of a facet from its entity.
func (a *Applier) detach(m *replica) {
	if !m.Entity.IsZero() && archeutil.Alive(a.View.World, m.Entity) {
		a.restructure(m, &receive.HeldState{Shape: a.recv.Bare})
	}
	a.forgetFacet(m)
}

// forgetFacet notes that the mirror is no facet any more.
func (a *Applier) forgetFacet(m *replica) {
	a.Referrers.drop(allComponents, &m.Links)
	m.Facet, m.Entity, m.Shape = false, ecs.Entity{}, nil
}

// settleFacets looks after the facets whose entity came or went.
func (a *Applier) settleFacets() {
	for _, slot := range a.Referrers.Unsettled {
		m := a.View.Replicas.At(slot)
		if !m.Facet {
			continue
		}
		state := m.Held.At(m.Newest)
		if state == nil || m.Empty {
			a.detach(m)
		} else if of, facet := a.View.of(state); facet {
			a.applyFacet(slot, m, state, of)
		}
	}
	a.Referrers.Unsettled = a.Referrers.Unsettled[:0]
}
