package replication

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
)

// A class is the slots of a block that a peer needs against the same baselines, or
// whole.
type class struct {
	mask  uint64
	whole bool
	third uint8 // how many ticks before A1 a third baseline is, for Compact; 0: there is none
	delta.Baselines
}

// classOf returns the class of a slot of a block; it must have one.
func classOf(classes []class, bit uint64) *class {
	i := 0
	for classes[i].mask&bit == 0 {
		i++
	}
	return &classes[i]
}

const (
	// restAfter is how many ticks without a change make an entity count as at rest.
	restAfter = 2
	// latelyTicks is what counts as often for what is in step: a change in that many ticks.
	latelyTicks = 4
)

// classes is the list of the classes of the block in hand.
type classes struct {
	server  *Server
	list    []class
	compact bool // they are for Compact
}

// classify sets p.classes to the classes of the slots d of a block: the ticks that their
// updates are taken against, all of them of states that the peer has acknowledged and
// still holds.
func (p *Peer) classify(b int, d uint64) {
	p.classes.list = p.classes.list[:0]
	t := &p.acks
	blk := t.block(b)
	if rest := d & blk.acked & blk.rest; rest != 0 {
		p.classifyResting(b, rest)
		d &^= rest & blk.acked
	}
	recent := d & blk.acked
	at, now := p.recent, p.server.tick
	if at == now {
		at-- // a baseline is before the packet, however fast the transport is
	}
	for ; recent != 0 && t.recent(at, now); at-- {
		if m := recent & *t.row(at, b); m != 0 {
			recent &^= m
			d &^= m
			p.classes.addRecent(b, m, at, &t.chunks[b/chunkBlocks].rows)
		}
	}
	if d != 0 {
		p.classes.list = append(p.classes.list, class{mask: d, whole: true})
	}
}

// classifyResting is for slots whose baseline is older than there are rows.
func (p *Peer) classifyResting(b int, mask uint64) {
	now, window := p.server.tick, delta.Tick(p.server.opts.window)
	t := &p.acks
	for slot := range slotsOf(b, mask) {
		at, held := t.resting(slot, now, window)
		if !held {
			t.disown(b, 1<<(slot&63))
			continue
		}
		p.classes.add(1<<(slot&63), delta.Baselines{A1: at, Old: now-at >= 1<<delta.NameBits})
	}
}

// add adds slots to the class with these baselines.
func (c *classes) add(mask uint64, base delta.Baselines) {
	for i := range c.list {
		if k := &c.list[i]; k.Baselines == base && k.third == 0 && !k.whole {
			k.mask |= mask
			return
		}
	}
	c.list = append(c.list, class{mask: mask, Baselines: base})
}

// addRecent adds the classes of slots whose newest acknowledged state is that of tick at: it
// looks for the second baseline, the one that delta.Second says or an older one on the grid,
// or else the oldest acknowledged one of those in between. rows has what is acknowledged.
func (c *classes) addRecent(b int, m uint64, at delta.Tick, rows *slotRows) {
	one := delta.Baselines{A1: at}
	moving := c.movingSince(b, m, at)
	if still := m &^ moving; still != 0 {
		c.add(still, one)
	}
	if c.compact {
		moving = c.addSpread(b, moving, at, rows)
	}
	second := delta.Second(at)
	for at2 := second; moving != 0 && at-at2 <= maxStep && c.recent(at2); at2 -= delta.SecondGrid {
		moving = c.addSecond(b, moving, at, at2, rows)
	}
	for d := at - second - 1; moving != 0 && d > 0; d-- {
		if c.recent(at - d) {
			moving = c.addSecond(b, moving, at, at-d, rows)
		}
	}
	if moving != 0 {
		c.add(moving, one)
	}
}

// addSecond adds those of the slots whose state of tick at2 is acknowledged too, and
// returns the others.
func (c *classes) addSecond(b int, m uint64, at, at2 delta.Tick, rows *slotRows) uint64 {
	m2 := m & rows[at2&(c.server.slots.rows-1)%recentTicks][b%chunkBlocks]
	if m2 == 0 || c.server.tick-at > delta.MaxExtrapolation*(at-at2) || at == c.server.tick {
		return m
	}
	c.add(m2, delta.Baselines{A1: at, A2: at2, Two: true})
	return m &^ m2
}

// movingSince returns those of the slots that did not come to rest at the state of tick
// at: where a change, if there is one now, is not the first after it. An old motion
// predicts nothing.
func (c *classes) movingSince(b int, m uint64, at delta.Tick) uint64 {
	s := &c.server.slots
	if c.server.tick-at <= restAfter {
		return m
	}
	news := m & s.news[b]
	moving := s.changedAfter(at, b, news) // before this tick, that is
	for late := m &^ news; late != 0; late &= late - 1 {
		i := bits.TrailingZeros64(late)
		if s.previous[b<<6+i].After(at) {
			moving |= 1 << i
		}
	}
	return moving
}

// recent reports whether there are rows of tick at.
func (c *classes) recent(at delta.Tick) bool { return c.server.tick-at < c.server.slots.rows }

// addInStep adds the classes of slots of a block for peers in step that are served from tick base.
func (c *classes) addInStep(b int, mask uint64, base delta.Tick) {
	s, now := &c.server.slots, c.server.tick
	rows := &s.log[b/chunkBlocks]
	for at := base; mask != 0 && c.recent(at); at-- {
		if m := mask & rows[at%recentTicks][b%chunkBlocks]; m != 0 {
			mask &^= m
			c.addRecent(b, m, at, rows)
		}
	}
	for slot := range slotsOf(b, mask) {
		bit := uint64(1) << (slot & 63)
		if r, ok := s.restAt(slot, base); ok {
			c.add(bit, delta.Baselines{A1: r.from, Old: now-r.from >= 1<<delta.NameBits})
		} else {
			c.list = append(c.list, class{mask: bit, whole: true})
		}
	}
}
