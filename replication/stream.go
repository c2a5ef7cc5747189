package replication

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
)

// Where much changes, peers in step share whole packets. A stream is what changed in a
// tick, in the order of slots, encoded against what peers in step hold that are served
// from the same tick. Of its packets a peer gets those of which it is in step with every
// slot, under headers of its own; what it needs beside them goes into packets of its own,
// which follow.
//
// What is in a stream depends on the world and the tick alone, and which of its packets a
// peer gets on that peer: neither on other peers nor on workers.
type stream struct {
	base    delta.Tick // that the peers are served from
	order   uint       // of the Rice code of slot gaps
	packets []streamPacket
	slots   bitset       // that are in one of the packets
	records []sentRecord // of the packets, one after the other
	costs   []uint32     // bits by field and then symbols of components, of each packet
	buf     []byte       // bodies
	used    int

	// The packet that is being filled.
	w       bitbuf.Writer
	context context
	open    bool
}

// A streamPacket is a packet without its header.
type streamPacket struct {
	first, end              int // blocks, of whose slots it has those in stream.slots
	firstRecord, lastRecord int
	body                    []byte
	bits                    int // of the body
	entries                 int
	ages                    [33]uint32 // of the entries' baselines
	copies                  uint32     // peers that got it
}

const (
	// minStream is how many slots must change in a tick for a stream: enough to fill
	// several packets.
	minStream = 1024
	// smoothTicks is for how long a peer must have missed nothing to get a stream.
	smoothTicks = 64
	// maxStreamBytes bounds the bodies of a stream's packets.
	maxStreamBytes = 1 << 20
)

// beginStreams ends the streams of the last tick and makes those that the peers need.
func (c *runCache) beginStreams(peers []*Peer) {
	c.streams = c.streams[:0]
	s := c.server
	if news := s.slots.news.count(); news >= s.opts.minStream {
		order := min(uint(bits.Len64(uint64((s.slots.len()-news)*7/10/news))), 1<<gapOrderBits-1)
		for _, p := range peers {
			if p.stream = -1; p.streams() {
				p.stream = c.stream(p.base(), order)
			}
		}
	} else {
		for _, p := range peers {
			p.stream = -1
		}
	}
	if len(c.streams) == 0 {
		return
	}
	for b, news := range s.slots.news {
		if news &= s.slots.settled(b); news != 0 {
			c.gatherRows(b, news)
			for i := range c.streams {
				c.addBlock(&c.streams[i], b, news)
			}
		}
	}
	for i := range c.streams {
		c.closePacket(&c.streams[i])
	}
}

// streams reports whether a stream is worth while for the peer. Where packets get lost
// every now and then, it could have too few of them.
func (p *Peer) streams() bool {
	if !p.stepping() || !p.near() || p.server.tick-p.missed < p.server.opts.smooth {
		return false
	}
	all, in := 0, 0
	for b, news := range p.server.slots.news {
		all += bits.OnesCount64(news)
		in += bits.OnesCount64(news & p.inStep(b))
	}
	return in > all-all/8
}

// stream returns the index of the stream for peers that are served from tick base.
func (c *runCache) stream(base delta.Tick, order uint) int {
	for i := range c.streams {
		if c.streams[i].base == base {
			return i
		}
	}
	n := len(c.streams)
	if n == cap(c.streams) {
		c.streams = append(c.streams, stream{})
	} else {
		c.streams = c.streams[:n+1]
	}
	st := &c.streams[n]
	st.base, st.order, st.used, st.open = base, order, 0, false
	st.packets, st.records, st.costs = st.packets[:0], st.records[:0], st.costs[:0]
	st.slots = st.slots.grown(c.server.slots.len())
	clear(st.slots)
	return n
}

// A streamRow is a component of a slot that goes into streams.
type streamRow struct {
	component int
	began     delta.Tick // when the row became what it is
	delta.Versions

	// The second baseline that was asked for last: streams have it in common.
	second    []uint32
	secondOf  delta.Tick
	hasSecond bool
}

// before returns the row at tick t, which is not the present one.
func (r *streamRow) before(t delta.Tick) (row []uint32, known bool) {
	row, found := r.At(t)
	if found == delta.Absent {
		row = nil
	}
	return row, found != delta.Forgotten
}

// secondBefore is before for second baselines.
func (r *streamRow) secondBefore(t delta.Tick) (row []uint32, known bool) {
	if !r.hasSecond || r.secondOf != t {
		if row, known = r.before(t); !known {
			return nil, false
		}
		r.second, r.secondOf, r.hasSecond = row, t, true
	}
	return r.second, true
}

