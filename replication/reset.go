package replication

import (
	"reflect"

	"github.com/mlange-42/arche/ecs"
)

// A worldMark is a resource of a client's world. [ecs.World.Reset] removes all resources
// without a word, and makes entities that look like those from before: that the mark is
// gone is what tells. Clients that mirror into one world share it.
type worldMark struct {
	_ byte // so that no two have the same address
}

// markWorld puts the mark into the world, or takes the one that is there.
func (c *Client) markWorld() {
	r := c.world.Resources()
	c.markID = ecs.ResourceTypeID(c.world, reflect.TypeFor[worldMark]())
	if m, ok := r.Get(c.markID).(*worldMark); ok {
		c.mark = m
		return
	}
	c.mark = &worldMark{}
	r.Add(c.markID, c.mark)
}

// intact reports whether the world was not reset since the last Apply: then the mirrors'
// entities are what they were.
func (c *Client) intact() bool {
	m, _ := c.world.Resources().Get(c.markID).(*worldMark)
	return m == c.mark
}

// noticeReset makes all mirrors be spawned anew if the world was reset. The client holds
// the newest state of each, so that takes no traffic.
func (c *Client) noticeReset() {
	if c.intact() {
		return
	}
	c.markWorld()
	c.expected.reset()
	for i, page := range c.mirrors.pages {
		for j := range page {
			m := &page[j]
			switch {
			case m.facet:
				c.forgetFacet(m)
			case m.shown:
				c.forgetEntity(uint32(i*mirrorPage+j), m)
			default:
				continue
			}
			if !m.dirty && !m.empty && m.held.at(m.newest) != nil {
				m.dirty = true
				c.dirty = append(c.dirty, uint32(i*mirrorPage+j))
			}
		}
	}
}

// alive is [ecs.World.Alive] for any entity: Arche (v0.15.3) panics at one whose ID the world has not given out since it was
// reset.
func alive(w *ecs.World, e ecs.Entity) (ok bool) {
	defer func() { _ = recover() }() // ok is false then
	return w.Alive(e)
}
