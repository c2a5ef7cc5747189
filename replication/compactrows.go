package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// The rows of an entity and what they are coded against.

// A compactCoder is scratch memory, which the peers of a worker share.
type compactCoder struct {
	coder *delta.Compact
	rows  []compactRow
	mark  delta.Model
	worst []int    // bits that a row takes at most, by component
	costs []uint64 // sent so far, by field and symbols of components, in units of delta.CostUnit
}

type compactRow struct {
	component int
	cur       []uint32
	past      delta.Past
}

func newCompactCoder(s *schema.Schema) *compactCoder {
	c := &compactCoder{coder: delta.NewCompact(s.Layout), costs: make([]uint64, s.Layout.Fields()+len(s.Components))}
	for i := range s.Layout.Components {
		c.worst = append(c.worst, s.Layout.Components[i].CompactWidth())
	}
	return c
}

// compactCoder returns the worker's.
func (c *runCache) compactCoder() *compactCoder {
	if c.compact == nil {
		c.compact = newCompactCoder(c.snap.schema)
	}
	return c.compact
}

// prepareCompact finds the rows of a slot and what they are coded against.
func (p *sender) prepareCompact(slot int, k *class) (entry compactEntry) {
	s, c := p.snap, p.runs.compactCoder()
	info := &s.slots.info[slot]
	entry.set = info.set
	if !k.whole {
		name := compactName{a1: k.A1}
		if k.Two {
			name.span, name.third = k.A1-k.A2, delta.Tick(k.third)
		}
		for tries := 0; ; tries++ { // again with fewer baselines, if some are not kept any more
			if c.gather(s, slot, name, &entry) {
				entry.name = name
				return entry
			}
			if name.span == 0 {
				break
			}
			if name.third != 0 {
				name.third = 0
			} else {
				name.span = 0
			}
		}
	}
	entry.kind, entry.part[0] = wire.EntryFull, uint64(info.generation)
	c.rows, entry.work = c.rows[:0], s.schema.WholeWork(&info.set)
	for k := info.set.Next(0); k >= 0; k = info.set.Next(k + 1) {
		c.rows = append(c.rows, compactRow{component: k, cur: s.histories[k].Row(slot)})
	}
	return entry
}

// leapParts is how many times the bits of an entity's [delta.Component.Leap] must exceed those of
// its state for an update to be likely to be longer. Only then is it looked at what it takes,
// which needs a copy of the model.
const leapParts = 2

// forgetPast makes the entry that was prepared last one without baseline.
func (c *compactCoder) forgetPast(s *snapshot, slot int, entry *compactEntry) {
	entry.kind, entry.part[0], entry.leaps = wire.EntryFull, uint64(s.slots.info[slot].generation), false
	for i := range c.rows {
		c.rows[i].past = delta.Past{}
	}
}

// gather finds the rows of a slot and those at its baselines. It returns false if one of them
// is not kept any more.
func (c *compactCoder) gather(s *snapshot, slot int, name compactName, entry *compactEntry) bool {
	info := &s.slots.info[slot]
	entry.kind = wire.EntryUpdate
	leap := 0
	if s.tick-name.a1 > delta.Tick(s.opts.window) && !s.sure(slot, name.a1) {
		return false
	}
	if info.restructured.After(name.a1) {
		var base delta.Set
		for k, h := range s.histories {
			switch _, found := h.At(slot, name.a1); found {
			case delta.Forgotten:
				return false
			case delta.Present:
				base.Add(k)
			}
		}
		if base != info.set {
			entry.kind, entry.ref = wire.EntrySetChange, base
		}
	}
	ratio, ratio3 := name.ratios(s.tick)
	oldest := name.a1
	if ratio != 0 {
		oldest -= name.span
	}
	c.rows, entry.work = c.rows[:0], 0
	for k := info.set.Next(0); k >= 0; k = info.set.Next(k + 1) {
		layout := &s.schema.Layout.Components[k]
		v := s.histories[k].Versions(slot)
		r := compactRow{component: k, cur: v.Row()}
		if !v.Began().After(oldest) {
			r.past.Base = r.cur
			c.rows = append(c.rows, r)
			entry.work += rowWork(layout, false)
			continue
		}
		entry.work += rowWork(layout, true)
		known := false
		if r.past.Base, known = before(&v, name.a1); !known {
			return false
		}
		if r.past.Base != nil && ratio != 0 {
			if r.past.Base2, known = before(&v, name.a1-name.span); !known {
				return false
			}
			r.past.Ratio = ratio
			if r.past.Base2 != nil && ratio3 != 0 {
				if r.past.Near, known = before(&v, name.a1-name.third); !known {
					return false
				}
				r.past.NearRatio = ratio3
			}
		}
		if r.past.Base != nil {
			leap += layout.Leap(r.cur, r.past.Base, r.past.Base2, r.past.Ratio)
		}
		c.rows = append(c.rows, r)
	}
	if entry.leaps = leapParts*leap > info.width; entry.leaps {
		entry.work = s.schema.WholeWork(&info.set) // it may become one
	}
	return true
}

// ratios returns those of the second and the third baseline, for a packet of a tick.
func (n *compactName) ratios(now delta.Tick) (ratio, ratio3 int64) {
	if n.span != 0 {
		ratio = delta.Ratio(now, n.a1, n.a1-n.span)
	}
	if ratio != 0 && n.third != 0 {
		ratio3 = delta.Ratio(now, n.a1, n.a1-n.third)
	}
	return ratio, ratio3
}
