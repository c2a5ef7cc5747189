package ackstate

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// bases chooses the baselines for what a peer is sent, among the ticks as of which it holds states.
type bases struct {
	Snap *snapshot.Snapshot
	Acks AckTable
	// unsure has a bit for each tick up to Acks.Through, modulo RecentTicks: half of its packets or more are not
	// known to have arrived.
	unsure uint32
	// gapless has a bit for each tick like unsure: none of its packets left a gap when Through passed it.
	gapless uint32

	Interval delta.Tick          // ticks between two sends
	Phase    delta.Tick          // spreads the sends of peers over the interval
	Likely   snapshot.BasePair   // the baselines that most slots are likely to have, see ChooseLikely
	Pairs    []snapshot.BasePair // baselines that are tried first, the likely ones in front
	oldest   delta.Tick          // first baseline of these
	looked   delta.Tick          // up to which FindLapsed has looked
	Classes  baseline.Classes    // result of Classify
}

// Base returns the first baseline of updates to a peer that lacks nothing: the newest tick up to which the fate of
// every packet is known, rounded down. Peers share a grid of ticks; with a send interval, it is a tick of the peer's
// sends, since only as of these does it hold what changed in between.
func (p *bases) Base() delta.Tick {
	at := p.Acks.Through
	if p.Interval > 1 {
		return p.LastSend(at)
	}
	return at - at%p.step()
}

// step returns the distance of base ticks. Peers with Compact share nothing, so they keep to the user's grid.
func (p *bases) step() delta.Tick {
	switch {
	case p.Interval > 1:
		return p.Interval
	case p.Classes.Compact:
		return max(p.Snap.Opts.Grid, 1)
	}
	return p.Snap.Bases.Step()
}

// SharesBases reports whether the peer has a base tick of the common grid, and not one of long ago.
func (p *bases) SharesBases() bool {
	return p.Interval == 1 && !p.Classes.Compact && p.Snap.Tick-p.Acks.Through < snapshot.RecentTicks
}

// LastSend returns the last tick, up to the given one, in which the send interval allowed a send to the peer.
func (p *bases) LastSend(at delta.Tick) delta.Tick { return at - (at+p.Phase)%p.Interval }

// Second returns the second baseline for a first one: as far before it as suits the game, and far enough to predict
// the present state. Peers with the same first one have it in common.
func (p *bases) Second(base delta.Tick) delta.Tick {
	if !p.Classes.Compact { // that has several
		if far := p.secondBefore(base, max(p.leastSpan(base), p.Snap.Steady.Span)); p.Snap.Fresh(far) {
			return far
		}
	}
	return p.nearest(base)
}

// nearest returns the nearest tick before a first baseline that predicts the present state.
func (p *bases) nearest(base delta.Tick) delta.Tick { return p.secondBefore(base, p.leastSpan(base)) }

// secondBefore returns the newest tick that peers have in common and that is at least so many ticks before a base.
func (p *bases) secondBefore(base, span delta.Tick) delta.Tick {
	if p.Interval > 1 {
		return base - (span+p.Interval-1)/p.Interval*p.Interval
	}
	return snapshot.SecondAt(base, span)
}

// leastSpan returns how many ticks before a first baseline the second one must be to predict the present state.
func (p *bases) leastSpan(base delta.Tick) delta.Tick {
	return snapshot.LeastSpan(p.Snap.Tick, base)
}

// ChooseLikely sets Likely, the baselines that most entries of this tick's packets are likely to have: Base
// and its second baseline, or else the newest ticks before them most packets of which arrived.
func (p *bases) ChooseLikely() {
	base := p.Base()
	p.Likely = snapshot.BasePair{Base: base, Second: p.Second(base)}
	if p.unsure == 0 || p.Classes.Compact {
		return
	}
	sure := func(at delta.Tick) bool { return p.unsure>>(at%snapshot.RecentTicks)&1 == 0 }
	step := p.step()
	for i := delta.Tick(0); i < baseline.NearBases; i++ {
		if at := base - i*step; p.usable(at) && sure(at) {
			p.Likely = snapshot.BasePair{Base: at, Second: p.Second(at)}
			break
		}
	}
	if sure(p.Likely.Second) {
		return
	}
	base, step = p.Likely.Base, max(p.Interval, delta.SecondGrid)
	for at := p.nearest(base); base-at <= baseline.MaxStep && p.usable(at); at -= step {
		if sure(at) {
			p.Likely.Second = at
			return
		}
	}
}

// usable reports whether it is known what the peer holds as of a tick that is young enough for a baseline: then it
// is of later ticks up to Through, too.
func (p *bases) usable(at delta.Tick) bool { return p.Acks.Recent(at) && p.Snap.Fresh(at) }

// isGapless reports whether it is known that no packet of a tick left a gap.
func (p *bases) isGapless(at delta.Tick) bool {
	return p.Acks.Recent(at) && p.gapless>>(at%snapshot.RecentTicks)&1 != 0
}

