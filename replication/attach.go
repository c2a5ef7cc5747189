package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/mlange-42/arche/ecs"
)

// This file is the client's half of facets: a slot whose state has a link is no entity,
// but components of the entity that it links to. They are put on it while it is here, and
// go when the facet does; when the entity goes, they go with it. The link is a reference
// like others: its referrers are told when the entity comes or goes.

// of returns what a state links to, and whether it is that of a facet.
func (c *applier) of(state *heldState) (id NetID, facet bool) {
	if c.schema.Link < 0 {
		return NetID{}, false
	}
	row := state.row(c.schema.Link, 2)
	if row == nil {
		return NetID{}, false
	}
	return NetID{row[0] - 1, uint16(row[1])}, true // nothing is a slot beyond all others
}

// applyFacet makes the entity show a facet's newest state, if it is here.
func (c *applier) applyFacet(slot uint32, m *replica, state *heldState, of NetID) {
	if m.shown {
		c.removeEntity(slot, m) // what the slot held before was no facet
	}
	e, here := c.entity(of)
	if m.facet && (m.entity != e || m.generation != state.generation) {
		c.detach(m)
	}
	if !m.facet {
		m.facet = true
		c.referrers.add(link{holder: slot, component: uint16(c.schema.Link), slot: of.Slot, generation: of.Generation}, &m.links)
		m.generation = state.generation
	}
	if !here {
		return // until it comes
	}
	if m.entity != e {
		m.entity, m.shape, m.tick = e, c.recv.bare, state.tick
		c.restructure(m, state)
		c.writeRows(slot, m, state, nil)
		return
	}
	old := m.held.at(m.tick)
	if m.shape != state.shape {
		c.restructure(m, state)
	}
	c.writeRows(slot, m, state, old)
}

// detach takes the components of a facet from its entity.
func (c *applier) detach(m *replica) {
	if !m.entity.IsZero() && alive(c.world, m.entity) {
		c.restructure(m, &heldState{shape: c.recv.bare})
	}
	c.forgetFacet(m)
}

// forgetFacet notes that the mirror is no facet any more.
func (c *applier) forgetFacet(m *replica) {
	c.referrers.drop(allComponents, &m.links)
	m.facet, m.entity, m.shape = false, ecs.Entity{}, nil
}

// settleFacets looks after the facets whose entity came or went.
func (c *applier) settleFacets() {
	for _, slot := range c.referrers.unsettled {
		m := c.replicas.at(slot)
		if !m.facet {
			continue
		}
		state := m.held.at(m.newest)
		if state == nil || m.empty {
			c.detach(m)
		} else if of, facet := c.of(state); facet {
			c.applyFacet(slot, m, state, of)
		}
	}
	c.referrers.unsettled = c.referrers.unsettled[:0]
}

// bareShape is what an entity has of a facet that is not attached: nothing but the link.
func bareShape(s *schema.Schema, k *shapes) *shape {
	if s.Link < 0 {
		return nil
	}
	var set delta.Set
	set.Add(s.Link)
	return k.of(set)
}
