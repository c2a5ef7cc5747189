package replication

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// How streams are made. All of a tick are made together, block by block, so that what one
// reads of the history is there for the others.

// find returns the index of a stream, or -1.
func (c *runCache) find(of basePair, whole bool) int32 {
	for i := range c.streams {
		if st := &c.streams[i]; st.basePair == of && st.whole == whole {
			return int32(i)
		}
	}
	return -1
}

// stream returns the index of a stream, which is empty if it is new; -1 if there are too many.
func (c *runCache) stream(of basePair, whole bool, order uint) int32 {
	if i := c.find(of, whole); i >= 0 {
		return i
	}
	n := len(c.streams)
	if n == maxStreams {
		return -1
	}
	c.streams = again(c.streams)
	c.streams[n].begin(of, whole, order, &c.snap.slots)
	return int32(n)
}

// shrinkStreams ends the streams of the last tick. Now and then it gives back the memory of those that a rare burst took.
func (c *runCache) shrinkStreams() {
	c.most = max(c.most, len(c.streams))
	c.streams = c.streams[:0]
	if c.tick%resizeTicks == 0 {
		if keep := 2 * c.most; keep < cap(c.streams) {
			clear(c.streams[keep:cap(c.streams)])
		}
		c.most = 0
	}
}

// begin makes a stream empty, with room for the slots of a server.
func (st *stream) begin(of basePair, whole bool, order uint, s *slotTable) {
	st.basePair, st.whole, st.order = of, whole, order
	st.used, st.open = 0, false
	st.packets, st.blocks, st.records = st.packets[:0], st.blocks[:0], st.records[:0]
	st.costs, st.ages, st.entries = st.costs[:0], st.ages[:0], st.entries[:0]
	for w, asked := range st.asked {
		for b := range bitset.Slots(w, asked) {
			st.slots[b], st.plain[b], st.wanted[b] = 0, 0, 0
		}
	}
	clear(st.asked)
	clear(st.lacking)
	st.slots, st.plain, st.wanted = st.slots.Grown(s.len()), st.plain.Grown(s.len()), st.wanted.Grown(s.len())
	st.asked, st.lacking = st.asked.Grown(len(st.slots)), st.lacking.Grown(len(st.slots))
	for len(st.places) < len(st.slots) {
		st.places = append(st.places, 0)
	}
	if whole {
		for _, b := range s.busy {
			st.want(int(b), s.news[b]&s.alive[b]&^(s.turned[b]|s.inGroups(int(b))))
		}
	}
}

// want adds slots of a block to those that the stream is to have.
func (st *stream) want(b int, slots uint64) {
	st.wanted[b] |= slots
	st.asked.Add(b)
}

// fill puts what is wanted into the streams.
func (c *runCache) fill() {
	if len(c.streams) == 0 {
		return
	}
	s := &c.snap.slots
	c.asked = c.asked.Grown(len(s.alive))
	clear(c.asked)
	for i := range c.streams {
		for w, asked := range c.streams[i].asked {
			c.asked[w] |= asked
		}
	}
	for w, asked := range c.asked {
		for b := range bitset.Slots(w, asked) {
			c.addToStreams(b)
		}
	}
	for i := range c.streams {
		st := &c.streams[i]
		st.closePacket()
		st.findLacking(s)
	}
}

// addToStreams adds what is wanted of a block to the streams.
func (c *runCache) addToStreams(b int) {
	all, farthest, nearest := uint64(0), delta.Tick(0), delta.Tick(recentTicks)
	for i := range c.streams {
		if st := &c.streams[i]; st.wanted[b] != 0 {
			all |= st.wanted[b]
			nearest, farthest = min(nearest, c.tick-st.base), max(farthest, c.tick-st.second)
		}
	}
	if all == 0 {
		return
	}
	c.touch(b, all, c.tick-farthest, c.tick-nearest+1)
	c.gatherColumns(b, all, c.tick-farthest)
	for i := range c.streams {
		if st := &c.streams[i]; st.wanted[b] != 0 {
			c.addBlock(st, b, st.wanted[b])
		}
	}
}

