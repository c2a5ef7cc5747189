package sender

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A packetWriter fills state packets for one peer, with entries in slot order, and records each in the log of acks.
type packetWriter struct {
	*peer
	out     *outbox
	budget  *budget
	cache   *encode.Cache   // of the worker, in the present tick
	Compact *compact.Writer // nil: the session is Packed

	// The open packet.
	isOpen bool
	refers bool          // Ref of the cache is that of the tick
	apart  bool          // later packets do not refer to the slots of those that are sent now
	w      bitbuf.Writer // contents of the entries; their slots are in the cache
	header wire.StateHeader
	front  delta.Baselines
	body   int // index of the body in the buffer
	sent   *ackstate.SentPacket
	work   int // of its entries, see config/work.go
	wire.Context
}

// begin starts a tick.
func (k *packetWriter) begin() {
	k.refers, k.apart = false, false
	if k.Compact != nil {
		k.Compact.Kept.Shrink(k.snap.Tick)
	}
}

// blocked reports whether no more packets may be sent now.
func (k *packetWriter) blocked() bool { return k.acked.Log.Full() || k.budget.short() }

// start opens a packet with the baselines that most entries are likely to have. slot is that of its first entry, and
// part reports whether that is a part of a large state.
func (k *packetWriter) start(slot int, part bool) {
	k.open(k.acked.Front())
	if k.Compact != nil {
		k.startCompact(slot, part)
		return
	}
	c := k.cache
	if !k.refers {
		c.Ref, k.refers = k.acked.Reference(c.Ref[:0], k.front.A1), true
		c.RefSlots = wire.CountSlots(c.Ref)
	}
	if k.apart {
		c.Slots.BeginApart()
	} else {
		c.Slots.Begin(c.Ref, c.RefSlots)
	}
}

// open opens a packet with the given baselines in front. It has no slot lists yet.
func (k *packetWriter) open(front delta.Baselines) {
	k.front = front
	k.header = k.nextHeader(front.A1)
	k.body = k.out.key.Size() + k.header.Size()
	if k.Compact == nil {
		k.w.Reset(k.cache.Contents[:k.opts.MTU-k.body])
	}
	k.Context = wire.Context{Names: delta.NewNames(k.snap.Tick, front)}
	k.sent = k.acked.Log.Begin(k.snap.Tick)
	k.sent.Apart = k.apart
	k.isOpen, k.work = true, 0
}

// nextHeader returns the header of the next packet, which has the given base tick.
func (k *packetWriter) nextHeader(base delta.Tick) wire.StateHeader {
	return k.out.header(k.acked.Log.Next, k.acked.HeaderForm(), base)
}

// fits reports whether the open packet has room for so many more bits of contents.
func (k *packetWriter) fits(bits int) bool {
	return k.cache.Slots.Fits(k.w.Remaining() - wire.MaxFrontBits - bits)
}

// headBits exceeds the bits in an entry's contents before its rows: the names of the baselines, or the generation and a
// component set that is that of the full state before.
const headBits = 100

// fitsNext reports whether the open packet is sure to have room for n entries, the last of which is of the given
// slot, with so many bits of rows.
func (k *packetWriter) fitsNext(slot, n, bits int) bool {
	return k.cache.Slots.FitsNext(slot, n, k.w.Remaining()-wire.MaxFrontBits-bits-headBits)
}

// abandon gives up the open packet, of which nothing was recorded.
func (k *packetWriter) abandon() {
	if k.Compact != nil {
		k.dropCompact()
	}
	k.isOpen, k.sent.Status = false, ackstate.SentUnused
}

// append calls try to append to the open packet, and once more with a new one if it returns false because that is too
// full. slot is the first slot of what it appends, and part reports whether that is a part of a large state. It returns
// errFull if no more packets may be sent, and errTooLarge if try fails in an empty packet.
func (k *packetWriter) append(slot int, part bool, try func() bool) error {
	for {
		if !k.isOpen {
			if k.blocked() {
				return errFull
			}
			k.start(slot, part)
		}
		if try() {
			return nil
		}
		if k.sent.Count == 0 {
			k.abandon()
			return errTooLarge
		}
		k.finish()
	}
}

// anySize stands for a number of bits that is not known.
const anySize = 1 << 30

// add calls write to append an entry with at most so many bits of rows that takes so much work to decode. The error is
// that of append.
func (k *packetWriter) add(slot int, kind baseline.RecordKind, bits, work int, write func()) error {
	if k.isOpen && bits < anySize && k.fitsNext(slot, 1, bits) && k.bears(work, bits) {
		write() // mostly so
	} else {
		try := func() bool { return k.tryWrite(work, write) }
		if err := k.append(slot, kind == baseline.RecordPart, try); err != nil {
			return err
		}
	}
	k.work += work
	k.record(slot, kind)
	return nil
}

// tryWrite calls write to append an entry, and takes that back and returns false if it does not fit.
func (k *packetWriter) tryWrite(work int, write func()) bool {
	mark, slots, before := k.w.Mark(), k.cache.Slots.Mark(), k.Context
	write()
	if k.w.Err() == nil && k.fits(0) && (k.bears(work, 0) || k.sent.Count == 0) {
		return true
	}
	k.w.Rollback(mark)
	k.cache.Slots.Rollback(&slots)
	k.Context = before
	return false
}

