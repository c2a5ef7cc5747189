package main

import (
	"reflect"
	"slices"

	"github.com/mlange-42/arche/ecs"
)

// A recording may have references to entities. In a row they are numbers of entities, in targets; in worlds they are
// entities, which have other handles in each world. So they are set and compared apart from all other values.

// noTarget is a reference to no entity. The number is that of resources, to which nothing refers.
const noTarget = resourceEntity

// reference is a column that refers to entities.
type reference struct {
	name      string
	component int
	column    int
	way       []int
}

// referencesOf returns the columns that refer to entities.
func referencesOf(components []component) (all []reference) {
	for i := range components {
		c := &components[i]
		for j := range c.fields {
			f := &c.fields[j]
			if f.scalar() != entityType {
				continue
			}
			for k, way := range f.steps(c.typ) {
				all = append(all, reference{f.fullName(c.name), i, f.column + k, way})
			}
		}
	}
	return all
}

// at returns the reference in a component's value.
func (ref *reference) at(value reflect.Value) *ecs.Entity {
	return follow(value, ref.way).Addr().Interface().(*ecs.Entity)
}

// pendingReference is one that is set when all entities of its tick are there.
type pendingReference struct {
	*reference
	actor, target uint64
}

// refer notes the references of the latest row, which belongs to a live actor.
func (s *stage) refer(r *reader) {
	for i := range s.references {
		if ref := &s.references[i]; r.has[ref.component] && r.targets[ref.column] != noTarget {
			s.pending = append(s.pending, pendingReference{ref, r.entity, r.targets[ref.column]})
		}
	}
}

// settle sets the references of the rows of a tick. Call it when all have been played.
func (s *stage) settle() {
	for _, p := range s.pending {
		e, lives := s.actors[p.actor]
		if !lives || !s.world.Has(e, s.ids[p.component]) {
			continue // a later row of the same tick has removed it
		}
		value := reflect.NewAt(s.types[p.component], s.world.Get(e, s.ids[p.component])).Elem()
		*p.at(value) = s.actors[p.target]
	}
	s.pending = s.pending[:0]
}

// withoutReferences returns a component's value with no references in it, to get codes that are the same in all worlds.
func (m *mirror) withoutReferences(component int, value reflect.Value) reflect.Value {
	if !slices.ContainsFunc(m.references, func(ref reference) bool { return ref.component == component }) {
		return value
	}
	clean := reflect.New(value.Type().Elem())
	clean.Elem().Set(value.Elem())
	for i := range m.references {
		if ref := &m.references[i]; ref.component == component {
			*ref.at(clean.Elem()) = ecs.Entity{}
		}
	}
	return clean
}

// refersTo compares the references of an entity of the mirror's world with targets. A mirror may lack the target,
// unless it is settled: then it has all that live. It returns the name of a wrong one.
func (m *mirror) refersTo(o *oracle, targets []uint64, e ecs.Entity, settled bool) (wrong string) {
	for i := range m.references {
		ref := &m.references[i]
		if !m.world.Has(e, m.ids[ref.component]) {
			continue
		}
		value := reflect.NewAt(m.types[ref.component], m.world.Get(e, m.ids[ref.component])).Elem()
		shown, want := uint64(noTarget), targets[ref.column]
		if to := *ref.at(value); !to.IsZero() {
			id, _ := m.client.NetID(to)
			l := o.byNetID[id]
			if l == nil {
				return ref.name
			}
			shown = l.number
		}
		if settled && o.lives[want] == nil {
			want = noTarget
		}
		if shown != want && (settled || shown != noTarget) {
			return ref.name
		}
	}
	return ""
}
