package replication

import "math/bits"

// A client has room for so many slots, and refuses a packet with a single one beyond them. It
// says in its hello how many these are, and the server withholds what has a higher slot, as if
// the client might not see it: all the rest is mirrored.
//
// What a hello says is not trusted. It narrows what that client is sent, and nothing else.

// limit finds out whether there are things that the client may not see, or has no room for.
func (p *sight) limit() {
	v := &p.view
	v.crowded = v.room > 0 && p.snap.slots.len() > v.room
	v.limited = v.crowded || !v.everything() || len(p.schema.Conditions) > 0
}

// withhold takes the entities out of view that have no room at the client. A group goes as a
// whole.
func (p *sight) withhold() {
	v, s := &p.view, &p.snap.slots
	v.withheld = 0
	if !v.crowded {
		return
	}
	for _, g := range p.interest.groups.list {
		if g.reaches(v.room) {
			for _, m := range g.members {
				if m.slot >= 0 && int(m.slot) < v.room && v.next.Has(int(m.slot)) {
					v.next.Remove(int(m.slot))
					v.withheld++
				}
			}
		}
	}
	v.cut(s, false)
}

// withholdFacets is withhold for the facets of what is in view.
func (p *sight) withholdFacets() {
	if v := &p.view; v.crowded {
		v.cut(&p.snap.slots, true)
	}
}

// cut takes out of view what has a slot that the client has no room for: facets or entities.
func (v *view) cut(s *slotTable, facets bool) {
	for b := v.room >> 6; b < len(s.alive); b++ {
		if s.facets(b) != facets {
			continue
		}
		beyond := v.next[b] & s.alive[b]
		if b == v.room>>6 {
			beyond &= ^uint64(0) << (v.room & 63)
		}
		v.next[b] &^= beyond
		v.withheld += bits.OnesCount64(beyond)
	}
}

// reaches reports whether a member has a slot from the given one on.
func (g *group) reaches(slot int) bool {
	for i := range g.members {
		if int(g.members[i].slot) >= slot {
			return true
		}
	}
	return false
}
