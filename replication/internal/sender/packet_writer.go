package sender

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
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
		k.buf = make([]byte, p.Opts.MTU)
	}
	if k.entries > 0 {
		k.Order = gapOrder(k.gaps, k.entries)
	}
	k.gaps, k.entries = 0, 0
	if k.Compact != nil {
		k.Compact.Kept.Shrink(p.Snap.Tick)
	}
}

// gapOrder returns the order of the Rice code for gaps of so many slots in all before so many entries.
func gapOrder(gaps, entries int) uint {
	return min(uint(bits.Len64(uint64(gaps)*7/10/uint64(entries))), 1<<wire.GapOrderBits-1)
}

// start opens a packet.
func (k *packetWriter) start() {
	p := k.peer
	s := p.Snap
	k.header = wire.StateHeader{Sequence: p.Acked.Log.Next, Tick: uint32(s.Tick), Long: !p.Acked.Near(), Complete: p.Acked.Join.Complete}
	k.body = k.headSize(k.header.Long)
	k.w.Reset(k.buf[k.body:])
	k.w.WriteBits(uint64(k.Order), wire.GapOrderBits)
	k.Context = wire.Context{Names: delta.NamesAt(s.Tick)}
	k.Names.Write(&k.w, p.Acked.Front())
	k.sent = p.Acked.Log.Begin(s.Tick)
	k.open, k.work = true, 0
}

// headBits is more than what stands before the run of an update.
const headBits = 200

// put appends an entry with a run to a packet, if need be to a new one. It returns
// errFull if no more packets may be sent and errTooLarge if the entry is larger than a
// packet.
func (k *packetWriter) put(slot int, r *encode.Run) error {
	r.Copies++
	bits := k.peer.Runs.Bytes(r)
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
			k.wholeHead(slot)
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
	return k.peer.Opts.FreeWork.Allows(k.work+work, k.w.Len()+bits)
}

// noteGap counts the gap before an entry that is about to be written.
func (k *packetWriter) noteGap(gap int) {
	if k.Next > 0 {
		k.gaps += gap
	}
}

// update writes an entry against baselines.
func (k *packetWriter) update(slot int, r *encode.Run, bits []byte) {
	k.gap(slot)
	wire.WriteUpdate(&k.w, &k.Names, r.Baselines, r.Kind == wire.EntrySetChange)
	k.w.WriteRun(bits, int(r.Bits))
}

// blocked reports whether no more packets may be sent now.
func (p *Sender) blocked() bool { return p.Acked.Log.Full() || p.Budget.short() }

