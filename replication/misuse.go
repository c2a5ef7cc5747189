package replication

import (
	"reflect"

	"github.com/mlange-42/arche/ecs"
)

// This file has what all parts need to refuse misuse. The package's documentation has the rule.

// checkWorld panics if a world is nil, or zero.
func checkWorld(function string, world *ecs.World) {
	if world == nil || reflect.ValueOf(world).Elem().IsZero() {
		panic("replication: " + function + " needs a world: make one with ecs.NewWorld")
	}
}

// isNil reports whether an interface's value is nil, or a pointer, function, map or the like that is nil itself.
func isNil(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan, reflect.Interface:
		return r.IsNil()
	default:
		return false
	}
}