// gatherRows finds the rows of slots of a block, which all streams need.
func (c *runCache) gatherRows(b int, news uint64) {
	c.rows = c.rows[:0]
	for ; news != 0; news &= news - 1 {
		i := bits.TrailingZeros64(news)
		slot := b<<6 + i
		c.firstRow[i] = uint32(len(c.rows))
		t := c.server.slots.info[slot].table
		for m := range t.members {
			m := &t.members[m]
			if m.values.layout.Width() > 0 {
				v := m.history.Versions(slot)
				c.rows = append(c.rows, streamRow{component: m.component, began: v.Began(), Versions: v})
			}
		}
		c.endRow[i] = uint32(len(c.rows))
	}
	for i := range c.rows {
		if r := &c.rows[i]; r.began == c.tick {
			c.touched += r.Touch(streamReach)
		}
	}
}

// streamReach is how many versions back baselines mostly are.
const streamReach = 20

// encodeRows writes the rows of a slot against baselines, as encodeUpdate does for an
// entity whose component set is still the same. It returns false if one is not kept any
// more.
func (c *runCache) encodeRows(w *bitbuf.Writer, slot int, b delta.Baselines, ratio int64) bool {
	oldest := b.A1
	if ratio != 0 {
		oldest = b.A2
	}
	same := uint(0) // rows as they were, each of which takes a zero
	rows := c.rows[c.firstRow[slot&63]:c.endRow[slot&63]]
	for i := range rows {
		r := &rows[i]
		if !r.began.After(oldest) && same < 64 {
			c.same[r.component]++
			same++
			continue
		}
		w.WriteBits(0, same)
		same = 0
		base, known := r.before(b.A1)
		if !known {
			return false
		}
		var base2 []uint32
		if base != nil && ratio != 0 {
			if base2, known = r.secondBefore(b.A2); !known {
				return false
			}
		}
		c.packed.EncodeRow(w, r.component, r.Row(), base, base2, ratio)
	}
	w.WriteBits(0, same)
	return true
}

// addBlock adds the slots of a block that changed.
func (c *runCache) addBlock(st *stream, b int, news uint64) {
	c.classes.list = c.classes.list[:0]
	c.classes.addInStep(b, news, st.base)
	for slot := range slotsOf(b, news) {
		if c.server.slots.info[slot].restructured.After(st.base) {
			news &^= 1 << (slot & 63)
		}
	}
	c.ratios = c.ratios[:0]
	for i := range c.classes.list {
		k := &c.classes.list[i]
		if k.whole {
			news &^= k.mask
		}
		var ratio int64
		if k.Two {
			ratio = delta.Ratio(c.tick, k.A1, k.A2)
		}
		c.ratios = append(c.ratios, ratio)
	}
	if news == 0 {
		return
	}
	if !st.open && !c.openPacket(st, b) {
		return
	}
	if !c.appendBlock(st, b, news) {
		if st.packets[len(st.packets)-1].entries == 0 {
			return // larger than a packet
		}
		c.closePacket(st)
		if !c.openPacket(st, b) || !c.appendBlock(st, b, news) {
			return
		}
	}
}

// openPacket begins a packet. It returns false if there is no more room for one.
func (c *runCache) openPacket(st *stream, b int) bool {
	h := stateHeader{}
	room := c.server.opts.mtu - h.size()
	if !c.server.opts.noChecksum {
		room -= checksumSize
	}
	if len(st.packets)*room > maxStreamBytes {
		return false
	}
	if need := st.used + room; need > len(st.buf) {
		st.buf, st.used = make([]byte, 2*need), 0 // earlier packets keep the old one
	}
	st.w.Reset(st.buf[st.used:][:room:room])
	st.w.WriteBits(uint64(st.order), gapOrderBits)
	st.context = context{}
	st.packets = append(st.packets, streamPacket{first: b, end: b, firstRecord: len(st.records)})
	st.open = true
	for range c.fieldBits {
		st.costs = append(st.costs, 0)
	}
	return true
}

