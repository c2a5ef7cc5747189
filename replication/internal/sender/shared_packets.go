package sender

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
)

// This file copies what was encoded for several peers: complete packets under headers of their own,
// blocks of slots, and stretches of entries.

// relay sends the peer the packets of its packet set of which it holds all baselines, and returns true. What
// else changed in the send interval is dirty then. If the peer does not split, it needs all of the packets and
// nothing else, or relay sends none and returns false. If nothing changed, there are none.
func (p *stateSender) relay(splits bool) bool {
	period, alive := p.acked.Period, p.snap.Slots.Alive
	if period.Changes == 0 {
		return true
	}
	if p.packetSet < 0 {
		return false
	}
	set := &p.worker.Sets.List[p.packetSet]
	if !p.mayRelay(set) || !splits && set.LacksAny() {
		return false
	}
	holdsAll := !splits || p.acked.HoldsAll() // CanRelay has found out for peers that don't split
	for i := 0; i < len(set.Packets); i++ {
		first, sequence := i, p.acked.Log.Next
		for i < len(set.Packets) && (holdsAll || p.holds(set, &set.Packets[i])) {
			p.packet.relay(set, &set.Packets[i])
			i++
		}
		p.packet.out.putCopies(set.Packets[first:i], sequence)
		if i < len(set.Packets) {
			p.markDirty(set, &set.Packets[i])
		}
	}
	for w, blocks := range set.Lacking {
		for b := range bitset.Slots(w, blocks) {
			p.acked.MarkDirty(b, period.Changed[b]&alive[b]&^set.Slots[b])
		}
	}
	return true
}

// mayRelay reports whether the packets of a set may all be sent.
func (p *stateSender) mayRelay(set *encode.PacketSet) bool {
	budget := p.packet.budget
	return p.acked.Log.Next+uint32(len(set.Packets))-p.acked.Log.Oldest <= ackstate.MaxInFlight &&
		(budget.Rate == 0 || budget.affords(len(set.Packets)))
}

// holds reports whether the peer holds all baselines of a packet of a set.
func (p *stateSender) holds(set *encode.PacketSet, k *encode.SharedPacket) bool {
	for i := range set.Records[k.First:k.End] {
		r := set.Records[k.First+i].Record()
		if r.Mask&(p.acked.LackOf(set.BasePair, int(r.Block))|p.acked.Acks.None[r.Block]) != 0 {
			return false
		}
	}
	return true
}

// markDirty marks the slots of a packet of a set dirty.
func (p *stateSender) markDirty(set *encode.PacketSet, k *encode.SharedPacket) {
	for i := range set.Records[k.First:k.End] {
		r := set.Records[k.First+i].Record()
		p.acked.MarkDirty(int(r.Block), r.Mask)
	}
}

// copies returns the slots of a block whose entries can be copied from a packet set, because the
// peer holds their baselines.
func (p *stateSender) copies(set *encode.PacketSet, b int, d uint64) uint64 {
	if d &= set.Slots[b]; d == 0 {
		return 0
	}
	return d &^ (p.acked.LackOf(set.BasePair, b) | p.acked.Acks.Large[b])
}

// copyBlocks appends blocks of the peer's packet set to the open packet, all in one copy: block b,
// of which the slots d are to be sent, and the blocks after it in the set, as long as they fit and
// have exactly the slots that are to be sent. It returns the last of these blocks, or -1 if there
// is none.
func (p *stateSender) copyBlocks(of bitset.Set, b int, d uint64) (last int) {
	k := p.packet
	if p.packetSet < 0 || !k.open {
		return -1
	}
	set := &p.worker.Sets.List[p.packetSet]
	if d != set.Slots[b] {
		return -1
	}
	first := int(set.Places[b])
	begin := set.Entries[set.Blocks[first].First].From
	last, end, n, work := -1, begin, 0, 0
	next := first
	for ; next < len(set.Blocks) && set.Blocks[next].Packet == set.Blocks[first].Packet; next++ {
		x, at := &set.Blocks[next], int(set.Records[next].Record().Block)
		if next > first {
			if at != p.acked.Acks.DirtyBlocks.Next(last+1) {
				break // there may be dirty slots before
			}
			d = of[at] & p.acked.Dirty[at] &^ p.snap.Slots.InGroups(at)
		}
		if d != set.Slots[at] || p.sight.View.Sees(at, p.copies(set, at, d)) != d {
			break
		}
		e := &set.Entries[x.First+x.Entries-1]
		if !k.fitsNext(at<<6+bits.Len64(d)-1, x.Entries, int(e.End-begin)) || !k.bears(work+int(e.Sum), 0) {
			break
		}
		k.cache.Slots.AddUpdates(at, d)
		last, end, n, work = at, e.End, n+x.Entries, work+int(e.Sum)
	}
	if n == 0 {
		return -1
	}
	k.copySpan(&set.Packets[set.Blocks[first].Packet], int(begin), int(end), work)
	p.acked.Log.AddAll(k.sent, set.Records[first:next])
	for i := range set.Records[first:next] {
		r := set.Records[first+i].Record()
		p.acked.Dirty[r.Block] &^= r.Mask
		set.Blocks[first+i].Copies += uint32(set.Blocks[first+i].Entries)
	}
	p.stats.Updates += uint64(n)
	return last
}

