package main

import (
	"reflect"
	"strings"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// A recordedWorld is the world of a player, with the types of a recording.
type recordedWorld struct {
	world ecs.World
	types []textType
	ids   []ecs.ID    // by type
	res   []ecs.ResID // by type
}

// register makes the types known to the world.
func (w *recordedWorld) register() {
	w.ids, w.res = make([]ecs.ID, len(w.types)), make([]ecs.ResID, len(w.types))
	for i := range w.types {
		switch t := &w.types[i]; t.word {
		case "resource":
			w.res[i] = ecs.ResourceTypeID(&w.world, t.typ)
		case "component":
			w.ids[i] = ecs.TypeID(&w.world, t.typ)
		}
	}
}

// value returns the value of a type that an entity has.
func (w *recordedWorld) value(source int, e ecs.Entity) (v reflect.Value, has bool) {
	t := &w.types[source]
	if t.word == "resource" {
		resources := w.world.Resources()
		if !e.IsZero() || !resources.Has(w.res[source]) {
			return v, false
		}
		return reflect.ValueOf(resources.Get(w.res[source])).Elem(), true
	}
	if e.IsZero() || !w.world.Has(e, w.ids[source]) {
		return v, false
	}
	return reflect.NewAt(t.typ, w.world.Get(e, w.ids[source])).Elem(), true
}

// lines returns a line for each component that an entity has, with its values; or, of the zero entity, for each
// resource.
func (w *recordedWorld) lines(c *replication.Client, e ecs.Entity) (lines []string) {
	for i := range w.types {
		t := &w.types[i]
		if t.word != "component" && t.word != "resource" {
			continue
		}
		v, has := w.value(i, e)
		if !has {
			continue
		}
		var values []string
		for j := range t.fields {
			f, text := &t.fields[j], ""
			if f.scalar() == relationType {
				target, _ := c.NetID(w.world.Relations().Get(e, w.ids[i]))
				text = valueText(target)
			} else {
				text = f.text(c, v)
			}
			values = append(values, strings.TrimSpace(f.name+" "+text))
		}
		lines = append(lines, strings.TrimRight(t.name+"  "+strings.Join(values, ", "), " "))
	}
	return lines
}

// text returns the values of the field in a component, for people.
func (f *field) text(c *replication.Client, v reflect.Value) string {
	var texts []string
	for _, way := range f.steps(v.Type()) {
		leaf := follow(v, way)
		value := leaf.Interface()
		if target, ok := value.(ecs.Entity); ok {
			value, _ = c.NetID(target)
		} else if leaf.Kind() == reflect.String {
			value = leaf.String()
		}
		texts = append(texts, valueText(value))
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, " ") + "]"
}
