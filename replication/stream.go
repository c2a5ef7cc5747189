package replication

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A stream is entries of a tick, in the order of slots, all encoded against the same two baselines, and put into
// packets. It is made for peers that hold these baselines, and has what any of them needs against them; each copies
// from it what it needs itself. A stream that is whole has all that changed in the tick: who needs just that gets its
// packets, under headers of its own.
//
// The bits of an entry depend on the world and the tick alone, so nobody can tell whether there was a stream.
type stream struct {
	basePair // its baselines
	whole    bool
	order    uint       // of the Rice code of slot gaps
	wanted   bitset.Set // slots that it is to have
	asked    bitset.Set // by block: it may have some; slots, plain and wanted are empty elsewhere
	places   []int32    // by block of slots: index in blocks, if it is there

	packets []streamPacket
	blocks  []streamBlock
	entries []streamEntry
	records []sentRecord // of the blocks
	costs   []delta.Cost // of the blocks, by field and symbols of components
	ages    []streamAge  // of the blocks
	slots   bitset.Set   // that are in the stream
	plain   bitset.Set   // of these, those whose entries can be copied: they have its baselines
	lacking bitset.Set   // by block: something that changed in it is not in the stream, if that is whole

	// The packet that is being filled.
	open    bool
	w       bitbuf.Writer
	context context
	work    int    // of its entries
	buf     []byte // bodies of packets
	used    int
}

// A streamPacket is a packet without its header.
type streamPacket struct {
	first, end int // its blocks
	body       []byte
	bits       int // of the body
	entries    int
	copies     uint32 // peers that got it

	// What the checksums of the copies have in common, from the second one on.
	summed bool
	sum    uint32
	shift  wire.CRCShift
}

// A streamBlock is the entries of a block of slots.
type streamBlock struct {
	packet  int
	first   int // its first entry
	entries int
	copies  uint32 // of entries, in packets of peers

	firstAge, lastAge   int
	firstCost, lastCost int
}

// A streamEntry is where an entry stands in the body of its packet, without the gap before it, its work, see work.go, and that
// of all entries of its block up to it.
type streamEntry struct{ from, end, work, sum int32 }

// A streamAge counts entries by the age of their baselines.
type streamAge struct{ age, entries uint8 }

const (
	// maxStreamBytes bounds the bodies of a stream's packets.
	maxStreamBytes = 1 << 20
	// maxStreams bounds the streams of a tick.
	maxStreams = 64
	// streamShare is the share of what changed that a peer must need to have its gaps coded as in a stream.
	streamShare = 32
)

// beginStreams makes the streams that the peers need.
func (c *worker) beginStreams(peers []*sender) {
	shares := !c.snap.opts.noStreams
	for _, p := range peers {
		if p.stream = -1; p.relays && c.snap.slots.changes == 0 {
			continue // it is sent nothing
		}
		c.setOrder(p)
		if shares && p.relays {
			p.stream = c.stream(p.acked.newest(), true, p.packet.order)
		}
	}
	for _, p := range peers {
		if shares && !p.relays && p.planned == sendAll && !p.compact {
			c.want(p)
		}
	}
	c.fill()
}

// setOrder sets the order of the peer's gaps to that of a stream, if the peer needs much of what changed. It is the
// same whether there is a stream or not.
func (c *worker) setOrder(p *sender) {
	switch s := &c.snap.slots; {
	case p.relays:
		p.packet.order = p.orderOf(s.changes)
	case p.planned != sendAll || p.compact || p.acked.interval > maxSpan:
	case p.sight.view.visible == nil: // else it would tell of what is hidden
		if news := c.newsOf(p.acked.interval); p.acked.needs() > news/streamShare {
			p.packet.order = p.orderOf(news)
		}
	}
}

// want adds what a peer needs to the streams that are to have it.
func (c *worker) want(p *sender) {
	s, t := &c.snap.slots, &p.acked.acks
	var whole, part [nearBases]int32
	for i, of := range p.acked.pairs {
		whole[i], part[i] = c.find(of, true), -1
	}
	for w, owed := range t.owed {
		for b := range bitset.Slots(w, owed) {
			d := p.sight.view.sees(b, p.acked.due[b]&s.alive[b]) &^ (t.none[b] | t.large[b] | s.inGroups(b))
			for i := 0; d != 0 && i < len(p.acked.pairs); i++ {
				held := d &^ p.acked.lackOf(p.acked.pairs[i], b)
				d &^= held
				if whole[i] >= 0 {
					held &^= s.news[b] // it has these
				}
				if held == 0 || !c.snap.predicts(p.acked.pairs[i]) {
					continue
				}
				if part[i] < 0 {
					part[i] = c.stream(p.acked.pairs[i], false, p.packet.order)
				}
				if part[i] >= 0 {
					c.streams[part[i]].want(b, held)
				}
			}
		}
	}
	if len(p.acked.pairs) > 0 {
		if p.stream = whole[0]; p.stream < 0 {
			p.stream = part[0]
		}
	}
}

