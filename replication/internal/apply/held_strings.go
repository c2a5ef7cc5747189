package apply

import (
	"reflect"
	"unsafe"
)

// Arche moves rows as plain bytes, which the garbage collector does not notice: of a string that is moved while it is at work
// it may see neither the old place nor the new one, and free it. So the client holds the strings that it wrote, and whatever
// a conversion's function may have made: of values that lead to others it holds a copy.

// holdStrings holds the strings of component k of a mirror, whose value is at p, and what else that leads to. Some of it may be
// the user's.
func (v *worldView) holdStrings(m *replica, k int, p unsafe.Pointer) {
	comp := &v.schema.Components[k]
	if comp.Volatile {
		m.hold(k, reflect.NewAt(comp.Typ, p).Elem())
	}
	if len(comp.Strings) == 0 {
		return
	}
	if m.Strings == nil {
		m.Strings = make([]string, v.schema.Strings)
	}
	comp.HoldStrings(m.Strings[comp.First:], p, 1)
}

// dropStrings lets go of what is held of component k.
func (v *worldView) dropStrings(m *replica, k int) {
	delete(m.values, k)
	if comp := &v.schema.Components[k]; m.Strings != nil {
		clear(m.Strings[comp.First:][:len(comp.Strings)])
	}
}
