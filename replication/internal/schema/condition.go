package schema

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/mlange-42/arche/ecs"
)

// freezeConditions numbers the conditions, and adds the link of sub-entities to the components if
// there are any.
func (s *Schema) freezeConditions() {
	s.Link = -1
	for i := range s.Components {
		c := &s.Components[i]
		if c.condition.Kind == always {
			continue
		}
		k := slices.Index(s.Conditions, c.condition)
		if k < 0 {
			k = len(s.Conditions)
			s.Conditions = append(s.Conditions, c.condition)
		}
		c.Class = k + 1
	}
	if len(s.Conditions) > 0 {
		link, err := newComponent(reflect.TypeFor[subEntityOf](), &Options{})
		if err != nil {
			panic("replication: " + err.Error())
		}
		s.Link = len(s.Components)
		s.Components = append(s.Components, link)
	}
}

// conditional reports whether a component has a condition.
func (s *Schema) conditional() bool {
	return slices.ContainsFunc(s.Components, func(c Component) bool { return c.condition.Kind != always })
}

// A Condition says which peers may see a component. The components of an entity that stand
// under the same one are sent apart from the others: see snapshot/sub_entities.go.
type Condition struct {
	Kind conditionKind
	Ask  any // of OnlyFor: the pointer to a function; it tells one from another
}

type conditionKind uint8

const (
	always conditionKind = iota
	OwnerOnly
	ExceptOwner
	OnlyFor
)

// checkConditions returns the condition that is among the options for a component of type t.
func checkConditions(name string, t reflect.Type, o *Options) (Condition, error) {
	if o.Resource && len(o.Conditions) > 0 {
		return Condition{}, fmt.Errorf("%s: a resource has no condition, since every peer is sent it: use a component of an entity", name)
	}
	if o.Resource && o.Once {
		return Condition{}, fmt.Errorf("%s: the option Once is for components: a resource is sent whenever it changes", name)
	}
	if len(o.Conditions) == 0 {
		return Condition{}, nil
	}
	if len(o.Conditions) > 1 {
		return Condition{}, fmt.Errorf("%s: OwnerOnly, ExceptOwner and OnlyFor exclude each other: choose one, or say all in a function for OnlyFor", name)
	}
	if t.Kind() == reflect.Struct && t.NumField() > 0 && t.Field(0).Anonymous && t.Field(0).Type == reflect.TypeFor[ecs.Relation]() {
		return Condition{}, fmt.Errorf("%s: a relation can't have a condition: keep the target in a field of type ecs.Entity", name)
	}
	return o.Conditions[0], nil
}

// subEntityOf is the component that links a sub-entity to its entity. No entity of a world has it.
type subEntityOf struct{ Of ecs.Entity }
