package compact

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// The rows of an entity and what they are coded against.

// A Coder is scratch memory, which the peers of a worker share.
type Coder struct {
	Coder *delta.Compact
	Rows  []Row
	Mark  delta.Model
	worst []int    // bits that a row takes at most, by component
	Costs []uint64 // sent so far, by field and symbols of components, in units of delta.CostUnit
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

// farParts is how many times the bits of an entity's [delta.Component.Leap] must exceed those of
// its state for an update to be likely to be longer. Only then is it looked at what it takes,
// which needs a copy of the model.
const farParts = 2

// ForgetPast makes the entry that was prepared last one without baseline.
func (c *Coder) ForgetPast(s *snapshot.Snapshot, slot int, entry *Entry) {
	entry.Kind, entry.Part[0], entry.Leaps = wire.EntryFull, uint64(s.Slots.Info[slot].Generation), false
	for i := range c.Rows {
		c.Rows[i].past = delta.Past{}
	}
}

// Gather finds the rows of a slot and those at its baselines. It returns false if one of them
// is not kept any more.
func (c *Coder) Gather(s *snapshot.Snapshot, slot int, name Name, entry *Entry) bool {
	info := &s.Slots.Info[slot]
	entry.Kind = wire.EntryUpdate
	far := 0
	if s.Tick-name.A1 > delta.Tick(s.Opts.Window) && !s.Sure(slot, name.A1) {
		return false
	}
	if info.Restructured.After(name.A1) {
		var base delta.Set
		for k, h := range s.Histories {
			switch _, found := h.At(slot, name.A1); found {
			case delta.Forgotten:
				return false
			case delta.Present:
				base.Add(k)
			}
		}
		if base != info.Set {
			entry.Kind, entry.ref = wire.EntrySetChange, base
		}
	}
	ratio, ratio3 := name.Ratios(s.Tick)
	oldest := name.A1
	if ratio != 0 {
		oldest -= name.Span
	}
	c.Rows, entry.Work = c.Rows[:0], 0
	for k := info.Set.Next(0); k >= 0; k = info.Set.Next(k + 1) {
		layout := &s.Schema.Layout.Components[k]
		v := s.Histories[k].Versions(slot)
		r := Row{Component: k, Cur: v.Row()}
		if !v.Began().After(oldest) {
			r.past.Base = r.Cur
			c.Rows = append(c.Rows, r)
			entry.Work += schema.RowWork(layout, false)
			continue
		}
		entry.Work += schema.RowWork(layout, true)
		known := false
		if r.past.Base, known = Before(&v, name.A1); !known {
			return false
		}
		if r.past.Base != nil && ratio != 0 {
			if r.past.Base2, known = Before(&v, name.A1-name.Span); !known {
				return false
			}
			r.past.Ratio = ratio
			if r.past.Base2 != nil && ratio3 != 0 {
				if r.past.Near, known = Before(&v, name.A1-name.Third); !known {
					return false
				}
				r.past.NearRatio = ratio3
			}
		}
		if r.past.Base != nil {
			far += layout.Leap(r.Cur, r.past.Base, r.past.Base2, r.past.Ratio)
		}
		c.Rows = append(c.Rows, r)
	}
	if entry.Leaps = farParts*far > info.Width; entry.Leaps {
		entry.Work = s.Schema.FullWork(&info.Set) // it may become one
	}
	return true
}

// Ratios returns those of the second and the third baseline, for a packet of a tick.
func (n *Name) Ratios(now delta.Tick) (ratio, ratio3 int64) {
	if n.Span != 0 {
		ratio = delta.Ratio(now, n.A1, n.A1-n.Span)
	}
	if ratio != 0 && n.Third != 0 {
		ratio3 = delta.Ratio(now, n.A1, n.A1-n.Third)
	}
	return ratio, ratio3
}

// Before returns the row at tick t, which is not the present one, or nil if there was none.
// It returns false if that is not known any more.
func Before(v *delta.Versions, t delta.Tick) (row []uint32, known bool) {
	row, found := v.At(t)
	if found == delta.Absent {
		row = nil
	}
	return row, found != delta.Forgotten
}
