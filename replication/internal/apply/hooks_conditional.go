package apply

import "github.com/arche-replicate/arche-replicate/replication/internal/receive"

// Hooks of components under a condition. Such a component is in a slot of its own but on the entity
// of another; see attach.go. Hooks are called for that entity, and know nothing of sub-entities.

// announceSubEntities calls the hooks for an entity's components under conditions, before the
// entity in a slot is removed.
func (h *hooks) announceSubEntities(slot uint32, m *replica) {
	if h.schema.Link < 0 || h.Components == nil {
		return
	}
	for l := range h.referrers.subEntities(slot, h.schema.Link) {
		if f := h.view.Replicas.At(l.Holder); f.attached() && f.Entity == m.Entity {
			h.announceComponents(f)
		}
	}
}

// announceSubEntity calls the hooks for the components that a sub-entity is about to remove from
// its entity. If the entity is removed as well, they are announced with it.
func (h *hooks) announceSubEntity(m *replica, some, foreign bool) {
	of, ok := h.referrers.linked(h.schema.Link, m)
	if !ok || h.view.leaves(h.view.Replicas.At(of.Slot), some, foreign) {
		return
	}
	if !m.Dirty || m.Empty {
		h.announceComponents(m)
		return
	}
	state := m.Held.At(m.Newest)
	if state == nil {
		return
	}
	if next, isSubEntity := h.view.of(state); !isSubEntity || next != of || state.Generation != m.generation {
		h.announceComponents(m)
		return
	}
	h.announceLost(m, state)
}

// announceComponents calls the hooks for all components that a replica shows. It shows none, and has no layout, if a
// hook resets the world.
func (h *hooks) announceComponents(m *replica) {
	for k := range h.Components {
		if m.Layout != nil && m.Layout.Set.Has(k) {
			h.announceComponent(m, k)
		}
	}
}

// announceLost calls the hooks for the components that a replica shows and a state lacks.
func (h *hooks) announceLost(m *replica, state *receive.HeldState) {
	if state.Layout == m.Layout {
		return
	}
	for k := range h.Components {
		if m.Layout != nil && m.Layout.Set.Has(k) && !state.Layout.Set.Has(k) {
			h.announceComponent(m, k)
		}
	}
}
