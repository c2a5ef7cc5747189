package sender

import (
	"cmp"
	"slices"

	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// How a peer is sent what is in groups: before everything else of the tick, in packets of
// its own, as many whole groups in each as fit; see groups.go for what that is good for.
// Where groups took all the room that there was, the rest goes first the next time.
// Where all that a peer needs in a tick fits into one packet, it is one.

// batch is scratch memory for what is to travel together, which the peers of a worker
// share.
type batch struct {
	entries []batchEntry
	units   int // of entries
	in      bitset.Set
	visited []int32 // what is in it
	close   []int32 // slots that are sent together
	groups  []*interest.Group
}

// A batchEntry is what a peer needs of a slot.
type batchEntry struct {
	slot  int32
	unit  int32 // entries of a unit travel together
	entry int32 // in the cache, unless the slot is empty
	kind  batchKind
	dirty bool  // else it is on its way already
	bits  int32 // of the run
	work  int32 // of the entry, about with Compact
	count *uint64
}

type batchKind uint8

const (
	batchState batchKind = iota
	batchEnd
	batchLarge // does not fit into a packet
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

// sendGroups sends what of some slots is due and in groups, with what belongs to it. It
// returns true if that was all that is due.
func (p *Sender) sendGroups(of bitset.Set) (all bool) {
	blocks := p.interest.Groups.Blocks
	dirty := uint64(0)
	for _, b := range blocks {
		dirty |= of[b] & p.acked.Dirty[b] & p.snap.Slots.Bound[b]
	}
	if dirty == 0 {
		return false
	}
	p.Worker.Bound()
	p.Worker.Pinned = true
	order := p.Packet.Order
	defer func() { p.Packet.Order, p.Worker.Pinned = order, false }()
	switch {
	case p.crowded > 0:
		p.crowded--
	case p.sendTogether(of):
		return true
	default:
		p.crowded = crowdedTicks
	}
	first, sent := p.behind, p.acked.Log.Next
	p.behind = 0
	if !p.sendUnits(of, first, len(of)<<6) || first > 0 && !p.sendUnits(of, 0, first) {
		p.behind = max(p.behind, 1) // 0: nowhere
		p.yields = p.yields || p.acked.Log.Next != sent
	}
	return false
}

// sendUnits sends groups with due slots in a range. It returns false if it had to stop.
func (p *Sender) sendUnits(of bitset.Set, from, to int) bool {
	u, s := &p.Worker.batch, &p.snap.Slots
	u.begin(s.Len())
	room := 8*(p.opts.MTU-p.Packet.headSize(true)) - wire.GapOrderBits
	if p.Packet.heads == 0 {
		p.Packet.heads = firstHead
	}
	used, work := 0, 0
	for _, b := range p.interest.Groups.Blocks {
		if int(b)<<6 >= to || (int(b)+1)<<6 <= from {
			continue
		}
		for slot := range bitset.Slots(int(b), of[b]&p.acked.Dirty[b]&s.Bound[b]) {
			if slot < from || slot >= to || u.in.Has(slot) {
				continue
			}
			if p.Worker.Full() {
				p.encodeUncached(u.entries)
			}
			first := len(u.entries)
			p.gather(slot)
			unit := u.entries[first:]
			size, load, large := 0, 0, false
			for i := range unit {
				e := &unit[i]
				load += int(e.work)
				p.acked.Dirty.Remove(int(e.slot))
				size += max(int(e.bits)+p.Packet.heads, 1) // with Compact, heads may be less than none
				large = large || e.kind == batchLarge
			}
			if large || used+size > room || !p.opts.FreeWork.Allows(work+load, used) {
				if !p.sendBatch(u.entries[:first]) {
					p.putOff(unit)
					return false
				}
				n := copy(u.entries, unit)
				u.entries, used, work = u.entries[:n], 0, 0
			}
			used, work = used+size, work+load
			if large { // sendBatch finds out about what is more than a packet
				if !p.sendSplit(u.entries) {
					p.behind = slot
					return false
				}
				u.entries, used, work = u.entries[:0], 0, 0
			}
		}
	}
	return p.sendBatch(u.entries)
}

// encodeUncached makes the runs of entries again in an empty cache. What is sent with what must
// not depend on the cache, which is another one with other workers.
func (p *Sender) encodeUncached(entries []batchEntry) {
	p.Worker.Pinned = false
	p.Worker.Bound()
	p.Worker.Pinned = true
	for i := range entries {
		if e := &entries[i]; e.kind == batchState {
			p.acked.Classify(int(e.slot)>>6, 1<<(e.slot&63))
			r, _ := p.bestEntry(int(e.slot), &p.acked.Classes.List[0])
			e.entry = r.Index
		}
	}
}

// putOff notes that entries are due still.
func (p *Sender) putOff(entries []batchEntry) {
	for i := range entries {
		if e := &entries[i]; e.dirty {
			p.acked.MarkDirty(int(e.slot)>>6, 1<<(e.slot&63))
		}
	}
}

// begin empties the batch.
func (u *batch) begin(slots int) {
	u.in = u.in.Grown(slots)
	for _, slot := range u.visited {
		u.in.Remove(int(slot))
	}
	u.visited, u.entries, u.units = u.visited[:0], u.entries[:0], 0
}

// visit notes that a slot has had its turn.
func (u *batch) visit(slot int) {
	u.in.Add(slot)
	u.visited = append(u.visited, int32(slot))
}

// closure sets u.close to the slots that are sent together with a slot, which comes first.
func (p *Sender) closure(slot int) {
	u, of := &p.Worker.batch, &p.interest.Groups
	u.close, u.groups = append(u.close[:0], int32(slot)), u.groups[:0]
	add := func(slot int32) {
		if !slices.Contains(u.close, slot) {
			u.close = append(u.close, slot)
		}
	}
	for i := 0; i < len(u.close) && !p.opts.NoGroups; i++ {
		slot := u.close[i]
		for _, g := range of.BySlot[slot] {
			if slices.Contains(u.groups, g) || p.acked.LeftFor(g, slot) {
				continue
			}
			u.groups = append(u.groups, g)
			for _, m := range g.Members {
				if m.Slot >= 0 {
					add(m.Slot)
				}
			}
			for _, f := range g.Former {
				if !p.acked.Released(g, f) {
					add(f.Slot)
				}
			}
		}
	}
}

// gather appends what has to travel with a slot that is due, as a unit.
func (p *Sender) gather(slot int) {
	u := &p.Worker.batch
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
func (p *Sender) gatherSlot(slot int) {
	s := &p.snap.Slots
	b, bit := slot>>6, uint64(1)<<(slot&63)
	if p.sight.View.Sees(b, s.Alive[b])&bit == 0 {
		if p.acked.Acks.Shown[b]&bit == 0 {
			p.acked.Dirty[b] &^= bit // gone before the peer heard of it
			return
		}
		if p.acked.Gone(b)&bit == 0 { // Keep: as it was, with others as they are now, it would be torn
			p.acked.NoteChurn(b, bit)
			p.acked.MarkDirty(b, bit)
		}
		p.add(batchEntry{slot: int32(slot), kind: batchEnd, count: &p.stats.Despawns})
		return
	}
	if !p.acked.Lacks(b, bit) {
		return
	}
	if p.acked.Acks.Large[b]&bit != 0 {
		p.add(batchEntry{slot: int32(slot), kind: batchLarge})
		return
	}
	p.acked.Classify(b, bit)
	p.addState(slot, &p.acked.Classes.List[0])
}

// addState appends the state of a slot, of the given class.
func (p *Sender) addState(slot int, c *baseline.Class) {
	r, count := p.bestEntry(slot, c)
	p.add(batchEntry{slot: int32(slot), entry: r.Index, count: count, bits: r.Bits, work: r.Work})
}

func (p *Sender) add(e batchEntry) {
	u := &p.Worker.batch
	e.unit, e.dirty = int32(u.units), p.acked.Dirty.Has(int(e.slot))
	u.entries = append(u.entries, e)
}

// sendBatch sends entries in one packet; if they don't fit, the last units in others. It
// returns false if no more packets may be sent.
func (p *Sender) sendBatch(entries []batchEntry) bool {
	for len(entries) > 0 {
		switch fits, blocked := p.Packet.putTogether(entries); {
		case blocked:
			p.behind = int(entries[0].slot)
			p.putOff(entries)
			return false
		case fits:
			return true
		}
		last := slices.MaxFunc(entries, func(a, b batchEntry) int { return cmp.Compare(a.unit, b.unit) }).unit
		slices.SortStableFunc(entries, func(a, b batchEntry) int { return cmp.Compare(a.unit, b.unit) })
		n := slices.IndexFunc(entries, func(e batchEntry) bool { return e.unit == last })
		if n == 0 {
			return p.sendSplit(entries)
		}
		p.Packet.heads = min(p.Packet.heads+4, mostHead)
		if !p.sendBatch(entries[:n]) {
			p.putOff(entries[n:])
			return false
		}
		entries = entries[n:]
	}
	return true
}

// sendSplit sends entries that belong together and don't fit into a packet, each as it
// comes. It returns false if no more packets may be sent.
func (p *Sender) sendSplit(entries []batchEntry) bool {
	slices.SortFunc(entries, func(a, b batchEntry) int { return cmp.Compare(a.slot, b.slot) })
	p.putOff(entries)
	split, blocked := false, false
	for i := range entries {
		if e := &entries[i]; e.dirty {
			if blocked = p.sendBlock(int(e.slot)>>6, 1<<(e.slot&63)) != nil; blocked {
				break
			}
			split = split || len(entries) > 1
		}
	}
	p.Packet.finish()
	if split {
		p.stats.SplitGroups++
	}
	return !blocked
}

// sendTogether sends all that the peer needs, in groups or not, if that is one packet.
func (p *Sender) sendTogether(of bitset.Set) bool {
	u, s := &p.Worker.batch, &p.snap.Slots
	u.begin(s.Len())
	room, used := 8*p.opts.MTU, 0
	for b := p.acked.Acks.DirtyBlocks.Next(0); b < len(of); b = p.acked.Acks.DirtyBlocks.Next(b + 1) {
		d := of[b] & p.acked.Dirty[b]
		if d == 0 {
			continue
		}
		first := len(u.entries)
		for slot := range bitset.Slots(b, d&s.InGroups(b)) {
			if !u.in.Has(slot) {
				p.gather(slot)
			}
		}
		d &^= s.InGroups(b)
		live, gone := p.acked.Split(b, d)
		p.acked.Dirty[b] &^= d &^ live &^ gone
		if live&p.acked.Acks.Large[b] != 0 {
			return false
		}
		p.acked.Classify(b, live)
		for slot := range bitset.Slots(b, live) {
			p.addState(slot, baseline.ClassOf(p.acked.Classes.List, 1<<(slot&63)))
		}
		for slot := range bitset.Slots(b, gone) {
			p.add(batchEntry{slot: int32(slot), kind: batchEnd, count: &p.stats.Despawns})
		}
		for i := range u.entries[first:] {
			e := &u.entries[first+i]
			if used += int(e.bits) + leastHead; e.kind == batchLarge {
				return false
			}
		}
		if used > room || len(u.entries) > maxTogether {
			return false
		}
	}
	fits, _ := p.Packet.putTogether(u.entries)
	return fits
}

// chooseWith adds a slot to those that are chosen to be sent, and what has to travel with
// it, and returns all that it added.
func (p *Sender) chooseWith(slot int, chosen bitset.Set) []int32 {
	u := &p.Worker.batch
	if p.snap.Slots.InGroups(slot>>6)>>(slot&63)&1 == 0 {
		chosen.Add(slot)
		u.close = append(u.close[:0], int32(slot))
		return u.close
	}
	p.closure(slot)
	n := 0
	for _, slot := range u.close {
		if !chosen.Has(int(slot)) && p.acked.LacksAny(slot) {
			chosen.Add(int(slot))
			u.close[n] = slot
			n++
		}
	}
	return u.close[:n]
}
