package encode

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// How streams are made. All of a tick are made together, block by block, so that what one
// reads of the history is there for the others.

// Find returns the index of a stream, or -1.
func (c *Cache) Find(of snapshot.BasePair, whole bool) int32 {
	for i := range c.PacketSets {
		if st := &c.PacketSets[i]; st.BasePair == of && st.full == whole {
			return int32(i)
		}
	}
	return -1
}

// PacketSet returns the index of a stream, which is empty if it is new; -1 if there are too many.
func (c *Cache) PacketSet(of snapshot.BasePair, whole bool, order uint) int32 {
	if i := c.Find(of, whole); i >= 0 {
		return i
	}
	n := len(c.PacketSets)
	if n == MaxPacketSets {
		return -1
	}
	c.PacketSets = again(c.PacketSets)
	c.PacketSets[n].begin(of, whole, order, &c.Snap.Slots)
	return int32(n)
}

// shrinkPacketSets ends the streams of the last tick. Now and then it gives back the memory of those that a rare burst took.
func (c *Cache) shrinkPacketSets() {
	c.most = max(c.most, len(c.PacketSets))
	c.PacketSets = c.PacketSets[:0]
	if c.tick%ackstate.ResizeTicks == 0 {
		if keep := 2 * c.most; keep < cap(c.PacketSets) {
			clear(c.PacketSets[keep:cap(c.PacketSets)])
		}
		c.most = 0
	}
}

// begin makes a stream empty, with room for the slots of a server.
func (st *PacketSet) begin(of snapshot.BasePair, whole bool, order uint, s *snapshot.SlotTable) {
	st.BasePair, st.full, st.Order = of, whole, order
	st.used, st.open = 0, false
	st.Packets, st.Blocks, st.Records = st.Packets[:0], st.Blocks[:0], st.Records[:0]
	st.costs, st.ages, st.Entries = st.costs[:0], st.ages[:0], st.Entries[:0]
	for w, asked := range st.asked {
		for b := range bitset.Slots(w, asked) {
			st.Slots[b], st.Plain[b], st.wanted[b] = 0, 0, 0
		}
	}
	clear(st.asked)
	clear(st.Lacking)
	st.Slots, st.Plain, st.wanted = st.Slots.Grown(s.Len()), st.Plain.Grown(s.Len()), st.wanted.Grown(s.Len())
	st.asked, st.Lacking = st.asked.Grown(len(st.Slots)), st.Lacking.Grown(len(st.Slots))
	for len(st.Places) < len(st.Slots) {
		st.Places = append(st.Places, 0)
	}
	if whole {
		for _, b := range s.Busy {
			st.Want(int(b), s.News[b]&s.Alive[b]&^(s.Churned[b]|s.InGroups(int(b))))
		}
	}
}

// Want adds slots of a block to those that the stream is to have.
func (st *PacketSet) Want(b int, slots uint64) {
	st.wanted[b] |= slots
	st.asked.Add(b)
}

// Fill puts what is wanted into the streams.
func (c *Cache) Fill() {
	if len(c.PacketSets) == 0 {
		return
	}
	s := &c.Snap.Slots
	c.asked = c.asked.Grown(len(s.Alive))
	clear(c.asked)
	for i := range c.PacketSets {
		for w, asked := range c.PacketSets[i].asked {
			c.asked[w] |= asked
		}
	}
	for w, asked := range c.asked {
		for b := range bitset.Slots(w, asked) {
			c.addToPacketSets(b)
		}
	}
	for i := range c.PacketSets {
		st := &c.PacketSets[i]
		st.closePacket()
		st.findLacking(s)
	}
}

// addToPacketSets adds what is wanted of a block to the streams.
func (c *Cache) addToPacketSets(b int) {
	all, farthest, nearest := uint64(0), delta.Tick(0), delta.Tick(snapshot.RecentTicks)
	for i := range c.PacketSets {
		if st := &c.PacketSets[i]; st.wanted[b] != 0 {
			all |= st.wanted[b]
			nearest, farthest = min(nearest, c.tick-st.Base), max(farthest, c.tick-st.Second)
		}
	}
	if all == 0 {
		return
	}
	c.touch(b, all, c.tick-farthest, c.tick-nearest+1)
	c.gatherColumns(b, all, c.tick-farthest)
	for i := range c.PacketSets {
		if st := &c.PacketSets[i]; st.wanted[b] != 0 {
			c.addBlock(st, b, st.wanted[b])
		}
	}
}

