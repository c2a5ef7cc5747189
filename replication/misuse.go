package replication

import (
	"fmt"
	"reflect"
)

// This file has what all parts need to refuse misuse. The package's documentation has the rule.

// applyOptions applies the options that a function was given.
func applyOptions[O any, F ~func(*O)](function string, o *O, opts []F) {
	for i, opt := range opts {
		if opt == nil {
			panic(nilOption(function, i))
		}
		opt(o)
	}
}

// nilOption says that the option with an index is nil.
func nilOption(function string, i int) string {
	return fmt.Sprintf("replication: %s: option %d is nil: leave it out", function, i+1)
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
