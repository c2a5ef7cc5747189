package interest

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// Which sub-entities a peer sees: those of the entities in its view whose condition holds for it.

// AskConditions evaluates the functions of replication.OnlyFor for the peer. picks calls one of
// them.
func (p *Sight) AskConditions(picks func(ask any) bool) {
	conditions := p.schema.Conditions
	if len(conditions) == 0 {
		return
	}
	p.View.picked = wire.ComponentSet{}
	for k := range conditions {
		if c := &conditions[k]; c.Kind != schema.OnlyFor || picks(c.Ask) {
			p.View.picked.Add(k)
		}
	}
}

// FindSubEntities adds sub-entities to the slots that Find found: those whose entity is visible and
// whose condition holds.
func (p *Sight) FindSubEntities() {
	v, s := &p.View, &p.snap.Slots
	for b, class := range s.Classes {
		if class == 0 {
			continue
		}
		k := int(class) - 1
		switch c := &p.schema.Conditions[k]; {
		case c.Kind == schema.OwnerOnly || !v.picked.Has(k):
			v.Next[b] = 0
		case v.Everything() && !v.crowded:
			v.Next[b] = s.Alive[b]
		default:
			v.Next[b] = 0
			for slot := range bitset.Slots(b, s.Alive[b]) {
				if v.Next.Has(int(s.Info[slot].Of)) {
					v.Next.Add(slot)
				}
			}
		}
	}
	p.setOwned(v.Next, v.Next)
}

// setOwned corrects a set of sub-entities for the entities that the peer owns: it adds those that
// only an owner sees, and removes those that an owner does not see. If entities is not nil, only
// owned entities in that set count.
func (p *Sight) setOwned(subEntities, entities bitset.Set) {
	owned := p.owned
	if p.OwnsAll {
		owned = p.interest.Owners.all
	}
	for k := range p.schema.Conditions {
		kind := p.schema.Conditions[k].Kind
		if kind == schema.OnlyFor || kind == schema.ExceptOwner && p.OwnsAll {
			continue
		}
		for b, word := range owned {
			if entities != nil {
				word &= entities[b]
			}
			for slot := range bitset.Slots(b, word) {
				sub, ok := p.snap.Slots.SubEntity(k, slot)
				switch {
				case !ok:
				case kind == schema.OwnerOnly:
					subEntities.Add(sub)
				default:
					subEntities.Remove(sub)
				}
			}
		}
	}
}

// Everything reports whether the criteria match all entities.
func (i *Criteria) Everything() bool {
	return i.Filter == nil && i.Grid == nil && len(i.Sets) == 0 && i.Visible == nil
}

// Keeps returns the slots of a block that stay with the client when they go out of view. Of
// sub-entities, it returns those whose condition still holds.
func (p *Sight) Keeps(b int) uint64 {
	switch v := &p.View; {
	case !v.Keep:
		return 0
	case !p.snap.Slots.HoldsSubEntities(b):
		return ^uint64(0)
	case v.kept != nil && b < len(v.kept.now):
		return v.kept.now[b]
	}
	return 0
}

// Hold finds the sub-entities whose condition holds, whether their entities are visible or not.
// Only Keep needs them.
func (p *Sight) Hold() {
	v, s := &p.View, &p.snap.Slots
	if !v.Keep || len(p.schema.Conditions) == 0 {
		v.kept = nil
		return
	}
	if v.kept == nil {
		v.kept = &keptSubEntities{}
	}
	held := v.kept.before.Grown(s.Len())
	v.kept.now, v.kept.before = held, v.kept.now.Grown(s.Len())
	clear(held)
	for b, class := range s.Classes {
		if class > 0 && v.picked.Has(int(class)-1) && p.schema.Conditions[class-1].Kind != schema.OwnerOnly {
			held[b] = s.Alive[b]
		}
	}
	p.setOwned(held, nil)
}

// Lapsed returns the sub-entities of a block, visible or kept, whose condition no longer holds.
func (v *View) Lapsed(b int) uint64 {
	if v.kept == nil || b >= len(v.kept.now) {
		return 0
	}
	return v.kept.before[b] &^ v.kept.now[b]
}

// keptSubEntities are those whose condition holds, now and in the tick before.
type keptSubEntities struct{ now, before bitset.Set }
