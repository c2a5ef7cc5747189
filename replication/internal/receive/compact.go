package receive

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// DecodeBody reads the entries of a state packet and takes them over, as decode does.
func (rc *Receiver) DecodeBody(body []byte, pad int, sequence uint32, tick delta.Tick) error {
	defer rc.staged.end(rc.Layouts.Rows)
	if rc.Compact == nil {
		return rc.decode(body, pad, tick)
	}
	rc.staged.begin(8*len(body), rc.FreeWork)
	kept, age := pad&1 != 0, uint32(pad>>1)
	if len(body) == 0 {
		if pad != 0 {
			return wire.ErrMalformed
		}
		return nil
	}
	x := rc.Compact
	if err := rc.decodeCompact(body, age, sequence, tick); err != nil {
		return err
	}
	if err := rc.commit(tick); err != nil {
		return err
	}
	if kept {
		x.Spare = x.Held.Keep(sequence, x.Spare)
	}
	return nil
}

// decodeCompact reads the entries into the staging area.
func (rc *Receiver) decodeCompact(body []byte, age, sequence uint32, tick delta.Tick) error {
	x := rc.Compact
	x.D = delta.NewRangeDecoder(body)
	high := x.D.GetExpGolomb(compact.ModelRef)
	if x.D.Err() != nil || high >= compact.MaxModelAge>>compact.AgeLow {
		return wire.ErrMalformed
	}
	age |= uint32(high << compact.AgeLow)
	var from *compact.State
	if age > 0 {
		if from = x.Held.At(sequence - age); from == nil {
			return wire.ErrMissingModel
		}
	}
	x.Spare.CopyFrom(from)
	x.Spare.Tick = tick
	x.Walk.Begin(from, tick)
	x.Coder.Begin(&x.Spare.Model)
	for range compact.MaxCompact {
		chain, end, ok := x.GetSlot(int(rc.Replicas.Limit))
		if !ok || x.D.Err() != nil {
			return wire.ErrMalformed
		}
		if end {
			return x.Finish()
		}
		if err := rc.compactEntry(chain, tick); err != nil {
			return err
		}
		if !rc.staged.fair() {
			return wire.ErrMalformed
		}
	}
	if _, end, ok := x.GetSlot(int(rc.Replicas.Limit)); !ok || !end {
		return wire.ErrMalformed
	}
	return x.Finish()
}

// compactEntry reads what follows the slot of an entry into the staging area.
func (rc *Receiver) compactEntry(chain int, tick delta.Tick) error {
	x := rc.Compact
	slot := uint32(x.Walk.Next - 1)
	steps := 0
	for steps < compact.KindSteps && x.Coder.GetHead(&x.D, compact.HeadKind+chain*compact.KindSteps+steps) {
		steps++
	}
	kind := wire.EntryUpdate
	if steps > 0 {
		kind = wire.EntryKind(steps + 1)
	}
	switch kind {
	case wire.EntryUpdate, wire.EntrySetChange:
		return rc.compactUpdate(slot, chain, tick, kind == wire.EntrySetChange)
	case wire.EntryFull:
		return rc.compactFull(slot, chain, tick)
	case wire.EntryDespawn:
		if x.D.Err() != nil {
			return wire.ErrMalformed
		}
		return rc.staged.despawn(slot, tick)
	default:
		return rc.compactPart(slot, tick)
	}
}

