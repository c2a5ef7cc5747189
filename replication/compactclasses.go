package replication

import "github.com/arche-replicate/arche-replicate/delta"

// Peers with [Compact] have baselines of their own: nothing is gained by having those of others.
// A nearer second one serves better, once it is learnt how far motions reach, and so does a third.

// addSpread adds the classes of slots that the peer holds as of tick at, that have the baselines
// that are best for Compact, and returns the others.
func (p *tracker) addSpread(b int, m uint64, at delta.Tick) uint64 {
	c := &p.classes
	for span := delta.Tick(2); span <= 4 && m != 0; span++ {
		two := m & p.heldFor(b, at, at-span)
		if two == 0 {
			continue
		}
		m &^= two
		for third := delta.Tick(1); third < span && third <= 3 && two != 0; third++ {
			if three := two & p.heldFor(b, at, at-third); three != 0 {
				two &^= three
				c.addClass(class{mask: three, third: uint8(third), Baselines: delta.Baselines{A1: at, A2: at - span, Two: true}})
			}
		}
		if two != 0 {
			c.addClass(class{mask: two, Baselines: delta.Baselines{A1: at, A2: at - span, Two: true}})
		}
	}
	return m
}

// addClass adds the slots of a class.
func (c *classes) addClass(k class) {
	for i := range c.list {
		if o := &c.list[i]; o.Baselines == k.Baselines && o.third == k.third && !o.whole {
			o.mask |= k.mask
			return
		}
	}
	c.list = append(c.list, k)
}
