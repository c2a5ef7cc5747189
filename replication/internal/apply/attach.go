package apply

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// This file is the client's half of sub-entities: a slot whose state has a link is no entity,
// but components of the entity that it links to. They are put on it while it is here, and
// go when the sub-entity does; when the entity goes, they go with it. The link is a reference
// like others: its referrers are told when the entity comes or goes.

// applySubEntity makes the entity show a sub-entity's newest state, if it is here.
func (a *Applier) applySubEntity(slot uint32, m *replica, state *receive.HeldState, of wire.NetID) {
	if m.Shown {
		a.removeEntity(slot, m) // what the slot held before was no sub-entity
	}
	e, here := a.View.Entity(of)
	if m.SubEntity && (m.Entity != e || m.generation != state.Generation) {
		a.detach(m)
	}
	if !m.SubEntity {
		m.SubEntity = true
		a.Referrers.add(Link{Holder: slot, Component: uint16(a.Schema.Link), Slot: of.Slot, generation: of.Generation}, &m.Links)
		m.generation = state.Generation
	}
	if !here {
		return // until it comes
	}
	if m.Entity != e {
		m.Entity, m.Layout, m.Tick = e, a.recv.Bare, state.Tick
		a.changeComponents(m, state)
		a.writeRows(slot, m, state, nil)
		return
	}
	old := m.Held.At(m.Tick)
	if m.Layout != state.Layout {
		a.changeComponents(m, state)
	}
	a.writeRows(slot, m, state, old)
}

// detach takes the components of a sub-entity from its entity.
func (a *Applier) detach(m *replica) {
	if !m.Entity.IsZero() && archeutil.Alive(a.View.World, m.Entity) {
		a.changeComponents(m, &receive.HeldState{Layout: a.recv.Bare})
	}
	a.forgetSubEntity(m)
}

// forgetSubEntity notes that the mirror is no sub-entity any more.
func (a *Applier) forgetSubEntity(m *replica) {
	a.Referrers.drop(allComponents, &m.Links)
	m.SubEntity, m.Entity, m.Layout = false, ecs.Entity{}, nil
}

// settleSubEntities looks after the sub-entities whose entity came or went.
func (a *Applier) settleSubEntities() {
	for _, slot := range a.Referrers.Unsettled {
		m := a.View.Replicas.At(slot)
		if !m.SubEntity {
			continue
		}
		state := m.Held.At(m.Newest)
		if state == nil || m.Empty {
			a.detach(m)
		} else if of, isSubEntity := a.View.of(state); isSubEntity {
			a.applySubEntity(slot, m, state, of)
		}
	}
	a.Referrers.Unsettled = a.Referrers.Unsettled[:0]
}
