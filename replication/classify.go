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
	// spanGrid is the grid of second baselines: that peers and entities have them in
	// common makes them cheap to name and updates the same for many peers.
	spanGrid = 4
)

// classify sets p.classes to the classes of the slots d of a block: the ticks that their
// updates are taken against, all of them of states that the peer has acknowledged and
// still holds.
func (p *Peer) classify(b int, d uint64) {
	p.classes = p.classes[:0]
	t := &p.acks
	blk := t.block(b)
	if rest := d & blk.acked & blk.rest; rest != 0 {
		p.classifyResting(b, rest)
		d &^= rest & blk.acked
	}
	recent := d & blk.acked
	for at, now := p.recent, p.server.tick; recent != 0 && t.recent(at, now); at-- {
		if m := recent & *t.row(at, b); m != 0 {
			recent &^= m
			d &^= m
			p.classifyRecent(b, m, at, &t.chunks[b/chunkBlocks].rows)
		}
	}
	if d != 0 {
		p.classes = append(p.classes, class{mask: d, whole: true})
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
		p.addClass(1<<(slot&63), delta.Baselines{A1: at, Old: now-at >= 1<<delta.NameBits})
	}
}

// addClass adds slots to the class with these baselines.
func (p *Peer) addClass(mask uint64, base delta.Baselines) {
	for i := range p.classes {
		if c := &p.classes[i]; c.Baselines == base && !c.whole {
			c.mask |= mask
			return
		}
	}
	p.classes = append(p.classes, class{mask: mask, Baselines: base})
}

// classifyRecent is for slots whose newest acknowledged state is that of tick at: it
// looks for the second baseline, the newest acknowledged tick on the grid that is at
// least a grid step older and not much more, or else the oldest acknowledged one less than
// a step older. rows has what is acknowledged.
func (p *Peer) classifyRecent(b int, m uint64, at delta.Tick, rows *slotRows) {
	t := &p.acks
	now := p.server.tick
	one := delta.Baselines{A1: at}
	moving := p.movingSince(b, m, at)
	if still := m &^ moving; still != 0 {
		p.addClass(still, one)
	}
	for d := spanGrid + at%spanGrid; moving != 0 && d <= maxStep && t.recent(at-d, now); d += spanGrid {
		moving = p.addSecond(b, moving, at, at-d, rows)
	}
	for d := delta.Tick(spanGrid - 1); moving != 0 && d > 0; d-- {
		if t.recent(at-d, now) {
			moving = p.addSecond(b, moving, at, at-d, rows)
		}
	}
	if moving != 0 {
		p.addClass(moving, one)
	}
}

// addSecond adds those of the slots whose state of tick at2 is acknowledged too, and
// returns the others.
func (p *Peer) addSecond(b int, m uint64, at, at2 delta.Tick, rows *slotRows) uint64 {
	m2 := m & rows[at2&(p.acks.ticks-1)%recentTicks][b%chunkBlocks]
	if m2 == 0 || p.server.tick-at > delta.MaxExtrapolation*(at-at2) || at == p.server.tick {
		return m
	}
	p.addClass(m2, delta.Baselines{A1: at, A2: at2, Two: true})
	return m &^ m2
}

// movingSince returns those of the slots that did not come to rest at the state of tick
// at: where a change, if there is one now, is not the first after it. An old motion
// predicts nothing.
func (p *Peer) movingSince(b int, m uint64, at delta.Tick) uint64 {
	s := &p.server.slots
	if p.server.tick-at <= restAfter {
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