func (rc *Receiver) compactFull(slot uint32, chain int, tick delta.Tick) error {
	x := rc.Compact
	generation := x.Coder.GetHeadLength(&x.D, compact.HeadLife, compact.LifeLengths, 16)
	if !x.Coder.GetHead(&x.D, compact.HeadSet) {
		x.Walk.Set = x.GetSet(&x.Walk.Set, len(rc.schema.Components))
	}
	if x.D.Err() != nil {
		return wire.ErrMalformed
	}
	sh := rc.Layouts.Of(x.Walk.Set)
	if sh == nil {
		return wire.ErrMalformed
	}
	e := rc.staged.stage(slot, tick, uint16(generation), sh)
	if e == nil {
		return wire.ErrMalformed
	}
	x.Coder.Entity(chain == compact.ChainRepeated)
	rows := rc.staged.words[e.first:]
	for k := sh.Set.Next(0); k >= 0; k = sh.Set.Next(k + 1) {
		comp := &rc.schema.Components[k]
		if comp.Words == 0 {
			continue
		}
		row := rc.staged.room(e, rows, k, comp.Words)
		x.Coder.DecodeRow(&x.D, k, row, &delta.Past{})
		if x.D.Err() != nil || !rc.staged.takeRow(comp, row) {
			return wire.ErrMalformed
		}
	}
	return nil
}

func (rc *Receiver) compactUpdate(slot uint32, chain int, tick delta.Tick, newComponents bool) error {
	x := rc.Compact
	m := rc.Replicas.At(slot)
	name := x.GetName(chain)
	if x.D.Err() != nil || tick-name.A1-1 >= delta.MaxAge {
		return wire.ErrMalformed
	}
	x.Walk.Names[chain] = name
	x.Spare.Named(int(slot), &name)
	var base, base2, base3 *HeldState
	if m != nil {
		base = m.Held.Find(name.A1)
	}
	if base == nil {
		return rc.lacks(m, slot, name.A1, tick)
	}
	ratio, ratio3 := name.Ratios(tick)
	if name.Span != 0 {
		if base2 = m.Held.Find(name.A1 - name.Span); base2 == nil {
			return rc.lacks(m, slot, name.A1, tick)
		}
	}
	if name.Third != 0 {
		if base3 = m.Held.Find(name.A1 - name.Third); base3 == nil {
			return rc.lacks(m, slot, name.A1, tick)
		}
	}
	sh := base.Layout
	if newComponents {
		set := x.GetSet(&sh.Set, len(rc.schema.Components))
		if x.D.Err() != nil {
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
	x.Coder.Entity(chain == compact.ChainRepeated)
	rows := rc.staged.words[e.first:]
	for k := sh.Set.Next(0); k >= 0; k = sh.Set.Next(k + 1) {
		comp := &rc.schema.Components[k]
		if comp.Words == 0 {
			continue
		}
		row := rc.staged.room(e, rows, k, comp.Words)
		past := delta.Past{Base: base.Row(k, comp.Words)}
		if base2 != nil && past.Base != nil {
			past.Base2, past.Ratio = base2.Row(k, comp.Words), ratio
			if ratio3 != 0 && past.Base2 != nil {
				past.Near, past.NearRatio = base3.Row(k, comp.Words), ratio3
			}
		}
		changed := x.Coder.DecodeChange(&x.D, k, row, &past)
		if !changed {
			rc.staged.keepRow(e, k, row, past.Base, base, base2)
		}
		if x.D.Err() != nil || changed && !rc.staged.takeRow(comp, row) {
			return wire.ErrMalformed
		}
	}
	return nil
}

// compactPart reads a part of a state.
func (rc *Receiver) compactPart(slot uint32, tick delta.Tick) error {
	d := &rc.Compact.D
	age, total, size, index := d.GetExpGolomb(wire.PartOrder), d.GetExpGolomb(wire.PartOrder), d.GetExpGolomb(wire.PartOrder), d.GetExpGolomb(wire.PartOrder)
	if d.Err() != nil || !validPart(age, total, size, index) {
		return wire.ErrMalformed
	}
	bytes := make([]byte, min(size, total-index*size))
	for i := range bytes {
		bytes[i] = byte(d.GetBits(8))
	}
	if d.Err() != nil {
		return wire.ErrMalformed
	}
	return rc.staged.addPart(stagedPart{
		slot: slot, tick: tick - delta.Tick(age), total: int(total), size: int(size), index: int(index), bytes: bytes,
	})
}
