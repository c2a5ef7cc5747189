package sender

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
)

// This file copies what was encoded for several peers: complete packets under headers of their own, and
// entries.

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

// holds reports whether the peer holds all baselines of a packet of a set, and all that its slots refer to.
func (p *stateSender) holds(set *encode.PacketSet, k *encode.SharedPacket) bool {
	if !p.acked.Log.RefersIn(k.Range) {
		return false
	}
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
	x, bit := set.In(slot>>6), uint64(1)<<(slot&63)
	n, work := x.Size(bit)
	if k.open && k.fitsNext(slot, 1, n) && k.bears(work, n) {
		k.updateHead(slot, of.Baselines, false)
		x.Append(&k.w, bit)
		k.work += work
		k.record(slot, baseline.RecordState)
		x.Count(1)
		return nil
	}
	err := k.add(slot, baseline.RecordState, work, func() {
		k.updateHead(slot, of.Baselines, false)
		x.Append(&k.w, bit)
	})
	if err == nil {
		x.Count(1)
	}
	return err
}

// putCopies appends entries of a block from a packet set: of the given slots those before any other slot of the
// block that is still to be sent, as many as fit. All are the slots that are still to be sent. It returns the
// slots that it appended: none if not even the first one fits into an empty packet, or no packet may be sent.
func (k *packetWriter) putCopies(set *encode.PacketSet, b int, slots, all uint64) (put uint64) {
	if others := all &^ slots & -(slots & -slots); others != 0 {
		slots &= others&-others - 1
	}
	x := set.In(b)
	size, work := x.Size(slots)
	if k.open && k.fitsSlots(b, slots, size) && k.bears(work, 0) {
		k.cache.Slots.AddUpdates(b, slots)
	} else {
		if slots = k.addCopies(&x, b, slots); slots == 0 {
			return 0
		}
		_, work = x.Size(slots)
	}
	x.Append(&k.w, slots)
	k.work += work
	k.acked.Log.Add(k.sent, b, slots, baseline.RecordState)
	x.Count(bits.OnesCount64(slots))
	return slots
}

// addCopies adds slots with entries of a packet set to the open packet where that is almost full: as many as fit,
// which it returns. If none fits, it opens a new packet.
func (k *packetWriter) addCopies(x *encode.BlockEntries, b int, slots uint64) (put uint64) {
	for {
		if !k.open {
			if k.blocked() {
				return 0
			}
			k.start()
		}
		mark := k.cache.Slots.Mark()
		put = k.addFitting(x, b, slots)
		if borne := k.borne(x, put); borne != put {
			if k.cache.Slots.Rollback(&mark); borne == 0 {
				return 0
			}
			put = borne
			k.cache.Slots.AddUpdates(b, put)
		}
		if put != 0 || k.sent.Count == 0 {
			return put
		}
		k.finish()
	}
}

// fitsSlots is fitsNext for updates of slots of a block.
func (k *packetWriter) fitsSlots(b int, slots uint64, size int) bool {
	return k.fitsNext(b<<6+bits.Len64(slots)-1, bits.OnesCount64(slots), size)
}

// addFitting adds as many of some slots with entries of a packet set as the open packet has room for, and returns
// them. These are the ones that would fit one after the other: a slot can make the lists shorter, so more might
// fit together.
func (k *packetWriter) addFitting(x *encode.BlockEntries, b int, slots uint64) (put uint64) {
	for put != slots {
		next := slots &^ put
		size, _ := x.Size(put | next)
		for next&(next-1) != 0 && !k.fitsSlots(b, next, size) {
			next = lowest(next, bits.OnesCount64(next)/2)
			size, _ = x.Size(put | next)
		}
		mark := k.cache.Slots.Mark()
		if k.cache.Slots.AddUpdates(b, next); size > k.w.Remaining() || !k.fits(size) {
			k.cache.Slots.Rollback(&mark)
			break
		}
		put |= next
	}
	return put
}

// lowest returns the n lowest of some slots.
func lowest(slots uint64, n int) uint64 {
	for more := bits.OnesCount64(slots) - n; more > 0; more-- {
		slots &^= 1 << (bits.Len64(slots) - 1)
	}
	return slots
}

// borne returns those of some slots with entries of a packet set that the open packet bears, one after the other.
func (k *packetWriter) borne(x *encode.BlockEntries, slots uint64) (put uint64) {
	if _, work := x.Size(slots); k.bears(work, 0) {
		return slots
	}
	for put != slots { // perhaps too much work: judge one entry after the other
		next := slots &^ put
		size, work := x.Size(put | next&-next)
		if !k.bears(work, size) {
			break
		}
		put |= next & -next
	}
	return put
}
