// Package encode encodes the entities of a tick once and shares the bits among all peers that need
// them. It reads the snapshot of the tick and the baselines that peers have acknowledged, and
// yields the bits of single entries ([Cache]) and of packets that several peers are sent
// ([PacketSets]). The sender owns one of each per worker and copies the bits into the packets of
// its peers.
package encode

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// The bits of an entry depend only on the entity and its baselines, not on the peer or the packet.
// They are therefore encoded once per tick and copied into every packet that needs them: most peers
// of a game have acknowledged the same few ticks.

// A CachedEntry is an entity encoded in the present tick: an update against baselines, or its full
// state.
type CachedEntry struct {
	Baselines delta.Baselines // of an update
	Kind      wire.EntryKind
	known     bool  // false: the history no longer has one of the baselines, so there are no bits
	Index     int32 // in Cache.Entries
	next      int32 // the next entry of the same slot, -1 for none

	first, Bits         int32 // the bits in the cache's buffer: index of the first byte, and number of bits
	firstCost, lastCost int32 // the cost of each field, in the cache's packer
	Copies              uint32
	Work                int32 // decoding work of the entry, see config/work.go
}

// A Cache holds the entries encoded in the present tick.
type Cache struct {
	Snap *snapshot.Snapshot
	tick delta.Tick

	packed  *delta.Packed
	Entries []CachedEntry
	heads   []slotEntries // by slot
	buf     []byte
	used    int
	worst   int    // upper bound for the bytes of an entry
	Limit   int    // for the bytes in use, which exceed it by what one peer is sent
	filling uint32 // how often the cache was emptied

	// Of the packet that is being filled.
	Slots    wire.SlotLists
	Contents []byte           // room for a packet, and 8 bytes; of the worker
	Ref      []wire.SlotBlock // the slots to which those of the packet refer
	RefSlots int              // slots in Ref

	Compact *compact.Coder // nil until the worker serves a peer with the coding Compact
	changed []changeCount  // see ChangedSince
	Counts
}

// Counts are what a worker has encoded and sent so far.
type Counts struct {
	FieldBits []uint64   // bits sent, by field and then by the symbols of components
	Ages      [33]uint64 // entries sent, by the age of the baseline; see ServerStats.BaselineAges
	Made      uint64     // entries encoded
	Copied    uint64     // entries sent
	Shared    uint64     // packets sent that were copied from a packet set
}

// A changeCount is how many entities changed after a tick.
type changeCount struct {
	after    delta.Tick
	entities int
}

// A slotEntries is the head of the list of a slot's entries.
type slotEntries struct {
	filling uint32 // first is valid if this equals Cache.filling
	first   int32
}

// Init prepares the cache for the slots of a snapshot.
func (c *Cache) Init(s *snapshot.Snapshot) {
	c.Snap = s
	c.Limit = MaxCacheBytes
	c.packed = delta.NewPacked(s.Schema.Layout)
	// A residual takes three times the width of its field at most; symbols and component sets take
	// less than a KiB.
	for i := range s.Schema.Components {
		c.worst += s.Schema.Components[i].Layout.Width()
	}
	c.worst = 3*min(c.worst, wire.MaxEntityBits)/8 + 1<<10
	c.FieldBits = make([]uint64, s.Schema.Layout.Fields()+len(s.Schema.Components))
}

// Begin starts a tick with an empty cache.
func (c *Cache) Begin(now delta.Tick) {
	c.tick = now
	c.changed = c.changed[:0]
	c.packed.SetShift(c.Snap.Steady.Shift)
	if c.clear(); len(c.buf) > 4*c.Limit { // one peer was sent very much
		c.buf = nil
	}
	for n := c.Snap.Slots.Len(); len(c.heads) < n; {
		c.heads = append(c.heads, slotEntries{})
	}
}

// clear drops all entries. Raising filling invalidates the heads of all slots at once.
func (c *Cache) clear() {
	c.filling++
	c.Entries, c.used = c.Entries[:0], 0
	c.packed.Costs = c.packed.Costs[:0]
}

// Trim empties the cache if it exceeds its limit. It is called between peers, since pointers to entries and their
// indices become invalid. Dropped entries are encoded again on demand.
func (c *Cache) Trim() {
	if c.used > c.Limit {
		c.Finish()
		c.clear()
	}
}

// Finish adds the cost of the entries to the counts, now that the number of copies of each is
// known.
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

// age returns how many ticks ago the entry's baseline was: 0 for a full state, 32 for all older
// ones.
func (r *CachedEntry) age(now delta.Tick) delta.Tick {
	if r.Kind == wire.EntryFull {
		return 0
	}
	return min(now-r.Baselines.A1, 32)
}

