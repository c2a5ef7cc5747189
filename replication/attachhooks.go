package replication

// Hooks for components that stand under a condition. They are in a slot of their own and on the entity of another: see
// attach.go. Hooks speak of that entity, and know nothing of facets.

// announceFacets calls the hooks for what an entity in a slot has under conditions, before the entity is removed.
func (h *hooks) announceFacets(slot uint32, m *replica) {
	if h.schema.Link < 0 || h.components == nil {
		return
	}
	head := h.referrers.head(slot)
	if head == nil {
		return
	}
	for i := *head; i != 0; i = h.referrers.links[i].next {
		l := &h.referrers.links[i]
		if int(l.component) != h.schema.Link {
			continue
		}
		if f := h.view.replicas.at(l.holder); f.attached() && f.entity == m.entity {
			h.announceComponents(f)
		}
	}
}

// announceFacet calls the hooks for what a facet is about to take from its entity. What goes with the entity is
// announced with it.
func (h *hooks) announceFacet(m *replica, some, foreign bool) {
	of, ok := h.referrers.linked(h.schema.Link, m)
	if !ok || h.view.leaves(h.view.replicas.at(of.Slot), some, foreign) {
		return
	}
	if !m.dirty || m.empty {
		h.announceComponents(m)
		return
	}
	state := m.held.at(m.newest)
	if state == nil {
		return
	}
	if next, facet := h.view.of(state); !facet || next != of || state.generation != m.generation {
		h.announceComponents(m)
		return
	}
	h.announceLost(m, state)
}

// announceComponents calls the hooks for all components that a mirror shows.
func (h *hooks) announceComponents(m *replica) {
	for k := range h.components {
		if m.shape.set.Has(k) {
			h.announceComponent(m, k)
		}
	}
}

// announceLost calls the hooks for the components that a mirror shows and a state has not.
func (h *hooks) announceLost(m *replica, state *heldState) {
	if state.shape == m.shape {
		return
	}
	for k := range h.components {
		if m.shape.set.Has(k) && !state.shape.set.Has(k) {
			h.announceComponent(m, k)
		}
	}
}
