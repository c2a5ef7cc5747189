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
func (c *Cache) Find(of snapshot.BasePair, full bool) int32 {
	for i := range c.PacketSets {
		if set := &c.PacketSets[i]; set.BasePair == of && set.full == full {
			return int32(i)
		}
	}
	return -1
}

// PacketSet returns the index of a stream, which is empty if it is new; -1 if there are too many.
func (c *Cache) PacketSet(of snapshot.BasePair, full bool, order uint) int32 {
	if i := c.Find(of, full); i >= 0 {
		return i
	}
	n := len(c.PacketSets)
	if n == MaxPacketSets {
		return -1
	}
	c.PacketSets = reuse(c.PacketSets)
	c.PacketSets[n].begin(of, full, order, &c.Snap.Slots)
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
func (set *PacketSet) begin(of snapshot.BasePair, full bool, order uint, s *snapshot.SlotTable) {
	set.BasePair, set.full, set.Order = of, full, order
	set.used, set.open = 0, false
	set.Packets, set.Blocks, set.Records = set.Packets[:0], set.Blocks[:0], set.Records[:0]
	set.costs, set.ages, set.Entries = set.costs[:0], set.ages[:0], set.Entries[:0]
	for w, asked := range set.asked {
		for b := range bitset.Slots(w, asked) {
			set.Slots[b], set.Plain[b], set.wanted[b] = 0, 0, 0
		}
	}
	clear(set.asked)
	clear(set.Lacking)
	set.Slots, set.Plain, set.wanted = set.Slots.Grown(s.Len()), set.Plain.Grown(s.Len()), set.wanted.Grown(s.Len())
	set.asked, set.Lacking = set.asked.Grown(len(set.Slots)), set.Lacking.Grown(len(set.Slots))
	for len(set.Places) < len(set.Slots) {
		set.Places = append(set.Places, 0)
	}
	if full {
		for _, b := range s.Busy {
			set.Want(int(b), s.Changed[b]&s.Alive[b]&^(s.Churned[b]|s.InGroups(int(b))))
		}
	}
}

// Want adds slots of a block to those that the stream is to have.
func (set *PacketSet) Want(b int, slots uint64) {
	set.wanted[b] |= slots
	set.asked.Add(b)
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
		set := &c.PacketSets[i]
		set.closePacket()
		set.findLacking(s)
	}
}

// addToPacketSets adds what is wanted of a block to the streams.
func (c *Cache) addToPacketSets(b int) {
	all, farthest, nearest := uint64(0), delta.Tick(0), delta.Tick(snapshot.RecentTicks)
	for i := range c.PacketSets {
		if set := &c.PacketSets[i]; set.wanted[b] != 0 {
			all |= set.wanted[b]
			nearest, farthest = min(nearest, c.tick-set.Base), max(farthest, c.tick-set.Second)
		}
	}
	if all == 0 {
		return
	}
	c.touch(b, all, c.tick-farthest, c.tick-nearest+1)
	c.gatherColumns(b, all, c.tick-farthest)
	for i := range c.PacketSets {
		if set := &c.PacketSets[i]; set.wanted[b] != 0 {
			c.addBlock(set, b, set.wanted[b])
		}
	}
}