// maxSpan is the longest send interval for which it is known what changed meanwhile.
const maxSpan = 8

// newsOf returns how many slots changed in the last ticks, the present one among them.
func (c *runCache) newsOf(span delta.Tick) int {
	if span == 1 {
		return c.snap.slots.changes
	}
	return c.changedSince(c.tick - span)
}

// needs returns how many entries the peer is to be sent.
func (p *tracker) needs() (n int) {
	for w, owed := range p.acks.owed {
		for b := range bitset.Slots(w, owed) {
			n += bits.OnesCount64(p.due[b])
		}
	}
	return n
}

// orderOf returns the order of the Rice code of gaps between so many slots.
func (p *sender) orderOf(news int) uint {
	return gapOrder(p.snap.slots.len()-news, max(news, 1))
}

// takeAll sends the peer all packets of its stream, if that is what it needs and it can have them. If
// nothing changed it needs none.
func (p *sender) takeAll() bool {
	if p.snap.slots.changes == 0 {
		return true
	}
	if p.stream < 0 {
		return false
	}
	st := &p.runs.streams[p.stream]
	if !p.canTakeAll(st) {
		return false
	}
	first := p.acked.log.next
	for i := range st.packets {
		p.packet.relay(st, &st.packets[i])
	}
	p.putCopies(st.packets, first)
	return true
}

// canTakeAll reports whether the stream is all that the peer needs, and it can have it.
func (p *sender) canTakeAll(st *stream) bool {
	if p.acked.log.next+uint32(len(st.packets))-p.acked.log.oldest > maxInFlight ||
		p.budget.rate > 0 && p.budget.tokens < int64(len(st.packets)*p.opts.mtu*p.opts.tickRate) {
		return false
	}
	for _, blocks := range st.lacking {
		if blocks != 0 {
			return false
		}
	}
	return true
}

// relay books a packet of the peer's stream, which putCopies then sends. No packet may be open.
func (k *packetWriter) relay(st *stream, from *streamPacket) {
	p := k.peer
	from.copies++
	p.stats.Updates += uint64(from.entries)
	sent := p.acked.log.begin(p.snap.tick)
	sent.stream = true
	p.acked.log.addAll(sent, st.records[from.first:from.end])
	k.commit(k.headSize(false)+len(from.body), from.bits)
}

// copyOf returns a packet of a stream, with a header of the peer's. It is valid until the
// next packet is begun.
func (k *packetWriter) copyOf(from *streamPacket, sequence uint32) []byte {
	packet := k.buf[:k.headSize(false)+copy(k.buf[k.headSize(false):], from.body)]
	seal, h := k.peer.seal, wire.StateHeader{Sequence: sequence, Tick: uint32(k.peer.snap.tick), Complete: k.peer.acked.join.complete}
	if seal.Off || from.copies == 1 {
		k.seal(packet, h, from.bits)
		return packet
	}
	if !from.summed {
		from.summed, from.sum = true, crc32.Checksum(from.body, wire.Castagnoli)
		from.shift.Set(len(from.body))
	}
	k.putHeader(packet, h, from.bits)
	begin := seal.Sum(packet[wire.ChecksumSize:len(packet)-len(from.body)], h.Sequence, h.Tick)
	binary.LittleEndian.PutUint32(packet, from.sum^from.shift.Of(begin))
	return packet
}

// copies returns those of some slots of a block whose entries can be copied from the stream: the
// peer holds their baselines.
func (p *sender) copies(st *stream, b int, d uint64) uint64 {
	if d &= st.plain[b]; d == 0 {
		return 0
	}
	return d &^ (p.acked.lackOf(st.basePair, b) | p.acked.acks.large[b])
}

// find returns the block of a slot that is in the stream, and the slot's entry in it and those after it.
func (st *stream) find(slot int) (*streamBlock, []streamEntry) {
	b := slot >> 6
	x := &st.blocks[st.places[b]]
	before := bits.OnesCount64(st.slots[b] & (1<<(slot&63) - 1))
	return x, st.entries[x.first+before : x.first+x.entries]
}

// ready returns the stream that has a slot's entry against baselines, or nil if there is none.
func (c *runCache) ready(slot int, of *class) *stream {
	if !of.Two {
		return nil
	}
	for i := range c.streams {
		if st := &c.streams[i]; st.base == of.A1 && st.second == of.A2 && st.plain.Has(slot) {
			return st
		}
	}
	return nil
}

