package receive

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// compactEntries reads entries of Compact.
type compactEntries struct {
	*compact.Reader
	components int // of the schema

	limit int // slots from here on are refused
	tick  delta.Tick
	base  delta.Tick // of the packet, see wire.StateHeader
	named bool       // that is the tick of a model which the packet names
	past  delta.Past // of the row that is being read
	chain int        // what the list of slots has of the entry: compact.ChainNew and so on
	left  int        // how many more entries the packet may have
}

// begin starts a packet. age has the lower bits of the age of the model that the packet begins
// with; the others are in the body.
func (c *compactEntries) begin(body []byte, age, sequence, limit uint32, tick delta.Tick) error {
	c.D = delta.NewRangeDecoder(body)
	high := c.D.GetExpGolomb(compact.ModelRef)
	if c.D.Err() != nil || high >= compact.MaxModelAge>>compact.AgeLow {
		return wire.ErrMalformed
	}
	age |= uint32(high << compact.AgeLow)
	var from *compact.State
	if c.base, c.named = tick-1, age > 0; c.named {
		if from = c.Held.At(sequence - age); from == nil {
			return wire.ErrMissingModel
		}
		c.base = from.Tick
	}
	c.Spare.CopyFrom(from, c.Coder)
	c.Spare.Tick = tick
	c.Walk.Begin(from, tick)
	c.Coder.Begin(&c.Spare.Model)
	c.tick, c.limit, c.left = tick, int(limit), compact.MaxCompact
	return nil
}

func (c *compactEntries) failed() bool { return c.D.Err() != nil }

func (c *compactEntries) next(e *entryHead) bool {
	chain, end, ok := c.GetSlot(c.limit)
	if end && ok {
		return false
	}
	if c.left--; !ok || c.left < 0 || c.failed() {
		c.D.Fail()
		return false
	}
	c.chain, e.slot = chain, uint32(c.Walk.Next-1)
	steps := 0
	for steps < compact.KindSteps && c.Coder.GetHead(&c.D, compact.HeadKind+chain*compact.KindSteps+steps) {
		steps++
	}
	e.kind = wire.EntryUpdate
	if steps > 0 {
		e.kind = wire.EntryKind(steps + 1)
	}
	switch e.kind {
	case wire.EntryUpdate, wire.EntrySetChange:
		c.name(e)
	case wire.EntryFull:
		c.full(e)
	case wire.EntryDespawn:
		e.left = c.Coder.GetHead(&c.D, compact.HeadLeft)
	}
	return !c.failed()
}

// name reads the name of an entry's baselines.
func (c *compactEntries) name(e *entryHead) {
	name := c.GetName(c.chain)
	if c.tick-name.A1-1 >= delta.MaxAge {
		c.D.Fail()
	}
	c.Spare.Named(int(e.slot), &name)
	e.baselines = name
}

// full reads the generation and the component set of an EntryFull.
func (c *compactEntries) full(e *entryHead) {
	e.generation = uint16(c.Coder.GetHeadLength(&c.D, compact.HeadLife, compact.LifeLengths, 16))
	if !c.Coder.GetHead(&c.D, compact.HeadSet) {
		c.Walk.Set = c.set(&c.Walk.Set)
	}
	e.full = c.Walk.Set
}

func (c *compactEntries) set(ref *wire.ComponentSet) wire.ComponentSet {
	return c.GetSet(ref, c.components)
}

func (c *compactEntries) beginFull(int) { c.beginUpdate(0, 0, 0, 0) }

func (c *compactEntries) beginUpdate(_ int, ratio, ratio3, ratio4 int64) (onlyMoving bool) {
	c.past.Ratio, c.past.NearRatio, c.past.MidRatio = ratio, ratio3, ratio4
	c.Coder.Entity(c.chain == compact.ChainRepeated)
	return false
}

func (c *compactEntries) row(k int, dst, base, base2, base3, base4 []uint32) (changed, ok bool) {
	c.past.Base, c.past.Base2, c.past.Near, c.past.Mid = base, base2, base3, base4
	changed = c.Coder.DecodeRow(&c.D, k, dst, &c.past)
	return changed, c.D.Err() == nil
}

func (c *compactEntries) alike(places []Place, rows []uint32, b *baselines) (work int, ok bool) {
	past := delta.Past{Ratio: b.ratio, NearRatio: b.ratio3, MidRatio: b.ratio4}
	words1 := b.first.Words
	words2, words3, words4 := words1, words1, words1 // not used where a ratio is 0
	if b.second != nil {
		words2 = b.second.Words
	}
	if b.third != nil {
		words3 = b.third.Words
	}
	if b.fourth != nil {
		words4 = b.fourth.Words
	}
	for i := range places {
		at := &places[i]
		from, to := at.offset, at.end
		past.Base, past.Base2 = words1[from:to:to], words2[from:to:to]
		past.Near, past.Mid = words3[from:to:to], words4[from:to:to]
		row := rows[from:to:to]
		if !c.Coder.DecodeRow(&c.D, at.Number, row, &past) {
			work++
			continue
		}
		if work += at.work; !at.Comp.ValidDecoded(row) {
			return work, false
		}
	}
	return work, true
}

func (c *compactEntries) number() uint64 { return c.D.GetExpGolomb(wire.PartOrder) }

func (c *compactEntries) bytes(dst []byte) {
	for i := range dst {
		dst[i] = byte(c.D.GetBits(8))
	}
}

func (c *compactEntries) spent() uint64 { return c.D.Spent() }
