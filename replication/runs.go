package replication

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// The bits of an entity's entry depend on the entity and its baselines alone, not on the
// peer or the packet. So they are made once per tick and copied into every packet that
// needs them: most peers of a game have acknowledged the same few ticks.

// A run is such bits: the rows of an entity against its baselines, or whole.
type run struct {
	baselines delta.Baselines // unless it is entryWhole
	kind      wire.EntryKind
	known     bool  // false: a baseline is not kept any more, there are no bits
	index     int32 // its place in the cache
	next      int32 // another run of the slot, -1 for none

	first, bits         int32 // where the bits stand in the cache's buffer: byte and number of bits
	firstCost, lastCost int32 // what they cost by field
	copies              uint32
	work                int32 // of the entry, see work.go
}

// A runCache holds the runs made in the present tick.
type runCache struct {
	snap   *snapshot
	packed *delta.Packed
	tick   delta.Tick
	runs   []run
	heads  []runHead // by slot
	buf    []byte
	used   int
	worst  int // bytes that a run takes at most
	limit  int // bytes that are used at most, and a little more

	head    [maxSetBytes]byte // scratch memory
	filling uint32            // how often the cache was empty
	pinned  bool              // runs are in use: bound has to wait

	streams []stream
	asked   bitset.Set // by block: streams may have something of it
	most    int        // streams in a tick, lately
	// Of the block that goes into streams.
	columns   *delta.Columns
	classes   classes
	against   []delta.Against // the classes
	narrowest int             // width of an entity of the block
	reshaped  uint64          // slots that may have had other components at a baseline
	touched   uint32

	compact *compactCoder // nil: none was needed

	changed []changeCount // see changedSince

	fieldBits []uint64   // sent so far, by field and then symbols of components
	ages      [33]uint64 // see ServerStats.BaselineAges
	made      uint64
	copied    uint64
	shared    uint64 // packets
}

// A changeCount is how many entities changed after a tick.
type changeCount struct {
	after    delta.Tick
	entities int
}

type runHead struct {
	filling uint32 // first is valid if this is the present one
	first   int32
}

func (c *runCache) init(s *snapshot) {
	c.snap, c.classes.slots = s, &s.slots
	c.limit = maxRunBytes
	c.packed, c.columns = delta.NewPacked(s.schema.Layout), delta.NewColumns(s.schema.Layout)
	// No code of a residual is longer than three times its field's width, and symbols and
	// sets take less than a KiB.
	for i := range s.schema.Components {
		c.worst += s.schema.Components[i].Layout.Width()
	}
	c.worst = 3*min(c.worst, wire.MaxEntityBits)/8 + 1<<10
	c.fieldBits = make([]uint64, s.schema.Layout.Fields()+len(s.schema.Components))
}

// begin starts a tick.
func (c *runCache) begin(now delta.Tick) {
	c.tick = now
	c.changed = c.changed[:0]
	c.shrinkStreams()
	c.clear()
	for n := c.snap.slots.len(); len(c.heads) < n; {
		c.heads = append(c.heads, runHead{})
	}
}

// again returns list with one more element: one with memory that was there before, if any was.
func again[T any](list []T) []T {
	if len(list) < cap(list) {
		return list[:len(list)+1]
	}
	var fresh T
	return append(list, fresh)
}

// clear forgets all runs. Their heads are those of another filling then.
func (c *runCache) clear() {
	c.filling++
	c.runs, c.used = c.runs[:0], 0
	c.packed.Costs = c.packed.Costs[:0]
}

// full reports whether the cache has become too large.
func (c *runCache) full() bool { return c.used > c.limit }

// bound keeps the memory within bounds, where very much is encoded: what is forgotten is
// made again if need be. No run may be in use.
func (c *runCache) bound() {
	if c.full() && !c.pinned {
		c.finish()
		c.clear()
	}
}

// finish books what the runs have cost, now that it is known how often they went out.
func (c *runCache) finish() {
	for i := range c.runs {
		r := &c.runs[i]
		for _, cost := range c.packed.Costs[r.firstCost:r.lastCost] {
			c.fieldBits[cost.Field] += uint64(cost.Bits) * uint64(r.copies)
		}
		c.copied += uint64(r.copies)
		c.ages[r.age(c.tick)] += uint64(r.copies)
	}
	c.made += uint64(len(c.runs))
}

// age returns how old the run's baseline is, as in [ServerStats.BaselineAges].
func (r *run) age(now delta.Tick) delta.Tick {
	if r.kind == wire.EntryFull {
		return 0
	}
	return min(now-r.baselines.A1, 32)
}

// whole returns the run of the slot's rows at fixed width.
func (c *runCache) whole(slot int) *run {
	return c.get(slot, wire.EntryFull, delta.Baselines{})
}

// update returns the run of the slot's rows against those of the given ticks, or nil if
// the state at one of them is not kept any more.
func (c *runCache) update(slot int, b delta.Baselines) *run {
	if r := c.get(slot, wire.EntryUpdate, b); r.known {
		return r
	}
	return nil
}