// putReady appends a slot's entry that a stream has, to the open packet, if it is sure to fit.
func (k *packetWriter) putReady(st *stream, slot int, of *class) bool {
	x, entries := st.find(slot)
	e := &entries[0]
	n := int(e.end-e.from) - 1 // without what tells that it is against those in front
	if !k.open || k.w.Remaining() < n+headBits || !k.bears(int(e.work), n) {
		return false
	}
	k.noteGap(slot - k.next)
	k.entries++
	k.gap(slot)
	wire.WriteUpdate(&k.w, &k.names, of.Baselines, false)
	k.w.WriteSpan(st.packets[x.packet].body, int(e.from)+1, n)
	k.work += int(e.work)
	k.record(slot, recordState)
	x.copies++
	return true
}

// copyBlocks appends all entries of blocks of the peer's stream to the open packet: of block b, of which d is due, and of as many
// after it as stand together in the stream, fit, and are just what is due. It returns the last of these blocks, or -1.
func (p *sender) copyBlocks(of bitset.Set, b int, d uint64) (last int) {
	k := &p.packet
	if p.stream < 0 || !k.open {
		return -1
	}
	st := &p.runs.streams[p.stream]
	if d != st.slots[b] || k.order != st.order {
		return -1
	}
	first := int(st.places[b])
	begin, slot := st.entries[st.blocks[first].first].from, b<<6+bits.TrailingZeros64(d)
	room := k.w.Remaining() - int(bitbuf.RiceLen(uint64(slot-k.next), k.order))
	last, end, n, work := -1, begin, 0, 0
	next := first
	for ; next < len(st.blocks) && st.blocks[next].packet == st.blocks[first].packet; next++ {
		x, at := &st.blocks[next], int(st.records[next].record().block)
		if next > first {
			if at != p.acked.acks.owed.Next(last+1) {
				break // something else may be due before
			}
			d = of[at] & p.acked.due[at] &^ p.snap.slots.inGroups(at)
		}
		e := &st.entries[x.first+x.entries-1]
		if d != st.slots[at] || p.sight.view.sees(at, p.copies(st, at, d)) != d || int(e.end-begin) > room || !k.bears(work+int(e.sum), 0) {
			break
		}
		last, end, n, work = at, e.end, n+x.entries, work+int(e.sum)
	}
	if n == 0 {
		return -1
	}
	k.copySpan(st.packets[st.blocks[first].packet].body, int(begin), int(end), slot, last<<6+bits.Len64(st.slots[last]), n, work)
	p.acked.log.addAll(k.sent, st.records[first:next])
	for i := range st.records[first:next] {
		r := st.records[first+i].record()
		p.acked.due[r.block] &^= r.mask
		st.blocks[first+i].copies += uint32(st.blocks[first+i].entries)
	}
	p.stats.Updates += uint64(n)
	return last
}

// copySpan appends n entries that stand together in a packet of a stream: the bits from one place to another, of slots of which the
// first is given and the one after the last.
func (k *packetWriter) copySpan(body []byte, from, to, first, next, n, work int) {
	k.noteGap(first - k.next)
	k.gap(first)
	k.w.WriteSpan(body, from, to-from)
	k.next = next
	k.gaps += next - first - n
	k.entries += n
	k.work += work
}

// putStretch appends entries of a block from the stream, those of some slots from the first one on that
// follow one another in the stream, and as many as fit. It returns the slots that it appended; none if
// not even the first one fits, into an empty packet if need be, or no packet may be sent.
func (k *packetWriter) putStretch(st *stream, b int, slots, all uint64) (put uint64) {
	first := bits.TrailingZeros64(slots)
	if between := (all | st.slots[b]) >> first &^ (slots >> first); between != 0 {
		slots &= 1<<(first+bits.TrailingZeros64(between)) - 1 // up to the first that is not to be copied
	}
	if k.order != st.order { // other gaps
		slots = 1 << first
	}
	n := bits.OnesCount64(slots)
	x, entries := st.find(b<<6 + first)
	entries = entries[:n]
	from, gap := entries[0].from, 0
	for {
		if !k.open {
			if k.peer.blocked() {
				return 0
			}
			k.start()
		}
		gap = (b<<6 + first) - k.next
		room := k.w.Remaining() - int(bitbuf.RiceLen(uint64(gap), k.order))
		for n > 0 && int(entries[n-1].end-from) > room {
			n--
		}
		if n > 0 {
			break
		}
		if k.sent.count == 0 {
			return 0
		}
		k.finish()
		n = len(entries)
	}
	before := entries[0].sum - entries[0].work
	if !k.bears(int(entries[n-1].sum-before), 0) { // then there may be too much work: as if they came one by one
		for i := range entries[:n] {
			if !k.bears(int(entries[i].sum-before), int(entries[i].end-from)) {
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
	k.copySpan(st.packets[x.packet].body, int(from), int(entries[n-1].end), b<<6+first, b<<6+last+1, n, int(entries[n-1].sum-before))
	k.peer.acked.log.add(k.sent, b, slots, recordState)
	x.copies += uint32(n)
	return slots
}
