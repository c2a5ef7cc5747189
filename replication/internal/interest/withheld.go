package interest

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// A client has room for so many slots, and refuses a packet with a single one beyond them. It
// says in its hello how many these are, and the server withholds what has a higher slot, as if
// the client might not see it: all the rest is mirrored.
//
// What a hello says is not trusted. It narrows what that client is sent, and nothing else.

// Limit finds out whether there are things that the client may not see, or has no room for.
func (p *Sight) Limit() {
	v := &p.View
	v.crowded = v.room > 0 && p.snap.Slots.Len() > v.room
	v.Limited = v.crowded || !v.everything() || len(p.schema.Conditions) > 0
}

// Withhold takes the entities out of view that have no room at the client. A group goes as a
// whole.
func (p *Sight) Withhold() {
	v, s := &p.View, &p.snap.Slots
	v.withheld = 0
	if !v.crowded {
		return
	}
	for _, g := range p.interest.Groups.List {
		if g.reaches(v.room) {
			for _, m := range g.Members {
				if m.Slot >= 0 && int(m.Slot) < v.room && v.Next.Has(int(m.Slot)) {
					v.Next.Remove(int(m.Slot))
					v.withheld++
				}
			}
		}
	}
	v.cut(s, false)
}

// WithholdSubEntities is withhold for the sub-entities of what is in view.
func (p *Sight) WithholdSubEntities() {
	if v := &p.View; v.crowded {
		v.cut(&p.snap.Slots, true)
	}
}

// cut takes out of view what has a slot that the client has no room for: sub-entities or entities.
func (v *View) cut(s *snapshot.SlotTable, facets bool) {
	for b := v.room >> 6; b < len(s.Alive); b++ {
		if s.HoldsSubEntities(b) != facets {
			continue
		}
		beyond := v.Next[b] & s.Alive[b]
		if b == v.room>>6 {
			beyond &= ^uint64(0) << (v.room & 63)
		}
		v.Next[b] &^= beyond
		v.withheld += bits.OnesCount64(beyond)
	}
}

// reaches reports whether a member has a slot from the given one on.
func (g *Group) reaches(slot int) bool {
	for i := range g.Members {
		if int(g.Members[i].Slot) >= slot {
			return true
		}
	}
	return false
}
