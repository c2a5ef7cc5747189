package replication

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe" // for the name of the type that kernels take; no pointer is computed or converted here

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A resource of Arche is a value that a world has once: the score of a match, the weather.
// All resources of a world that the schema names share a slot, as the components of an
// entity do: which of them are there is the slot's component set. So they are acknowledged,
// delta-coded and sent like everything else, and a client shows all of them as they were at
// one tick. The slot is the first one, whether there are resources or none, and nothing else
// is ever in it: both ends know it by its number. It has no entity. This file has what both
// ends know of resources and the server's half; the client's is applyResources.

// resourceSlot is the slot of the resources, if the schema has any.
const resourceSlot = 0

// RegisterResource adds the resource type T to the schema: what a server's world has as
// [ecs.World.Resources] the client's world gets, loses, and has changed. The resource is a
// *T in both. There is no marker, and every peer gets all resources, whatever its [Interest]
// says.
//
// Tags and options are those of [Register], and resources count as components in every
// limit. The server's resources of a schema may take 32 KiB at fixed width in all:
// [NewServer] panics beyond that.
//
// Panics where [Register] does, and
//   - if the type is registered as a component: a type is one or the other
//   - if the type is a relation
//
// See also [RegisterResourceType].
func RegisterResource[T any](s *Schema, opts ...ComponentOption) {
	RegisterResourceType(s, reflect.TypeFor[T](), opts...)
}

// RegisterResourceType is [RegisterResource] for a type known at run time.
func RegisterResourceType(s *Schema, t reflect.Type, opts ...ComponentOption) {
	RegisterType(s, t, append(slices.Clip(opts), func(o *schema.Options) { o.Resource = true })...)
}

// resourceSet is which of the schema's types are resources.
type resourceSet struct {
	set delta.Set // by component
	any bool      // there are some
}

func resourcesOf(s *schema.Schema) (r resourceSet) {
	for i := range s.Components {
		if s.Components[i].Resource {
			r.set.Add(i)
			r.any = true
		}
	}
	return r
}

// resourceTypes are those of the schema's types that are resources, and their IDs in a
// world.
type resourceTypes struct {
	resourceSet
	schema *schema.Schema
	world  *ecs.World
	ids    []ecs.ResID // by component
}

func (r *resourceTypes) init(w *ecs.World, s *schema.Schema) {
	r.resourceSet = resourcesOf(s)
	r.schema, r.world, r.ids = s, w, make([]ecs.ResID, len(s.Components))
	for k := r.set.Next(0); k >= 0; k = r.set.Next(k + 1) {
		r.ids[k] = ecs.ResourceTypeID(w, s.Components[k].Typ)
	}
}

// in reports whether the slot is the one of the resources.
func (r *resourceSet) in(slot int) bool { return r.any && slot == resourceSlot }

// fits reports whether a slot can hold a set of components: resources or others.
func (r *resourceSet) fits(slot uint32, set *delta.Set) bool {
	wrong := r.set
	if r.in(int(slot)) {
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

// find returns where the world has a resource, nil if it has none.
//
// Panics if it is there, but not as a pointer to its type.
func (r *resourceTypes) find(component int) unsafe.Pointer {
	res := r.world.Resources().Get(r.ids[component])
	if res == nil {
		return nil
	}
	c := &r.schema.Components[component]
	v := reflect.ValueOf(res)
	if v.Kind() != reflect.Pointer || v.Type().Elem() != c.Typ || v.IsNil() {
		panic(fmt.Sprintf("replication: the world's resource %v is %s: add a pointer to one, as Arche asks for", c.Typ, describe(v)))
	}
	return v.UnsafePointer()
}

func describe(v reflect.Value) string {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return "a nil pointer"
	}
	return "a value of type " + v.Type().String()
}

// serverResources is what a server knows of the resources of its world.
type serverResources struct {
	resourceTypes
	members []member         // of all resources
	at      []unsafe.Pointer // by component: where they are in the present tick; nil: not there
	table   table            // with those members that are there; it is no table of entities
}

func (r *serverResources) init(s *snapshot) {
	r.resourceTypes.init(s.world, s.schema)
	r.at = make([]unsafe.Pointer, len(s.schema.Components))
	r.table = table{slots: []uint32{resourceSlot}, weight: 1}
	width := 0
	for k := r.set.Next(0); k >= 0; k = r.set.Next(k + 1) {
		c := &s.schema.Components[k]
		width += c.Layout.Width()
		r.members = append(r.members, member{
			component: k, values: c, history: s.histories[k],
			blocks: make([]memberBlock, 1), bytes: make([]byte, c.Bytes()), strings: make([]string, len(c.Strings)),
		})
	}
	if width > wire.MaxEntityBits {
		panic("replication: the resources of the schema take more than 32 KiB: replicate some as components of an entity that is there for them")
	}
}

// findResources looks which resources are there, and gives them their slot in the first
// tick.
func (s *snapshot) findResources() {
	r := &s.resources
	for i := range r.members {
		k := r.members[i].component
		r.at[k] = r.find(k)
	}
	if !r.any || s.slots.len() > 0 {
		return
	}
	slot := s.slots.add(ecs.Entity{}, s.tick)
	for _, h := range s.histories {
		h.Begin(slot)
	}
	s.slots.info[slot].table = &r.table
}

// captureResources captures the resources like rows of a table with one row. They may refer
// to entities, so it is known who is who.
func (s *snapshot) captureResources() {
	r := &s.resources
	if !r.any {
		return
	}
	var set delta.Set
	for i := range r.members {
		if k := r.members[i].component; r.at[k] != nil {
			set.Add(k)
		}
	}
	if set != s.slots.info[resourceSlot].set {
		s.restructureResources(set)
	}
	for i := range r.table.members {
		m := &r.table.members[i]
		s.captureReferrer(&r.table, m, r.at[m.component], 0, 1)
		r.at[m.component] = nil // it is not kept from being freed
	}
}

// restructureResources notes which resources are there from now on.
func (s *snapshot) restructureResources(set delta.Set) {
	r, info := &s.resources, &s.slots.info[resourceSlot]
	t := &r.table
	t.members, t.set, t.width, t.weight = t.members[:0], set, 0, 1
	for i := range r.members {
		m := &r.members[i]
		switch was, is := info.set.Has(m.component), set.Has(m.component); {
		case was && !is:
			m.history.Remove(resourceSlot, s.tick)
		case is && !was:
			m.blocks[0].rows = 0 // the bytes are of a row that is no more
			fallthrough
		case is:
			t.members = append(t.members, *m)
			t.width += m.values.Layout.Width()
			t.weight = max(t.weight, m.values.Priority)
		}
	}
	s.rawBits += t.width - info.width
	info.set, info.restructured = set, s.tick
	s.slots.setWidth(resourceSlot, t.width)
	s.slots.touch(resourceSlot, s.tick)
}
