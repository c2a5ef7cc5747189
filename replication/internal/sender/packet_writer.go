package sender

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A packetWriter fills state packets for one peer, one after the other, with entries in
// the order of their slots.
type packetWriter struct {
	peer   *Sender
	buf    []byte
	w      bitbuf.Writer
	open   bool
	header wire.StateHeader
	body   int // where the bits begin in buf
	sent   *ackstate.SentPacket
	Order  uint // of the Rice code of slot gaps
	work   int  // of its entries, see config/work.go
	wire.Context

	// The gaps of the tick before tell the order of the code. Those before the first
	// entry of a packet are of another size, and few.
	gaps, entries int

	Compact *compact.Writer // nil: the session is Packed

	heads int // bits of an entry beside its run, about, in packets of groups
}

// begin starts a tick.
func (k *packetWriter) begin(p *Sender) {
	k.peer = p
	if k.buf == nil {
		k.buf = make([]byte, p.opts.MTU)
	}
	if k.entries > 0 {
		k.Order = gapOrder(k.gaps, k.entries)
	}
	k.gaps, k.entries = 0, 0
	if k.Compact != nil {
		k.Compact.Kept.Shrink(p.snap.Tick)
	}
}

// gapOrder returns the order of the Rice code for gaps of so many slots in all before so many entries.
func gapOrder(gaps, entries int) uint {
	return min(uint(bits.Len64(uint64(gaps)*7/10/uint64(entries))), 1<<wire.GapOrderBits-1)
}

// start opens a packet.
func (k *packetWriter) start() {
	p := k.peer
	s := p.snap
	k.header = wire.StateHeader{Sequence: p.acked.Log.Next, Tick: uint32(s.Tick), Long: !p.acked.Near(), Complete: p.acked.Join.Complete}
	k.body = k.headSize(k.header.Long)
	k.w.Reset(k.buf[k.body:])
	k.w.WriteBits(uint64(k.Order), wire.GapOrderBits)
	k.Context = wire.Context{Names: delta.NamesAt(s.Tick)}
	k.Names.Write(&k.w, p.acked.Front())
	k.sent = p.acked.Log.Begin(s.Tick)
	k.open, k.work = true, 0
}

// headBits is more than what stands before the run of an update.
const headBits = 200

// put appends an entry with a run to a packet, if need be to a new one. It returns
// errFull if no more packets may be sent and errTooLarge if the entry is larger than a
// packet.
func (k *packetWriter) put(slot int, r *encode.CachedEntry) error {
	r.Copies++
	bits := k.peer.Worker.Bytes(r)
	if k.open && r.Kind != wire.EntryFull && k.w.Remaining() >= int(r.Bits)+headBits && k.bears(int(r.Work), int(r.Bits)) {
		k.noteGap(slot - k.Next)
		k.entries++
		k.update(slot, r, bits)
		k.work += int(r.Work)
		k.record(slot, baseline.RecordState)
		return nil
	}
	err := k.add(slot, baseline.RecordState, int(r.Work), func() {
		if r.Kind == wire.EntryFull {
			k.head(slot, wire.EntryFull)
			k.fullHead(slot)
			k.w.WriteRun(bits, int(r.Bits))
		} else {
			k.update(slot, r, bits)
		}
	})
	if err != nil {
		r.Copies--
	}
	return err
}

// bears reports whether the open packet may have entries of so much work more, which take so many
// bits at least.
func (k *packetWriter) bears(work, bits int) bool {
	return k.peer.opts.FreeWork.Allows(k.work+work, k.w.Len()+bits)
}

// noteGap counts the gap before an entry that is about to be written.
func (k *packetWriter) noteGap(gap int) {
	if k.Next > 0 {
		k.gaps += gap
	}
}

// update writes an entry against baselines.
func (k *packetWriter) update(slot int, r *encode.CachedEntry, bits []byte) {
	k.gap(slot)
	wire.WriteUpdate(&k.w, &k.Names, r.Baselines, r.Kind == wire.EntrySetChange)
	k.w.WriteRun(bits, int(r.Bits))
}

// record notes that the packet carries something of a slot.
func (k *packetWriter) record(slot int, kind baseline.RecordKind) {
	k.peer.acked.Log.Add(k.sent, slot>>6, 1<<(slot&63), kind)
}

// despawn appends that a slot is empty. It returns errFull if no more packets may be
// sent.
func (k *packetWriter) despawn(slot int) error {
	if k.Compact != nil {
		return k.addCompact(slot, baseline.RecordDespawn, &compact.Entry{Kind: wire.EntryDespawn})
	}
	return k.add(slot, baseline.RecordDespawn, 0, func() { k.head(slot, wire.EntryDespawn) })
}

// head writes what an entry begins with that is no update.
func (k *packetWriter) head(slot int, kind wire.EntryKind) {
	k.gap(slot)
	k.w.WriteUnary(uint(kind), uint(wire.LastEntryKind))
}

