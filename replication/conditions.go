package replication

import (
	"fmt"
	"math/bits"
	"reflect"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/mlange-42/arche/ecs"
)

// A condition says which peers may see a component. The components of an entity that stand
// under the same one are sent apart from the others: see facets.go.
type condition struct {
	kind conditionKind
	ask  any // of onlyFor: the pointer to a function; it tells one from another
}

type conditionKind uint8

const (
	always conditionKind = iota
	ownerOnly
	exceptOwner
	onlyFor
)

// OwnerOnly shows the component to the entity's owner only; see [Server.SetOwner]. No byte
// that others get depends on its values or on when they change.
func OwnerOnly() ComponentOption { return under(condition{kind: ownerOnly}) }

// ExceptOwner shows the component to everybody but the entity's owner, who knows better:
// what it predicts itself, say.
func ExceptOwner() ComponentOption { return under(condition{kind: exceptOwner}) }

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
	return under(condition{kind: onlyFor, ask: &pick})
}

// Once makes the server look at the component only when it is new, with the entity or by
// itself: what is sent to whomever and whenever is the value from then. Changes later on
// are not looked for, and cost nothing.
func Once() ComponentOption {
	return func(o *componentOptions) { o.once = true }
}

func under(c condition) ComponentOption {
	return func(o *componentOptions) { o.conditions = append(o.conditions, c) }
}

// checkConditions returns the condition that is among the options for a component of type t.
func checkConditions(name string, t reflect.Type, o *componentOptions) (condition, error) {
	if o.resource && len(o.conditions) > 0 {
		return condition{}, fmt.Errorf("%s: a resource has no condition, since every peer is sent it: use a component of an entity", name)
	}
	if o.resource && o.once {
		return condition{}, fmt.Errorf("%s: the option Once is for components: a resource is sent whenever it changes", name)
	}
	if len(o.conditions) == 0 {
		return condition{}, nil
	}
	if len(o.conditions) > 1 {
		return condition{}, fmt.Errorf("%s: OwnerOnly, ExceptOwner and OnlyFor exclude each other: choose one, or say all in a function for OnlyFor", name)
	}
	if t.Kind() == reflect.Struct && t.NumField() > 0 && t.Field(0).Anonymous && t.Field(0).Type == reflect.TypeFor[ecs.Relation]() {
		return condition{}, fmt.Errorf("%s: a relation can't have a condition: keep the target in a field of type ecs.Entity", name)
	}
	return o.conditions[0], nil
}

// facetOf is the component that links a facet to its entity. No entity of a world has it.
type facetOf struct{ Of ecs.Entity }

// sealConditions numbers the conditions, and adds the link of facets to the components if
// there are any.
func (s *rawSchema) sealConditions() {
	s.link = -1
	for i := range s.components {
		c := &s.components[i]
		if c.condition.kind == always {
			continue
		}
		k := slices.Index(s.conditions, c.condition)
		if k < 0 {
			k = len(s.conditions)
			s.conditions = append(s.conditions, c.condition)
		}
		c.class = k + 1
	}
	if len(s.conditions) > 0 {
		link, err := newComponent(reflect.TypeFor[facetOf](), &componentOptions{})
		if err != nil {
			panic("replication: " + err.Error())
		}
		s.link = len(s.components)
		s.components = append(s.components, link)
	}
}

// conditional reports whether a component has a condition.
func (s *rawSchema) conditional() bool {
	return slices.ContainsFunc(s.components, func(c component) bool { return c.condition.kind != always })
}

// askConditions finds out which functions of [OnlyFor] pick the peer.
func (p *Peer) askConditions() {
	conditions := p.server.schema.conditions
	if len(conditions) == 0 {
		return
	}
	p.view.picked = delta.Set{}
	for k := range conditions {
		if c := &conditions[k]; c.kind != onlyFor || (*c.ask.(*func(*Peer) bool))(p) {
			p.view.picked.Add(k)
		}
	}
}

// findFacets completes what find found: a facet is visible if its entity is and its
// condition holds.
func (p *Peer) findFacets() {
	v, s := &p.view, &p.server.slots
	for b, class := range s.classes {
		if class == 0 {
			continue
		}
		k := int(class) - 1
		switch c := &p.server.schema.conditions[k]; {
		case c.kind == ownerOnly || !v.picked.Has(k):
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
	for k := range p.server.schema.conditions {
		kind := p.server.schema.conditions[k].kind
		if kind == onlyFor {
			continue
		}
		for b, word := range p.owned {
			for word &= v.next[b]; word != 0; word &= word - 1 {
				f, ok := s.facet(k, b<<6+bits.TrailingZeros64(word))
				switch {
				case !ok:
				case kind == ownerOnly:
					v.next.Add(f)
				default:
					v.next.Remove(f)
				}
			}
		}
	}
}

// everything reports whether all entities are visible.
func (i *Interest) everything() bool {
	return i.Filter == nil && i.Grid == nil && len(i.Sets) == 0 && i.Visible == nil
}

// keeps returns which slots of a block stay with the client when they go out of view: of facets, those whose condition
// still holds.
func (p *Peer) keeps(b int) uint64 {
	switch v := &p.view; {
	case !v.Keep:
		return 0
	case !p.server.slots.facets(b):
		return ^uint64(0)
	case v.kept != nil && b < len(v.kept.now):
		return v.kept.now[b]
	}
	return 0
}

// keptFacets are those whose condition holds, now and in the tick before.
type keptFacets struct{ now, before bitset.Set }

// hold finds out of which facets the condition holds, whether the peer sees their entities or not.
func (p *Peer) hold() {
	v, s := &p.view, &p.server.slots
	if !v.Keep || len(p.server.schema.conditions) == 0 {
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
		if class > 0 && v.picked.Has(int(class)-1) && p.server.schema.conditions[class-1].kind != ownerOnly {
			held[b] = s.alive[b]
		}
	}
	for k := range p.server.schema.conditions {
		kind := p.server.schema.conditions[k].kind
		if kind == onlyFor {
			continue
		}
		for b, word := range p.owned {
			for ; word != 0; word &= word - 1 {
				f, ok := s.facet(k, b<<6+bits.TrailingZeros64(word))
				switch {
				case !ok:
				case kind == ownerOnly:
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
