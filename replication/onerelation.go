package replication

import "github.com/mlange-42/arche/ecs"

// An entity of Arche has one relation component at most, and panics at a second one. The
// server's have one each; but the client's user may have added one to a mirrored entity,
// and then the server adds another. The user's stays.

// relationTaken reports whether component k can't be added to a mirror's entity that is to
// have the given shape, because it is a relation and the entity keeps another one.
func (c *Client) relationTaken(m *mirror, next *shape, k int) bool {
	if !c.shapes.relations.Has(k) {
		return false
	}
	for _, id := range c.world.Ids(m.entity) {
		if info, ok := ecs.ComponentInfo(c.world, id); !ok || !info.IsRelation {
			continue
		}
		if !c.leaves(m, next, id) {
			c.stats.RefusedRelations++
			return true
		}
	}
	return false
}

// leaves reports whether a component that a mirror's entity has is taken from it with its
// next shape.
func (c *Client) leaves(m *mirror, next *shape, id ecs.ID) bool {
	for k, own := range c.components {
		if own == id {
			return m.shape.set.Has(k) && !next.set.Has(k)
		}
	}
	return false
}
