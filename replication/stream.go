package replication

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
)

// Peers in step share more than runs. A stream is what changed in a tick, in the order of
// slots, encoded against what peers in step hold that are served from the same tick, and
// put into packets. Of these a peer gets those of which it is in step with every slot,
// under headers of its own. What it needs beside them goes into packets of its own, which
// follow; into these, stretches of blocks are copied from the stream at once.
//
// What is in a stream depends on the world and the tick alone, and what a peer gets of it
// on that peer: neither on other peers nor on workers.
type stream struct {
	base    delta.Tick // that the peers are served from
	order   uint       // of the Rice code of slot gaps
	packets []streamPacket
	blocks  []streamBlock
	records []sentRecord // of the blocks
	costs   []delta.Cost // of the blocks, by field and symbols of components
	ages    []streamAge  // of the blocks
	slots   bitset       // that are in the stream
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
	block     int
	packet    int
	from, end int             // bits in the body, without the gap of the first entry
	plain     bool            // all have the baselines in front of the list before the first
	names     delta.Names     // afterwards
	latest    delta.Baselines // those in front, if plain
	entries   int
	work      int    // of the entries, see work.go
	copies    uint32 // peers that got it in packets of their own

	firstAge, lastAge   int
	firstCost, lastCost int
}

// A streamAge counts entries by the age of their baselines.
type streamAge struct{ age, entries uint8 }

const (
	// minStream is how many slots must change in a tick for a stream that is not all that
	// a peer needs: enough for several packets.
	minStream = 1024
	// minShare is of how many packets a stream must be for peers that need more than it.
	minShare = 4
	// smoothTicks is for how long a peer must have missed nothing to get such a stream.
	smoothTicks = 64
	// maxStreamBytes bounds the bodies of a stream's packets.
	maxStreamBytes = 1 << 20
)

// beginStreams ends the streams of the last tick and makes those that the peers need.
func (c *runCache) beginStreams(peers []*Peer) {
	c.streams = c.streams[:0]
	s := &c.server.slots
	news := s.changes
	if news == 0 {
		return
	}
	order := min(uint(bits.Len64(uint64((s.len()-news)*7/10/news))), 1<<gapOrderBits-1)
	for _, p := range peers {
		if !p.served && p.streams(news) {
			p.stream = int32(c.stream(p.base(), order))
			p.packet.order = order
		}
	}
	if len(c.streams) > 0 {
		c.fill()
	}
}

// streams reports whether the peer is to have a stream: one that is in step with nearly
// all that changed. Where that is much, and packets get lost every now and then, there is
// too little to copy for what it costs to encode all.
func (p *Peer) streams(news int) bool {
	o := &p.server.opts
	if o.noStreams || p.session.compact || !p.steps || p.planned != sendInTurn || !p.near() || news >= o.minStream && p.server.tick-p.missed < o.smooth {
		return false
	}
	return p.outNews < news/8
}

// take sends the peer the packets that it can have of its stream. If others are to follow
// there must be many of them: a few would better be mixed.
func (p *Peer) take(st *stream) {
	if p.canTakeAll(st) {
		first := p.log.next
		for i := range st.packets {
			p.packet.relay(st, &st.packets[i])
		}
		p.putCopies(st.packets, first)
		p.served = true
		return
	}
	if len(st.packets) < minShare || p.server.slots.changes < p.server.opts.minStream {
		return
	}
	p.carried = p.carried.grown(len(st.slots))
	clear(p.carried)
	p.carries = true
	for i := range st.packets {
		k := &st.packets[i]
		if p.blocked() || !p.canTake(st, k) {
			continue
		}
		for j := range st.blocks[k.first:k.end] {
			b := st.blocks[k.first+j].block
			p.carried.set(b)
			p.due[b] &^= st.slots[b]
		}
		p.packet.relay(st, k)
		p.putCopies(st.packets[i:i+1], p.log.next-1)
	}
}

