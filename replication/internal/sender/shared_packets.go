package sender

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// What is copied from what was encoded for several peers: whole packets under headers of their own, blocks, and spans of entries.

// orderOf returns the order of the Rice code of gaps between so many slots.
func (p *Sender) orderOf(changed int) uint {
	return gapOrder(p.snap.Slots.Len()-changed, max(changed, 1))
}

// takeAll sends the peer all packets of its stream, if that is what it needs and it can have them. If
// nothing changed it needs none.
func (p *Sender) takeAll() bool {
	if p.snap.Slots.Changes == 0 {
		return true
	}
	if p.packetSet < 0 {
		return false
	}
	set := &p.Worker.Sets.List[p.packetSet]
	if !p.canTakeAll(set) {
		return false
	}
	first := p.acked.Log.Next
	for i := range set.Packets {
		p.Packet.relay(set, &set.Packets[i])
	}
	p.putCopies(set.Packets, first)
	return true
}

// canTakeAll reports whether the stream is all that the peer needs, and it can have it.
func (p *Sender) canTakeAll(set *encode.PacketSet) bool {
	if p.acked.Log.Next+uint32(len(set.Packets))-p.acked.Log.Oldest > ackstate.MaxInFlight ||
		p.Budget.Rate > 0 && p.Budget.Tokens < int64(len(set.Packets)*p.opts.MTU*p.opts.TickRate) {
		return false
	}
	for _, blocks := range set.Lacking {
		if blocks != 0 {
			return false
		}
	}
	return true
}

// copies returns those of some slots of a block whose entries can be copied from the stream: the
// peer holds their baselines.
func (p *Sender) copies(set *encode.PacketSet, b int, d uint64) uint64 {
	if d &= set.Plain[b]; d == 0 {
		return 0
	}
	return d &^ (p.acked.LackOf(set.BasePair, b) | p.acked.Acks.Large[b])
}

// copyBlocks appends all entries of blocks of the peer's stream to the open packet: of block b, of which d is due, and of as many
// after it as stand together in the stream, fit, and are just what is due. It returns the last of these blocks, or -1.
func (p *Sender) copyBlocks(of bitset.Set, b int, d uint64) (last int) {
	k := &p.Packet
	if p.packetSet < 0 || !k.open {
		return -1
	}
	set := &p.Worker.Sets.List[p.packetSet]
	if d != set.Slots[b] || k.Order != set.Order {
		return -1
	}
	first := int(set.Places[b])
	begin, slot := set.Entries[set.Blocks[first].First].From, b<<6+bits.TrailingZeros64(d)
	room := k.w.Remaining() - int(bitbuf.RiceLen(uint64(slot-k.Next), k.Order))
	last, end, n, work := -1, begin, 0, 0
	next := first
	for ; next < len(set.Blocks) && set.Blocks[next].Packet == set.Blocks[first].Packet; next++ {
		x, at := &set.Blocks[next], int(set.Records[next].Record().Block)
		if next > first {
			if at != p.acked.Acks.DirtyBlocks.Next(last+1) {
				break // something else may be due before
			}
			d = of[at] & p.acked.Dirty[at] &^ p.snap.Slots.InGroups(at)
		}
		e := &set.Entries[x.First+x.Entries-1]
		if d != set.Slots[at] || p.sight.View.Sees(at, p.copies(set, at, d)) != d || int(e.End-begin) > room || !k.bears(work+int(e.Sum), 0) {
			break
		}
		last, end, n, work = at, e.End, n+x.Entries, work+int(e.Sum)
	}
	if n == 0 {
		return -1
	}
	k.copySpan(set.Packets[set.Blocks[first].Packet].Body, int(begin), int(end), slot, last<<6+bits.Len64(set.Slots[last]), n, work)
	p.acked.Log.AddAll(k.sent, set.Records[first:next])
	for i := range set.Records[first:next] {
		r := set.Records[first+i].Record()
		p.acked.Dirty[r.Block] &^= r.Mask
		set.Blocks[first+i].Copies += uint32(set.Blocks[first+i].Entries)
	}
	p.stats.Updates += uint64(n)
	return last
}

// relay books a packet of the peer's stream, which putCopies then sends. No packet may be open.
func (k *packetWriter) relay(set *encode.PacketSet, from *encode.SharedPacket) {
	p := k.peer
	from.Copies++
	p.stats.Updates += uint64(from.Entries)
	sent := p.acked.Log.Begin(p.snap.Tick)
	sent.Shared = true
	p.acked.Log.AddAll(sent, set.Records[from.First:from.End])
	k.commit(k.headSize(false)+len(from.Body), from.Bits)
}

// copyOf returns a packet of a stream, with a header of the peer's. It is valid until the
// next packet is begun.
func (k *packetWriter) copyOf(from *encode.SharedPacket, sequence uint32) []byte {
	packet := k.buf[:k.headSize(false)+copy(k.buf[k.headSize(false):], from.Body)]
	key, h := k.peer.key, wire.StateHeader{Sequence: sequence, Tick: uint32(k.peer.snap.Tick), Complete: k.peer.acked.Join.Complete}
	if key.Off || from.Copies == 1 {
		k.key(packet, h, from.Bits)
		return packet
	}
	if !from.Summed {
		from.Summed, from.Sum = true, crc32.Checksum(from.Body, wire.Castagnoli)
		from.Shift.Set(len(from.Body))
	}
	k.putHeader(packet, h, from.Bits)
	begin := key.Sum(packet[wire.ChecksumSize:len(packet)-len(from.Body)], h.Sequence, h.Tick)
	binary.LittleEndian.PutUint32(packet, from.Sum^from.Shift.Of(begin))
	return packet
}

// putReady appends a slot's entry that a stream has, to the open packet, if it is sure to fit.
func (k *packetWriter) putReady(set *encode.PacketSet, slot int, of *baseline.Class) bool {
	x, entries := set.Find(slot)
	e := &entries[0]
	n := int(e.End-e.From) - 1 // without what tells that it is against those in front
	if !k.open || k.w.Remaining() < n+headBits || !k.bears(int(e.Work), n) {
		return false
	}
	k.noteGap(slot - k.Next)
	k.entries++
	k.gap(slot)
	wire.WriteUpdate(&k.w, &k.Names, of.Baselines, false)
	k.w.WriteSpan(set.Packets[x.Packet].Body, int(e.From)+1, n)
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
func (k *packetWriter) putStretch(set *encode.PacketSet, b int, slots, all uint64) (put uint64) {
	first := bits.TrailingZeros64(slots)
	if between := (all | set.Slots[b]) >> first &^ (slots >> first); between != 0 {
		slots &= 1<<(first+bits.TrailingZeros64(between)) - 1 // up to the first that is not to be copied
	}
	if k.Order != set.Order { // other gaps
		slots = 1 << first
	}
	n := bits.OnesCount64(slots)
	x, entries := set.Find(b<<6 + first)
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
	k.copySpan(set.Packets[x.Packet].Body, int(from), int(entries[n-1].End), b<<6+first, b<<6+last+1, n, int(entries[n-1].Sum-before))
	k.peer.acked.Log.Add(k.sent, b, slots, baseline.RecordState)
	x.Copies += uint32(n)
	return slots
}
