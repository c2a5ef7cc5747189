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

// PacketSets are the packet sets of a tick. They are filled together, block by block, so that the
// history that one of them reads is in the processor's cache for the others.
type PacketSets struct {
	snap  *snapshot.Snapshot
	parts *Partitions
	tick  delta.Tick
	List  []PacketSet
	pool  recordPool
	most  int // sets in a tick, since memory was last given back

	asked bitset.Set // by block: some set may want slots of it

	// Of the block that is being encoded.
	columns    *delta.Columns
	narrowest  int    // least width of an entity
	setChanged uint64 // slots whose component set may have changed since a baseline
}

const (
	// MaxPacketSets bounds the sets of a tick.
	MaxPacketSets = 64
	// NoSet stands for the index of a set where there is none.
	NoSet = -1
)

// Init prepares for the slots of a snapshot. The partitions change between ticks only.
func (c *PacketSets) Init(s *snapshot.Snapshot, parts *Partitions) {
	c.snap, c.parts, c.columns = s, parts, delta.NewColumns(s.Schema.Layout)
}

// Begin starts a tick without sets. From time to time it gives back the memory of a rare burst.
func (c *PacketSets) Begin(now delta.Tick) {
	c.tick = now
	c.most = max(c.most, len(c.List))
	c.List = c.List[:0]
	if c.tick%ackstate.ResizeTicks == 0 {
		if keep := 2 * c.most; keep < cap(c.List) {
			clear(c.List[keep:cap(c.List)])
		}
		c.pool.shrink()
		c.most = 0
	}
}

// Find returns the index of the set with parts of what changed in a period, for peers that are likely to have a pair
// of baselines, or NoSet.
func (c *PacketSets) Find(likely snapshot.BasePair, period *snapshot.Period) int32 {
	return c.find(likely, c.parts.of(period, likely, c.tick))
}

// find returns the index of a set with the parts of a partition, or of one without parts, or NoSet.
func (c *PacketSets) find(of snapshot.BasePair, parts *partition) int32 {
	for i := range c.List {
		if set := &c.List[i]; set.BasePair == of && set.parts.partition == parts {
			return int32(i)
		}
	}
	return NoSet
}

// Add returns the index of a set without parts, which is new and empty if there was none; NoSet if there are too many
// sets.
func (c *PacketSets) Add(of snapshot.BasePair) int32 { return c.add(of, nil, nil) }

// add is Add for a set with the parts of a partition, if that is not nil.
func (c *PacketSets) add(of snapshot.BasePair, period *snapshot.Period, parts *partition) int32 {
	if i := c.find(of, parts); i != NoSet {
		return i
	}
	n := len(c.List)
	if n == MaxPacketSets {
		return NoSet
	}
	c.List = reuse(c.List)
	layout := c.snap.Schema.Layout
	set := &c.List[n]
	set.begin(of, &c.snap.Slots, layout.Fields()+len(layout.Components), c.pool.replace(set.records))
	if parts != nil {
		set.split(period, parts, &c.snap.Slots)
	}
	return int32(n)
}

// reuse returns the list with one more element, which keeps the memory that it had before.
func reuse[T any](list []T) []T {
	if len(list) < cap(list) {
		return list[:len(list)+1]
	}
	var fresh T
	return append(list, fresh)
}

// Ready returns the set that has an entry of a slot against the baselines of a class, or nil.
func (c *PacketSets) Ready(slot int, of *baseline.Class) *PacketSet {
	if !of.Two {
		return nil
	}
	for i := range c.List {
		if set := &c.List[i]; set.Base == of.A1 && set.Second == of.A2 && set.Slots.Has(slot) {
			return set
		}
	}
	return nil
}

// Fill encodes what is wanted of the sets.
func (c *PacketSets) Fill() {
	if len(c.List) == 0 {
		return
	}
	s := &c.snap.Slots
	c.asked = c.asked.Grown(len(s.Alive))
	clear(c.asked)
	for i := range c.List {
		for w, asked := range c.List[i].asked {
			c.asked[w] |= asked
		}
	}
	for b := range c.asked.All() {
		c.fillBlock(b)
	}
	for i := range c.List {
		c.List[i].closePacket(c.tick, c.snap.Steady.Shift)
	}
}

// Finish adds what was sent of the sets to the counts of a worker.
func (c *PacketSets) Finish(counts *Counts) {
	for i := range c.List {
		c.List[i].finish(counts, c.tick)
	}
}

