package sender

import (
	"cmp"
	"slices"

	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A groupSender sends dirty slots that are in groups, as atomic batches: everything that belongs together travels in
// one packet. Groups are sent before everything else in a tick, in packets of their own, as many complete batches in
// each as fit. If they took all the room, everything else goes first the next time. If a single packet holds
// everything that a peer needs, groups or not, it is sent that packet.
type groupSender struct {
	*peer
	packet  *packetWriter
	states  *stateSender
	heads   int   // bits of the head of an entry in a packet of groups, about
	crowded uint8 // ticks for which a single packet is not tried
	behind  int   // 1 more than the slot to begin with, if the last tick had to stop; else 0
	yields  bool  // everything else goes first
}

const (
	// maxTogether is the largest number of entries for which a single packet is tried.
	maxTogether = 512
	// crowdedTicks is for how many ticks a single packet is not tried after it did not suffice.
	crowdedTicks = 16
	// firstHead is the estimate for the head of an entry before any was sent, in bits; mostHead bounds it.
	firstHead, mostHead = 24, 64
)

// begin starts a session.
func (p *groupSender) begin() { p.behind, p.yields, p.crowded = 0, false, 0 }

// send sends the dirty ones of some slots that are in groups, with everything that belongs to them.
// It returns true if a single packet held these and all other dirty slots.
func (p *groupSender) send(of bitset.Set) (all bool) {
	first, sent, dirty := max(p.behind-1, 0), p.acked.Log.Next, uint64(0)
	p.behind = 0
	for _, b := range p.interest.Groups.Blocks {
		dirty |= of[b] & p.acked.Dirty[b] & p.acked.Grouped(int(b))
	}
	if dirty == 0 {
		return false
	}
	switch {
	case p.crowded > 0:
		p.crowded--
	case p.sendTogether(of):
		return true
	default:
		p.crowded = crowdedTicks
	}
	stopped := !p.sendUnits(of, first, len(of)<<6) || first > 0 && !p.sendUnits(of, 0, first)
	p.yields = p.yields || p.acked.Log.Next != sent && (stopped || p.packet.blocked())
	return false
}

// sendTogether sends everything that the peer needs, in groups or not, if that is one packet.
func (p *groupSender) sendTogether(of bitset.Set) bool {
	u, s := &p.states.worker.batch, &p.snap.Slots
	u.begin(s.Len())
	room, used := 8*p.opts.MTU, 0
	dirty := p.acked.DirtyBlocks
	for b := range dirty.Between(0, len(of)) {
		d := of[b] & p.acked.Dirty[b]
		if d == 0 {
			continue
		}
		first := len(u.entries)
		grouped := d & p.acked.Grouped(b)
		for slot := range bitset.Slots(b, grouped) {
			if !u.in.Has(slot) {
				p.gather(slot)
			}
		}
		for slot := range bitset.Slots(b, d&^grouped) {
			if !u.in.Has(slot) { // it may have been sent with a group until that sent its end
				u.in.Add(slot)
				p.gatherSlot(slot)
			}
		}
		for i := range u.entries[first:] {
			e := &u.entries[first+i]
			if used += int(e.bits); e.kind == batchLarge {
				return false
			}
		}
		if used > room || len(u.entries) > maxTogether {
			return false
		}
	}
	return p.putTogether(u.entries) == nil
}

// sendUnits sends the groups of dirty slots in a range. It returns false if it had to stop.
func (p *groupSender) sendUnits(of bitset.Set, from, to int) bool {
	u, s := &p.states.worker.batch, &p.snap.Slots
	u.begin(s.Len())
	u.from = int32(from)
	u.room = 8*(p.opts.MTU-int(p.packet.out.heads[wire.HeaderLong])) - wire.MaxFrontBits
	if p.heads == 0 {
		p.heads = firstHead
	}
	for _, b := range p.interest.Groups.Blocks {
		if int(b)<<6 >= to || (int(b)+1)<<6 <= from {
			continue
		}
		for slot := range bitset.Slots(int(b), of[b]&p.acked.Dirty[b]&p.acked.Grouped(int(b))) {
			if slot >= from && slot < to && !u.in.Has(slot) && !p.sendUnit(slot) {
				return false
			}
		}
	}
	return p.sendBatch(u.entries)
}

// sendUnit adds a dirty slot and everything that travels with it to the batch. If the batch then
// exceeds a packet, the part before is sent. It returns false if no more packets may be sent.
func (p *groupSender) sendUnit(slot int) bool {
	u := &p.states.worker.batch
	first := len(u.entries)
	p.gather(slot)
	unit := u.entries[first:]
	size, work, large := p.take(unit)
	if large || u.used+size > u.room || !p.opts.FreeWork.Allows(u.work+work, u.used) {
		if !p.sendBatch(u.entries[:first]) {
			p.putOff(unit)
			return false
		}
		n := copy(u.entries, unit)
		u.entries, u.used, u.work = u.entries[:n], 0, 0
	}
	u.used, u.work = u.used+size, u.work+work
	if large { // sendBatch only finds out while it writes
		if !p.sendSplit(u.entries) {
			return false
		}
		u.entries, u.used, u.work = u.entries[:0], 0, 0
	}
	return true
}

// take marks the entries of a unit clean. It returns their size in bits, about, the work of
// decoding them, and whether one of them is larger than a packet.
func (p *groupSender) take(unit []batchEntry) (size, work int, large bool) {
	for i := range unit {
		e := &unit[i]
		p.acked.Dirty.Remove(int(e.slot))
		work += int(e.work)
		size += max(int(e.bits)+p.heads, 1) // the heads of Compact may be estimated as less than 0
		large = large || e.kind == batchLarge
	}
	return size, work, large
}

// sendBatch sends entries in one packet; if they don't fit, the last units in others. It returns
// false if no more packets may be sent.
func (p *groupSender) sendBatch(entries []batchEntry) bool {
	for len(entries) > 0 {
		switch p.putTogether(entries) {
		case nil:
			return true
		case errFull:
			p.behind = int(entries[0].slot) + 1
			p.putOff(entries)
			return false
		}
		byUnit := func(a, b batchEntry) int { return cmp.Compare(a.unit, b.unit) }
		slices.SortStableFunc(entries, byUnit)
		last := entries[len(entries)-1].unit
		n := slices.IndexFunc(entries, func(e batchEntry) bool { return e.unit == last })
		if n == 0 {
			return p.sendSplit(entries)
		}
		p.heads = min(p.heads+4, mostHead)
		if !p.sendBatch(entries[:n]) {
			p.putOff(entries[n:])
			return false
		}
		entries = entries[n:]
	}
	return true
}

// sendSplit sends entries that belong together but exceed a packet, one by one: those of slots from where this pass
// began, since the others had their turn before. It returns false if no more packets may be sent.
func (p *groupSender) sendSplit(entries []batchEntry) bool {
	slices.SortFunc(entries, func(a, b batchEntry) int { return cmp.Compare(a.slot, b.slot) })
	p.putOff(entries)
	first := p.acked.Log.Next
	for i := range entries {
		e := &entries[i]
		if e.dirty && e.slot >= p.states.worker.batch.from && !p.sendAlone(int(e.slot)) {
			break
		}
	}
	p.packet.finish()
	if len(entries) > 1 && p.acked.Log.Next != first {
		p.stats.SplitGroups++
	}
	return p.behind == 0
}

// sendAlone sends the state of a slot. It returns false if no more packets may be sent. The turn of a large state is a
// packet of full size, in parts.
func (p *groupSender) sendAlone(slot int) bool {
	b, bit, parts := slot>>6, uint64(1)<<(slot&63), p.stats.Parts
	err := p.states.sendBlock(b, bit, nil)
	if err == nil {
		err = p.states.sendLarge(b, bit)
	}
	if err == nil {
		return true
	}
	p.behind = slot + 1
	if l := p.acked.Large.Of(slot); l != nil && p.stats.Parts != parts && l.TurnEnds(p.opts.MTU-partOverhead) {
		p.behind++
	}
	return false
}

// putOff marks entries dirty again.
func (p *groupSender) putOff(entries []batchEntry) {
	for i := range entries {
		if e := &entries[i]; e.dirty {
			p.acked.MarkDirty(int(e.slot)>>6, 1<<(e.slot&63))
		}
	}
}

// complete adds everything that travels with chosen slots to a choice.
func (p *groupSender) complete(chosen bitset.Set) {
	if len(p.interest.Groups.Blocks) == 0 {
		return
	}
	u := &p.states.worker.batch
	u.begin(p.snap.Slots.Len())
	for _, b := range p.interest.Groups.Blocks {
		for slot := range bitset.Slots(int(b), chosen[b]&p.acked.Grouped(int(b))) {
			if u.in.Has(slot) {
				continue
			}
			for _, other := range p.company(slot) {
				u.in.Add(int(other))
				if !chosen.Has(int(other)) && p.acked.LacksAny(other) {
					chosen.Add(int(other))
				}
			}
		}
	}
}

// company returns the slots that are sent together with a slot, which comes first.
func (p *groupSender) company(slot int) []int32 {
	c := &p.states.worker.batch.company
	if c.Begin(slot, p.snap.Slots.Len()); !p.opts.NoGroups {
		c.Complete(&p.interest.Groups, p.acked.TravelsWith)
	}
	return c.Slots
}

// gather appends a dirty slot and everything that travels with it, as a unit.
func (p *groupSender) gather(slot int) {
	u := &p.states.worker.batch
	for _, slot := range p.company(slot) {
		if !u.in.Has(int(slot)) {
			u.in.Add(int(slot))
			p.gatherSlot(int(slot))
		}
	}
	u.units++
}

// gatherSlot appends what the peer needs of a slot, if it needs anything.
func (p *groupSender) gatherSlot(slot int) {
	s := &p.snap.Slots
	b, bit := slot>>6, uint64(1)<<(slot&63)
	if p.sight.View.Sees(b, s.Alive[b])&bit == 0 {
		if p.acked.Acks.Shown[b]&bit == 0 {
			p.acked.Dirty[b] &^= bit // gone before the peer was sent it
			return
		}
		// A kept entity would remain as it was while the others in its group go on: the batch would be split.
		if p.acked.Gone(b)&bit == 0 {
			p.acked.NoteChurn(b, bit)
			p.acked.MarkDirty(b, bit)
		}
		p.add(batchEntry{slot: int32(slot), kind: batchDespawn, count: &p.stats.Despawns, work: wire.SlotWork})
		return
	}
	if !p.acked.Lacks(b, bit) {
		return
	}
	if p.acked.Large.In(b)&bit != 0 {
		p.add(batchEntry{slot: int32(slot), kind: batchLarge})
		return
	}
	r, count := p.states.bestEntry(slot, p.acked.ClassOfSlot(slot))
	p.add(batchEntry{slot: int32(slot), entry: r.Index, count: count, bits: r.Bits, work: r.Work})
}

// add appends an entry to the present unit.
func (p *groupSender) add(e batchEntry) {
	u := &p.states.worker.batch
	e.unit, e.dirty = int32(u.units), p.acked.Dirty.Has(int(e.slot))
	u.entries = append(u.entries, e)
}

// putTogether sends entries in a packet of their own, in slot order. The errors are those of append:
// then nothing is sent. No packet may be open.
func (p *groupSender) putTogether(entries []batchEntry) error {
	k := p.packet
	if len(entries) == 0 {
		return nil
	}
	if k.blocked() {
		return errFull
	}
	slices.SortFunc(entries, func(a, b batchEntry) int { return cmp.Compare(a.slot, b.slot) })
	k.start(int(entries[0].slot), false)
	write := k.writeTogether
	if k.Compact != nil {
		write = k.compactTogether
	}
	size, ok := write(entries)
	if !ok {
		k.abandon()
		return errTooLarge
	}
	for i := range entries {
		size -= int(entries[i].bits)
		p.book(&entries[i])
	}
	p.heads = max(size/len(entries)+2, p.heads-1)
	k.finish()
	return nil
}

// book records and counts an entry of a packet.
func (p *groupSender) book(e *batchEntry) {
	slot := int(e.slot)
	kind := baseline.RecordDespawn
	if e.kind == batchState {
		kind = baseline.RecordState
		if p.packet.Compact == nil {
			p.packet.cache.Entries[e.entry].Copies++
		}
	}
	p.packet.record(slot, kind)
	if *e.count++; e.count == &p.stats.FullStates {
		p.packet.budget.bookFull(e.bits)
	}
	p.acked.Dirty.Remove(slot)
	p.acked.Acks.Shown.Add(slot)
	if !e.dirty { // it is in flight already
		p.stats.GroupResends++
	}
}
