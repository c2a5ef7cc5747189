package archeutil

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// ResourceTypes are the types of the schema that are resources, and their IDs in a world.
type ResourceTypes struct {
	ResourceSet
	schema *schema.Schema
	world  *ecs.World
	IDs    []ecs.ResID // by component
}

// Init finds the resources of a schema and their IDs in a world.
func (r *ResourceTypes) Init(w *ecs.World, s *schema.Schema) {
	r.ResourceSet = ResourcesOf(s)
	r.schema, r.world, r.IDs = s, w, make([]ecs.ResID, len(s.Components))
	for k := range r.Set.All() {
		r.IDs[k] = ecs.ResourceTypeID(w, s.Components[k].Typ)
	}
}

// Find returns the address of a resource in the world, or nil if there is none.
//
// Panics if the resource is there, but not as a pointer to its type.
func (r *ResourceTypes) Find(component int) unsafe.Pointer {
	res := r.world.Resources().Get(r.IDs[component])
	if res == nil {
		return nil
	}
	c := &r.schema.Components[component]
	v := reflect.ValueOf(res)
	if v.Kind() != reflect.Pointer || v.Type().Elem() != c.Typ || v.IsNil() {
		panic(fmt.Sprintf("replication: the world's resource %v is %s: add a pointer to one, as Arche asks for",
			c.Typ, describe(v)))
	}
	return v.UnsafePointer()
}

// ResourceSlot is the slot of the resources, if the schema has any.
const ResourceSlot = 0

// describe names the kind of a resource that is no valid pointer.
func describe(v reflect.Value) string {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return "a nil pointer"
	}
	return "a value of type " + v.Type().String()
}

// ResourceSet knows which types of the schema are resources.
type ResourceSet struct {
	Set wire.ComponentSet // by component
	Any bool              // there are some
}

// In reports whether the slot is the one of the resources.
func (r *ResourceSet) In(slot int) bool { return r.Any && slot == ResourceSlot }

// Fits reports whether a slot can hold a set of components: resources in their own slot, others
// elsewhere.
func (r *ResourceSet) Fits(slot uint32, set *wire.ComponentSet) bool {
	wrong := r.Set
	if r.In(int(slot)) {
		for i := range wrong {
			wrong[i] = ^wrong[i]
		}
	}
	for i, word := range set {
		if word&wrong[i] != 0 {
			return false
		}
	}
	return true
}

// ResourcesOf returns which types of a schema are resources.
func ResourcesOf(s *schema.Schema) (r ResourceSet) {
	for i := range s.Components {
		if s.Components[i].Resource {
			r.Set.Add(i)
			r.Any = true
		}
	}
	return r
}