// canTakeAll reports whether the stream is all that the peer needs, and it can have it.
func (p *Peer) canTakeAll(st *stream) bool {
	if p.log.next+uint32(len(st.packets))-p.log.oldest > maxInFlight ||
		p.budget.rate > 0 && p.budget.tokens < int64(len(st.packets)*p.server.opts.mtu*p.server.opts.tickRate) {
		return false
	}
	s := &p.server.slots
	for w, stirred := range s.stirred {
		strays := p.acks.strays[w]
		if st.lacking[w]&^strays != 0 {
			return false
		}
		for b := range slotsOf(w, stirred&strays) {
			if in, slots := p.inStep(b), st.slots[b]; s.news[b]&in&^slots|slots&^in != 0 {
				return false
			}
		}
	}
	for w, owed := range p.acks.owed {
		for b := range slotsOf(w, owed) {
			if p.owing(b) != 0 {
				return false
			}
		}
	}
	return true
}

// canTake reports whether the peer is in step with all slots of a packet.
func (p *Peer) canTake(st *stream, k *streamPacket) bool {
	var missing uint64
	for i := range st.blocks[k.first:k.end] {
		b := st.blocks[k.first+i].block
		missing |= st.slots[b] &^ p.acks.inStep[b]
	}
	return missing == 0
}

// carriedSlots returns the slots of a block that a packet of a stream has carried in this tick.
func (p *Peer) carriedSlots(b int) uint64 {
	if !p.carries || !p.carried.has(b) {
		return 0
	}
	return p.runs.streams[p.stream].slots[b]
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

// copyStretch appends blocks of the peer's stream to its own packets, from block b on and
// up to block end, as long as it needs just what is there and its packet has named the
// same baselines. It returns the block after the last one.
func (p *Peer) copyStretch(b, end int) int {
	st, k := &p.runs.streams[p.stream], &p.packet
	if st.slots[b] == 0 || !p.wantsBlock(st, b) {
		return b
	}
	i := int(st.places[b])
	first := &st.blocks[i]
	var before delta.Names
	if i > st.packets[first.packet].first {
		before = st.blocks[i-1].names
	}
	if !k.open {
		if p.blocked() {
			return b
		}
		k.start()
	}
	alike := before == k.names
	if !alike && !(first.plain && k.names.Follows(first.latest)) {
		return b
	}
	room := k.w.Remaining() - k.gapBits(b<<6+bits.TrailingZeros64(st.slots[b]))
	last, entries, work := i, 0, 0
	next, alone := b, p.alone(st, b)
	for j := i; j < st.packets[first.packet].end; j++ {
		x := &st.blocks[j]
		if x.block >= end || x.end-first.from > room || !alike && !x.plain || !k.bears(work+x.work, x.end-first.from) {
			break
		}
		if x.block > alone && !p.wantsNothing(next, x.block) || !p.wantsBlock(st, x.block) {
			break
		}
		next = x.block + 1
		last, entries, work = j, entries+x.entries, work+x.work
	}
	if entries == 0 {
		return b
	}
	x := &st.blocks[last]
	slot := b<<6 + bits.TrailingZeros64(st.slots[b])
	k.noteGap(slot - k.next)
	k.w.WriteRice(uint64(slot-k.next), k.order)
	k.w.WriteSpan(st.packets[first.packet].body, first.from, x.end-first.from)
	k.next = x.block<<6 + bits.Len64(st.slots[x.block])
	k.gaps += uint64(k.next - slot - entries)
	k.entries += uint64(entries)
	k.work += work
	if alike {
		k.names = x.names
	}
	p.log.addAll(k.sent, st.records[i:last+1])
	for j := i; j <= last; j++ {
		st.blocks[j].copies++
	}
	p.stats.Updates += uint64(entries)
	return x.block + 1
}

// alone returns the first block from b on of which the peer may need something that its
// stream does not have.
func (p *Peer) alone(st *stream, b int) int {
	return min(st.lacking.next(b), p.acks.owed.next(b))
}

// wantsNothing reports whether the peer needs nothing of some blocks.
func (p *Peer) wantsNothing(from, end int) bool {
	for b := from; b < end; b++ {
		if p.due[b] != 0 || p.server.slots.news[b]&p.inStep(b)&^p.carriedSlots(b) != 0 {
			return false
		}
	}
	return true
}

// wantsBlock reports whether the peer needs of a block just what its stream has.
func (p *Peer) wantsBlock(st *stream, b int) bool {
	if !p.carries && !p.acks.strays.has(b) && !p.acks.owed.has(b) {
		return !st.lacking.has(b)
	}
	return p.due[b] == 0 && p.server.slots.news[b]&p.inStep(b)&^p.carriedSlots(b) == st.slots[b]
}
