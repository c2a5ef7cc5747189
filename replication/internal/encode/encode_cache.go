// Package encode encodes each entity once per tick, and shares the bits among the peers that need them.
package encode

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// The bits of an entity's entry depend on the entity and its baselines alone, not on the
// peer or the packet. So they are made once per tick and copied into every packet that
// needs them: most peers of a game have acknowledged the same few ticks.

// A CachedEntry is such bits: the rows of an entity against its baselines, or whole.
type CachedEntry struct {
	Baselines delta.Baselines // unless it is wire.EntryFull
	Kind      wire.EntryKind
	known     bool  // false: a baseline is not kept any more, there are no bits
	Index     int32 // its place in the cache
	next      int32 // another run of the slot, -1 for none

	first, Bits         int32 // where the bits stand in the cache's buffer: byte and number of bits
	firstCost, lastCost int32 // what they cost by field
	Copies              uint32
	Work                int32 // of the entry, see config/work.go
}

// A Cache holds the runs made in the present tick.
type Cache struct {
	Snap    *snapshot.Snapshot
	packed  *delta.Packed
	tick    delta.Tick
	Entries []CachedEntry
	heads   []slotEntries // by slot
	buf     []byte
	used    int
	worst   int // bytes that a run takes at most
	Limit   int // bytes that are used at most, and a little more

	head    [maxSetBytes]byte // scratch memory
	filling uint32            // how often the cache was empty
	Pinned  bool              // runs are in use: bound has to wait

	PacketSets []PacketSet
	asked      bitset.Set // by block: streams may have something of it
	most       int        // streams in a tick, lately
	// Of the block that goes into streams.
	columns   *delta.Columns
	classes   baseline.Classes
	against   []delta.Against // the classes
	narrowest int             // width of an entity of the block
	reshaped  uint64          // slots that may have had other components at a baseline
	touched   uint32

	Compact *compact.Coder // nil: none was needed

	changed []changeCount // see ChangedSince

	FieldBits []uint64   // sent so far, by field and then symbols of components
	Ages      [33]uint64 // see ServerStats.BaselineAges
	Made      uint64
	Copied    uint64
	Shared    uint64 // packets
}

// A changeCount is how many entities changed after a tick.
type changeCount struct {
	after    delta.Tick
	entities int
}

type slotEntries struct {
	filling uint32 // first is valid if this is the present one
	first   int32
}

func (c *Cache) Init(s *snapshot.Snapshot) {
	c.Snap, c.classes.Slots = s, &s.Slots
	c.Limit = MaxCacheBytes
	c.packed, c.columns = delta.NewPacked(s.Schema.Layout), delta.NewColumns(s.Schema.Layout)
	// No code of a residual is longer than three times its field's width, and symbols and
	// sets take less than a KiB.
	for i := range s.Schema.Components {
		c.worst += s.Schema.Components[i].Layout.Width()
	}
	c.worst = 3*min(c.worst, wire.MaxEntityBits)/8 + 1<<10
	c.FieldBits = make([]uint64, s.Schema.Layout.Fields()+len(s.Schema.Components))
}

// Begin starts a tick.
func (c *Cache) Begin(now delta.Tick) {
	c.tick = now
	c.changed = c.changed[:0]
	c.shrinkPacketSets()
	c.clear()
	for n := c.Snap.Slots.Len(); len(c.heads) < n; {
		c.heads = append(c.heads, slotEntries{})
	}
}

// reuse returns list with one more element: one with memory that was there before, if any was.
func reuse[T any](list []T) []T {
	if len(list) < cap(list) {
		return list[:len(list)+1]
	}
	var fresh T
	return append(list, fresh)
}

// clear forgets all runs. Their heads are those of another filling then.
func (c *Cache) clear() {
	c.filling++
	c.Entries, c.used = c.Entries[:0], 0
	c.packed.Costs = c.packed.Costs[:0]
}

// Full reports whether the cache has become too large.
func (c *Cache) Full() bool { return c.used > c.Limit }

