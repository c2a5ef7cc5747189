package apply

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// Sub-entities at the client. A slot whose state has a link is no entity: its components belong to
// the entity that the link names. They are put on that entity while it is here, and removed when
// the sub-entity ends; when the entity goes, they go with it. A link is a reference like others, so
// the sub-entity is updated when the entity comes or goes.

// applySubEntity makes the entity, if it is here, show the newest state of its sub-entity.
func (a *Applier) applySubEntity(slot uint32, m *replica, state *receive.HeldState, of wire.NetID) {
	if m.Shown {
		a.removeEntity(slot, m) // the slot held an entity before
	}
	e, here := a.View.Entity(of)
	if m.SubEntity && (m.Entity != e || m.generation != state.Generation) {
		a.detach(m)
	}
	if !m.SubEntity {
		m.SubEntity = true
		link := Link{Holder: slot, Component: uint16(a.Schema.Link), Slot: of.Slot, generation: of.Generation}
		a.Referrers.add(link, &m.Links)
		m.generation = state.Generation
	}
	if !here {
		return // settleSubEntities continues when it comes
	}
	if m.Entity != e {
		m.Entity, m.Layout, m.Tick = e, a.recv.Bare, state.Tick
		a.showState(slot, m, state, nil)
		return
	}
	old := m.Held.At(m.Tick)
	if a.forgetRemoved(m, false) {
		old = nil
	}
	a.showState(slot, m, state, old)
}

// detach removes the components of a sub-entity from its entity.
func (a *Applier) detach(m *replica) {
	if !m.Entity.IsZero() && archeutil.Alive(a.View.World, m.Entity) {
		a.changeComponents(0, m, &receive.HeldState{Layout: a.recv.Bare}) // no hook is called for what goes
	}
	a.forgetSubEntity(m)
}

// forgetSubEntity notes that the slot shows no sub-entity.
func (a *Applier) forgetSubEntity(m *replica) {
	a.Referrers.drop(allComponents, &m.Links)
	m.SubEntity, m.partly, m.Entity, m.Layout = false, false, ecs.Entity{}, nil
}

// settleSubEntities updates the sub-entities whose entity came or went.
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

// RowsOf returns what was received of the slot whose states have the rows of component k of an entity:
// the entity's own slot, or that of the sub-entity for the component's condition. It returns nil if the
// world shows no entity in the slot, or nothing of it under that condition.
func (a *Applier) RowsOf(slot uint32, k int) *receive.Replica {
	m := a.View.Replicas.At(slot)
	if m == nil || !m.Shown {
		return nil
	}
	if a.Schema.Components[k].Class == 0 {
		return m.Replica
	}
	for l := range a.Referrers.subEntities(slot, a.Schema.Link) {
		if l.generation != m.generation {
			continue
		}
		if sub := a.View.Replicas.At(l.Holder); sub.Layout != nil && sub.Layout.Set.Has(k) {
			return sub.Replica
		}
	}
	return nil
}

// Renew makes the next Show write all components of an entity: it has lost the marker of Withheld, and may have what
// package predict has written.
func (a *Applier) Renew(e ecs.Entity) {
	id, ok := a.View.NetID(e)
	if !ok {
		return
	}
	a.renew(id.Slot, a.View.Replicas.At(id.Slot))
	for l := range a.Referrers.subEntities(id.Slot, a.Schema.Link) {
		if sub := a.View.Replicas.At(l.Holder); sub.attached() && sub.Entity == e {
			a.renew(l.Holder, sub)
		}
	}
}

// renew makes the next Show write all components of a slot, if anything of them is held.
func (a *Applier) renew(slot uint32, m *replica) {
	if !m.Any || m.Empty || m.Held.At(m.Newest) == nil {
		return
	}
	m.partly = true
	if !m.Dirty {
		a.recv.MarkDirty(slot, m.Replica)
	}
}