// findLacking finds out what is not in a stream that a peer may be able to have as a whole.
func (st *PacketSet) findLacking(s *snapshot.SlotTable) {
	if !st.full {
		return
	}
	for _, b := range s.Busy {
		if s.News[b]&s.Alive[b]&^st.Slots[b] != 0 {
			st.Lacking.Add(int(b))
		}
	}
}

// touch reads what slots of a block are and which of their rows ended in some ticks: the processor waits for
// all of that memory at once, and not for one row after the other.
func (c *Cache) touch(b int, slots uint64, from, to delta.Tick) {
	s := c.Snap
	for slot := range bitset.Slots(b, slots) {
		c.touched += uint32(s.Slots.Info[slot].Born)
	}
	for _, h := range s.Histories {
		c.touched += h.Touch(b<<6, slots, from, to, s.Tick)
	}
}

// gatherColumns finds the components of slots of a block, which all streams need, whose baselines are not before a tick.
func (c *Cache) gatherColumns(b int, news uint64, oldest delta.Tick) {
	s := c.Snap
	c.narrowest, c.reshaped = wire.MaxEntityBits, 0
	var components delta.Set
	for slot := range bitset.Slots(b, news) {
		info := &s.Slots.Info[slot]
		c.narrowest = min(c.narrowest, info.Width)
		if info.Restructured.After(oldest) {
			c.reshaped |= 1 << (slot & 63)
		}
		components.AddAll(&info.Set)
	}
	c.columns.Begin()
	for k := components.Next(0); k >= 0; k = components.Next(k + 1) {
		c.columns.Add(k, s.Histories[k], b<<6, news)
	}
}