// record notes that the packet carries something of a slot.
func (k *packetWriter) record(slot int, kind baseline.RecordKind) {
	k.peer.Acked.Log.Add(k.sent, slot>>6, 1<<(slot&63), kind)
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

// wholeHead writes the generation and component set of an entity without baseline.
func (k *packetWriter) wholeHead(slot int) {
	info := k.peer.Snap.Slots.Info[slot]
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
	k.seal(packet, k.header, n)
	k.peer.put(packet, k.commit(len(packet), n))
}

// headSize returns how many bytes stand before the body.
func (k *packetWriter) headSize(long bool) int {
	h := wire.StateHeader{Long: long}
	return k.peer.Seal.Size() + h.Size()
}

// seal completes a packet whose body has n bits.
func (k *packetWriter) seal(packet []byte, h wire.StateHeader, n int) {
	k.putHeader(packet, h, n)
	k.peer.Seal.Write(packet, h.Sequence, h.Tick)
}

// putHeader is seal without the checksum.
func (k *packetWriter) putHeader(packet []byte, h wire.StateHeader, n int) {
	at := k.peer.Seal.Size()
	h.Put(packet[at:])
	packet[at] |= byte(-n&7) << wire.PadShift
}

// commit counts a packet whose body has n bits, and returns its sequence.
func (k *packetWriter) commit(bytes, n int) uint32 {
	p := k.peer
	p.Stats.Packets++
	p.Stats.Bytes += uint64(bytes)
	p.Stats.EntityBits += uint64(n)
	p.Budget.spend(bytes, p.Opts.TickRate)
	p.Acked.Log.At(p.Acked.Log.Next).Bytes = uint16(bytes)
	return p.Acked.Log.Commit()
}

// startCompact opens a packet whose first entry is of a slot.
func (k *packetWriter) startCompact(slot int, part bool) {
	p, x := k.peer, k.Compact
	k.start()
	x.Room = len(k.buf) - k.body
	x.E = delta.NewRangeEncoder(k.buf[k.body:])
	x.State = x.Kept.Take()
	var from *compact.KeptModel
	if !part { // a part is to take as much in any packet
		from = x.Kept.Choose(slot)
	}
	if from != nil && p.Acked.Log.Next-from.Sequence >= compact.MaxModelAge {
		from = nil
	}
	if x.Age = 0; from == nil {
		x.State.CopyFrom(nil)
		x.Walk.Begin(nil, p.Snap.Tick)
	} else {
		x.State.CopyFrom(from.State)
		x.Walk.Begin(from.State, p.Snap.Tick)
		x.Age = p.Acked.Log.Next - from.Sequence
	}
	x.E.PutExpGolomb(uint64(x.Age>>compact.AgeLow), compact.ModelRef)
	x.State.Tick = p.Snap.Tick
	x.First, x.Count, x.Work = slot, 0, 0
	x.Keep = !part && x.Kept.Room()
	clear(x.Costs)
}

// dropCompact gives up the open packet.
func (k *packetWriter) dropCompact() {
	x := k.Compact
	x.Kept.Give(x.State)
	x.State = nil
	k.open, k.sent.Status = false, ackstate.SentUnused
}

// finishCompact sends the open packet.
func (k *packetWriter) finishCompact() {
	p, x := k.peer, k.Compact
	c := p.Runs.CompactCoder()
	c.Coder.Begin(&x.State.Model)
	x.PutEnd(c.Coder)
	body, err := x.E.Finish()
	if err != nil {
		panic("replication: " + err.Error()) // there was room
	}
	for i, cost := range x.Costs {
		c.Costs[i] += uint64(cost)
	}
	k.open, k.sent = false, nil
	packet := k.buf[:k.body+len(body)]
	seal := p.Seal
	k.header.Put(packet[seal.Size():])
	packet[seal.Size()] |= byte(x.Age&(1<<compact.AgeLow-1)) << (wire.PadShift + 1)
	if x.Keep {
		packet[seal.Size()] |= wire.KeptBit
		x.Kept.Keep(k.header.Sequence, uint32(x.First), uint32(x.Walk.Next-1), x.State)
	} else {
		x.Kept.Give(x.State)
	}
	x.State = nil
	seal.Write(packet, k.header.Sequence, k.header.Tick)
	p.put(packet, k.commit(len(packet), 8*len(body)))
}

// putCompact appends the state of a slot, to a new packet if need be, and returns the counter
// of its kind. The error is that of packetWriter.put.
func (k *packetWriter) putCompact(slot int, c *baseline.Class) (count *uint64, err error) {
	p := k.peer
	entry := p.prepareCompact(slot, c)
	whole := entry.Kind == wire.EntryFull
	if err = k.addCompact(slot, baseline.RecordState, &entry); err == nil {
		p.Runs.CountCompact(&entry)
	}
	return p.counterOf(&entry, whole), err
}

// addCompact appends an entry, to a new packet if need be.
func (k *packetWriter) addCompact(slot int, kind baseline.RecordKind, entry *compact.Entry) error {
	for {
		if !k.open {
			if k.peer.blocked() {
				return errFull
			}
			k.startCompact(slot, entry.Kind == wire.EntryPart)
		}
		if k.tryCompact(slot, entry) {
			k.record(slot, kind)
			return nil
		}
		if k.Compact.Count == 0 {
			k.dropCompact()
			return errTooLarge
		}
		k.finish()
	}
}

// tryCompact appends an entry to the open packet, or nothing if it does not fit.
func (k *packetWriter) tryCompact(slot int, entry *compact.Entry) bool {
	x, c := k.Compact, k.peer.Runs.CompactCoder()
	if x.Count == compact.MaxCompact || x.Count > 0 && !k.peer.Opts.FreeWork.Allows(x.Work+entry.Work, 8*(x.E.Len()-compact.EndBytes)) {
		return false
	}
	c.Coder.Begin(&x.State.Model)
	safe := x.E.Len()+compact.EndBytes+(x.Worst(c, slot, entry)+7)/8 < x.Room
	var e delta.RangeEncoder
	var walk compact.Walk
	listed := len(x.State.Slots)
	if !safe || entry.Leaps {
		e, walk, c.Mark = x.E, x.Walk, x.State.Model
	}
	back := func() {
		x.E, x.Walk, x.State.Model = e, walk, c.Mark
		x.State.Slots = x.State.Slots[:listed]
		c.Coder.Costs = c.Coder.Costs[:0]
	}
	x.Put(c, slot, entry)
	if entry.Leaps && k.peer.Runs.Jumped(slot, c.RowBits()) {
		back()
		c.ForgetPast(k.peer.Snap, slot, entry)
		x.Put(c, slot, entry)
	}
	if !safe && x.E.Len()+compact.EndBytes > x.Room {
		back()
		return false
	}
	for _, cost := range c.Coder.Costs {
		x.Costs[cost.Field] += cost.Bits
	}
	c.Coder.Costs = c.Coder.Costs[:0]
	x.Count++
	x.Work += entry.Work
	return true
}

// compactTogether is putTogether.
func (k *packetWriter) compactTogether(entries []batchEntry) bool {
	p := k.peer
	slices.SortFunc(entries, func(a, b batchEntry) int { return cmp.Compare(a.slot, b.slot) })
	k.startCompact(int(entries[0].slot), false)
	ages, copied, made := p.Runs.Ages, p.Runs.Copied, p.Runs.Made
	for i := range entries {
		slot := int(entries[i].slot)
		entry := compact.Entry{Kind: wire.EntryDespawn}
		if entries[i].kind == batchState {
			entry = p.prepareCompact(slot, p.Acked.ClassOfSlot(slot))
		}
		whole := entry.Kind == wire.EntryFull
		if !k.tryCompact(slot, &entry) {
			k.dropCompact()
			p.Runs.Ages, p.Runs.Copied, p.Runs.Made = ages, copied, made
			return false
		}
		if entry.Kind != wire.EntryDespawn {
			p.Runs.CountCompact(&entry)
			entries[i].count = p.counterOf(&entry, whole)
		}
	}
	bits := 0
	for i := range entries {
		bits -= int(entries[i].bits)
		k.book(&entries[i])
	}
	bits += 8 * k.Compact.E.Len()
	n := len(entries)
	k.heads = max(bits/n+2, k.heads-1)
	k.finish()
	return true
}

// relay books a packet of the peer's stream, which putCopies then sends. No packet may be open.
func (k *packetWriter) relay(st *encode.Stream, from *encode.StreamPacket) {
	p := k.peer
	from.Copies++
	p.Stats.Updates += uint64(from.Entries)
	sent := p.Acked.Log.Begin(p.Snap.Tick)
	sent.Stream = true
	p.Acked.Log.AddAll(sent, st.Records[from.First:from.End])
	k.commit(k.headSize(false)+len(from.Body), from.Bits)
}

// copyOf returns a packet of a stream, with a header of the peer's. It is valid until the
// next packet is begun.
func (k *packetWriter) copyOf(from *encode.StreamPacket, sequence uint32) []byte {
	packet := k.buf[:k.headSize(false)+copy(k.buf[k.headSize(false):], from.Body)]
	seal, h := k.peer.Seal, wire.StateHeader{Sequence: sequence, Tick: uint32(k.peer.Snap.Tick), Complete: k.peer.Acked.Join.Complete}
	if seal.Off || from.Copies == 1 {
		k.seal(packet, h, from.Bits)
		return packet
	}
	if !from.Summed {
		from.Summed, from.Sum = true, crc32.Checksum(from.Body, wire.Castagnoli)
		from.Shift.Set(len(from.Body))
	}
	k.putHeader(packet, h, from.Bits)
	begin := seal.Sum(packet[wire.ChecksumSize:len(packet)-len(from.Body)], h.Sequence, h.Tick)
	binary.LittleEndian.PutUint32(packet, from.Sum^from.Shift.Of(begin))
	return packet
}

// putReady appends a slot's entry that a stream has, to the open packet, if it is sure to fit.
func (k *packetWriter) putReady(st *encode.Stream, slot int, of *baseline.Class) bool {
	x, entries := st.Find(slot)
	e := &entries[0]
	n := int(e.End-e.From) - 1 // without what tells that it is against those in front
	if !k.open || k.w.Remaining() < n+headBits || !k.bears(int(e.Work), n) {
		return false
	}
	k.noteGap(slot - k.Next)
	k.entries++
	k.gap(slot)
	wire.WriteUpdate(&k.w, &k.Names, of.Baselines, false)
	k.w.WriteSpan(st.Packets[x.Packet].Body, int(e.From)+1, n)
	k.work += int(e.Work)
	k.record(slot, baseline.RecordState)
	x.Copies++
	return true
}

// copySpan appends n entries that stand together in a packet of a stream: the bits from one place to another, of slots of which the
// first is given and the one after the last.
func (k *packetWriter) copySpan(body []byte, from, to, first, next, n, work int) {
	k.noteGap(first - k.Next)
	k.gap(first)
	k.w.WriteSpan(body, from, to-from)
	k.Next = next
	k.gaps += next - first - n
	k.entries += n
	k.work += work
}

// putStretch appends entries of a block from the stream, those of some slots from the first one on that
// follow one another in the stream, and as many as fit. It returns the slots that it appended; none if
// not even the first one fits, into an empty packet if need be, or no packet may be sent.
func (k *packetWriter) putStretch(st *encode.Stream, b int, slots, all uint64) (put uint64) {
	first := bits.TrailingZeros64(slots)
	if between := (all | st.Slots[b]) >> first &^ (slots >> first); between != 0 {
		slots &= 1<<(first+bits.TrailingZeros64(between)) - 1 // up to the first that is not to be copied
	}
	if k.Order != st.Order { // other gaps
		slots = 1 << first
	}
	n := bits.OnesCount64(slots)
	x, entries := st.Find(b<<6 + first)
	entries = entries[:n]
	from, gap := entries[0].From, 0
	for {
		if !k.open {
			if k.peer.blocked() {
				return 0
			}
			k.start()
		}
		gap = (b<<6 + first) - k.Next
		room := k.w.Remaining() - int(bitbuf.RiceLen(uint64(gap), k.Order))
		for n > 0 && int(entries[n-1].End-from) > room {
			n--
		}
		if n > 0 {
			break
		}
		if k.sent.Count == 0 {
			return 0
		}
		k.finish()
		n = len(entries)
	}
	before := entries[0].Sum - entries[0].Work
	if !k.bears(int(entries[n-1].Sum-before), 0) { // then there may be too much work: as if they came one by one
		for i := range entries[:n] {
			if !k.bears(int(entries[i].Sum-before), int(entries[i].End-from)) {
				n = i
				break
			}
		}
		if n == 0 {
			return 0
		}
	}
	for bits.OnesCount64(slots) > n {
		slots &^= 1 << (63 - bits.LeadingZeros64(slots))
	}
	last := 63 - bits.LeadingZeros64(slots)
	k.copySpan(st.Packets[x.Packet].Body, int(from), int(entries[n-1].End), b<<6+first, b<<6+last+1, n, int(entries[n-1].Sum-before))
	k.peer.Acked.Log.Add(k.sent, b, slots, baseline.RecordState)
	x.Copies += uint32(n)
	return slots
}
