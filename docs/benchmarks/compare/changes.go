package main

// change is what is sent of a slot that differs from its baseline.
type change struct {
	slot int
	kind changeKind
	base *row // nil unless it is an update
	now  *row // nil if the slot is empty
}

type changeKind uint8

const (
	updated changeKind = iota // the same entity with the same components
	created
	removed
)

// changesOf returns what differs between two states, in the order of slots.
func changesOf(base, now state) (all []change) {
	for slot := range max(len(base), len(now)) {
		b, n := base.at(slot), now.at(slot)
		switch {
		case b.equal(n):
		case n == nil:
			all = append(all, change{slot: slot, kind: removed})
		case b == nil || b.life != n.life || !sameSet(b, n):
			all = append(all, change{slot: slot, kind: created, now: n})
		default:
			all = append(all, change{slot: slot, kind: updated, base: b, now: n})
		}
	}
	return all
}

func sameSet(a, b *row) bool {
	for i := range a.has {
		if a.has[i] != b.has[i] {
			return false
		}
	}
	return true
}

// differs reports whether a code of the columns differs from the baseline.
func (c *change) differs(columns span) bool {
	for i := columns.from; i < columns.to; i++ {
		if c.base.codes[i] != c.now.codes[i] {
			return true
		}
	}
	return false
}

// apply returns a state with changes, whose rows are in now. It takes over the slots of base.
func apply(base state, changes []change) state {
	s := append(state(nil), base...)
	for _, c := range changes {
		for len(s) <= c.slot {
			s = append(s, nil)
		}
		if s[c.slot] = c.now; c.now != nil && c.base != nil {
			s[c.slot].life = c.base.life
		}
	}
	return s
}

// begin returns a row for a slot that a receiver reads: a copy of the baseline if it is an update.
func (r *recording) begin(base state, slot int, kind changeKind) (change, bool) {
	c := change{slot: slot, kind: kind}
	switch kind {
	case removed:
	case created:
		c.now = &row{has: make([]bool, len(r.components)), codes: make([]uint64, len(r.widths))}
	case updated:
		if c.base = base.at(slot); c.base == nil {
			return c, false
		}
		c.now = &row{has: c.base.has, codes: append([]uint64(nil), c.base.codes...)}
	default:
		return c, false
	}
	return c, true
}
