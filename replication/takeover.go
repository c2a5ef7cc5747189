package replication

// What becomes of mirrored entities when a new session begins. NetIDs are those of a
// server: if it is the same one, an entity that comes again is the entity that was. What
// does not come again has ended meanwhile, or is not to be seen any more; that is known
// once the session is complete. The NetIDs of another server mean other entities.

// beginShowing notes that a session begins with a server of the given origin. outdated reports whether what the world shows may
// mean other entities to it, whoever it is.
func (c *applier) beginShowing(origin uint64, outdated bool) {
	c.origin, c.divergence = origin, nil
	if outdated {
		c.shownOrigin = ^origin // whoever it was
	}
	c.noteLeftover()
}

// noteLeftover notes that of what the world shows no states are known any more.
func (c *applier) noteLeftover() {
	for _, page := range c.replicas.pages {
		for j := range page {
			c.leftover = c.leftover || page[j].shown || page[j].facet
		}
	}
}

// outlived reports whether the world shows something of sessions before that is known to
// be no more, and whether that is all of it, since the server is another one.
func (c *applier) outlived(complete bool) (some, foreign bool) {
	foreign = c.recv.anyState && c.shownOrigin != c.origin
	return c.recv.anyState && c.leftover && (foreign || complete), foreign
}

// takeOver removes what is left of sessions before, as soon as it is known to be no more.
func (c *applier) takeOver(some, foreign bool) {
	if c.recv.anyState {
		c.shownOrigin = c.origin
	}
	if !some {
		return
	}
	c.leftover = false
	for i, page := range c.replicas.pages {
		for j := range page {
			if m := &page[j]; (m.shown || m.facet) && (foreign || !m.any) {
				c.removeEntity(uint32(i*mirrorPage+j), m)
			}
		}
	}
}
