package replication

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// OwnerOnly shows the component to the entity's owner only; see [Server.SetOwner]. No byte
// that others get depends on its values or on when they change.
func OwnerOnly() ComponentOption { return under(schema.Condition{Kind: schema.OwnerOnly}) }

// ExceptOwner shows the component to everybody but the entity's owner, who knows better:
// what it predicts itself, say.
func ExceptOwner() ComponentOption { return under(schema.Condition{Kind: schema.ExceptOwner}) }

// OnlyFor shows the component to the peers that the function picks. It is asked once for
// every peer in every Replicate, on the caller's goroutine, whatever the number of entities;
// it must not change the world. Components that shall share a condition, and its cost, must
// share the option:
//
//	referees := replication.OnlyFor(isReferee)
//	replication.Register[Foul](schema, referees)
//	replication.Register[Warning](schema, referees)
//
// Panics if there is no function.
func OnlyFor(pick func(p *Peer) bool) ComponentOption {
	if pick == nil {
		panic("replication: OnlyFor needs a function that picks peers")
	}
	return under(schema.Condition{Kind: schema.OnlyFor, Ask: &pick})
}

// Once makes the server look at the component only when it is new, with the entity or by
// itself: what is sent to whomever and whenever is the value from then. Changes later on
// are not looked for, and cost nothing.
func Once() ComponentOption {
	return func(o *schema.Options) { o.Once = true }
}

func under(c schema.Condition) ComponentOption {
	return func(o *schema.Options) { o.Conditions = append(o.Conditions, c) }
}

// askConditions finds out which functions of [OnlyFor] pick the peer: picks calls one.
func (p *sight) askConditions(picks func(ask any) bool) {
	conditions := p.schema.Conditions
	if len(conditions) == 0 {
		return
	}
	p.view.picked = delta.Set{}
	for k := range conditions {
		if c := &conditions[k]; c.Kind != schema.OnlyFor || picks(c.Ask) {
			p.view.picked.Add(k)
		}
	}
}

// findFacets completes what find found: a facet is visible if its entity is and its
// condition holds.
func (p *sight) findFacets() {
	v, s := &p.view, &p.snap.slots
	for b, class := range s.classes {
		if class == 0 {
			continue
		}
		k := int(class) - 1
		switch c := &p.schema.Conditions[k]; {
		case c.Kind == schema.OwnerOnly || !v.picked.Has(k):
			v.next[b] = 0
		case v.everything() && !v.crowded:
			v.next[b] = s.alive[b]
		default:
			v.next[b] = 0
			for slot := range bitset.Slots(b, s.alive[b]) {
				if v.next.Has(int(s.info[slot].of)) {
					v.next.Add(slot)
				}
			}
		}
	}
	for k := range p.schema.Conditions {
		kind := p.schema.Conditions[k].Kind
		if kind == schema.OnlyFor {
			continue
		}
		for b, word := range p.owned {
			for word &= v.next[b]; word != 0; word &= word - 1 {
				f, ok := s.facet(k, b<<6+bits.TrailingZeros64(word))
				switch {
				case !ok:
				case kind == schema.OwnerOnly:
					v.next.Add(f)
				default:
					v.next.Remove(f)
				}
			}
		}
	}
}

// everything reports whether all entities are visible.
func (i *criteria) everything() bool {
	return i.Filter == nil && i.Grid == nil && len(i.Sets) == 0 && i.Visible == nil
}

// keeps returns which slots of a block stay with the client when they go out of view: of facets, those whose condition
// still holds.
func (p *sight) keeps(b int) uint64 {
	switch v := &p.view; {
	case !v.Keep:
		return 0
	case !p.snap.slots.facets(b):
		return ^uint64(0)
	case v.kept != nil && b < len(v.kept.now):
		return v.kept.now[b]
	}
	return 0
}

// keptFacets are those whose condition holds, now and in the tick before.
type keptFacets struct{ now, before bitset.Set }

// hold finds out of which facets the condition holds, whether the peer sees their entities or not.
func (p *sight) hold() {
	v, s := &p.view, &p.snap.slots
	if !v.Keep || len(p.schema.Conditions) == 0 {
		v.kept = nil
		return
	}
	if v.kept == nil {
		v.kept = &keptFacets{}
	}
	held := v.kept.before.Grown(s.len())
	v.kept.now, v.kept.before = held, v.kept.now.Grown(s.len())
	clear(held)
	for b, class := range s.classes {
		if class > 0 && v.picked.Has(int(class)-1) && p.schema.Conditions[class-1].Kind != schema.OwnerOnly {
			held[b] = s.alive[b]
		}
	}
	for k := range p.schema.Conditions {
		kind := p.schema.Conditions[k].Kind
		if kind == schema.OnlyFor {
			continue
		}
		for b, word := range p.owned {
			for ; word != 0; word &= word - 1 {
				f, ok := s.facet(k, b<<6+bits.TrailingZeros64(word))
				switch {
				case !ok:
				case kind == schema.OwnerOnly:
					held.Add(f)
				default:
					held.Remove(f)
				}
			}
		}
	}
}

// lapsed returns the facets of a block whose condition does not hold any more, whether they were in view or only kept.
func (v *view) lapsed(b int) uint64 {
	if v.kept == nil || b >= len(v.kept.now) {
		return 0
	}
	return v.kept.before[b] &^ v.kept.now[b]
}