// fillBlock encodes what the sets want of a block.
func (c *PacketSets) fillBlock(b int) {
	all, farthest := uint64(0), delta.Tick(0)
	for i := range c.List {
		if set := &c.List[i]; set.wanted[b] != 0 {
			all |= set.wanted[b]
			farthest = max(farthest, c.tick-set.Second)
		}
	}
	if all == 0 {
		return
	}
	c.gatherColumns(b, all, c.tick-farthest)
	for i := range c.List {
		if set := &c.List[i]; set.wanted[b] != 0 {
			c.addBlock(set, b, set.wanted[b])
		}
	}
}

// gatherColumns loads the components of slots of a block for all sets. No set has a baseline before
// the oldest tick.
func (c *PacketSets) gatherColumns(b int, changed uint64, oldest delta.Tick) {
	s := c.snap
	c.narrowest = wire.MaxEntityBits
	for slot := range bitset.Slots(b, changed) {
		c.narrowest = min(c.narrowest, int(s.Slots.Widths[slot]))
	}
	components, setChanged := s.Slots.Components(b, changed, oldest)
	c.setChanged = setChanged
	s.BeginColumns(c.columns, b, changed, components, oldest)
}

// addBlock adds entries of changed slots of a block. It leaves out slots whose component set
// changed or whose full state is smaller: peers encode these themselves.
func (c *PacketSets) addBlock(set *PacketSet, b int, changed uint64) {
	for slot := range bitset.Slots(b, changed&c.setChanged) {
		if c.snap.Slots.Info[slot].SetChanged.After(set.Base) {
			changed &^= 1 << (slot & 63)
		}
	}
	set.enter(b, c.tick, c.snap.Steady.Shift)
	of := delta.Against{
		Slots: changed, A1: set.Base, A2: set.Second, Ratio: delta.Ratio(c.tick, set.Base, set.Second),
		Shift: c.snap.Steady.Shift,
	}
	if changed = c.encodeColumns(b, of); changed == 0 || c.tryBlock(set, b, changed) {
		return
	}
	if set.open {
		set.closePacket(c.tick, c.snap.Steady.Shift)
		c.tryBlock(set, b, changed) // if it still does not fit, it is larger than a packet
	}
}

// encodeColumns encodes slots of the block, and returns those that have their baselines and are
// smaller as an update than as a full state.
func (c *PacketSets) encodeColumns(b int, of delta.Against) (slots uint64) {
	slots = c.columns.Encode(of)
	if c.columns.Most(slots) <= c.narrowest {
		return slots
	}
	full := uint64(0)
	for slot := range bitset.Slots(b, slots) {
		if FullIsSmaller(c.snap, slot, c.columns.Bits(slot)) {
			full |= 1 << (slot & 63)
		}
	}
	if full == 0 {
		return slots
	}
	of.Slots &^= full
	return c.columns.Encode(of)
}

// tryBlock adds slots of a block to the open packet, or to a new one if none is open. It returns
// false, and adds nothing, if they don't fit.
func (c *PacketSets) tryBlock(set *PacketSet, b int, changed uint64) bool {
	opened := false
	if !set.open {
		if opened = set.openPacket(c.snap); !opened {
			return false
		}
	}
	n := len(set.blocks)
	fits := c.appendBlock(set, b, changed)
	if opened && len(set.blocks) == n {
		set.open, set.packets = false, set.packets[:len(set.packets)-1]
	}
	return fits
}

// appendBlock adds slots of a block to the open packet. It returns false, and adds nothing, if they
// don't fit.
func (c *PacketSets) appendBlock(set *PacketSet, b int, changed uint64) bool {
	mark, lists, w := set.w.Mark(), set.lists.Mark(), set.w
	k := sharedBlock{packet: int32(len(set.packets) - 1), first: int32(len(set.entries)), begin: int32(w.Len())}
	works, work := c.columns.Works(changed), 0
	for d := changed; d != 0; d &= d - 1 {
		i := bits.TrailingZeros64(d)
		c.columns.Write(&w, b<<6+i)
		work += int(works[i])
		set.entries = append(set.entries, sharedEntry{int32(w.Len()), int32(work)})
	}
	if set.parts.period != nil {
		set.lists.AddUpdates(b, changed)
	}
	if w.Err() != nil || !set.lists.Fits(set.room-w.Len()) ||
		!c.snap.Opts.FreeWork.Allows(set.work+work, w.Len()) {
		w.Rollback(mark)
		set.lists.Rollback(&lists)
		set.entries = set.entries[:k.first]
		return false
	}
	set.w, set.work = w, set.work+work
	k.end = int32(len(set.entries))
	n := int(k.end - k.first)
	set.missing -= n
	c.columns.AddCosts(set.costs)
	set.packets[k.packet].Entries += n
	set.Slots[b], set.places[b] = changed, int32(len(set.blocks))
	set.records.List = append(set.records.List, baseline.NewRecord(b, changed, baseline.RecordState))
	set.blocks = append(set.blocks, k)
	return true
}
