package sender

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// This file copies what was encoded for several peers: complete packets under headers of their own, and entries.

// relay sends the packets of the packet sets that were chosen for the peer, if there are any. A peer that splits may
// lack some of them: what is missing is dirty then. Any other peer needs all of them, or relay sends nothing and
// returns false.
func (p *stateSender) relay(splits bool) bool {
	if p.acked.Period.Changes == 0 {
		return true
	}
	if p.packetSet == encode.NoSet {
		return false
	}
	packets, all := p.sources.Count(&p.worker.Sets)
	if !p.mayRelay(packets) || !splits && !all {
		return false
	}
	if !all {
		p.acked.MarkPeriod()
	}
	for run := range p.sources.Runs(&p.worker.Sets) {
		if run.Lacks {
			p.copyMost(&run)
		} else {
			p.packet.relay(run.Packets, run.Set.Records(), &p.stats.Updates)
		}
	}
	return true
}

// copyMost sends what packets of a set have of slots whose baselines the peer holds, and of the others what there is
// room for. All slots of these packets are dirty.
func (p *stateSender) copyMost(run *encode.Run) {
	for i := range run.Packets {
		k, from := p.packet, &run.Packets[i]
		k.open(run.Set.Front())
		run.Set.BeginLists(&k.cache.Slots, run.Part)
		room := k.w.Remaining() - from.Bits // for entries that are not in the set
		first, end := from.Records()
		for _, record := range run.Set.Records().List[first:end] {
			room = p.copyBlock(run.Set, record.Record(), room)
		}
		if k.sent.Count == 0 || k.w.Err() != nil || !k.fits(0) || !k.bears(0, 0) { // rare: slot lists got longer
			k.abandon()
			continue
		}
		for i := range k.sent.Count {
			r := p.acked.Log.Record(k.sent, i)
			p.acked.Dirty[r.Block] &^= r.Mask
			p.stats.Updates += uint64(bits.OnesCount64(r.Mask))
		}
		k.finish()
	}
}

// copyBlock is copyMost for a block, with so much room for other entries. It returns the room that is left.
func (p *stateSender) copyBlock(set *encode.PacketSet, r baseline.Record, room int) int {
	b, k, x := int(r.Block), p.packet, set.In(int(r.Block))
	held := r.Mask &^ (p.acked.LackOf(set.BasePair, b) | p.acked.Acks.None[b])
	for rest := r.Mask; rest != 0; {
		lacks := rest &^ held
		next := rest & (lacks&-lacks - 1) // all if none is lacking
		if next != 0 {
			_, work := x.Size(next)
			x.Append(&k.w, next)
			k.work += work
			k.cache.Slots.AddUpdates(b, next)
			p.acked.Log.Add(k.sent, b, next, baseline.RecordState)
			x.Count(bits.OnesCount64(next))
		}
		if lacks != 0 {
			room -= p.insert(b<<6+bits.TrailingZeros64(lacks), room)
		}
		rest &^= next | lacks&-lacks
	}
	return room
}

// insert appends an update of a slot with baselines of its own to the open packet, if there is room for it. It returns
// the bits that it took at most.
func (p *stateSender) insert(slot, room int) int {
	c := p.acked.ClassOfSlot(slot)
	if c.Full {
		return 0
	}
	r, _ := p.bestEntry(slot, c)
	size := int(r.Bits) + headBits
	if r.Kind == wire.EntryFull || size > room || !p.packet.bears(int(r.Work), 0) {
		return 0
	}
	r.Copies++
	p.packet.write(slot, r)
	p.packet.work += int(r.Work)
	p.packet.record(slot, baseline.RecordState)
	return size
}

// mayRelay reports whether so many packets may be sent now.
func (p *stateSender) mayRelay(packets int) bool {
	budget := p.packet.budget
	return p.acked.Log.Next+uint32(packets)-p.acked.Log.Oldest <= ackstate.MaxInFlight &&
		(budget.Rate == 0 || budget.affords(packets))
}

// copies returns the slots of a block whose entries can be copied from a packet set, because the
// peer holds their baselines.
func (p *stateSender) copies(set *encode.PacketSet, b int, d uint64) uint64 {
	if d &= set.Slots[b]; d == 0 {
		return 0
	}
	return d &^ (p.acked.LackOf(set.BasePair, b) | p.acked.Large.In(b))
}

// relay sends shared packets, which carry the given records, and counts their entries. Those that are not updates are
// apart. No packet may be open.
func (k *packetWriter) relay(packets []encode.SharedPacket, records *baseline.SharedRecords, count *uint64) {
	sequence, dirty, apart := k.acked.Log.Next, k.acked.AnyDirty(), count != &k.stats.Updates
	for i := range packets {
		from := &packets[i]
		from.Copies++
		*count += uint64(from.Entries)
		sent := k.acked.Log.Begin(k.snap.Tick)
		sent.Form, sent.Apart = k.acked.HeaderForm(), apart
		first, end := from.Records()
		k.acked.Log.Share(sent, records, first, end)
		for n := first; dirty && n < end; n++ {
			r := records.List[n].Record()
			k.acked.Dirty[r.Block] &^= r.Mask
			if apart {
				k.acked.Acks.Shown[r.Block] |= r.Mask
			}
		}
		k.commit(int(k.out.heads[sent.Form])+len(from.Body), from.Bits)
	}
	k.out.putCopies(packets, sequence)
}

// putShared appends a slot's entry, which is in a packet set. The error is that of append.
func (k *packetWriter) putShared(set *encode.PacketSet, slot int, of *baseline.Class) error {
	x, bit := set.In(slot>>6), uint64(1)<<(slot&63)
	size, work := x.Size(bit)
	err := k.add(slot, baseline.RecordState, size, work, func() {
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
	if put = slots; k.isOpen && k.fitsSlots(b, slots, size) && k.bears(work, 0) {
		k.cache.Slots.AddUpdates(b, slots)
	} else {
		first := b<<6 + bits.TrailingZeros64(slots)
		if k.append(first, false, func() bool { put = k.addFitting(&x, b, slots); return put != 0 }) != nil {
			return 0
		}
		_, work = x.Size(put)
	}
	x.Append(&k.w, put)
	k.work += work
	k.acked.Log.Add(k.sent, b, put, baseline.RecordState)
	x.Count(bits.OnesCount64(put))
	return put
}

// fitsSlots is fitsNext for updates of slots of a block.
func (k *packetWriter) fitsSlots(b int, slots uint64, size int) bool {
	return k.fitsNext(b<<6+bits.Len64(slots)-1, bits.OnesCount64(slots), size)
}

// addFitting adds as many of some slots with entries of a packet set as the open packet has room for and bears, and
// returns them. These are the ones that would fit one after the other: a slot can make the lists shorter, so more
// might fit together.
func (k *packetWriter) addFitting(x *encode.BlockEntries, b int, slots uint64) (put uint64) {
	for put != slots {
		next := slots &^ put
		size, work := x.Size(put | next)
		for next&(next-1) != 0 && !(k.fitsSlots(b, next, size) && k.bears(work, 0)) {
			next = lowest(next, bits.OnesCount64(next)/2)
			size, work = x.Size(put | next)
		}
		mark := k.cache.Slots.Mark()
		if k.cache.Slots.AddUpdates(b, next); size > k.w.Remaining() || !k.fits(size) || !k.bears(work, size) {
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
