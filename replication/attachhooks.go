package replication

// Hooks for components that stand under a condition. They are in a slot of their own and on the entity of another: see
// attach.go. Hooks speak of that entity, and know nothing of facets.

// linked returns the slot and the generation that a facet is known to link to.
func (c *applier) linked(m *replica) (id NetID, ok bool) {
	for i := m.links; i != 0; i = c.referrers.links[i].sibling {
		if l := &c.referrers.links[i]; int(l.component) == c.schema.Link {
			return NetID{l.slot, l.generation}, true
		}
	}
	return NetID{}, false
}

// announceFacets calls the hooks for what an entity in a slot has under conditions, before the entity is removed.
func (c *applier) announceFacets(slot uint32, m *replica) {
	if c.schema.Link < 0 || c.hooks.components == nil {
		return
	}
	head := c.referrers.head(slot)
	if head == nil {
		return
	}
	for i := *head; i != 0; i = c.referrers.links[i].next {
		l := &c.referrers.links[i]
		if int(l.component) != c.schema.Link {
			continue
		}
		if f := c.replicas.at(l.holder); f.attached() && f.entity == m.entity {
			c.announceComponents(f)
		}
	}
}

// announceFacet calls the hooks for what a facet is about to take from its entity. What goes with the entity is
// announced with it.
func (c *applier) announceFacet(m *replica, some, foreign bool) {
	of, ok := c.linked(m)
	if !ok || c.leaves(c.replicas.at(of.Slot), some, foreign) {
		return
	}
	if !m.dirty || m.empty {
		c.announceComponents(m)
		return
	}
	state := m.held.at(m.newest)
	if state == nil {
		return
	}
	if next, facet := c.of(state); !facet || next != of || state.generation != m.generation {
		c.announceComponents(m)
		return
	}
	c.announceLost(m, state)
}

// leaves reports whether the entity of a mirror is removed in this Apply.
func (c *applier) leaves(m *replica, some, foreign bool) bool {
	switch {
	case m == nil || !m.shown:
		return true
	case some && (foreign || !m.any), m.dirty && m.empty:
		return true
	case !m.dirty:
		return false
	}
	state := m.held.at(m.newest)
	if state == nil {
		return false
	}
	_, facet := c.of(state)
	return facet || state.generation != m.generation
}

// announceComponents calls the hooks for all components that a mirror shows.
func (c *applier) announceComponents(m *replica) {
	for k := range c.hooks.components {
		if m.shape.set.Has(k) {
			c.announceComponent(m, k)
		}
	}
}

// announceLost calls the hooks for the components that a mirror shows and a state has not.
func (c *applier) announceLost(m *replica, state *heldState) {
	if state.shape == m.shape {
		return
	}
	for k := range c.hooks.components {
		if m.shape.set.Has(k) && !state.shape.set.Has(k) {
			c.announceComponent(m, k)
		}
	}
}
