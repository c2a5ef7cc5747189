package schema

// This file has conditions: which peers may see a component.

import (
	"fmt"
	"reflect"

	"github.com/mlange-42/arche/ecs"
)

// Condition selects the peers that may see a component. The components of an entity that share a
// condition are sent as an entity of their own: see snapshot/sub_entities.go.
type Condition struct {
	Kind conditionKind
	Ask  any // of OnlyFor: the pointer to a function, by which conditions are compared
}

// conditionKind selects the peers that a condition admits.
type conditionKind uint8

const (
	always conditionKind = iota
	OwnerOnly
	ExceptOwner
	OnlyFor
)

// checkConditions returns the condition that the options give a component of type t.
func checkConditions(name string, t reflect.Type, o *Options) (Condition, error) {
	if o.Resource && len(o.Conditions) > 0 {
		return Condition{}, fmt.Errorf("%s: a resource has no condition, since every peer is sent it: "+
			"use a component of an entity", name)
	}
	if o.Resource && o.Once {
		return Condition{}, fmt.Errorf("%s: the option Once is for components: "+
			"a resource is sent whenever it changes", name)
	}
	if len(o.Conditions) == 0 {
		return Condition{}, nil
	}
	if len(o.Conditions) > 1 {
		return Condition{}, fmt.Errorf("%s: OwnerOnly, ExceptOwner and OnlyFor exclude each other: "+
			"choose one, or put the component on an entity of its own, with Interest", name)
	}
	if t.Kind() == reflect.Struct && t.NumField() > 0 {
		if first := t.Field(0); first.Anonymous && first.Type == reflect.TypeFor[ecs.Relation]() {
			return Condition{}, fmt.Errorf("%s: a relation can't have a condition: "+
				"keep the target in a field of type ecs.Entity", name)
		}
	}
	return o.Conditions[0], nil
}

// subEntityOf is the component that links a sub-entity to its entity. No entity of a world has it.
type subEntityOf struct{ Of ecs.Entity }