// FullState returns the entry with the slot's rows at fixed width. The pointer is valid until the
// cache is next asked for an entry.
func (c *Cache) FullState(slot int) *CachedEntry {
	return c.get(slot, wire.EntryFull, delta.Baselines{})
}

// Update returns the entry with the slot's rows against baselines, or nil if the history no longer
// has one of them. The pointer is valid until the cache is next asked for an entry.
func (c *Cache) Update(slot int, b delta.Baselines) *CachedEntry {
	if r := c.get(slot, wire.EntryUpdate, b); r.known {
		return r
	}
	return nil
}

// get returns an entry, and encodes it if it is the first request in this tick.
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

// reserve makes room in the buffer for some bytes and the word that a Writer may write past them.
func (c *Cache) reserve(bytes int) {
	if need := c.used + bytes + 8; need > len(c.buf) {
		c.buf = append(c.buf, make([]byte, need)...)
	}
}

// Copy appends the bits of an entry.
func (c *Cache) Copy(w *bitbuf.Writer, r *CachedEntry) {
	w.WriteSpan(c.buf, int(r.first)<<3, int(r.Bits))
}

// FullIsSmaller reports whether the full state of a slot takes fewer bits than an update of so
// many: after a teleport, an update is larger than the state itself.
func FullIsSmaller(s *snapshot.Snapshot, slot, update int) bool {
	info, width := &s.Slots.Info[slot], int(s.Slots.Widths[slot])
	if update <= width {
		return false
	}
	var head [maxSetBytes]byte
	w := bitbuf.NewWriter(head[:])
	w.WriteExpGolomb(uint64(info.Generation), wire.GenerationOrder)
	wire.WriteComponentSet(&w, &info.Set, &wire.ComponentSet{})
	return update > width+w.Len()
}

// MaxCacheBytes is the default limit of a cache.
const MaxCacheBytes = 16 << 20

// maxSetBytes exceeds what a generation and a component set take.
const maxSetBytes = 256

// encodeFull writes the slot's rows at fixed width.
func (c *Cache) encodeFull(w *bitbuf.Writer, slot int) {
	set := &c.Snap.Slots.Info[slot].Set
	c.packed.Begin()
	for k := range set.All() {
		c.packed.Add(k, c.Snap.Histories[k].Row(slot), nil, nil, 0)
	}
	c.packed.End(w)
}

// EncodeUpdate writes the slot's rows against baselines, and returns an upper bound for the work of
// decoding them. It returns false if the history no longer has one of the baselines.
func (c *Cache) EncodeUpdate(w *bitbuf.Writer, slot int, b delta.Baselines) (
	kind wire.EntryKind, work int, known bool,
) {
	s := c.Snap
	info := &s.Slots.Info[slot]
	var ratio int64
	if b.Two {
		ratio = delta.Ratio(s.Tick, b.A1, b.A2)
	}
	if s.Tick-b.A1 > delta.Tick(s.Opts.Window) && !s.Sure(slot, b.A1) {
		return wire.EntryUpdate, 0, false
	}
	if info.SetChanged.After(b.A1) {
		base, known := compact.SetAt(s, slot, b.A1)
		if !known {
			return wire.EntryUpdate, 0, false
		}
		if base != info.Set {
			kind = wire.EntrySetChange
			wire.WriteComponentSet(w, &info.Set, &base)
		}
	}
	oldest := b.A1
	if ratio != 0 {
		oldest = b.A2
	}
	c.packed.Begin()
	for k := range info.Set.All() {
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

// CompactCoder returns the worker's coder, which is made when the first peer needs it.
func (c *Cache) CompactCoder() *compact.Coder {
	if c.Compact == nil {
		c.Compact = compact.NewCoder(c.Snap.Schema)
	}
	return c.Compact
}

// CountCompact counts an entry of the coding Compact that was encoded and sent.
func (c *Cache) CountCompact(entry *compact.Entry) {
	age := delta.Tick(0)
	if entry.Kind != wire.EntryFull {
		age = min(c.tick-entry.Name.A1, 32)
	}
	c.Ages[age]++
	c.Copied++
	c.Made++
}

// ChangedSince returns how many entities changed after tick at, which must be one whose changes are known. The counts
// are kept for the tick, as most peers ask for the same few ticks.
func (c *Cache) ChangedSince(at delta.Tick) (entities int) {
	for _, k := range c.changed {
		if k.after == at {
			return k.entities
		}
	}
	s := &c.Snap.Slots
	changed := s.Recent.After(at)
	for w, blocks := range s.Recent.Blocks[at%snapshot.RecentTicks] {
		for b := range bitset.Slots(w, blocks|s.ChangedBlocks[w]) {
			entities += bits.OnesCount64(s.Alive[b] & (changed[b] | s.Changed[b]))
		}
	}
	c.changed = append(c.changed, changeCount{at, entities})
	return entities
}