// appendBlock adds slots of a block to the open packet. It returns false, and adds
// nothing, if they don't fit.
func (c *runCache) appendBlock(st *stream, b int, news uint64) bool {
	mark, w, x := st.w.Mark(), st.w, st.context
	c.packed.Costs = c.packed.Costs[:0]
	clear(c.same)
	last := -1
	for d := news; d != 0; d &= d - 1 {
		i := bits.TrailingZeros64(d)
		slot, class := b<<6+i, 0
		for c.classes.list[class].mask>>i&1 == 0 {
			class++
		}
		k := &c.classes.list[class]
		w.WriteRice(uint64(slot-x.next), st.order)
		x.next = slot + 1
		if class == last {
			w.WriteBits(0b01, 2) // an update, against the same as the one before
		} else {
			w.WriteUnary(uint(entryUpdate), uint(lastEntryKind))
			x.names.Write(&w, k.Baselines)
			last = class
		}
		if !c.encodeRows(&w, slot, k.Baselines, c.ratios[class]) {
			w.Rollback(mark)
			return c.appendBlock(st, b, news&^(1<<i)) // the slot is left to the peers
		}
	}
	if w.Err() != nil {
		w.Rollback(mark)
		return false
	}
	st.w, st.context = w, x
	k := &st.packets[len(st.packets)-1]
	k.end = b + 1
	k.entries += bits.OnesCount64(news)
	for i := range c.classes.list {
		if l := &c.classes.list[i]; !l.whole {
			k.ages[min(c.tick-l.A1, 32)] += uint32(bits.OnesCount64(l.mask & news))
		}
	}
	own := st.costs[len(st.costs)-len(c.fieldBits):]
	for _, cost := range c.packed.Costs {
		own[cost.Field] += cost.Bits
	}
	for component, n := range c.same {
		own[len(own)-len(c.same)+component] += n
	}
	st.slots[b] = news
	st.records = append(st.records, newRecord(b, news, recordState))
	return true
}

// closePacket ends the open packet, if there is one.
func (c *runCache) closePacket(st *stream) {
	if !st.open {
		return
	}
	st.open = false
	k := &st.packets[len(st.packets)-1]
	if k.entries == 0 {
		st.packets = st.packets[:len(st.packets)-1]
		st.costs = st.costs[:len(st.packets)*len(c.fieldBits)]
		return
	}
	k.bits, k.body = st.w.Len(), st.w.Bytes()
	k.lastRecord = len(st.records)
	st.used += len(k.body)
}

// take sends the peer what it can have of its stream.
func (p *Peer) take(st *stream) {
	p.carried = p.carried.grown(len(st.slots))
	clear(p.carried)
	all := true
	for i := range st.packets {
		k := &st.packets[i]
		if p.blocked() || !p.canTake(st, k) {
			all = false
			continue
		}
		for b := k.first; b < k.end; b++ {
			p.carried.set(b)
			p.due[b] &^= st.slots[b]
		}
		k.copies++
		p.stats.Updates += uint64(k.entries)
		p.packet.relay(st, k)
	}
	p.served = all && !p.left(st)
}

// left reports whether anything is to be sent that a stream does not carry.
func (p *Peer) left(st *stream) bool {
	var left uint64
	for b, due := range p.due {
		left |= due | p.server.slots.news[b]&p.acks.inStep[b]&^st.slots[b]
	}
	return left != 0
}

// canTake reports whether the peer is in step with all slots of a packet.
func (p *Peer) canTake(st *stream, k *streamPacket) bool {
	var missing uint64
	for b, slots := range st.slots[k.first:k.end] {
		missing |= slots &^ p.acks.inStep[k.first+b]
	}
	return missing == 0
}

// relay sends a packet of the peer's stream. No packet may be open.
func (k *packetWriter) relay(st *stream, from *streamPacket) {
	p := k.peer
	sent := p.log.begin(p.server.tick)
	sent.stream = true
	p.log.addAll(sent, st.records[from.firstRecord:from.lastRecord])
	p.putCopy(from, k.commit(k.headSize(false)+len(from.body), from.bits))
}

// copyOf returns a packet of a stream, with a header of the peer's. It is valid until the
// next packet is begun.
func (k *packetWriter) copyOf(from *streamPacket, sequence uint32) []byte {
	packet := k.buf[:k.headSize(false)+copy(k.buf[k.headSize(false):], from.body)]
	k.seal(packet, stateHeader{sequence: sequence, tick: uint32(k.peer.server.tick)}, from.bits)
	return packet
}

// carriedSlots returns the slots of a block that a packet of a stream has carried in this tick.
func (p *Peer) carriedSlots(b int) uint64 {
	if p.stream < 0 || !p.carried.has(b) {
		return 0
	}
	return p.runs.streams[p.stream].slots[b]
}

// finishStreams books what the packets have cost.
func (c *runCache) finishStreams() {
	fields := len(c.fieldBits)
	for i := range c.streams {
		st := &c.streams[i]
		for j := range st.packets {
			k := &st.packets[j]
			for f, cost := range st.costs[j*fields:][:fields] {
				c.fieldBits[f] += uint64(cost) * uint64(k.copies)
			}
			for age, n := range k.ages {
				c.ages[age] += uint64(n) * uint64(k.copies)
			}
			c.made += uint64(k.entries)
			c.shared += uint64(k.copies)
			c.copied += uint64(k.entries) * uint64(k.copies)
		}
	}
}