// addBlock adds the slots of a block that changed, but for those that are left to the peers.
func (c *Cache) addBlock(st *PacketSet, b int, news uint64) {
	c.classes.List = c.classes.List[:0]
	if moving := c.classes.AddStopped(b, news, st.Base, st.Second); moving != 0 {
		c.classes.Add(moving, delta.Baselines{A1: st.Base, A2: st.Second, Two: true})
	}
	for slot := range bitset.Slots(b, news&c.reshaped) {
		if c.Snap.Slots.Info[slot].Restructured.After(st.Base) {
			news &^= 1 << (slot & 63)
		}
	}
	c.against = c.against[:0]
	for i := range c.classes.List {
		k := &c.classes.List[i]
		a := delta.Against{Slots: k.Mask & news, A1: k.A1, A2: k.A2}
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
func (c *Cache) encodeColumns(b int) (slots uint64) {
	slots = c.columns.Encode(c.against)
	if c.columns.Most(slots) <= c.narrowest {
		return slots
	}
	jumped := uint64(0)
	for slot := range bitset.Slots(b, slots) {
		if c.Jumped(slot, c.columns.Bits(slot)) {
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
func (c *Cache) tryBlock(st *PacketSet, b int, news uint64) bool {
	opened := false
	if !st.open {
		if opened = st.openPacket(c.Snap); !opened {
			return false
		}
	}
	n := len(st.Blocks)
	fits := c.appendBlock(st, b, news)
	if opened && len(st.Blocks) == n {
		st.open, st.Packets = false, st.Packets[:len(st.Packets)-1]
	}
	return fits
}

// openPacket begins a packet. It returns false if there is no more room for one.
func (st *PacketSet) openPacket(s *snapshot.Snapshot) bool {
	h := wire.StateHeader{}
	room := s.Opts.MTU - h.Size()
	if !s.Opts.NoChecksum {
		room -= wire.ChecksumSize
	}
	if len(st.Packets)*room > maxSharedBytes {
		return false
	}
	if need := st.used + room; need > len(st.buf) {
		st.buf, st.used = make([]byte, 2*need), 0 // earlier packets keep the old one
	}
	st.w.Reset(st.buf[st.used:][:room:room])
	st.w.WriteBits(uint64(st.Order), wire.GapOrderBits)
	st.context, st.work = wire.Context{Names: delta.NamesAt(s.Tick)}, 0
	st.context.Names.Write(&st.w, delta.Baselines{A1: st.Base, A2: st.Second, Two: true})
	st.Packets = append(st.Packets, SharedPacket{First: len(st.Blocks)})
	st.open = true
	return true
}

// closePacket ends the open packet, if there is one.
func (st *PacketSet) closePacket() {
	if !st.open {
		return
	}
	st.open = false
	k := &st.Packets[len(st.Packets)-1]
	k.Bits, k.Body, k.End = st.w.Len(), st.w.Bytes(), len(st.Blocks)
	st.used += len(k.Body)
}

// appendBlock adds slots of a block to the open packet. It returns false, and adds nothing, if
// they don't fit.
func (c *Cache) appendBlock(st *PacketSet, b int, news uint64) bool {
	mark, w, x := st.w.Mark(), st.w, st.context
	k := SharedBlock{Packet: len(st.Packets) - 1, First: len(st.Entries)}
	plain := uint64(0)
	works, work := c.columns.Works(news), 0
	for d := news; d != 0; d &= d - 1 {
		i := bits.TrailingZeros64(d)
		slot, class := b<<6+i, 0
		for c.classes.List[class].Mask>>i&1 == 0 {
			class++
		}
		w.WriteRice(uint64(slot-x.Next), st.Order)
		x.Next = slot + 1
		from := w.Len()
		if l := &c.classes.List[class]; l.Two {
			plain |= 1 << i
			c.columns.Write(&w, slot, 1, 1) // an update, against the baselines in front
		} else {
			wire.WriteUpdate(&w, &x.Names, l.Baselines, false)
			c.columns.Write(&w, slot, 0, 0)
		}
		work += int(works[i])
		st.Entries = append(st.Entries, SharedEntry{int32(from), int32(w.Len()), works[i], int32(work)})
	}
	if w.Err() != nil || !c.Snap.Opts.FreeWork.Allows(st.work+work, w.Len()) {
		w.Rollback(mark)
		st.Entries = st.Entries[:k.First]
		return false
	}
	st.w, st.context, st.work = w, x, st.work+work
	k.Entries = len(st.Entries) - k.First
	c.bookBlock(st, &k, news)
	st.Packets[k.Packet].Entries += k.Entries
	st.Slots[b], st.Plain[b], st.Places[b] = news, plain, int32(len(st.Blocks))
	st.Records = append(st.Records, baseline.NewRecord(b, news, baseline.RecordState))
	st.Blocks = append(st.Blocks, k)
	return true
}

// bookBlock notes what the entries of a block cost and how old their baselines are.
func (c *Cache) bookBlock(st *PacketSet, k *SharedBlock, news uint64) {
	k.firstAge, k.firstCost = len(st.ages), len(st.costs)
	for i := range c.classes.List {
		l := &c.classes.List[i]
		if n := bits.OnesCount64(l.Mask & news); n > 0 {
			st.ages = append(st.ages, sharedAge{uint8(min(c.tick-l.A1, 32)), uint8(n)})
		}
	}
	st.costs = c.columns.AppendCosts(st.costs)
	k.lastAge, k.lastCost = len(st.ages), len(st.costs)
}

// FinishPacketSets books what has been sent of the streams.
func (c *Cache) FinishPacketSets() {
	for i := range c.PacketSets {
		st := &c.PacketSets[i]
		for j := range st.Blocks {
			k := &st.Blocks[j]
			entries := uint64(k.Entries)
			copies := uint64(st.Packets[k.Packet].Copies)*entries + uint64(k.Copies)
			for _, cost := range st.costs[k.firstCost:k.lastCost] {
				c.FieldBits[cost.Field] += uint64(cost.Bits) * copies / entries
			}
			for _, a := range st.ages[k.firstAge:k.lastAge] {
				c.Ages[a.age] += uint64(a.entries) * uint64(st.Packets[k.Packet].Copies)
			}
			c.Ages[min(c.tick-st.Base, 32)] += uint64(k.Copies)
			c.Made += entries
			c.Copied += copies
		}
		for j := range st.Packets {
			c.Shared += uint64(st.Packets[j].Copies)
		}
	}
}