// findLacking finds out what is not in a stream that a peer may be able to have as a whole.
func (st *stream) findLacking(s *slotTable) {
	if !st.whole {
		return
	}
	for _, b := range s.busy {
		if s.news[b]&s.alive[b]&^st.slots[b] != 0 {
			st.lacking.Add(int(b))
		}
	}
}

// touch reads what slots of a block are and which of their rows ended in some ticks: the processor waits for
// all of that memory at once, and not for one row after the other.
func (c *runCache) touch(b int, slots uint64, from, to delta.Tick) {
	s := c.snap
	for slot := range bitset.Slots(b, slots) {
		c.touched += uint32(s.slots.info[slot].born)
	}
	for _, h := range s.histories {
		c.touched += h.Touch(b<<6, slots, from, to, s.tick)
	}
}

// gatherColumns finds the components of slots of a block, which all streams need, whose baselines are not before a tick.
func (c *runCache) gatherColumns(b int, news uint64, oldest delta.Tick) {
	s := c.snap
	c.narrowest, c.reshaped = wire.MaxEntityBits, 0
	var components delta.Set
	for slot := range bitset.Slots(b, news) {
		info := &s.slots.info[slot]
		c.narrowest = min(c.narrowest, info.width)
		if info.restructured.After(oldest) {
			c.reshaped |= 1 << (slot & 63)
		}
		components.AddAll(&info.set)
	}
	c.columns.Begin()
	for k := components.Next(0); k >= 0; k = components.Next(k + 1) {
		c.columns.Add(k, s.histories[k], b<<6, news)
	}
}

// addBlock adds the slots of a block that changed, but for those that are left to the peers.
func (c *runCache) addBlock(st *stream, b int, news uint64) {
	c.classes.list = c.classes.list[:0]
	if moving := c.classes.addStopped(b, news, st.base, st.second); moving != 0 {
		c.classes.add(moving, delta.Baselines{A1: st.base, A2: st.second, Two: true})
	}
	for slot := range bitset.Slots(b, news&c.reshaped) {
		if c.snap.slots.info[slot].restructured.After(st.base) {
			news &^= 1 << (slot & 63)
		}
	}
	c.against = c.against[:0]
	for i := range c.classes.list {
		k := &c.classes.list[i]
		a := delta.Against{Slots: k.mask & news, A1: k.A1, A2: k.A2}
		if k.Two {
			a.Ratio = delta.Ratio(c.tick, k.A1, k.A2)
		}
		c.against = append(c.against, a)
	}
	if news = c.encodeColumns(b); news == 0 || c.tryBlock(st, b, news) {
		return
	}
	if st.open {
		st.closePacket()
		c.tryBlock(st, b, news) // else it is larger than a packet
	}
}

// encodeColumns encodes slots of the block in hand, and returns those of which there are
// baselines and that better go with them than whole.
func (c *runCache) encodeColumns(b int) (slots uint64) {
	slots = c.columns.Encode(c.against)
	if c.columns.Most(slots) <= c.narrowest {
		return slots
	}
	jumped := uint64(0)
	for slot := range bitset.Slots(b, slots) {
		if c.jumped(slot, c.columns.Bits(slot)) {
			jumped |= 1 << (slot & 63)
		}
	}
	if jumped == 0 {
		return slots
	}
	for i := range c.against {
		c.against[i].Slots &^= jumped
	}
	return c.columns.Encode(c.against)
}

// tryBlock adds slots of a block to the open packet, or to a new one if none is. It
// returns false, and adds nothing, if they don't fit.
func (c *runCache) tryBlock(st *stream, b int, news uint64) bool {
	opened := false
	if !st.open {
		if opened = st.openPacket(c.snap); !opened {
			return false
		}
	}
	n := len(st.blocks)
	fits := c.appendBlock(st, b, news)
	if opened && len(st.blocks) == n {
		st.open, st.packets = false, st.packets[:len(st.packets)-1]
	}
	return fits
}