// put appends an entry. The error is that of append.
func (k *packetWriter) put(slot int, r *encode.CachedEntry) error {
	r.Copies++
	size := int(r.Bits)
	if r.Kind == wire.EntryFull && k.snap.Slots.Info[slot].Set != k.Set {
		size = anySize // it may take more than headBits before its rows
	}
	err := k.add(slot, baseline.RecordState, size, int(r.Work), func() { k.write(slot, r) })
	if err != nil {
		r.Copies--
	}
	return err
}

// write writes an entry.
func (k *packetWriter) write(slot int, r *encode.CachedEntry) {
	if r.Kind == wire.EntryFull {
		k.head(slot, wire.EntryFull)
		encode.WriteFullHead(&k.w, k.snap, slot, &k.Set)
	} else {
		k.updateHead(slot, r.Baselines, r.Kind == wire.EntrySetChange)
	}
	k.cache.Copy(&k.w, r)
}

// bears reports whether the open packet may get entries of so much work to decode and at least so many bits.
func (k *packetWriter) bears(work, bits int) bool {
	return k.opts.FreeWork.Allows(k.work+work, k.w.Len()+bits)
}

// updateHead writes the head of an update.
func (k *packetWriter) updateHead(slot int, b delta.Baselines, newComponents bool) {
	front := k.Names.AtFront(b)
	switch {
	case newComponents:
		k.head(slot, wire.EntrySetChange)
		k.w.WriteBool(front)
	case front:
		k.cache.Slots.AddUpdates(slot>>6, 1<<(slot&63))
		return
	default:
		k.head(slot, wire.EntryNamed)
	}
	k.Names.Write(&k.w, b)
}

// record records that the packet carries an entry of a slot.
func (k *packetWriter) record(slot int, kind baseline.RecordKind) {
	k.acked.Log.Add(k.sent, slot>>6, 1<<(slot&63), kind)
	if kind == baseline.RecordState && k.acked.Acks.None.Has(slot) {
		k.budget.firsts++
	}
}

// despawn appends that a slot is empty. It returns errFull if no more packets may be sent.
func (k *packetWriter) despawn(slot int) error {
	if k.Compact != nil {
		return k.addCompact(slot, baseline.RecordDespawn, compact.Despawn(k.acked.Acks.Left.Has(slot)))
	}
	return k.add(slot, baseline.RecordDespawn, anySize, wire.SlotWork, func() { k.writeDespawn(slot) })
}

func (k *packetWriter) writeDespawn(slot int) {
	k.head(slot, wire.EntryDespawn)
	k.w.WriteBool(k.acked.Acks.Left.Has(slot))
}

// putPart appends a part of a slot's state. The error is that of append.
func (k *packetWriter) putPart(slot int, l *ackstate.LargeState, i int) error {
	payload := l.Encoded[i*l.Size : min((i+1)*l.Size, len(l.Encoded))]
	numbers := [4]uint64{uint64(k.snap.Tick - l.Tick), uint64(len(l.Encoded)), uint64(l.Size), uint64(i)}
	if k.Compact != nil {
		entry := compact.Entry{Kind: wire.EntryPart, Payload: payload, Part: numbers}
		return k.addCompact(slot, baseline.RecordPart, &entry)
	}
	return k.add(slot, baseline.RecordPart, anySize, 0, func() {
		k.head(slot, wire.EntryPart)
		for _, n := range numbers {
			k.w.WriteExpGolomb(n, wire.PartOrder)
		}
		k.w.WriteBytes(payload)
	})
}

// head notes the slot and the kind of an entry that is not an update against the front.
func (k *packetWriter) head(slot int, kind wire.EntryKind) { k.cache.Slots.AddOther(slot, kind) }

// finish sends the open packet, if there is one.
func (k *packetWriter) finish() {
	if !k.isOpen {
		return
	}
	if k.Compact != nil {
		k.finishCompact()
		return
	}
	k.isOpen, k.sent = false, nil // else sent would keep a ring alive that the log has replaced
	w := bitbuf.NewWriter(k.out.box.packet[k.body:k.opts.MTU])
	front := wire.Front{Baselines: k.front, Shift: k.snap.Steady.Shift}
	front.Write(&w, k.snap.Tick)
	k.cache.Slots.Write(&w)
	w.WriteRun(k.w.Bytes(), k.w.Len())
	packet := k.out.box.packet[:k.body+len(w.Bytes())]
	k.out.complete(packet, &k.header, w.Len())
	k.out.put(packet, k.commit(len(packet), w.Len()))
}

// commit counts a packet whose body has n bits, and returns its sequence.
func (k *packetWriter) commit(bytes, n int) uint32 {
	k.stats.Packets++
	k.stats.Bytes += uint64(bytes)
	k.stats.EntityBits += uint64(n)
	k.budget.spend(bytes)
	k.acked.Log.At(k.acked.Log.Next).Bytes = uint16(bytes)
	return k.acked.Log.Commit(k.acked.Interval)
}

// writeTogether appends entries to the open packet, which is empty. It returns the bits that they take, and false if
// they do not fit.
func (k *packetWriter) writeTogether(entries []batchEntry) (size int, ok bool) {
	for i := range entries {
		e, slot := &entries[i], int(entries[i].slot)
		if e.kind == batchDespawn {
			k.work += wire.SlotWork
			k.writeDespawn(slot)
			continue
		}
		r := &k.cache.Entries[e.entry]
		k.work += int(r.Work)
		k.write(slot, r)
	}
	ok = k.w.Err() == nil && k.fits(0) && (len(entries) == 1 || k.bears(0, 0))
	return k.w.Len() + k.cache.Slots.MaxLen(), ok
}
