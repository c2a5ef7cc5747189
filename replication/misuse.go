package replication

import "reflect"

// This file has what all parts need to refuse misuse. The package's documentation has the rule.

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