// FindPairs sets Pairs to the baselines that are tried, the newest first, before an entity gets baselines of its own.
func (p *bases) FindPairs() {
	p.Pairs = p.Pairs[:0]
	base, step := p.Base(), p.step()
	p.oldest = base
	if p.usable(p.Likely.Second) {
		p.addPair(p.Likely)
	}
	for i := delta.Tick(0); i < baseline.NearBases && len(p.Pairs) < baseline.NearBases; i++ {
		at := base - i*step
		if of := (snapshot.BasePair{Base: at, Second: p.Second(at)}); of != p.Likely && p.usable(of.Second) {
			p.addPair(of)
		}
	}
}

// addPair adds baselines to Pairs.
func (p *bases) addPair(of snapshot.BasePair) {
	p.Pairs = append(p.Pairs, of)
	if of.Base.Before(p.oldest) {
		p.oldest = of.Base
	}
}

// LackOf returns the slots of a block that the peer is not known to hold at both baselines.
func (p *bases) LackOf(of snapshot.BasePair, b int) uint64 {
	return p.Acks.Lacks(of.Base, b) | p.Acks.Lacks(of.Second, b)
}

// Classify sets Classes to the classes of the slots d of a block. A class has the baselines that updates of its slots
// are coded against; the peer holds the slots at all of these ticks. old is the result of Old.
func (p *bases) Classify(b int, d, old uint64) {
	t := &p.Acks
	p.Classes.List = p.Classes.List[:0]
	if full := d & t.None[b]; full != 0 {
		p.Classes.List = append(p.Classes.List, baseline.Class{Mask: full, Full: true})
		d &^= full
	}
	old &= d
	d &^= old
	for slot := range bitset.Slots(b, old) {
		p.addOld(slot)
	}
	for _, of := range p.Pairs { // other peers share these, so the update may be encoded already
		if d == 0 {
			return
		}
		if p.Classes.Compact { // the newest tick is best, whatever the peer holds before it
			d = p.addHeld(b, d, of.Base)
		} else if held := d &^ p.LackOf(of, b); held != 0 {
			d &^= held
			p.Classes.Add(held, delta.Baselines{A1: of.Base, A2: of.Second, Two: true})
		}
	}
	for _, at := range [...]delta.Tick{p.Base(), t.Through} {
		if d != 0 && p.usable(at) {
			d = p.addHeld(b, d, at)
		}
	}
	for slot := range bitset.Slots(b, d) {
		p.addOld(slot)
	}
}

// addHeld adds the classes of those of some slots that the peer holds as of tick at. It returns the other slots.
func (p *bases) addHeld(b int, d uint64, at delta.Tick) uint64 {
	held := d &^ p.Acks.Lacks(at, b)
	if held != 0 {
		p.addRecent(b, held, at)
	}
	return d &^ held
}

// Old returns those of some slots of a block that the peer holds only as of ticks before all pairs of baselines. With a
// short budget these are most. With Compact, there are none.
func (p *bases) Old(b int, d uint64) (old uint64) {
	if p.Classes.Compact {
		return 0
	}
	t := &p.Acks
	old, _ = t.heldBefore(b, d&t.Lacks(t.Through, b)&^t.None[b], p.oldest)
	return old
}

// FindLapsed finds slots of which the peer holds only states that are too old for baselines, or will be within a
// sixteenth of the window. It looks in an eighth at every block where there may be any, or takes for granted that there
// are none.
func (p *bases) FindLapsed(look bool) {
	t, now := &p.Acks, p.Snap.Tick
	window := delta.Tick(p.Snap.Opts.Window)
	turns, margin := max(window/8, 1), max(window/16, 1)
	if now-p.looked > turns {
		p.looked = now - turns
	}
	for ; p.looked != now; p.looked++ {
		for b := int(p.looked % turns); b < len(t.lapsed); b += int(turns) {
			of := &t.lapsed[b]
			if look && of.slots == 0 && now.Before(of.none) {
				continue
			}
			if of.slots = 0; look {
				oldest := now - window + margin
				slots, ticks := t.heldBefore(b, p.Snap.Slots.Alive[b]&t.Lacks(t.Through, b)&^t.None[b], oldest)
				ticks = min(ticks, int32(t.Through-oldest)) // others are held as of Through
				of.slots, of.none = slots, now+delta.Tick(max(ticks, 0))
			}
		}
	}
}

// addOld adds the class of a slot that the peer holds only as of a tick that is no base.
func (p *bases) addOld(slot int) {
	s, t, bit := &p.Snap.Slots, &p.Acks, uint64(1)<<(slot&63)
	at, _ := t.Holds(slot)
	if before := p.LastSend(s.ChangedAt[slot] - 1); !s.ChangedBefore[slot].After(at) && before.After(at) {
		at = before // the state was valid up to then
	}
	switch {
	case !p.Snap.Fresh(at):
		p.Classes.List = append(p.Classes.List, baseline.Class{Mask: bit, Full: true})
	case t.Recent(at) && !at.After(t.Through):
		p.addRecent(slot>>6, bit, at)
	default:
		p.Classes.Add(bit, delta.Baselines{A1: at})
	}
}

