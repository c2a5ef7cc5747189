package receive

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// decode reads the entries of a state packet and takes them over if all are right. If a
// baseline is missing it takes over nothing, since some of them may belong together, and
// returns ErrMissingBaseline.
func (rc *Receiver) decode(body []byte, pad int, tick delta.Tick) error {
	r := bitbuf.NewReader(body)
	end := len(body)*8 - pad
	rc.staged.begin(end, rc.FreeWork)
	if pad > 0 && (len(body) == 0 || body[len(body)-1]>>(8-pad) != 0) {
		return wire.ErrMalformed
	}
	x := wire.Context{Names: delta.NamesAt(tick)}
	order := uint(r.ReadBits(wire.GapOrderBits))
	if r.Pos() < end {
		x.Names.Read(&r, true) // those in front
	}
	for r.Pos() < end && r.Err() == nil {
		if err := rc.decodeEntry(&r, order, tick, &x); err != nil {
			return err
		}
		if !rc.staged.fair() {
			return wire.ErrMalformed
		}
	}
	if r.Err() != nil || r.Pos() != end {
		return wire.ErrMalformed
	}
	return rc.commit(tick)
}

// decodeEntry reads one entry into the staging area.
func (rc *Receiver) decodeEntry(r *bitbuf.Reader, order uint, tick delta.Tick, x *wire.Context) error {
	gap := r.ReadRice(order)
	if r.Err() != nil || gap >= uint64(rc.Replicas.Limit) || uint64(x.Next)+gap >= uint64(rc.Replicas.Limit) {
		return wire.ErrMalformed
	}
	slot := uint32(uint64(x.Next) + gap)
	x.Next = int(slot) + 1
	switch kind := wire.EntryKind(r.ReadUnary(uint(wire.LastEntryKind))); kind {
	case wire.EntryUpdate, wire.EntryNamed:
		return rc.decodeUpdate(r, slot, tick, x, kind == wire.EntryUpdate, false)
	case wire.EntrySetChange:
		return rc.decodeUpdate(r, slot, tick, x, r.ReadBool(), true)
	case wire.EntryFull:
		return rc.decodeFull(r, slot, tick, &x.Set)
	case wire.EntryDespawn:
		return rc.staged.despawn(slot, tick)
	default:
		return rc.decodePart(r, slot, tick)
	}
}

func (rc *Receiver) decodeFull(r *bitbuf.Reader, slot uint32, tick delta.Tick, set *delta.Set) error {
	generation := r.ReadExpGolomb(wire.GenerationOrder)
	*set = delta.ReadSet(r, set, len(rc.schema.Components))
	if r.Err() != nil || generation > 1<<16-1 {
		return wire.ErrMalformed
	}
	sh := rc.Layouts.Of(*set)
	if sh == nil {
		return wire.ErrMalformed
	}
	if rc.minWidth(sh) > r.Remaining() {
		return wire.ErrMalformed
	}
	e := rc.staged.stage(slot, tick, uint16(generation), sh)
	if e == nil {
		return wire.ErrMalformed
	}
	rows := rc.staged.words[e.first:]
	for k := set.Next(0); k >= 0; k = set.Next(k + 1) {
		comp := &rc.schema.Components[k]
		if comp.Words == 0 {
			continue
		}
		row := rc.staged.room(e, rows, k, comp.Words)
		rc.Packed.DecodeRow(r, k, row, nil, nil, 0)
		if r.Err() != nil || !rc.staged.takeRow(comp, row) {
			return wire.ErrMalformed
		}
	}
	return nil
}

// minWidth returns the least bits that the rows of a shape take without a baseline.
func (rc *Receiver) minWidth(sh *Layout) (width int) {
	for k := sh.Set.Next(0); k >= 0; k = sh.Set.Next(k + 1) {
		width += rc.schema.Components[k].Layout.MinWidth()
	}
	return width
}

func (rc *Receiver) decodeUpdate(r *bitbuf.Reader, slot uint32, tick delta.Tick, x *wire.Context, leads, newComponents bool) error {
	b := x.Names.Read(r, leads)
	if r.Err() != nil {
		return wire.ErrMalformed
	}
	m := rc.Replicas.At(slot)
	var base, base2 *HeldState
	if m != nil {
		base = m.Held.Find(b.A1)
	}
	if base == nil {
		return rc.lacks(m, slot, b.A1, tick)
	}
	var ratio int64
	if b.Two {
		if base2 = m.Held.Find(b.A2); base2 == nil {
			return rc.lacks(m, slot, b.A1, tick)
		}
		ratio = delta.Ratio(tick, b.A1, b.A2)
	}
	sh := base.Layout
	if newComponents {
		set := delta.ReadSet(r, &sh.Set, len(rc.schema.Components))
		if r.Err() != nil {
			return wire.ErrMalformed
		}
		if sh = rc.Layouts.Of(set); sh == nil {
			return wire.ErrMalformed
		}
	}
	e := rc.staged.stage(slot, tick, base.Generation, sh)
	if e == nil {
		return wire.ErrMalformed
	}
	if ratio == 0 {
		base2 = nil
	}
	symbols := sh.symbols
	if sh != base.Layout {
		symbols = rc.symbols(sh, base.Layout)
	}
	usual := delta.Usual(r, symbols)
	rows := rc.staged.words[e.first:]
	for k := sh.Set.Next(0); k >= 0; k = sh.Set.Next(k + 1) {
		comp := &rc.schema.Components[k]
		if comp.Words == 0 {
			continue
		}
		row, row1 := rc.staged.room(e, rows, k, comp.Words), base.Row(k, comp.Words)
		var row2 []uint32
		if base2 != nil && row1 != nil {
			row2 = base2.Row(k, comp.Words)
		}
		changed := rc.Packed.DecodeChange(r, k, usual, row, row1, row2, ratio)
		if !changed {
			rc.staged.keepRow(e, k, row, row1, base, base2)
		}
		if r.Err() != nil || changed && !rc.staged.takeRow(comp, row) {
			return wire.ErrMalformed
		}
	}
	return nil
}

// symbols returns how many rows of a shape have symbols against one of another shape.
func (rc *Receiver) symbols(sh, base *Layout) (n int) {
	for k := sh.Set.Next(0); k >= 0; k = sh.Set.Next(k + 1) {
		if base.Set.Has(k) && rc.schema.Components[k].Layout.Width() > 0 {
			n++
		}
	}
	return n
}

// lacks notes for the next ack that a slot's baseline is not here, which is named by tick a1. It
// says nothing of an update that is late: its baseline was dropped for newer ones.
func (rc *Receiver) lacks(m *Replica, slot uint32, a1, tick delta.Tick) error {
	late := m != nil && m.Any && !tick.After(m.Newest)
	if !late && len(rc.Missing) < wire.MaxMissing {
		rc.Missing = append(rc.Missing, wire.MissingBaseline{Slot: slot, Low: uint32(a1) % (1 << delta.NameBits)})
	}
	return wire.ErrMissingBaseline
}