// openPacket begins a packet. It returns false if there is no more room for one.
func (st *stream) openPacket(s *snapshot) bool {
	h := wire.StateHeader{}
	room := s.opts.mtu - h.Size()
	if !s.opts.noChecksum {
		room -= wire.ChecksumSize
	}
	if len(st.packets)*room > maxStreamBytes {
		return false
	}
	if need := st.used + room; need > len(st.buf) {
		st.buf, st.used = make([]byte, 2*need), 0 // earlier packets keep the old one
	}
	st.w.Reset(st.buf[st.used:][:room:room])
	st.w.WriteBits(uint64(st.order), wire.GapOrderBits)
	st.context, st.work = context{names: delta.NamesAt(s.tick)}, 0
	st.context.names.Write(&st.w, delta.Baselines{A1: st.base, A2: st.second, Two: true})
	st.packets = append(st.packets, streamPacket{first: len(st.blocks)})
	st.open = true
	return true
}

// closePacket ends the open packet, if there is one.
func (st *stream) closePacket() {
	if !st.open {
		return
	}
	st.open = false
	k := &st.packets[len(st.packets)-1]
	k.bits, k.body, k.end = st.w.Len(), st.w.Bytes(), len(st.blocks)
	st.used += len(k.body)
}

// appendBlock adds slots of a block to the open packet. It returns false, and adds nothing, if
// they don't fit.
func (c *runCache) appendBlock(st *stream, b int, news uint64) bool {
	mark, w, x := st.w.Mark(), st.w, st.context
	k := streamBlock{packet: len(st.packets) - 1, first: len(st.entries)}
	plain := uint64(0)
	works, work := c.columns.Works(news), 0
	for d := news; d != 0; d &= d - 1 {
		i := bits.TrailingZeros64(d)
		slot, class := b<<6+i, 0
		for c.classes.list[class].mask>>i&1 == 0 {
			class++
		}
		w.WriteRice(uint64(slot-x.next), st.order)
		x.next = slot + 1
		from := w.Len()
		if l := &c.classes.list[class]; l.Two {
			plain |= 1 << i
			c.columns.Write(&w, slot, 1, 1) // an update, against the baselines in front
		} else {
			wire.WriteUpdate(&w, &x.names, l.Baselines, false)
			c.columns.Write(&w, slot, 0, 0)
		}
		work += int(works[i])
		st.entries = append(st.entries, streamEntry{int32(from), int32(w.Len()), works[i], int32(work)})
	}
	if w.Err() != nil || !c.snap.opts.freeWork.allows(st.work+work, w.Len()) {
		w.Rollback(mark)
		st.entries = st.entries[:k.first]
		return false
	}
	st.w, st.context, st.work = w, x, st.work+work
	k.entries = len(st.entries) - k.first
	c.bookBlock(st, &k, news)
	st.packets[k.packet].entries += k.entries
	st.slots[b], st.plain[b], st.places[b] = news, plain, int32(len(st.blocks))
	st.records = append(st.records, newRecord(b, news, recordState))
	st.blocks = append(st.blocks, k)
	return true
}

// bookBlock notes what the entries of a block cost and how old their baselines are.
func (c *runCache) bookBlock(st *stream, k *streamBlock, news uint64) {
	k.firstAge, k.firstCost = len(st.ages), len(st.costs)
	for i := range c.classes.list {
		l := &c.classes.list[i]
		if n := bits.OnesCount64(l.mask & news); n > 0 {
			st.ages = append(st.ages, streamAge{uint8(min(c.tick-l.A1, 32)), uint8(n)})
		}
	}
	st.costs = c.columns.AppendCosts(st.costs)
	k.lastAge, k.lastCost = len(st.ages), len(st.costs)
}

// finishStreams books what has been sent of the streams.
func (c *runCache) finishStreams() {
	for i := range c.streams {
		st := &c.streams[i]
		for j := range st.blocks {
			k := &st.blocks[j]
			entries := uint64(k.entries)
			copies := uint64(st.packets[k.packet].copies)*entries + uint64(k.copies)
			for _, cost := range st.costs[k.firstCost:k.lastCost] {
				c.fieldBits[cost.Field] += uint64(cost.Bits) * copies / entries
			}
			for _, a := range st.ages[k.firstAge:k.lastAge] {
				c.ages[a.age] += uint64(a.entries) * uint64(st.packets[k.packet].copies)
			}
			c.ages[min(c.tick-st.base, 32)] += uint64(k.copies)
			c.made += entries
			c.copied += copies
		}
		for j := range st.packets {
			c.shared += uint64(st.packets[j].copies)
		}
	}
}
