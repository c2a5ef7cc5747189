package compact

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/history"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// This file gathers the rows of an entity and the baselines that they are coded against.

// A Coder codes entries. It is scratch memory that the peers of a worker share.
type Coder struct {
	Coder *delta.Compact
	Rows  []Row // of the entry in hand
	Mark  delta.Model
	worst []int    // upper bound for the bits of a row, by component
	Costs []uint64 // of everything sent so far, by field and symbols of components, in units of delta.CostUnit
}

// A Row is the row of one component of an entity, and the past that it is coded against.
type Row struct {
	Component int
	Cur       []uint32
	past      delta.Past
}

// NewCoder returns a coder for the components of a schema.
func NewCoder(s *schema.Schema) *Coder {
	c := &Coder{Coder: delta.NewCompact(s.Layout), Costs: make([]uint64, s.Layout.Fields()+len(s.Components))}
	for i := range s.Layout.Components {
		c.worst = append(c.worst, s.Layout.Components[i].CompactWidth())
	}
	return c
}

// farParts is the ratio from which the distance of an entity to its baselines, in the bits of
// [delta.Component.DeviationBits], makes an update likely to be longer than the full state. Only then is the
// length of the update measured, which takes a copy of the model.
const farParts = 2

// ForgetPast turns the update in hand into an entry with the full state.
func (c *Coder) ForgetPast(s *snapshot.Snapshot, slot int, entry *Entry) {
	entry.Kind, entry.Part[0], entry.Far = wire.EntryFull, uint64(s.Slots.Info[slot].Generation), false
	for i := range c.Rows {
		c.Rows[i].past = delta.Past{}
	}
}

// Gather loads the rows of a slot and of its baselines, for an update. It returns false if the
// history no longer has one of the baselines.
func (c *Coder) Gather(s *snapshot.Snapshot, slot int, name Name, entry *Entry) bool {
	info := &s.Slots.Info[slot]
	if s.Tick-name.A1 > delta.Tick(s.Opts.Window) && !s.Sure(slot, name.A1) {
		return false
	}
	entry.Kind = wire.EntryUpdate
	if info.SetChanged.After(name.A1) {
		base, known := SetAt(s, slot, name.A1)
		if !known {
			return false
		}
		if base != info.Set {
			entry.Kind, entry.ref = wire.EntrySetChange, base
		}
	}
	ratio, ratio3, ratio4 := name.Ratios(s.Tick)
	oldest := name.A1
	if ratio != 0 {
		oldest -= name.Span
	}
	far := 0
	c.Rows, entry.Work = c.Rows[:0], 0
	for k := range info.Set.All() {
		layout := &s.Schema.Layout.Components[k]
		v := s.Histories[k].Versions(slot)
		r := Row{Component: k, Cur: v.Row()}
		changed := v.Began().After(oldest)
		switch {
		case !changed:
			r.past.Base = r.Cur
		case !name.load(&r.past, &v, ratio, ratio3, ratio4):
			return false
		case r.past.Base != nil:
			far += layout.DeviationBits(r.Cur, r.past.Base, r.past.Base2, r.past.Ratio)
		}
		entry.Work += schema.RowWork(layout, changed)
		c.Rows = append(c.Rows, r)
	}
	if entry.Far = farParts*far > int(s.Slots.Widths[slot]); entry.Far {
		entry.Work = s.Schema.FullWork(&info.Set) // the entry may become a full state
	}
	return true
}

// load sets past to the rows of the named baselines. It returns false if the history no longer has
// one of them.
func (n *Name) load(past *delta.Past, v *history.Versions, ratio, ratio3, ratio4 int64) (known bool) {
	if past.Base, known = Before(v, n.A1); !known || past.Base == nil || ratio == 0 {
		return known
	}
	if past.Base2, known = Before(v, n.A1-n.Span); !known {
		return false
	}
	past.Ratio = ratio
	if past.Base2 == nil || ratio3 == 0 {
		return true
	}
	past.Near, known = Before(v, n.A1-n.Third)
	past.NearRatio = ratio3
	if known && ratio4 != 0 {
		past.Mid, known = Before(v, n.A1-n.Fourth)
		past.MidRatio = ratio4
	}
	return known
}

// Ratios returns the extrapolation ratios of the second, third and fourth baseline, for a packet of a
// tick; 0 for a baseline that is not there.
func (n *Name) Ratios(now delta.Tick) (ratio, ratio3, ratio4 int64) {
	if n.Span != 0 {
		ratio = delta.Ratio(now, n.A1, n.A1-n.Span)
	}
	if ratio != 0 && n.Third != 0 {
		ratio3 = delta.Ratio(now, n.A1, n.A1-n.Third)
	}
	if ratio3 != 0 && n.Fourth != 0 {
		ratio4 = delta.Ratio(now, n.A1, n.A1-n.Fourth)
	}
	return ratio, ratio3, ratio4
}

// Before returns the row at an earlier tick, or nil if there was none. It returns false if the
// history no longer has it.
func Before(v *history.Versions, t delta.Tick) (row []uint32, known bool) {
	row, found := v.At(t)
	if found == history.Absent {
		row = nil
	}
	return row, found != history.Forgotten
}

// SetAt returns the component set of a slot at an earlier tick. It returns false if the history no
// longer has it.
func SetAt(s *snapshot.Snapshot, slot int, t delta.Tick) (set wire.ComponentSet, known bool) {
	for k, h := range s.Histories {
		switch _, found := h.At(slot, t); found {
		case history.Forgotten:
			return set, false
		case history.Present:
			set.Add(k)
		}
	}
	return set, true
}
