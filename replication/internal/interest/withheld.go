package interest

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// Slots that the client has no room for. A client refuses a packet with a slot beyond its limit,
// which it states in its hello. The server withholds entities with higher slots as if the client
// might not see them, so that everything else is replicated.
//
// When the world has shrunk, entities in such slots are given lower ones, so that the client is sent them, too. Other
// clients get them anew then, once.
//
// The number in a hello is not trusted. It reduces what that client is sent, and gives slots below it to entities only
// if there are half as many entities at most.

// Limit finds out whether there is anything that the client may not see, or has no room for.
func (p *Sight) Limit() {
	v := &p.View
	v.crowded = v.room > 0 && p.snap.Slots.Len() > v.room
	v.Limited = v.crowded || !v.Everything() || len(p.schema.Conditions) > 0
}

// MakeRoom gives lower slots to entities that were withheld from the client in the last tick, if all entities fit now.
// It reports whether it did. It is called before a capture.
func (p *Sight) MakeRoom() bool {
	return p.View.withheld > 0 && p.snap.Reseat(p.View.room, p.interest.unseat)
}

// Withhold removes from view the entities that the client has no room for. Groups are withheld
// completely or not at all.
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

// WithholdSubEntities is Withhold for the sub-entities of what is in view.
func (p *Sight) WithholdSubEntities() {
	if v := &p.View; v.crowded {
		v.cut(&p.snap.Slots, true)
	}
}

// cut removes from view the slots that the client has no room for: those of sub-entities, or those
// of entities.
func (v *View) cut(s *snapshot.SlotTable, subEntities bool) {
	for b := v.room >> 6; b < len(s.Alive); b++ {
		if s.HoldsSubEntities(b) != subEntities {
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

// reaches reports whether a member has the given slot or a higher one.
func (g *Group) reaches(slot int) bool {
	for i := range g.Members {
		if int(g.Members[i].Slot) >= slot {
			return true
		}
	}
	return false
}