// gap writes what leads to a slot.
func (k *packetWriter) gap(slot int) {
	k.w.WriteRice(uint64(slot-k.Next), k.Order)
	k.Next = slot + 1
}

// fullHead writes the generation and component set of an entity without baseline.
func (k *packetWriter) fullHead(slot int) {
	info := k.peer.snap.Slots.Info[slot]
	k.w.WriteExpGolomb(uint64(info.Generation), wire.GenerationOrder)
	delta.WriteSet(&k.w, &info.Set, &k.Set)
	k.Set = info.Set
}

// add lets write append an entry of so much work; if it does not fit, it is undone and written to
// a new packet.
func (k *packetWriter) add(slot int, kind baseline.RecordKind, work int, write func()) error {
	for {
		if !k.open {
			if k.peer.blocked() {
				return errFull
			}
			k.start()
		}
		mark, before := k.w.Mark(), k.Context
		write()
		if k.w.Err() == nil && (k.bears(work, 0) || k.sent.Count == 0) {
			k.work += work
			if before.Next > 0 {
				k.gaps += k.Next - 1 - before.Next
			}
			k.entries++
			k.record(slot, kind)
			return nil
		}
		k.w.Rollback(mark)
		k.Context = before
		if k.sent.Count == 0 {
			k.open = false
			k.sent.Status = ackstate.SentUnused
			return errTooLarge
		}
		k.finish()
	}
}

// finish sends the open packet, if there is one.
func (k *packetWriter) finish() {
	if !k.open {
		return
	}
	if k.Compact != nil {
		k.finishCompact()
		return
	}
	k.open, k.sent = false, nil // which would keep a ring alive that the log gave back
	n := k.w.Len()
	packet := k.buf[:k.body+len(k.w.Bytes())]
	k.key(packet, k.header, n)
	k.peer.put(packet, k.commit(len(packet), n))
}

// headSize returns how many bytes stand before the body.
func (k *packetWriter) headSize(long bool) int {
	h := wire.StateHeader{Long: long}
	return k.peer.key.Size() + h.Size()
}

// key completes a packet whose body has n bits.
func (k *packetWriter) key(packet []byte, h wire.StateHeader, n int) {
	k.putHeader(packet, h, n)
	k.peer.key.Write(packet, h.Sequence, h.Tick)
}

// putHeader is seal without the checksum.
func (k *packetWriter) putHeader(packet []byte, h wire.StateHeader, n int) {
	at := k.peer.key.Size()
	h.Put(packet[at:])
	packet[at] |= byte(-n&7) << wire.PadShift
}

// commit counts a packet whose body has n bits, and returns its sequence.
func (k *packetWriter) commit(bytes, n int) uint32 {
	p := k.peer
	p.stats.Packets++
	p.stats.Bytes += uint64(bytes)
	p.stats.EntityBits += uint64(n)
	p.Budget.spend(bytes, p.opts.TickRate)
	p.acked.Log.At(p.acked.Log.Next).Bytes = uint16(bytes)
	return p.acked.Log.Commit()
}

// putTogether sends entries in a packet of their own, in the order of their slots. If they
// don't fit, nothing is sent. No packet may be open.
func (k *packetWriter) putTogether(entries []batchEntry) (fits, blocked bool) {
	p := k.peer
	if len(entries) == 0 {
		return true, false
	}
	if p.blocked() {
		return false, true
	}
	if k.Compact != nil {
		return k.compactTogether(entries), false
	}
	slices.SortFunc(entries, func(a, b batchEntry) int { return cmp.Compare(a.slot, b.slot) })
	n := len(entries)
	gaps := int(entries[n-1].slot) + 1 - n
	k.Order = gapOrder(gaps, n)
	k.start()
	for i := range entries {
		e := &entries[i]
		slot := int(e.slot)
		if e.kind == batchEnd {
			k.head(slot, wire.EntryDespawn)
			continue
		}
		r := &p.Worker.Entries[e.entry]
		k.work += int(r.Work)
		if r.Kind == wire.EntryFull {
			k.head(slot, wire.EntryFull)
			k.fullHead(slot)
			k.w.WriteRun(p.Worker.Bytes(r), int(r.Bits))
		} else {
			k.update(slot, r, p.Worker.Bytes(r))
		}
	}
	if k.w.Err() != nil || n > 1 && !k.bears(0, 0) {
		k.open, k.sent.Status = false, ackstate.SentUnused
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
func (k *packetWriter) book(e *batchEntry) {
	p, slot := k.peer, int(e.slot)
	b, bit := slot>>6, uint64(1)<<(slot&63)
	kind := baseline.RecordDespawn
	if e.kind == batchState {
		kind = baseline.RecordState
		if k.Compact == nil {
			p.Worker.Entries[e.entry].Copies++
		}
	}
	k.record(slot, kind)
	*e.count++
	p.acked.Dirty[b] &^= bit
	p.acked.Acks.Shown[b] |= bit
	if !e.dirty { // it is on its way already
		p.stats.GroupResends++
	}
}