// relay books a packet of a set as sent. The caller sends it; no packet may be open.
func (k *packetWriter) relay(set *encode.PacketSet, from *encode.SharedPacket) {
	from.Copies++
	k.stats.Updates += uint64(from.Entries)
	sent := k.acked.Log.Begin(k.snap.Tick)
	sent.Shared, sent.Form = true, k.acked.HeaderForm()
	records := set.Records[from.First:from.End]
	k.acked.Log.AddAll(sent, records)
	for i := range records {
		r := records[i].Record()
		k.acked.Dirty[r.Block] &^= r.Mask
	}
	k.commit(k.out.headSize(sent.Form)+len(from.Body), from.Bits)
}

// putShared appends a slot's entry, which is in a packet set. The error is that of put.
func (k *packetWriter) putShared(set *encode.PacketSet, slot int, of *baseline.Class) error {
	x, entries := set.Find(slot)
	e, from := &entries[0], &set.Packets[x.Packet]
	n := int(e.End - e.From)
	if k.open && k.fitsNext(slot, 1, n) && k.bears(int(e.Work), n) {
		k.updateHead(slot, of.Baselines, false)
		k.copySpan(from, int(e.From), int(e.End), int(e.Work))
		k.record(slot, baseline.RecordState)
		x.Copies++
		return nil
	}
	err := k.add(slot, baseline.RecordState, int(e.Work), func() {
		k.updateHead(slot, of.Baselines, false)
		k.w.WriteSpan(from.Body, from.Contents+int(e.From), n)
	})
	if err == nil {
		x.Copies++
	}
	return err
}

// copySpan appends the contents of adjacent entries of a set's packet: the bits between two positions.
func (k *packetWriter) copySpan(from *encode.SharedPacket, begin, end, work int) {
	k.w.WriteSpan(from.Body, from.Contents+begin, end-begin)
	k.work += work
}

// putStretch appends entries of a block from a packet set: of the given slots from the first one
// on, as many as are adjacent in the set and fit. All are the slots of the block that are still to
// be sent. It returns the slots that it appended: none if not even the first one fits into an empty
// packet, or no packet may be sent.
func (k *packetWriter) putStretch(set *encode.PacketSet, b int, slots, all uint64) (put uint64) {
	first := bits.TrailingZeros64(slots)
	if between := (all | set.Slots[b]) >> first &^ (slots >> first); between != 0 {
		slots &= 1<<(first+bits.TrailingZeros64(between)) - 1 // up to the first that is not copied
	}
	x, entries := set.Find(b<<6 + first)
	entries = entries[:bits.OnesCount64(slots)]
	if slots = k.addStretch(entries, b, slots); slots == 0 {
		return 0
	}
	n := bits.OnesCount64(slots)
	e, before := &entries[n-1], entries[0].Sum-entries[0].Work
	k.copySpan(&set.Packets[x.Packet], int(entries[0].From), int(e.End), int(e.Sum-before))
	k.acked.Log.Add(k.sent, b, slots, baseline.RecordState)
	x.Copies += uint32(n)
	return slots
}

// addStretch adds the slots of adjacent entries of a packet set to the open packet: of so many of a block's
// slots as fit, which it returns. If none fits, it opens a new packet.
func (k *packetWriter) addStretch(entries []encode.SharedEntry, b int, slots uint64) (put uint64) {
	end := &entries[len(entries)-1]
	if k.open && k.fitsNext(b<<6+bits.Len64(slots)-1, len(entries), int(end.End-entries[0].From)) &&
		k.bears(int(end.Sum-entries[0].Sum+entries[0].Work), 0) {
		k.cache.Slots.AddUpdates(b, slots)
		return slots
	}
	for {
		if !k.open {
			if k.blocked() {
				return 0
			}
			k.start()
		}
		mark := k.cache.Slots.Mark()
		n := k.addFitting(entries, b, slots)
		if borne := k.borne(entries[:n]); borne < n {
			if k.cache.Slots.Rollback(&mark); borne == 0 {
				return 0
			}
			n = borne
			k.cache.Slots.AddUpdates(b, lowest(slots, n))
		}
		if n > 0 || k.sent.Count == 0 {
			return lowest(slots, n)
		}
		k.finish()
	}
}

// addFitting adds the slots of as many of adjacent entries as the open packet has room for, and returns their
// number. These are the ones that would fit one after the other: a slot can make the lists shorter, so more
// might fit together.
func (k *packetWriter) addFitting(entries []encode.SharedEntry, b int, slots uint64) (n int) {
	for from := entries[0].From; n < len(entries); {
		more := len(entries) - n
		next := lowest(slots, more)
		for more > 1 && !k.fitsNext(b<<6+bits.Len64(next)-1, more, int(entries[n+more-1].End-from)) {
			more /= 2
			next = lowest(next, more)
		}
		mark, size := k.cache.Slots.Mark(), int(entries[n+more-1].End-from)
		if k.cache.Slots.AddUpdates(b, next); size > k.w.Remaining() || !k.fits(size) {
			k.cache.Slots.Rollback(&mark)
			break
		}
		slots &^= next
		n += more
	}
	return n
}

// lowest returns the n lowest of some slots.
func lowest(slots uint64, n int) uint64 {
	for more := bits.OnesCount64(slots) - n; more > 0; more-- {
		slots &^= 1 << (bits.Len64(slots) - 1)
	}
	return slots
}

// borne returns how many of adjacent entries of a packet set the open packet bears.
func (k *packetWriter) borne(entries []encode.SharedEntry) int {
	n := len(entries)
	if n == 0 {
		return 0
	}
	from, before := entries[0].From, entries[0].Sum-entries[0].Work
	if k.bears(int(entries[n-1].Sum-before), 0) {
		return n
	}
	for i := range entries { // perhaps too much work: judge one entry after the other
		if !k.bears(int(entries[i].Sum-before), int(entries[i].End-from)) {
			return i
		}
	}
	return n
}
