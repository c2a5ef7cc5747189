package replication

// What becomes of mirrored entities when a new session begins. NetIDs are those of a
// server: if it is the same one, an entity that comes again is the entity that was. What
// does not come again has ended meanwhile, or is not to be seen any more; that is known
// once the session is complete. The NetIDs of another server mean other entities.

// generationSpan is how many ticks after the last state that it got a client can be sure that
// a slot with the same generation still means the same entity: half of what it takes until a
// generation comes again at the earliest. Each of the 65,536 lives of a slot until then takes 2
// ticks or more, see freeslots.go.
const generationSpan = 1 << 16

// outdated reports whether at a tick of the server's, what the client shows may mean other
// entities.
func (c *Client) outdated(tick uint32) bool {
	return int32(tick-c.stateTick) > generationSpan
}

// forgetStates makes nothing known of any slot but what the world shows.
func (c *Client) forgetStates() {
	c.dirty = c.dirty[:0]
	for _, page := range c.mirrors.pages {
		for j := range page {
			m := &page[j]
			m.held.release()
			m.held, m.any, m.empty, m.dirty = heldStates{}, false, false, false
		}
	}
}

// beginShowing notes that a session begins with a server of the given origin. outdated reports whether what the world shows may
// mean other entities to it, whoever it is.
func (c *Client) beginShowing(origin uint64, outdated bool) {
	c.origin, c.divergence = origin, nil
	if outdated {
		c.shownOrigin = ^origin // whoever it was
	}
	c.noteLeftover()
}

// noteLeftover notes that of what the world shows no states are known any more.
func (c *Client) noteLeftover() {
	for _, page := range c.mirrors.pages {
		for j := range page {
			c.leftover = c.leftover || page[j].shown || page[j].facet
		}
	}
}

// outlived reports whether the world shows something of sessions before that is known to
// be no more, and whether that is all of it, since the server is another one.
func (c *Client) outlived() (some, foreign bool) {
	foreign = c.anyState && c.shownOrigin != c.origin
	return c.anyState && c.leftover && (foreign || c.session.complete), foreign
}

// takeOver removes what is left of sessions before, as soon as it is known to be no more.
func (c *Client) takeOver() {
	some, foreign := c.outlived()
	if c.anyState {
		c.shownOrigin = c.origin
	}
	if !some {
		return
	}
	c.leftover = false
	for i, page := range c.mirrors.pages {
		for j := range page {
			if m := &page[j]; (m.shown || m.facet) && (foreign || !m.any) {
				c.removeEntity(uint32(i*mirrorPage+j), m)
			}
		}
	}
}