// Bound keeps the memory within bounds, where very much is encoded: what is forgotten is
// made again if need be. No run may be in use.
func (c *Cache) Bound() {
	if c.Full() && !c.Pinned {
		c.Finish()
		c.clear()
	}
}

// Finish books what the runs have cost, now that it is known how often they went out.
func (c *Cache) Finish() {
	for i := range c.Entries {
		r := &c.Entries[i]
		for _, cost := range c.packed.Costs[r.firstCost:r.lastCost] {
			c.FieldBits[cost.Field] += uint64(cost.Bits) * uint64(r.Copies)
		}
		c.Copied += uint64(r.Copies)
		c.Ages[r.age(c.tick)] += uint64(r.Copies)
	}
	c.Made += uint64(len(c.Entries))
}

// age returns how old the run's baseline is, as in replication.ServerStats.BaselineAges.
func (r *CachedEntry) age(now delta.Tick) delta.Tick {
	if r.Kind == wire.EntryFull {
		return 0
	}
	return min(now-r.Baselines.A1, 32)
}

// FullState returns the run of the slot's rows at fixed width.
func (c *Cache) FullState(slot int) *CachedEntry {
	return c.get(slot, wire.EntryFull, delta.Baselines{})
}

// Update returns the run of the slot's rows against those of the given ticks, or nil if
// the state at one of them is not kept any more.
func (c *Cache) Update(slot int, b delta.Baselines) *CachedEntry {
	if r := c.get(slot, wire.EntryUpdate, b); r.known {
		return r
	}
	return nil
}

// get returns a run, made now or before in this tick. The pointer is valid until the
// next get.
func (c *Cache) get(slot int, kind wire.EntryKind, b delta.Baselines) *CachedEntry {
	head := &c.heads[slot]
	if head.filling != c.filling {
		head.filling, head.first = c.filling, -1
	}
	for i := head.first; i >= 0; i = c.Entries[i].next {
		if r := &c.Entries[i]; r.Baselines == b && (r.Kind == wire.EntryFull) == (kind == wire.EntryFull) {
			return r
		}
	}
	c.Entries = append(c.Entries, CachedEntry{
		Kind: kind, Baselines: b, known: true, Index: int32(len(c.Entries)), next: head.first,
		first: int32(c.used), firstCost: int32(len(c.packed.Costs)),
	})
	r := &c.Entries[len(c.Entries)-1]
	head.first = r.Index
	c.reserve(c.worst)
	w := bitbuf.NewWriter(c.buf[c.used:])
	if kind == wire.EntryFull {
		c.encodeFull(&w, slot)
		r.Work = int32(c.Snap.Schema.FullWork(&c.Snap.Slots.Info[slot].Set))
	} else {
		var work int
		r.Kind, work, r.known = c.EncodeUpdate(&w, slot, b)
		r.Work = int32(work)
	}
	r.Bits = int32(w.Len())
	c.used += len(w.Bytes())
	r.lastCost = int32(len(c.packed.Costs))
	return r
}

// reserve makes room for as many bytes, and one word, in the buffer.
func (c *Cache) reserve(bytes int) {
	if need := c.used + bytes + 8; need > len(c.buf) {
		c.buf = append(c.buf, make([]byte, need)...)
	}
}

// Bytes returns the bits of a run as bytes.
func (c *Cache) Bytes(r *CachedEntry) []byte { return c.buf[r.first : r.first+(r.Bits+7)/8] }

// Jumped reports whether a slot went so far from its baselines that it takes fewer bits
// without them: a teleport costs no more than to send what is there.
func (c *Cache) Jumped(slot, bits int) bool {
	info := &c.Snap.Slots.Info[slot]
	if bits <= info.Width {
		return false
	}
	w := bitbuf.NewWriter(c.head[:])
	w.WriteExpGolomb(uint64(info.Generation), wire.GenerationOrder)
	delta.WriteSet(&w, &info.Set, &delta.Set{})
	return bits > info.Width+w.Len()
}

// MaxCacheBytes bounds the bytes of all runs that are kept at a time.
const MaxCacheBytes = 16 << 20

