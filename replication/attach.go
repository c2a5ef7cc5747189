package replication

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// This file is the client's half of facets: a slot whose state has a link is no entity,
// but components of the entity that it links to. They are put on it while it is here, and
// go when the facet does; when the entity goes, they go with it. The link is a reference
// like others: its referrers are told when the entity comes or goes.

// applyFacet makes the entity show a facet's newest state, if it is here.
func (a *applier) applyFacet(slot uint32, m *replica, state *heldState, of wire.NetID) {
	if m.shown {
		a.removeEntity(slot, m) // what the slot held before was no facet
	}
	e, here := a.view.entity(of)
	if m.facet && (m.entity != e || m.generation != state.generation) {
		a.detach(m)
	}
	if !m.facet {
		m.facet = true
		a.referrers.add(link{holder: slot, component: uint16(a.schema.Link), slot: of.Slot, generation: of.Generation}, &m.links)
		m.generation = state.generation
	}
	if !here {
		return // until it comes
	}
	if m.entity != e {
		m.entity, m.shape, m.tick = e, a.recv.bare, state.tick
		a.restructure(m, state)
		a.writeRows(slot, m, state, nil)
		return
	}
	old := m.held.at(m.tick)
	if m.shape != state.shape {
		a.restructure(m, state)
	}
	a.writeRows(slot, m, state, old)
}

// detach takes the components of a facet from its entity.
func (a *applier) detach(m *replica) {
	if !m.entity.IsZero() && archeutil.Alive(a.view.world, m.entity) {
		a.restructure(m, &heldState{shape: a.recv.bare})
	}
	a.forgetFacet(m)
}

// forgetFacet notes that the mirror is no facet any more.
func (a *applier) forgetFacet(m *replica) {
	a.referrers.drop(allComponents, &m.links)
	m.facet, m.entity, m.shape = false, ecs.Entity{}, nil
}

// settleFacets looks after the facets whose entity came or went.
func (a *applier) settleFacets() {
	for _, slot := range a.referrers.unsettled {
		m := a.view.replicas.at(slot)
		if !m.facet {
			continue
		}
		state := m.held.at(m.newest)
		if state == nil || m.empty {
			a.detach(m)
		} else if of, facet := a.view.of(state); facet {
			a.applyFacet(slot, m, state, of)
		}
	}
	a.referrers.unsettled = a.referrers.unsettled[:0]
}
