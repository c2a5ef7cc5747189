package apply

import "github.com/arche-replicate/arche-replicate/replication/internal/receive"

// Hooks for components that stand under a condition. They are in a slot of their own and on the entity of another: see
// attach.go. Hooks speak of that entity, and know nothing of sub-entities.

// announceSubEntities calls the hooks for what an entity in a slot has under conditions, before the entity is removed.
func (h *hooks) announceSubEntities(slot uint32, m *replica) {
	if h.schema.Link < 0 || h.Components == nil {
		return
	}
	head := h.referrers.head(slot)
	if head == nil {
		return
	}
	for i := *head; i != 0; i = h.referrers.Links[i].Next {
		l := &h.referrers.Links[i]
		if int(l.Component) != h.schema.Link {
			continue
		}
		if f := h.view.Replicas.At(l.Holder); f.attached() && f.Entity == m.Entity {
			h.announceComponents(f)
		}
	}
}

// announceSubEntity calls the hooks for what a sub-entity is about to take from its entity. What goes with the entity is
// announced with it.
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

// announceComponents calls the hooks for all components that a mirror shows.
func (h *hooks) announceComponents(m *replica) {
	for k := range h.Components {
		if m.Layout.Set.Has(k) {
			h.announceComponent(m, k)
		}
	}
}

// announceLost calls the hooks for the components that a mirror shows and a state has not.
func (h *hooks) announceLost(m *replica, state *receive.HeldState) {
	if state.Layout == m.Layout {
		return
	}
	for k := range h.Components {
		if m.Layout.Set.Has(k) && !state.Layout.Set.Has(k) {
			h.announceComponent(m, k)
		}
	}
}
