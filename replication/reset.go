package replication

// A worldMark is a resource of a world. That it is gone tells that the world was reset; see worldWatch.
type worldMark struct {
	_ byte // so that no two have the same address
}

// intact reports whether the world was not reset since the last Apply: then the mirrors'
// entities are what they were.
func (c *applier) intact() bool { return c.mark.intact() }

// noticeReset makes all mirrors be spawned anew if the world was reset. The client holds
// the newest state of each, so that takes no traffic.
func (c *applier) noticeReset() {
	if c.intact() {
		return
	}
	c.mark.set()
	c.expected.reset()
	for i, page := range c.replicas.pages {
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
				c.recv.markDirty(uint32(i*mirrorPage+j), m.mirror)
			}
		}
	}
}
