package replication

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
)

// How streams are made. All of a tick are made together, block by block, so that what one
// reads of the history is there for the others.

// stream returns the index of the stream for peers that are served from tick base, which is
// empty if it is new.
func (c *runCache) stream(base delta.Tick, order uint) int {
	for i := range c.streams {
		if c.streams[i].base == base {
			return i
		}
	}
	n := len(c.streams)
	c.streams = again(c.streams)
	st := &c.streams[n]
	st.base, st.order, st.used, st.open = base, order, 0, false
	st.packets, st.blocks, st.records = st.packets[:0], st.blocks[:0], st.records[:0]
	st.costs, st.ages = st.costs[:0], st.ages[:0]
	st.slots = st.slots.grown(c.server.slots.len())
	clear(st.slots)
	st.lacking = st.lacking.grown(len(st.slots))
	clear(st.lacking)
	for len(st.places) < len(st.slots) {
		st.places = append(st.places, 0)
	}
	return n
}

// fill puts all that has changed into the streams.
func (c *runCache) fill() {
	s := &c.server.slots
	few := len(s.busy) < fewNews // that is far apart
	if few {
		c.touch(s.busy)
	}
	for i, b := range s.busy {
		if news := s.news[b] & s.settled(int(b)); news != 0 {
			if !few {
				c.touch(s.busy[i : i+1])
			}
			c.gatherColumns(int(b), news)
			for i := range c.streams {
				c.addBlock(&c.streams[i], int(b), news)
			}
		}
	}
	for i := range c.streams {
		st := &c.streams[i]
		st.closePacket()
		for _, b := range s.busy {
			if s.news[b]&s.alive[b]&^st.slots[b] != 0 {
				st.lacking.set(int(b))
			}
		}
	}
}

// reach finds out in which ticks rows ended that will be needed: those of the baselines of peers
// in step.
func (c *runCache) reach(peers []*Peer) {
	nearest, farthest := delta.Tick(maxBehind), delta.Tick(1)
	for _, p := range peers {
		if p.steps {
			age := c.tick - p.base()
			nearest, farthest = min(nearest, age), max(farthest, age)
		}
	}
	// A row ended after the tick that it is the baseline of, and second baselines are mostly two
	// or three ticks older.
	c.from, c.to = c.tick-max(nearest, farthest)-delta.SecondGrid, c.tick-min(nearest, farthest)+1
}

// touch reads what has changed lately in some of the busy blocks: the processor waits for
// all of that memory at once, and not for one row after the other.
func (c *runCache) touch(blocks []int32) {
	s := c.server
	for _, b := range blocks {
		slots := s.slots.news[b] & s.slots.alive[b]
		for slot := range slotsOf(int(b), slots) {
			c.touched += uint32(s.slots.info[slot].born) + c.heads[slot].filling
		}
		for at := c.from; !at.After(c.to); at++ {
			c.touched += uint32(s.slots.log[b/chunkBlocks][at%recentTicks][b%chunkBlocks])
		}
		for _, h := range s.histories {
			c.touched += h.Touch(int(b)<<6, slots, c.from, c.to, s.tick)
		}
	}
}

// touchPeers reads what is asked of peers about a chunk, for the same reason.
func (c *runCache) touchPeers(k int, peers []*Peer) {
	for _, p := range peers {
		if b := k * chunkBlocks; b < len(p.due) {
			c.touched += uint32(p.due[b]) + uint32(p.acks.inStep[b])
		}
	}
}

// gatherColumns finds the components of slots of a block, which all streams need.
func (c *runCache) gatherColumns(b int, news uint64) {
	s := c.server
	c.narrowest, c.reshaped = maxEntityBits, 0
	var components delta.Set
	for slot := range slotsOf(b, news) {
		info := &s.slots.info[slot]
		c.narrowest = min(c.narrowest, info.width)
		if info.restructured.After(c.tick - maxBehind) {
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
	c.classes.addInStep(b, news, st.base)
	for slot := range slotsOf(b, news&c.reshaped) {
		if c.server.slots.info[slot].restructured.After(st.base) {
			news &^= 1 << (slot & 63)
		}
	}
	c.against = c.against[:0]
	for i := range c.classes.list {
		if k := &c.classes.list[i]; !k.whole {
			a := delta.Against{Slots: k.mask & news, A1: k.A1, A2: k.A2}
			if k.Two {
				a.Ratio = delta.Ratio(c.tick, k.A1, k.A2)
			}
			c.against = append(c.against, a)
		}
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
	for slot := range slotsOf(b, slots) {
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
		if opened = st.openPacket(c.server); !opened {
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
func (st *stream) openPacket(s *Server) bool {
	h := stateHeader{}
	room := s.opts.mtu - h.size()
	if !s.opts.noChecksum {
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
	st.context, st.work = context{names: delta.NamesAt(s.tick)}, 0
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
	k := streamBlock{block: b, packet: len(st.packets) - 1, plain: true}
	front := -1 // class, if it is in front of the list
	for d := news; d != 0; d &= d - 1 {
		i := bits.TrailingZeros64(d)
		slot, class := b<<6+i, 0
		for c.classes.list[class].mask>>i&1 == 0 {
			class++
		}
		l := &c.classes.list[class]
		w.WriteRice(uint64(slot-x.next), st.order)
		x.next = slot + 1
		if k.entries == 0 {
			k.from = w.Len()
		}
		if class == front {
			w.WriteBits(1, 1) // an update, against the baselines in front
		} else {
			k.plain = k.plain && x.names.Follows(l.Baselines)
			writeUpdate(&w, &x.names, l.Baselines, false)
			if x.names.Follows(l.Baselines) {
				front = class
			}
		}
		c.columns.Write(&w, slot)
		k.entries++
	}
	k.work = c.columns.Work(news)
	if w.Err() != nil || !c.server.opts.freeWork.allows(st.work+k.work, w.Len()) {
		w.Rollback(mark)
		return false
	}
	st.w, st.context, st.work = w, x, st.work+k.work
	k.end, k.names = w.Len(), x.names
	if front >= 0 {
		k.latest = c.classes.list[front].Baselines
	}
	c.bookBlock(st, &k, news)
	st.packets[k.packet].entries += k.entries
	st.slots[b], st.places[b] = news, int32(len(st.blocks))
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
			copies := uint64(k.copies + st.packets[k.packet].copies)
			for _, cost := range st.costs[k.firstCost:k.lastCost] {
				c.fieldBits[cost.Field] += uint64(cost.Bits) * copies
			}
			for _, a := range st.ages[k.firstAge:k.lastAge] {
				c.ages[a.age] += uint64(a.entries) * copies
			}
			c.made += uint64(k.entries)
			c.copied += uint64(k.entries) * copies
		}
		for j := range st.packets {
			c.shared += uint64(st.packets[j].copies)
		}
	}
}