// findLacking finds out what is not in a stream that a peer may be able to have as a whole.
func (set *PacketSet) findLacking(s *snapshot.SlotTable) {
	if !set.full {
		return
	}
	for _, b := range s.Busy {
		if s.Changed[b]&s.Alive[b]&^set.Slots[b] != 0 {
			set.Lacking.Add(int(b))
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
func (c *Cache) gatherColumns(b int, changed uint64, oldest delta.Tick) {
	s := c.Snap
	c.narrowest, c.reshaped = wire.MaxEntityBits, 0
	var components delta.Set
	for slot := range bitset.Slots(b, changed) {
		info := &s.Slots.Info[slot]
		c.narrowest = min(c.narrowest, info.Width)
		if info.Restructured.After(oldest) {
			c.reshaped |= 1 << (slot & 63)
		}
		components.AddAll(&info.Set)
	}
	c.columns.Begin()
	for k := components.Next(0); k >= 0; k = components.Next(k + 1) {
		c.columns.Add(k, s.Histories[k], b<<6, changed)
	}
}

// addBlock adds the slots of a block that changed, but for those that are left to the peers.
func (c *Cache) addBlock(set *PacketSet, b int, changed uint64) {
	c.classes.List = c.classes.List[:0]
	if moving := c.classes.AddStopped(b, changed, set.Base, set.Second); moving != 0 {
		c.classes.Add(moving, delta.Baselines{A1: set.Base, A2: set.Second, Two: true})
	}
	for slot := range bitset.Slots(b, changed&c.reshaped) {
		if c.Snap.Slots.Info[slot].Restructured.After(set.Base) {
			changed &^= 1 << (slot & 63)
		}
	}
	c.against = c.against[:0]
	for i := range c.classes.List {
		k := &c.classes.List[i]
		a := delta.Against{Slots: k.Mask & changed, A1: k.A1, A2: k.A2}
		if k.Two {
			a.Ratio = delta.Ratio(c.tick, k.A1, k.A2)
		}
		c.against = append(c.against, a)
	}
	if changed = c.encodeColumns(b); changed == 0 || c.tryBlock(set, b, changed) {
		return
	}
	if set.open {
		set.closePacket()
		c.tryBlock(set, b, changed) // else it is larger than a packet
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
func (c *Cache) tryBlock(set *PacketSet, b int, changed uint64) bool {
	opened := false
	if !set.open {
		if opened = set.openPacket(c.Snap); !opened {
			return false
		}
	}
	n := len(set.Blocks)
	fits := c.appendBlock(set, b, changed)
	if opened && len(set.Blocks) == n {
		set.open, set.Packets = false, set.Packets[:len(set.Packets)-1]
	}
	return fits
}

// openPacket begins a packet. It returns false if there is no more room for one.
func (set *PacketSet) openPacket(s *snapshot.Snapshot) bool {
	h := wire.StateHeader{}
	room := s.Opts.MTU - h.Size()
	if !s.Opts.NoChecksum {
		room -= wire.ChecksumSize
	}
	if len(set.Packets)*room > maxSharedBytes {
		return false
	}
	if need := set.used + room; need > len(set.buf) {
		set.buf, set.used = make([]byte, 2*need), 0 // earlier packets keep the old one
	}
	set.w.Reset(set.buf[set.used:][:room:room])
	set.w.WriteBits(uint64(set.Order), wire.GapOrderBits)
	set.context, set.work = wire.Context{Names: delta.NamesAt(s.Tick)}, 0
	set.context.Names.Write(&set.w, delta.Baselines{A1: set.Base, A2: set.Second, Two: true})
	set.Packets = append(set.Packets, SharedPacket{First: len(set.Blocks)})
	set.open = true
	return true
}

// closePacket ends the open packet, if there is one.
func (set *PacketSet) closePacket() {
	if !set.open {
		return
	}
	set.open = false
	k := &set.Packets[len(set.Packets)-1]
	k.Bits, k.Body, k.End = set.w.Len(), set.w.Bytes(), len(set.Blocks)
	set.used += len(k.Body)
}

// appendBlock adds slots of a block to the open packet. It returns false, and adds nothing, if
// they don't fit.
func (c *Cache) appendBlock(set *PacketSet, b int, changed uint64) bool {
	mark, w, x := set.w.Mark(), set.w, set.context
	k := SharedBlock{Packet: len(set.Packets) - 1, First: len(set.Entries)}
	plain := uint64(0)
	works, work := c.columns.Works(changed), 0
	for d := changed; d != 0; d &= d - 1 {
		i := bits.TrailingZeros64(d)
		slot, class := b<<6+i, 0
		for c.classes.List[class].Mask>>i&1 == 0 {
			class++
		}
		w.WriteRice(uint64(slot-x.Next), set.Order)
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
		set.Entries = append(set.Entries, SharedEntry{int32(from), int32(w.Len()), works[i], int32(work)})
	}
	if w.Err() != nil || !c.Snap.Opts.FreeWork.Allows(set.work+work, w.Len()) {
		w.Rollback(mark)
		set.Entries = set.Entries[:k.First]
		return false
	}
	set.w, set.context, set.work = w, x, set.work+work
	k.Entries = len(set.Entries) - k.First
	c.bookBlock(set, &k, changed)
	set.Packets[k.Packet].Entries += k.Entries
	set.Slots[b], set.Plain[b], set.Places[b] = changed, plain, int32(len(set.Blocks))
	set.Records = append(set.Records, baseline.NewRecord(b, changed, baseline.RecordState))
	set.Blocks = append(set.Blocks, k)
	return true
}

// bookBlock notes what the entries of a block cost and how old their baselines are.
func (c *Cache) bookBlock(set *PacketSet, k *SharedBlock, changed uint64) {
	k.firstAge, k.firstCost = len(set.ages), len(set.costs)
	for i := range c.classes.List {
		l := &c.classes.List[i]
		if n := bits.OnesCount64(l.Mask & changed); n > 0 {
			set.ages = append(set.ages, sharedAge{uint8(min(c.tick-l.A1, 32)), uint8(n)})
		}
	}
	set.costs = c.columns.AppendCosts(set.costs)
	k.lastAge, k.lastCost = len(set.ages), len(set.costs)
}

// FinishPacketSets books what has been sent of the streams.
func (c *Cache) FinishPacketSets() {
	for i := range c.PacketSets {
		set := &c.PacketSets[i]
		for j := range set.Blocks {
			k := &set.Blocks[j]
			entries := uint64(k.Entries)
			copies := uint64(set.Packets[k.Packet].Copies)*entries + uint64(k.Copies)
			for _, cost := range set.costs[k.firstCost:k.lastCost] {
				c.FieldBits[cost.Field] += uint64(cost.Bits) * copies / entries
			}
			for _, a := range set.ages[k.firstAge:k.lastAge] {
				c.Ages[a.age] += uint64(a.entries) * uint64(set.Packets[k.Packet].Copies)
			}
			c.Ages[min(c.tick-set.Base, 32)] += uint64(k.Copies)
			c.Made += entries
			c.Copied += copies
		}
		for j := range set.Packets {
			c.Shared += uint64(set.Packets[j].Copies)
		}
	}
}
