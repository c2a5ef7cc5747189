package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
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

// nearBases is how many pairs are tried.
const nearBases = 4

// restAfter is how many ticks without a change make an entity count as at rest.
const restAfter = 2

// classes is the list of the classes of the block in hand.
type classes struct {
	slots   *slotTable
	list    []class
	compact bool // they are for Compact
}

// base returns the tick that a peer's updates are taken against where nothing is missing: the newest up to
// which everything is known, of those at which it was sent something. A peer that does not lack what
// changed between its sends has it as of these ticks only.
func (p *tracker) base() delta.Tick {
	at := p.acks.through
	if p.interval > 1 {
		return p.lastSend(at)
	}
	return at - at%p.opts.grid
}

// lastSend returns the last tick up to the given one in which the peer could be sent something, by its interval.
func (p *tracker) lastSend(at delta.Tick) delta.Tick { return at - (at+p.phase)%p.interval }

// second returns the second baseline that goes with a base.
func (p *tracker) second(base delta.Tick) delta.Tick {
	if p.interval > 1 {
		return base - p.interval
	}
	return delta.Second(base)
}

// A basePair is two baselines that go together.
type basePair struct{ base, second delta.Tick }

// newest returns the pair of the peer's base.
func (p *tracker) newest() basePair {
	base := p.base()
	return basePair{base, p.second(base)}
}

// holdsPair reports whether it is known what the peer holds as of these ticks, and they are young enough.
func (p *tracker) holdsPair(of basePair) bool {
	return p.acks.recent(of.second) && p.snap.fresh(of.second)
}

// findPairs finds out which baselines are tried, from the newest on, before an entity is encoded against some of its own.
func (p *tracker) findPairs() {
	p.pairs = p.pairs[:0]
	of, step := p.newest(), max(p.interval, p.opts.grid)
	for range nearBases {
		if p.holdsPair(of) {
			p.pairs = append(p.pairs, of)
		}
		of.base -= step
		of.second = p.second(of.base)
	}
}

// lackOf returns the slots of a block of which the peer is not known to hold both of these.
func (p *tracker) lackOf(of basePair, b int) uint64 {
	return p.acks.lacks(of.base, b) | p.acks.lacks(of.second, b)
}

// predicts reports whether what an entity was at these ticks is good to tell what it is now.
func (s *snapshot) predicts(of basePair) bool {
	span := of.base - of.second
	return span <= delta.MaxSpan && s.tick-of.base <= delta.MaxExtrapolation*span
}

// classify sets p.classes to the classes of the slots d of a block: the ticks that their
// updates are taken against, all of them such as of which the peer holds them.
func (p *tracker) classify(b int, d uint64) {
	t := &p.acks
	p.classes.list = p.classes.list[:0]
	if whole := d & t.none[b]; whole != 0 {
		p.classes.list = append(p.classes.list, class{mask: whole, whole: true})
		d &^= whole
	}
	for _, of := range p.pairs { // others have these too, so it may be encoded already
		if d == 0 {
			return
		}
		if held := d &^ p.lackOf(of, b); held != 0 {
			d &^= held
			p.addRecent(b, held, of.base)
		}
	}
	for _, at := range [...]delta.Tick{p.base(), t.through} {
		if d == 0 || !t.recent(at) || !p.snap.fresh(at) {
			continue
		}
		if held := d &^ t.lacks(at, b); held != 0 {
			d &^= held
			p.addRecent(b, held, at)
		}
	}
	for slot := range bitset.Slots(b, d) {
		p.addOld(slot)
	}
}

// fresh reports whether a tick is young enough for a baseline.
func (s *snapshot) fresh(at delta.Tick) bool { return s.tick-at <= delta.Tick(s.opts.window) }

// addOld adds the class of a slot that the peer holds as of a tick that is no base.
func (p *tracker) addOld(slot int) {
	s, t, bit := &p.snap.slots, &p.acks, uint64(1)<<(slot&63)
	at, _ := t.holds(slot)
	if before := p.lastSend(s.changed[slot] - 1); !s.previous[slot].After(at) && before.After(at) {
		at = before // it was like that up to then
	}
	switch {
	case !p.snap.fresh(at):
		p.classes.list = append(p.classes.list, class{mask: bit, whole: true})
	case t.recent(at) && !at.After(t.through):
		p.addRecent(slot>>6, bit, at)
	default:
		p.classes.add(bit, delta.Baselines{A1: at})
	}
}

// add adds slots to the class with these baselines.
func (c *classes) add(mask uint64, base delta.Baselines) {
	c.addClass(class{mask: mask, Baselines: base})
}

// addRecent adds the classes of slots that the peer holds as of tick at: it looks for the second
// baseline.
func (p *tracker) addRecent(b int, m uint64, at delta.Tick) {
	c := &p.classes
	second := p.second(at)
	m = c.addStopped(b, m, at, second)
	if c.compact {
		m = p.addSpread(b, m, at)
	}
	for at2 := second; m != 0 && (at2 == second || at-at2 <= maxStep); at2 -= max(p.interval, delta.SecondGrid) {
		if m2 := m & p.heldFor(b, at, at2); m2 != 0 {
			c.add(m2, delta.Baselines{A1: at, A2: at2, Two: true})
			m &^= m2
		}
	}
	if m != 0 {
		c.add(m, delta.Baselines{A1: at})
	}
}

// addStopped adds the class of those of some slots of a block that changed between two baselines and not
// since, and returns the others. An old motion predicts nothing.
func (c *classes) addStopped(b int, m uint64, at, at2 delta.Tick) uint64 {
	stopped := c.slots.stopped(b, m, at, at2)
	if stopped != 0 {
		c.add(stopped, delta.Baselines{A1: at})
	}
	return m &^ stopped
}

// maxStep bounds how far second baselines lie before first ones, other than the likely one.
const maxStep = 8

// heldFor returns the slots of a block of which the peer holds the state of tick at2, if that is good for
// a second baseline for one of tick at.
func (p *tracker) heldFor(b int, at, at2 delta.Tick) uint64 {
	if !p.acks.recent(at2) || !p.snap.fresh(at2) || !p.snap.predicts(basePair{at, at2}) {
		return 0
	}
	return ^p.acks.lacks(at2, b)
}

// stopped returns those of the slots of a block that changed between two baselines, and not after the
// later one until now, if that is more than restAfter ticks.
func (t *slotTable) stopped(b int, m uint64, at, at2 delta.Tick) uint64 {
	now := t.recent.now + 1
	if now-at <= restAfter || now-at2 >= recentTicks {
		return 0
	}
	m &^= t.changedAfter(at, b, m&t.news[b]) // before this tick, that is
	for slot := range bitset.Slots(b, m&^t.news[b]) {
		if t.previous[slot].After(at) {
			m &^= 1 << (slot & 63)
		}
	}
	var moved uint64
	for ; at != at2; at-- {
		moved |= t.log[at%recentTicks][b]
	}
	return m & moved
}
