package replication

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// decode reads the entries of a state packet and takes them over if all are right. If a
// baseline is missing it takes over nothing, since some of them may belong together, and
// returns ErrMissingBaseline.
func (c *receiver) decode(body []byte, pad int, tick delta.Tick) error {
	r := bitbuf.NewReader(body)
	end := len(body)*8 - pad
	c.staged.begin(end, c.freeWork)
	if pad > 0 && (len(body) == 0 || body[len(body)-1]>>(8-pad) != 0) {
		return wire.ErrMalformed
	}
	x := context{names: delta.NamesAt(tick)}
	order := uint(r.ReadBits(wire.GapOrderBits))
	if r.Pos() < end {
		x.names.Read(&r, true) // those in front
	}
	for r.Pos() < end && r.Err() == nil {
		if err := c.decodeEntry(&r, order, tick, &x); err != nil {
			return err
		}
		if !c.staged.fair() {
			return wire.ErrMalformed
		}
	}
	if r.Err() != nil || r.Pos() != end {
		return wire.ErrMalformed
	}
	return c.commit(tick)
}

// decodeEntry reads one entry into the staging area.
func (c *receiver) decodeEntry(r *bitbuf.Reader, order uint, tick delta.Tick, x *context) error {
	gap := r.ReadRice(order)
	if r.Err() != nil || gap >= uint64(c.mirrors.limit) || uint64(x.next)+gap >= uint64(c.mirrors.limit) {
		return wire.ErrMalformed
	}
	slot := uint32(uint64(x.next) + gap)
	x.next = int(slot) + 1
	switch kind := wire.EntryKind(r.ReadUnary(uint(wire.LastEntryKind))); kind {
	case wire.EntryUpdate, wire.EntryNamed:
		return c.decodeUpdate(r, slot, tick, x, kind == wire.EntryUpdate, false)
	case wire.EntrySetChange:
		return c.decodeUpdate(r, slot, tick, x, r.ReadBool(), true)
	case wire.EntryFull:
		return c.decodeWhole(r, slot, tick, &x.set)
	case wire.EntryDespawn:
		if c.resources.in(int(slot)) {
			return wire.ErrMalformed // it is never empty
		}
		c.staged.entries = append(c.staged.entries, stagedEntry{slot: slot, tick: tick})
		return nil
	default:
		return c.decodePart(r, slot, tick)
	}
}

func (c *receiver) decodeWhole(r *bitbuf.Reader, slot uint32, tick delta.Tick, set *delta.Set) error {
	generation := r.ReadExpGolomb(wire.GenerationOrder)
	*set = delta.ReadSet(r, set, len(c.schema.Components))
	if r.Err() != nil || generation > 1<<16-1 {
		return wire.ErrMalformed
	}
	sh := c.shapes.of(*set)
	if sh == nil {
		return wire.ErrMalformed
	}
	if c.minWidth(sh) > r.Remaining() {
		return wire.ErrMalformed
	}
	e := c.stage(slot, tick, uint16(generation), sh)
	if e == nil {
		return wire.ErrMalformed
	}
	rows := c.staged.words[e.first:]
	for k := set.Next(0); k >= 0; k = set.Next(k + 1) {
		comp := &c.schema.Components[k]
		if comp.Words == 0 {
			continue
		}
		row := c.room(e, rows, k, comp.Words)
		c.packed.DecodeRow(r, k, row, nil, nil, 0)
		if r.Err() != nil || !c.takeRow(comp, row) {
			return wire.ErrMalformed
		}
	}
	return nil
}

// minWidth returns the least bits that the rows of a shape take without a baseline.
func (c *receiver) minWidth(sh *shape) (width int) {
	for k := sh.set.Next(0); k >= 0; k = sh.set.Next(k + 1) {
		width += c.schema.Components[k].Layout.MinWidth()
	}
	return width
}

func (c *receiver) decodeUpdate(r *bitbuf.Reader, slot uint32, tick delta.Tick, x *context, leads, restructure bool) error {
	b := x.names.Read(r, leads)
	if r.Err() != nil {
		return wire.ErrMalformed
	}
	m := c.mirrors.at(slot)
	var base, base2 *heldState
	if m != nil {
		base = m.held.find(b.A1)
	}
	if base == nil {
		return c.lacks(m, slot, b.A1, tick)
	}
	var ratio int64
	if b.Two {
		if base2 = m.held.find(b.A2); base2 == nil {
			return c.lacks(m, slot, b.A1, tick)
		}
		ratio = delta.Ratio(tick, b.A1, b.A2)
	}
	sh := base.shape
	if restructure {
		set := delta.ReadSet(r, &sh.set, len(c.schema.Components))
		if r.Err() != nil {
			return wire.ErrMalformed
		}
		if sh = c.shapes.of(set); sh == nil {
			return wire.ErrMalformed
		}
	}
	e := c.stage(slot, tick, base.generation, sh)
	if e == nil {
		return wire.ErrMalformed
	}
	if ratio == 0 {
		base2 = nil
	}
	symbols := sh.symbols
	if sh != base.shape {
		symbols = c.symbols(sh, base.shape)
	}
	usual := delta.Usual(r, symbols)
	rows := c.staged.words[e.first:]
	for k := sh.set.Next(0); k >= 0; k = sh.set.Next(k + 1) {
		comp := &c.schema.Components[k]
		if comp.Words == 0 {
			continue
		}
		row, row1 := c.room(e, rows, k, comp.Words), base.row(k, comp.Words)
		var row2 []uint32
		if base2 != nil && row1 != nil {
			row2 = base2.row(k, comp.Words)
		}
		changed := c.packed.DecodeChange(r, k, usual, row, row1, row2, ratio)
		if !changed {
			c.keepRow(e, k, row, row1, base, base2)
		}
		if r.Err() != nil || changed && !c.takeRow(comp, row) {
			return wire.ErrMalformed
		}
	}
	return nil
}

// symbols returns how many rows of a shape have symbols against one of another shape.
func (c *receiver) symbols(sh, base *shape) (n int) {
	for k := sh.set.Next(0); k >= 0; k = sh.set.Next(k + 1) {
		if base.set.Has(k) && c.schema.Components[k].Layout.Width() > 0 {
			n++
		}
	}
	return n
}

// lacks notes for the next ack that a slot's baseline is not here, which is named by tick a1. It
// says nothing of an update that is late: its baseline was dropped for newer ones.
func (c *receiver) lacks(m *mirror, slot uint32, a1, tick delta.Tick) error {
	late := m != nil && m.any && !tick.After(m.newest)
	if !late && len(c.missing) < wire.MaxMissing {
		c.missing = append(c.missing, wire.MissingBaseline{Slot: slot, Low: uint32(a1) % (1 << delta.NameBits)})
	}
	return ErrMissingBaseline
}