// maxSetBytes is more than a generation and a component set take.
const maxSetBytes = 256

// encodeFull writes the slot's rows at fixed width.
func (c *Cache) encodeFull(w *bitbuf.Writer, slot int) {
	set := &c.Snap.Slots.Info[slot].Set
	c.packed.Begin()
	for k := set.Next(0); k >= 0; k = set.Next(k + 1) {
		c.packed.Add(k, c.Snap.Histories[k].Row(slot), nil, nil, 0)
	}
	c.packed.End(w)
}

// EncodeUpdate writes the slot's rows against those of the given ticks, and returns the work of
// the entry at most. It returns false if the state at one of them is not kept any more.
func (c *Cache) EncodeUpdate(w *bitbuf.Writer, slot int, b delta.Baselines) (kind wire.EntryKind, work int, known bool) {
	s := c.Snap
	info := &s.Slots.Info[slot]
	var ratio int64
	if b.Two {
		ratio = delta.Ratio(s.Tick, b.A1, b.A2)
	}
	if s.Tick-b.A1 > delta.Tick(s.Opts.Window) && !s.Sure(slot, b.A1) {
		return wire.EntryUpdate, 0, false
	}
	if info.Restructured.After(b.A1) {
		var base delta.Set
		for k, h := range s.Histories {
			switch _, found := h.At(slot, b.A1); found {
			case delta.Forgotten:
				return wire.EntryUpdate, 0, false
			case delta.Present:
				base.Add(k)
			}
		}
		if base != info.Set {
			kind = wire.EntrySetChange
			delta.WriteSet(w, &info.Set, &base)
		}
	}
	oldest := b.A1
	if ratio != 0 {
		oldest = b.A2
	}
	c.packed.Begin()
	for k := info.Set.Next(0); k >= 0; k = info.Set.Next(k + 1) {
		h := s.Histories[k]
		if !h.Began(slot).After(oldest) {
			c.packed.AddSame(k, ratio != 0)
			work += schema.RowWork(s.Schema.Components[k].Layout, false)
			continue
		}
		v := h.Versions(slot)
		base, known := compact.Before(&v, b.A1)
		if !known {
			return wire.EntryUpdate, 0, false
		}
		var base2 []uint32
		if base != nil && ratio != 0 {
			if base2, known = compact.Before(&v, b.A2); !known {
				return wire.EntryUpdate, 0, false
			}
		}
		c.packed.Add(k, v.Row(), base, base2, ratio)
		work += schema.RowWork(s.Schema.Components[k].Layout, true)
	}
	c.packed.End(w)
	return kind, work, true
}

// CompactCoder returns the worker's.
func (c *Cache) CompactCoder() *compact.Coder {
	if c.Compact == nil {
		c.Compact = compact.NewCoder(c.Snap.Schema)
	}
	return c.Compact
}

// CountCompact counts an entry that is sent.
func (c *Cache) CountCompact(entry *compact.Entry) {
	age := delta.Tick(0)
	if entry.Kind != wire.EntryFull {
		age = min(c.tick-entry.Name.A1, 32)
	}
	c.Ages[age]++
	c.Copied++
	c.Made++
}

// ChangedSince returns how many entities changed after tick at, one of the last snapshot.RecentTicks. Most peers ask
// for the same few ticks.
func (c *Cache) ChangedSince(at delta.Tick) (entities int) {
	for _, k := range c.changed {
		if k.after == at {
			return k.entities
		}
	}
	s := &c.Snap.Slots
	if changed := s.Recent.After(at); changed != nil { // else ticks did not end: a function of the user's panicked, and the game went on
		for w, blocks := range s.Recent.Blocks[at%snapshot.RecentTicks] {
			for b := range bitset.Slots(w, blocks|s.ChangedBlocks[w]) {
				entities += bits.OnesCount64(s.Alive[b] & (changed[b] | s.Changed[b]))
			}
		}
	}
	c.changed = append(c.changed, changeCount{at, entities})
	return entities
}