// addRecent adds the classes of slots that the peer holds as of tick at. It looks for a second baseline.
func (p *bases) addRecent(b int, m uint64, at delta.Tick) {
	c := &p.Classes
	second := p.Second(at)
	if c.Compact {
		m = c.AddStopped(b, m, at, second)
		m = p.addSpread(b, m, at)
	}
	m = p.addBoth(b, m, at, second)
	step := max(p.Interval, delta.SecondGrid)
	for at2 := p.nearest(at); m != 0 && at-at2 <= baseline.MaxStep; at2 -= step {
		m = p.addBoth(b, m, at, at2)
	}
	if m != 0 {
		c.Add(m, delta.Baselines{A1: at})
	}
}

// addBoth adds the class of those of some slots that the peer holds as of tick at2 too. It returns the other slots.
func (p *bases) addBoth(b int, m uint64, at, at2 delta.Tick) uint64 {
	m2 := m & p.heldFor(b, at, at2)
	if m2 != 0 {
		p.Classes.Add(m2, delta.Baselines{A1: at, A2: at2, Two: true})
	}
	return m &^ m2
}

// heldFor returns the slots of a block that the peer holds as of tick at2, if that tick can be a
// second baseline for tick at.
func (p *bases) heldFor(b int, at, at2 delta.Tick) uint64 {
	if !p.usable(at2) || !p.Snap.Predicts(snapshot.BasePair{Base: at, Second: at2}) {
		return 0
	}
	return ^p.Acks.Lacks(at2, b)
}

// Compact. Peers with this coding have baselines of their own, since packets are never shared. A far second baseline
// measures a steady speed well, and the model learns from nearer ones how much that has changed since.

// The ages of baselines that suit Compact, in ticks before the first one.
const (
	nearSpan, farSpan  = 8, 11 // of the second; if the peer holds none of these, the next nearer one
	nearThird          = 2
	nearFourth, fourth = 4, 6
)

// thirds are the ages of the third baseline that are tried, beyond the least one that suits Compact.
// A single newer tick is noisy, but better than none.
var thirds = [...]int{0, 1, -1, 2}

// addSpread adds the classes of slots that the peer holds as of tick at and at further baselines
// that suit Compact. It returns the other slots.
func (p *bases) addSpread(b int, m uint64, at delta.Tick) uint64 {
	for span := delta.Tick(nearSpan); span <= farSpan && m != 0; span++ {
		m = p.addSpan(b, m, at, span)
	}
	for span := delta.Tick(nearSpan - 1); span > 1 && m != 0; span-- {
		m = p.addSpan(b, m, at, span)
	}
	return m
}

// addSpan adds the classes of slots that the peer holds as of tick at and the given span before it. It
// returns the other slots.
func (p *bases) addSpan(b int, m uint64, at, span delta.Tick) uint64 {
	two := m & p.heldFor(b, at, at-span)
	if two == 0 {
		return m
	}
	m &^= two
	k := baseline.Class{Baselines: delta.Baselines{A1: at, A2: at - span, Two: true}}
	least := p.leastSpan(at)
	for _, older := range thirds {
		if two == 0 {
			return m
		}
		third := max(least, nearThird) + delta.Tick(older)
		if third < least || third >= span {
			continue
		}
		three := two & p.heldFor(b, at, at-third)
		two &^= three
		p.addThird(b, k, three, third)
	}
	if k.Mask = two; two != 0 {
		p.Classes.AddClass(k)
	}
	return m
}

// addThird adds classes like k of slots that the peer holds at a third baseline too, and at a fourth if
// there is one that suits Compact.
func (p *bases) addThird(b int, k baseline.Class, m uint64, third delta.Tick) {
	k.Third = uint8(third)
	for four := max(third+1, nearFourth); four < k.A1-k.A2 && four <= fourth && m != 0; four++ {
		if k.Mask = m & p.heldFor(b, k.A1, k.A1-four); k.Mask != 0 {
			m &^= k.Mask
			k.Fourth = uint8(four)
			p.Classes.AddClass(k)
		}
	}
	if k.Mask, k.Fourth = m, 0; m != 0 {
		p.Classes.AddClass(k)
	}
}

// ClassOfSlot returns the class of a dirty slot.
func (p *bases) ClassOfSlot(slot int) *baseline.Class {
	b, bit := slot>>6, uint64(1)<<(slot&63)
	p.Classify(b, bit, p.Old(b, bit))
	return &p.Classes.List[0]
}

// Front returns the baselines that a packet to the peer starts its list of baselines with.
func (p *bases) Front() delta.Baselines {
	switch base := p.Likely.Base; {
	case !p.Snap.Fresh(base) || base == p.Snap.Tick:
		return delta.Baselines{A1: p.Snap.Tick - 1}
	case p.Interval > delta.MaxSpan:
		return delta.Baselines{A1: base}
	default:
		return delta.Baselines{A1: base, A2: p.Likely.Second, Two: true}
	}
}
