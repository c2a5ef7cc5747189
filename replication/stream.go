package replication

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
)

// A stream is what changed in a tick, in the order of slots, encoded against what peers hold that
// have acknowledged everything up to the same tick, and put into packets. A peer that needs all of
// it gets the packets under headers of its own. One that needs a part, because it lacks a
// baseline of something or needs something else besides, has packets of its own, into which the
// stretches that it needs are copied.
//
// A stream depends on the world and the tick alone. An entry that is copied has the bits that it
// would have if it were encoded for that peer, so nobody can tell whether there was a stream.
type stream struct {
	base, second delta.Tick // its baselines
	span         delta.Tick // for how many ticks back it has what changed
	order        uint       // of the Rice code of slot gaps
	wanted       int        // entries that peers want of it, about
	whole        bool       // a peer may be able to have all of it
	filled       bool

	packets []streamPacket
	blocks  []streamBlock
	entries []streamEntry
	records []sentRecord // of the blocks
	costs   []delta.Cost // of the blocks, by field and symbols of components
	ages    []streamAge  // of the blocks
	slots   bitset       // that are in the stream
	plain   bitset       // of these, those whose entries can be copied: they have its baselines
	lacking bitset       // by block: something that changed in it is not in the stream
	places  []int32      // by block of slots: index in blocks, if it is there

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
	shift  crcShift
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

// A streamEntry is where an entry stands in the body of its packet, without the gap before it, and its work, see work.go.
type streamEntry struct{ from, end, work int32 }

// A streamAge counts entries by the age of their baselines.
type streamAge struct{ age, entries uint8 }

const (
	// maxStreamBytes bounds the bodies of a stream's packets.
	maxStreamBytes = 1 << 20
	// streamShare is the share of what changed that a peer must want for a part in a stream.
	streamShare = 32
)

// beginStreams ends the streams of the last tick and makes those that the peers need.
func (c *runCache) beginStreams(peers []*Peer) {
	c.streams = c.streams[:0]
	for _, p := range peers {
		if p.stream = -1; p.rests {
			continue
		}
		if span := p.span(); span > 0 {
			news := c.newsOf(span)
			if want := p.wants(news); want > news/streamShare || c.server.opts.eager {
				order := gapOrder(c.server.slots.len()-news, max(news, 1))
				if p.view.visible == nil { // else it would tell of what is hidden
					p.packet.order = order
				}
				p.stream = int32(c.stream(p.base(), p.second(p.base()), span, order))
				st := &c.streams[p.stream]
				st.wanted += want
				st.whole = st.whole || p.relays
			}
		}
	}
	for i := range c.streams {
		st := &c.streams[i]
		st.filled = st.whole || st.wanted > c.newsOf(st.span) || c.server.opts.eager
	}
	c.fill()
}

// span returns for how many ticks back a stream for the peer has what changed, or 0 if it is to have none.
func (p *Peer) span() delta.Tick {
	o, base := &p.server.opts, p.base()
	if o.noStreams || p.session.compact || p.planned != sendAll || p.interval > maxSpan || !p.heard || !p.near() ||
		!p.server.fresh(p.second(base)) || !p.acks.recent(p.second(base)) || p.server.tick-base > delta.MaxExtrapolation*(base-p.second(base)) {
		return 0
	}
	return p.interval
}

// maxSpan is the longest send interval with which a peer gets streams.
const maxSpan = 8

// newsOf returns how many slots changed in the last ticks, the present one among them.
func (c *runCache) newsOf(span delta.Tick) int {
	if span == 1 {
		return c.server.slots.changes
	}
	return c.changedSince(c.tick - span).entities
}

// wants returns how many entries the peer is to be sent, of so much that changed.
func (p *Peer) wants(news int) (n int) {
	if p.relays {
		return news
	}
	for w, owed := range p.acks.owed {
		for b := range slotsOf(w, owed) {
			n += bits.OnesCount64(p.due[b])
		}
	}
	return n
}

// takeAll sends the peer all packets of its stream, if that is what it needs and it can have them. If
// nothing changed it needs none.
func (p *Peer) takeAll() bool {
	if p.stream < 0 {
		return p.server.slots.changes == 0
	}
	st := &p.runs.streams[p.stream]
	if !p.canTakeAll(st) {
		return false
	}
	first := p.log.next
	for i := range st.packets {
		p.packet.relay(st, &st.packets[i])
	}
	p.putCopies(st.packets, first)
	return true
}

// canTakeAll reports whether the stream is all that the peer needs, and it can have it.
func (p *Peer) canTakeAll(st *stream) bool {
	if p.log.next+uint32(len(st.packets))-p.log.oldest > maxInFlight ||
		p.budget.rate > 0 && p.budget.tokens < int64(len(st.packets)*p.server.opts.mtu*p.server.opts.tickRate) {
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
	sent := p.log.begin(p.server.tick)
	sent.stream = true
	p.log.addAll(sent, st.records[from.first:from.end])
	k.commit(k.headSize(false)+len(from.body), from.bits)
}

// copyOf returns a packet of a stream, with a header of the peer's. It is valid until the
// next packet is begun.
func (k *packetWriter) copyOf(from *streamPacket, sequence uint32) []byte {
	packet := k.buf[:k.headSize(false)+copy(k.buf[k.headSize(false):], from.body)]
	seal, h := k.peer.session.down, stateHeader{sequence: sequence, tick: uint32(k.peer.server.tick), complete: k.peer.join.complete}
	if seal.off || from.copies == 1 {
		k.seal(packet, h, from.bits)
		return packet
	}
	if !from.summed {
		from.summed, from.sum = true, crc32.Checksum(from.body, castagnoli)
		from.shift.set(len(from.body))
	}
	k.putHeader(packet, h, from.bits)
	begin := seal.sum(packet[checksumSize:len(packet)-len(from.body)], h.sequence, h.tick)
	binary.LittleEndian.PutUint32(packet, from.sum^from.shift.of(begin))
	return packet
}

// copies returns those of some slots of a block whose entries can be copied from the stream: the
// peer holds their baselines.
func (p *Peer) copies(st *stream, b int, d uint64) uint64 {
	if d &= st.plain[b]; d == 0 {
		return 0
	}
	t := &p.acks
	return d &^ (t.lacks(st.base, b) | t.lacks(st.second, b) | t.large[b])
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
		if st := &c.streams[i]; st.filled && st.base == of.A1 && st.second == of.A2 && st.plain.has(slot) {
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
	writeUpdate(&k.w, &k.names, of.Baselines, false)
	k.w.WriteSpan(st.packets[x.packet].body, int(e.from)+1, n)
	k.work += int(e.work)
	k.record(slot, recordState)
	x.copies++
	return true
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
	work := 0
	for i := range entries[:n] {
		work += int(entries[i].work)
	}
	if !k.bears(work, int(entries[n-1].end-from)) {
		return 0
	}
	for bits.OnesCount64(slots) > n {
		slots &^= 1 << (63 - bits.LeadingZeros64(slots))
	}
	last := 63 - bits.LeadingZeros64(slots)
	k.noteGap(gap)
	k.w.WriteRice(uint64(gap), k.order)
	k.w.WriteSpan(st.packets[x.packet].body, int(from), int(entries[n-1].end-from))
	k.next = b<<6 + last + 1
	k.gaps += last - first + 1 - n
	k.entries += n
	k.work += work
	k.peer.log.add(k.sent, b, slots, recordState)
	x.copies += uint32(n)
	return slots
}
