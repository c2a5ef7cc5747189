package replication

import (
	"cmp"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// How a peer is sent what is in groups: before everything else of the tick, in packets of
// its own, as many whole groups in each as fit; see groups.go for what that is good for.
// Where groups took all the room that there was, the rest goes first the next time.
// Where all that a peer needs in a tick fits into one packet, it is one.

// bundle is scratch memory for what is to travel together, which the peers of a worker
// share.
type bundle struct {
	entries []bundleEntry
	units   int // of entries
	in      bitset.Set
	visited []int32 // what is in it
	close   []int32 // slots that are sent together
	groups  []*group
}

// A bundleEntry is what a peer needs of a slot.
type bundleEntry struct {
	slot  int32
	unit  int32 // entries of a unit travel together
	run   int32 // in the cache, unless the slot is empty
	kind  bundleKind
	due   bool  // else it is on its way already
	bits  int32 // of the run
	work  int32 // of the entry, about with Compact
	count *uint64
}

type bundleKind uint8

const (
	bundleState bundleKind = iota
	bundleEnd
	bundleLarge // does not fit into a packet
)

const (
	// maxTogether is of how many entries it is tried whether they are no more than a packet.
	maxTogether = 512
	// crowdedTicks is for how long that is not tried again where they were more.
	crowdedTicks = 16
	// firstHead and mostHead are what the head of an entry takes, before that is known
	// and at most.
	firstHead, mostHead = 24, 64
	// leastHead is what it takes at least.
	leastHead = 4
)

// inGroups returns the slots of a block that are in groups.
func (t *slotTable) inGroups(b int) uint64 {
	if b >= len(t.bound) {
		return 0
	}
	return t.bound[b]
}

// sendGroups sends what of some slots is due and in groups, with what belongs to it. It
// returns true if that was all that is due.
func (p *sender) sendGroups(of bitset.Set) (all bool) {
	blocks := p.interest.groups.blocks
	due := uint64(0)
	for _, b := range blocks {
		due |= of[b] & p.acked.due[b] & p.snap.slots.bound[b]
	}
	if due == 0 {
		return false
	}
	p.runs.bound()
	p.runs.pinned = true
	order := p.packet.order
	defer func() { p.packet.order, p.runs.pinned = order, false }()
	switch {
	case p.crowded > 0:
		p.crowded--
	case p.sendTogether(of):
		return true
	default:
		p.crowded = crowdedTicks
	}
	first, sent := p.behind, p.acked.log.next
	p.behind = 0
	if !p.sendUnits(of, first, len(of)<<6) || first > 0 && !p.sendUnits(of, 0, first) {
		p.behind = max(p.behind, 1) // 0: nowhere
		p.yields = p.yields || p.acked.log.next != sent
	}
	return false
}

// sendUnits sends groups with due slots in a range. It returns false if it had to stop.
func (p *sender) sendUnits(of bitset.Set, from, to int) bool {
	u, s := &p.runs.bundle, &p.snap.slots
	u.begin(s.len())
	room := 8*(p.opts.mtu-p.packet.headSize(true)) - wire.GapOrderBits
	if p.packet.heads == 0 {
		p.packet.heads = firstHead
	}
	used, work := 0, 0
	for _, b := range p.interest.groups.blocks {
		if int(b)<<6 >= to || (int(b)+1)<<6 <= from {
			continue
		}
		for slot := range bitset.Slots(int(b), of[b]&p.acked.due[b]&s.bound[b]) {
			if slot < from || slot >= to || u.in.Has(slot) {
				continue
			}
			if p.runs.full() {
				p.makeAgain(u.entries)
			}
			first := len(u.entries)
			p.gather(slot)
			unit := u.entries[first:]
			size, load, large := 0, 0, false
			for i := range unit {
				e := &unit[i]
				load += int(e.work)
				p.acked.due.Remove(int(e.slot))
				size += max(int(e.bits)+p.packet.heads, 1) // with Compact, heads may be less than none
				large = large || e.kind == bundleLarge
			}
			if large || used+size > room || !p.opts.freeWork.allows(work+load, used) {
				if !p.sendBundle(u.entries[:first]) {
					p.putOff(unit)
					return false
				}
				n := copy(u.entries, unit)
				u.entries, used, work = u.entries[:n], 0, 0
			}
			used, work = used+size, work+load
			if large { // sendBundle finds out about what is more than a packet
				if !p.sendTorn(u.entries) {
					p.behind = slot
					return false
				}
				u.entries, used, work = u.entries[:0], 0, 0
			}
		}
	}
	return p.sendBundle(u.entries)
}

// makeAgain makes the runs of entries again in an empty cache. What is sent with what must
// not depend on the cache, which is another one with other workers.
func (p *sender) makeAgain(entries []bundleEntry) {
	p.runs.pinned = false
	p.runs.bound()
	p.runs.pinned = true
	for i := range entries {
		if e := &entries[i]; e.kind == bundleState {
			p.acked.classify(int(e.slot)>>6, 1<<(e.slot&63))
			r, _ := p.bestRun(int(e.slot), &p.acked.classes.list[0])
			e.run = r.index
		}
	}
}

// putOff notes that entries are due still.
func (p *sender) putOff(entries []bundleEntry) {
	for i := range entries {
		if e := &entries[i]; e.due {
			p.acked.owe(int(e.slot)>>6, 1<<(e.slot&63))
		}
	}
}

// begin empties the bundle.
func (u *bundle) begin(slots int) {
	u.in = u.in.Grown(slots)
	for _, slot := range u.visited {
		u.in.Remove(int(slot))
	}
	u.visited, u.entries, u.units = u.visited[:0], u.entries[:0], 0
}

// visit notes that a slot has had its turn.
func (u *bundle) visit(slot int) {
	u.in.Add(slot)
	u.visited = append(u.visited, int32(slot))
}

// closure sets u.close to the slots that are sent together with a slot, which comes first.
func (p *sender) closure(slot int) {
	u, of := &p.runs.bundle, &p.interest.groups
	u.close, u.groups = append(u.close[:0], int32(slot)), u.groups[:0]
	add := func(slot int32) {
		if !slices.Contains(u.close, slot) {
			u.close = append(u.close, slot)
		}
	}
	for i := 0; i < len(u.close) && !p.opts.noGroups; i++ {
		slot := u.close[i]
		for _, g := range of.bySlot[slot] {
			if slices.Contains(u.groups, g) || p.acked.leftFor(g, slot) {
				continue
			}
			u.groups = append(u.groups, g)
			for _, m := range g.members {
				if m.slot >= 0 {
					add(m.slot)
				}
			}
			for _, f := range g.former {
				if !p.acked.released(g, f) {
					add(f.slot)
				}
			}
		}
	}
}

// leftFor reports whether a slot has left the group, and the peer knows it.
func (p *tracker) leftFor(g *group, slot int32) bool {
	for _, f := range g.former {
		if f.slot == slot {
			return p.released(g, f)
		}
	}
	return false
}

// released reports whether the client is known to show the group as of a tick at which a
// former member had left it, so that this one goes its own way: the client has what was
// sent of the slot itself or of a member since then, or all that there is to know; or it
// shows nothing of the slot.
func (p *tracker) released(g *group, f formerMember) bool {
	if int(f.slot)>>6 >= len(p.due) {
		return true // it was never sent
	}
	if !p.acks.shown.Has(int(f.slot)) || p.holdsSince(f.slot, f.ended, f.ended) {
		return true
	}
	settled := !p.lacksAny(f.slot)
	for _, m := range g.members {
		if m.slot < 0 {
			continue
		}
		if p.holdsSince(m.slot, f.ended, m.since) {
			return true
		}
		settled = settled && !p.lacksAny(m.slot)
	}
	for _, o := range g.former {
		settled = settled && !p.lacksAny(o.slot)
	}
	return settled
}

// holdsSince reports whether the peer has acknowledged a state of the slot, as it lives now,
// of two ticks or later.
func (p *tracker) holdsSince(slot int32, t, t2 delta.Tick) bool {
	b, bit := int(slot)>>6, uint64(1)<<(slot&63)
	if b >= len(p.due) || p.sight.view.sees(b, p.snap.slots.alive[b])&bit == 0 || p.snap.slots.turned[b]&bit != 0 {
		return false
	}
	at, ok := p.acks.holds(int(slot))
	if ok {
		at, ok = p.snap.slots.changedBy(int(slot), at)
	}
	return ok && !at.Before(t) && !at.Before(t2)
}

// lacksAny reports whether the client may show something else of a slot than there is.
func (p *tracker) lacksAny(slot int32) bool {
	b, bit := int(slot)>>6, uint64(1)<<(slot&63)
	if b >= len(p.due) {
		return true
	}
	if p.sight.view.sees(b, p.snap.slots.alive[b])&bit == 0 {
		return p.acks.shown[b]&bit != 0
	}
	return p.lacks(b, bit)
}

// lacks reports whether the peer is not known to hold the present state of a slot that it
// sees.
func (p *tracker) lacks(b int, bit uint64) bool {
	return (p.due[b]|p.acks.none[b]|p.acks.behind(b))&bit != 0
}

// gather appends what has to travel with a slot that is due, as a unit.
func (p *sender) gather(slot int) {
	u := &p.runs.bundle
	p.closure(slot)
	for _, slot := range u.close {
		if !u.in.Has(int(slot)) {
			u.visit(int(slot))
			p.gatherSlot(int(slot))
		}
	}
	u.units++
}

// gatherSlot appends what the peer needs of a slot, if it needs anything.
func (p *sender) gatherSlot(slot int) {
	s := &p.snap.slots
	b, bit := slot>>6, uint64(1)<<(slot&63)
	if p.sight.view.sees(b, s.alive[b])&bit == 0 {
		if p.acked.acks.shown[b]&bit == 0 {
			p.acked.due[b] &^= bit // gone before the peer heard of it
			return
		}
		if p.acked.gone(b)&bit == 0 { // Keep: as it was, with others as they are now, it would be torn
			p.acked.turn(b, bit)
			p.acked.owe(b, bit)
		}
		p.add(bundleEntry{slot: int32(slot), kind: bundleEnd, count: &p.stats.Despawns})
		return
	}
	if !p.acked.lacks(b, bit) {
		return
	}
	if p.acked.acks.large[b]&bit != 0 {
		p.add(bundleEntry{slot: int32(slot), kind: bundleLarge})
		return
	}
	p.acked.classify(b, bit)
	p.addState(slot, &p.acked.classes.list[0])
}

// addState appends the state of a slot, of the given class.
func (p *sender) addState(slot int, c *class) {
	r, count := p.bestRun(slot, c)
	p.add(bundleEntry{slot: int32(slot), run: r.index, count: count, bits: r.bits, work: r.work})
}

func (p *sender) add(e bundleEntry) {
	u := &p.runs.bundle
	e.unit, e.due = int32(u.units), p.acked.due.Has(int(e.slot))
	u.entries = append(u.entries, e)
}

// sendBundle sends entries in one packet; if they don't fit, the last units in others. It
// returns false if no more packets may be sent.
func (p *sender) sendBundle(entries []bundleEntry) bool {
	for len(entries) > 0 {
		switch fits, blocked := p.packet.putTogether(entries); {
		case blocked:
			p.behind = int(entries[0].slot)
			p.putOff(entries)
			return false
		case fits:
			return true
		}
		last := slices.MaxFunc(entries, func(a, b bundleEntry) int { return cmp.Compare(a.unit, b.unit) }).unit
		slices.SortStableFunc(entries, func(a, b bundleEntry) int { return cmp.Compare(a.unit, b.unit) })
		n := slices.IndexFunc(entries, func(e bundleEntry) bool { return e.unit == last })
		if n == 0 {
			return p.sendTorn(entries)
		}
		p.packet.heads = min(p.packet.heads+4, mostHead)
		if !p.sendBundle(entries[:n]) {
			p.putOff(entries[n:])
			return false
		}
		entries = entries[n:]
	}
	return true
}

// sendTorn sends entries that belong together and don't fit into a packet, each as it
// comes. It returns false if no more packets may be sent.
func (p *sender) sendTorn(entries []bundleEntry) bool {
	slices.SortFunc(entries, func(a, b bundleEntry) int { return cmp.Compare(a.slot, b.slot) })
	p.putOff(entries)
	torn, blocked := false, false
	for i := range entries {
		if e := &entries[i]; e.due {
			if blocked = p.sendBlock(int(e.slot)>>6, 1<<(e.slot&63)) != nil; blocked {
				break
			}
			torn = torn || len(entries) > 1
		}
	}
	p.packet.finish()
	if torn {
		p.stats.TornGroups++
	}
	return !blocked
}

// sendTogether sends all that the peer needs, in groups or not, if that is one packet.
func (p *sender) sendTogether(of bitset.Set) bool {
	u, s := &p.runs.bundle, &p.snap.slots
	u.begin(s.len())
	room, used := 8*p.opts.mtu, 0
	for b := p.acked.acks.owed.Next(0); b < len(of); b = p.acked.acks.owed.Next(b + 1) {
		d := of[b] & p.acked.due[b]
		if d == 0 {
			continue
		}
		first := len(u.entries)
		for slot := range bitset.Slots(b, d&s.inGroups(b)) {
			if !u.in.Has(slot) {
				p.gather(slot)
			}
		}
		d &^= s.inGroups(b)
		live, gone := p.acked.split(b, d)
		p.acked.due[b] &^= d &^ live &^ gone
		if live&p.acked.acks.large[b] != 0 {
			return false
		}
		p.acked.classify(b, live)
		for slot := range bitset.Slots(b, live) {
			p.addState(slot, classOf(p.acked.classes.list, 1<<(slot&63)))
		}
		for slot := range bitset.Slots(b, gone) {
			p.add(bundleEntry{slot: int32(slot), kind: bundleEnd, count: &p.stats.Despawns})
		}
		for i := range u.entries[first:] {
			e := &u.entries[first+i]
			if used += int(e.bits) + leastHead; e.kind == bundleLarge {
				return false
			}
		}
		if used > room || len(u.entries) > maxTogether {
			return false
		}
	}
	fits, _ := p.packet.putTogether(u.entries)
	return fits
}

// putTogether sends entries in a packet of their own, in the order of their slots. If they
// don't fit, nothing is sent. No packet may be open.
func (k *packetWriter) putTogether(entries []bundleEntry) (fits, blocked bool) {
	p := k.peer
	if len(entries) == 0 {
		return true, false
	}
	if p.blocked() {
		return false, true
	}
	if k.compact != nil {
		return k.compactTogether(entries), false
	}
	slices.SortFunc(entries, func(a, b bundleEntry) int { return cmp.Compare(a.slot, b.slot) })
	n := len(entries)
	gaps := int(entries[n-1].slot) + 1 - n
	k.order = gapOrder(gaps, n)
	k.start()
	for i := range entries {
		e := &entries[i]
		slot := int(e.slot)
		if e.kind == bundleEnd {
			k.head(slot, wire.EntryDespawn)
			continue
		}
		r := &p.runs.runs[e.run]
		k.work += int(r.work)
		if r.kind == wire.EntryFull {
			k.head(slot, wire.EntryFull)
			k.wholeHead(slot)
			k.w.WriteRun(p.runs.bytes(r), int(r.bits))
		} else {
			k.update(slot, r, p.runs.bytes(r))
		}
	}
	if k.w.Err() != nil || n > 1 && !k.bears(0, 0) {
		k.open, k.sent.status = false, sentUnused
		return false, false
	}
	heads := k.w.Len()
	for i := range entries {
		heads -= int(entries[i].bits)
		k.book(&entries[i])
	}
	k.heads = max(heads/n+2, k.heads-1)
	k.finish()
	return true, false
}

// book notes that the packet carries an entry.
func (k *packetWriter) book(e *bundleEntry) {
	p, slot := k.peer, int(e.slot)
	b, bit := slot>>6, uint64(1)<<(slot&63)
	kind := recordDespawn
	if e.kind == bundleState {
		kind = recordState
		if k.compact == nil {
			p.runs.runs[e.run].copies++
		}
	}
	k.record(slot, kind)
	*e.count++
	p.acked.due[b] &^= bit
	p.acked.acks.shown[b] |= bit
	if !e.due { // it is on its way already
		p.stats.GroupResends++
	}
}

// chooseWith adds a slot to those that are chosen to be sent, and what has to travel with
// it, and returns all that it added.
func (p *sender) chooseWith(slot int, chosen bitset.Set) []int32 {
	u := &p.runs.bundle
	if p.snap.slots.inGroups(slot>>6)>>(slot&63)&1 == 0 {
		chosen.Add(slot)
		u.close = append(u.close[:0], int32(slot))
		return u.close
	}
	p.closure(slot)
	n := 0
	for _, slot := range u.close {
		if !chosen.Has(int(slot)) && p.acked.lacksAny(slot) {
			chosen.Add(int(slot))
			u.close[n] = slot
			n++
		}
	}
	return u.close[:n]
}