// get returns a run, made now or before in this tick. The pointer is valid until the
// next get.
func (c *runCache) get(slot int, kind wire.EntryKind, b delta.Baselines) *run {
	head := &c.heads[slot]
	if head.filling != c.filling {
		head.filling, head.first = c.filling, -1
	}
	for i := head.first; i >= 0; i = c.runs[i].next {
		if r := &c.runs[i]; r.baselines == b && (r.kind == wire.EntryFull) == (kind == wire.EntryFull) {
			return r
		}
	}
	c.runs = append(c.runs, run{
		kind: kind, baselines: b, known: true, index: int32(len(c.runs)), next: head.first,
		first: int32(c.used), firstCost: int32(len(c.packed.Costs)),
	})
	r := &c.runs[len(c.runs)-1]
	head.first = r.index
	c.reserve(c.worst)
	w := bitbuf.NewWriter(c.buf[c.used:])
	if kind == wire.EntryFull {
		c.encodeWhole(&w, slot)
		r.work = int32(c.snap.schema.WholeWork(&c.snap.slots.info[slot].set))
	} else {
		var work int
		r.kind, work, r.known = c.encodeUpdate(&w, slot, b)
		r.work = int32(work)
	}
	r.bits = int32(w.Len())
	c.used += len(w.Bytes())
	r.lastCost = int32(len(c.packed.Costs))
	return r
}

// reserve makes room for as many bytes, and one word, in the buffer.
func (c *runCache) reserve(bytes int) {
	if need := c.used + bytes + 8; need > len(c.buf) {
		c.buf = append(c.buf, make([]byte, need)...)
	}
}

// bytes returns the bits of a run as bytes.
func (c *runCache) bytes(r *run) []byte { return c.buf[r.first : r.first+(r.bits+7)/8] }

// jumped reports whether a slot went so far from its baselines that it takes fewer bits
// without them: a teleport costs no more than to send what is there.
func (c *runCache) jumped(slot, bits int) bool {
	info := &c.snap.slots.info[slot]
	if bits <= info.width {
		return false
	}
	w := bitbuf.NewWriter(c.head[:])
	w.WriteExpGolomb(uint64(info.generation), wire.GenerationOrder)
	delta.WriteSet(&w, &info.set, &delta.Set{})
	return bits > info.width+w.Len()
}

// maxRunBytes bounds the bytes of all runs that are kept at a time.
const maxRunBytes = 16 << 20

// maxSetBytes is more than a generation and a component set take.
const maxSetBytes = 256

// encodeWhole writes the slot's rows at fixed width.
func (c *runCache) encodeWhole(w *bitbuf.Writer, slot int) {
	set := &c.snap.slots.info[slot].set
	c.packed.Begin()
	for k := set.Next(0); k >= 0; k = set.Next(k + 1) {
		c.packed.Add(k, c.snap.histories[k].Row(slot), nil, nil, 0)
	}
	c.packed.End(w)
}

// encodeUpdate writes the slot's rows against those of the given ticks, and returns the work of
// the entry at most. It returns false if the state at one of them is not kept any more.
func (c *runCache) encodeUpdate(w *bitbuf.Writer, slot int, b delta.Baselines) (kind wire.EntryKind, work int, known bool) {
	s := c.snap
	info := &s.slots.info[slot]
	var ratio int64
	if b.Two {
		ratio = delta.Ratio(s.tick, b.A1, b.A2)
	}
	if s.tick-b.A1 > delta.Tick(s.opts.window) && !s.sure(slot, b.A1) {
		return wire.EntryUpdate, 0, false
	}
	if info.restructured.After(b.A1) {
		var base delta.Set
		for k, h := range s.histories {
			switch _, found := h.At(slot, b.A1); found {
			case delta.Forgotten:
				return wire.EntryUpdate, 0, false
			case delta.Present:
				base.Add(k)
			}
		}
		if base != info.set {
			kind = wire.EntrySetChange
			delta.WriteSet(w, &info.set, &base)
		}
	}
	oldest := b.A1
	if ratio != 0 {
		oldest = b.A2
	}
	c.packed.Begin()
	for k := info.set.Next(0); k >= 0; k = info.set.Next(k + 1) {
		h := s.histories[k]
		if !h.Began(slot).After(oldest) {
			c.packed.AddSame(k, ratio != 0)
			work += rowWork(s.schema.Components[k].Layout, false)
			continue
		}
		v := h.Versions(slot)
		base, known := before(&v, b.A1)
		if !known {
			return wire.EntryUpdate, 0, false
		}
		var base2 []uint32
		if base != nil && ratio != 0 {
			if base2, known = before(&v, b.A2); !known {
				return wire.EntryUpdate, 0, false
			}
		}
		c.packed.Add(k, v.Row(), base, base2, ratio)
		work += rowWork(s.schema.Components[k].Layout, true)
	}
	c.packed.End(w)
	return kind, work, true
}

// sure reports whether the state of a slot at a tick long ago is sure to be known. It may be by chance, for want of changes in
// the slots beside it; but what a peer is sent must not depend on those, which it may not see.
func (s *snapshot) sure(slot int, at delta.Tick) bool {
	for _, h := range s.histories {
		if !h.Sure(slot, at, s.tick) {
			return false
		}
	}
	return true
}

// before returns the row at tick t, which is not the present one, or nil if there was none.
// It returns false if that is not known any more.
func before(v *delta.Versions, t delta.Tick) (row []uint32, known bool) {
	row, found := v.At(t)
	if found == delta.Absent {
		row = nil
	}
	return row, found != delta.Forgotten
}
