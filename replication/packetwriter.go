package replication

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A packetWriter fills state packets for one peer, one after the other, with entries in
// the order of their slots.
type packetWriter struct {
	peer   *sender
	buf    []byte
	w      bitbuf.Writer
	open   bool
	header wire.StateHeader
	body   int // where the bits begin in buf
	sent   *sentPacket
	order  uint // of the Rice code of slot gaps
	work   int  // of its entries, see work.go
	context

	// The gaps of the tick before tell the order of the code. Those before the first
	// entry of a packet are of another size, and few.
	gaps, entries int

	compact *compactWriter // nil: the session is Packed

	heads int // bits of an entry beside its run, about, in packets of groups
}

// context is what entries of a packet share with those before them.
type context struct {
	next  int // the slot after the last one
	set   delta.Set
	names delta.Names
}

// begin starts a tick.
func (k *packetWriter) begin(p *sender) {
	k.peer = p
	if k.buf == nil {
		k.buf = make([]byte, p.opts.mtu)
	}
	if k.entries > 0 {
		k.order = gapOrder(k.gaps, k.entries)
	}
	k.gaps, k.entries = 0, 0
	if k.compact != nil {
		k.compact.kept.shrink(p.snap.tick)
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
	k.header = wire.StateHeader{Sequence: p.acked.log.next, Tick: uint32(s.tick), Long: !p.acked.near(), Complete: p.acked.join.complete}
	k.body = k.headSize(k.header.Long)
	k.w.Reset(k.buf[k.body:])
	k.w.WriteBits(uint64(k.order), wire.GapOrderBits)
	k.context = context{names: delta.NamesAt(s.tick)}
	k.names.Write(&k.w, p.acked.front())
	k.sent = p.acked.log.begin(s.tick)
	k.open, k.work = true, 0
}

// front returns the baselines that are in front of the list in the peer's packets.
func (p *tracker) front() delta.Baselines {
	switch base := p.base(); {
	case !p.snap.fresh(base) || base == p.snap.tick:
		return delta.Baselines{A1: p.snap.tick - 1}
	case p.interval > delta.MaxSpan:
		return delta.Baselines{A1: base}
	default:
		return delta.Baselines{A1: base, A2: p.second(base), Two: true}
	}
}

// near reports whether the peer got a packet near enough to complete short forms of the
// sequence and tick.
func (p *tracker) near() bool {
	return p.heard && p.snap.tick-p.recent < 1<<14 && p.log.next-p.recentSequence < 1<<14
}

// headBits is more than what stands before the run of an update.
const headBits = 200

// put appends an entry with a run to a packet, if need be to a new one. It returns
// errFull if no more packets may be sent and errTooLarge if the entry is larger than a
// packet.
func (k *packetWriter) put(slot int, r *run) error {
	r.copies++
	bits := k.peer.runs.bytes(r)
	if k.open && r.kind != wire.EntryFull && k.w.Remaining() >= int(r.bits)+headBits && k.bears(int(r.work), int(r.bits)) {
		k.noteGap(slot - k.next)
		k.entries++
		k.update(slot, r, bits)
		k.work += int(r.work)
		k.record(slot, recordState)
		return nil
	}
	err := k.add(slot, recordState, int(r.work), func() {
		if r.kind == wire.EntryFull {
			k.head(slot, wire.EntryFull)
			k.wholeHead(slot)
			k.w.WriteRun(bits, int(r.bits))
		} else {
			k.update(slot, r, bits)
		}
	})
	if err != nil {
		r.copies--
	}
	return err
}

// bears reports whether the open packet may have entries of so much work more, which take so many
// bits at least.
func (k *packetWriter) bears(work, bits int) bool {
	return k.peer.opts.freeWork.allows(k.work+work, k.w.Len()+bits)
}

// noteGap counts the gap before an entry that is about to be written.
func (k *packetWriter) noteGap(gap int) {
	if k.next > 0 {
		k.gaps += gap
	}
}

// update writes an entry against baselines.
func (k *packetWriter) update(slot int, r *run, bits []byte) {
	k.gap(slot)
	wire.WriteUpdate(&k.w, &k.names, r.baselines, r.kind == wire.EntrySetChange)
	k.w.WriteRun(bits, int(r.bits))
}

// blocked reports whether no more packets may be sent now.
func (p *sender) blocked() bool { return p.acked.log.full() || p.budget.short() }

// record notes that the packet carries something of a slot.
func (k *packetWriter) record(slot int, kind recordKind) {
	k.peer.acked.log.add(k.sent, slot>>6, 1<<(slot&63), kind)
}

// despawn appends that a slot is empty. It returns errFull if no more packets may be
// sent.
func (k *packetWriter) despawn(slot int) error {
	if k.compact != nil {
		return k.addCompact(slot, recordDespawn, &compactEntry{kind: wire.EntryDespawn})
	}
	return k.add(slot, recordDespawn, 0, func() { k.head(slot, wire.EntryDespawn) })
}

// head writes what an entry begins with that is no update.
func (k *packetWriter) head(slot int, kind wire.EntryKind) {
	k.gap(slot)
	k.w.WriteUnary(uint(kind), uint(wire.LastEntryKind))
}

// gap writes what leads to a slot.
func (k *packetWriter) gap(slot int) {
	k.w.WriteRice(uint64(slot-k.next), k.order)
	k.next = slot + 1
}

// wholeHead writes the generation and component set of an entity without baseline.
func (k *packetWriter) wholeHead(slot int) {
	info := k.peer.snap.slots.info[slot]
	k.w.WriteExpGolomb(uint64(info.generation), wire.GenerationOrder)
	delta.WriteSet(&k.w, &info.set, &k.set)
	k.set = info.set
}

// add lets write append an entry of so much work; if it does not fit, it is undone and written to
// a new packet.
func (k *packetWriter) add(slot int, kind recordKind, work int, write func()) error {
	for {
		if !k.open {
			if k.peer.blocked() {
				return errFull
			}
			k.start()
		}
		mark, before := k.w.Mark(), k.context
		write()
		if k.w.Err() == nil && (k.bears(work, 0) || k.sent.count == 0) {
			k.work += work
			if before.next > 0 {
				k.gaps += k.next - 1 - before.next
			}
			k.entries++
			k.record(slot, kind)
			return nil
		}
		k.w.Rollback(mark)
		k.context = before
		if k.sent.count == 0 {
			k.open = false
			k.sent.status = sentUnused
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
	if k.compact != nil {
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
	return k.peer.seal.Size() + h.Size()
}

// seal completes a packet whose body has n bits.
func (k *packetWriter) seal(packet []byte, h wire.StateHeader, n int) {
	k.putHeader(packet, h, n)
	k.peer.seal.Write(packet, h.Sequence, h.Tick)
}

// putHeader is seal without the checksum.
func (k *packetWriter) putHeader(packet []byte, h wire.StateHeader, n int) {
	at := k.peer.seal.Size()
	h.Put(packet[at:])
	packet[at] |= byte(-n&7) << wire.PadShift
}

// commit counts a packet whose body has n bits, and returns its sequence.
func (k *packetWriter) commit(bytes, n int) uint32 {
	p := k.peer
	p.stats.Packets++
	p.stats.Bytes += uint64(bytes)
	p.stats.EntityBits += uint64(n)
	p.budget.spend(bytes, p.opts.tickRate)
	p.acked.log.at(p.acked.log.next).bytes = uint16(bytes)
	return p.acked.log.commit()
}
