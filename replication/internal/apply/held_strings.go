package apply

import (
	"reflect"
	"unsafe"

	"github.com/mlange-42/arche/ecs"
)

// Strings of components. Arche moves rows as plain bytes, which the garbage collector does not
// notice: it may see neither the old place of a moved string nor the new one, and free the string.
// So the client holds all strings that it wrote. Conversion functions may create any values; of
// those with pointers, it holds a copy.

// holdStrings holds the strings, and copies the values with pointers, of component k of a replica.
// The component is at p. Some of that may be the user's.
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

// dropStrings releases what is held for component k.
func (v *worldView) dropStrings(m *replica, k int) {
	delete(m.values, k)
	if comp := &v.schema.Components[k]; m.Strings != nil {
		clear(m.Strings[comp.First:][:len(comp.Strings)])
	}
}

// held is a resource of worlds that have components of clients that are gone, and holds what those held.
type held struct {
	strings [][]string
	values  []map[int]reflect.Value
}

// holdForGood makes the world hold what is held for components.
func (v *worldView) holdForGood() {
	var h held
	for _, page := range v.Replicas.Pages {
		for i := range page {
			if m := &page[i]; m.Strings != nil || m.values != nil {
				h.strings, h.values = append(h.strings, m.Strings), append(h.values, m.values)
			}
		}
	}
	if h.strings == nil {
		return
	}
	if !v.World.Resources().Has(ecs.ResourceID[held](v.World)) {
		ecs.AddResource(v.World, &held{})
	}
	all := ecs.GetResource[held](v.World)
	all.strings, all.values = append(all.strings, h.strings...), append(all.values, h.values...)
}
