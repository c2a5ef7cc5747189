package playout

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/mlange-42/arche/ecs"
)

// Interpolate makes p show the component as of its time, in place: after [Playout.Advance], it is between two states
// of the server's. Every field goes its way by its codec: numbers linearly, angles and integers with the tag wrap the
// shorter way round, quaternions and unit vectors by the shortest rotation. What has no between, such as bools, enums
// and texts, changes at the time of the next state. References to entities, and fields that are not replicated, are
// left alone: references are those of the newest state.
//
// Systems that need the newest state use [InterpolateInto]. [replication.Client.Verify] leaves the component out.
//
// Panics if the component is not registered, or is interpolated already, or an option does not suit it.
func Interpolate[T any](p *Playout, opts ...ComponentOption) {
	c := newValues[T](p, "Interpolate", opts)
	add(p, c, "Interpolate")
	p.inside.Apply.View.Replaced.Add(c.number)
}

// InterpolateInto is [Interpolate] for a world whose systems need the newest state: T stays what Apply made it, and the
// component To gets the interpolated values. To is another type with the same fields:
//
//	type Drawn Position
//	playout.InterpolateInto[Position, Drawn](p)
//
// All mirrored entities with a T get a To in Advance, and lose it with their T.
//
// Panics as [Interpolate] does, and if the fields differ, or To is registered in the schema.
func InterpolateInto[T, To any](p *Playout, opts ...ComponentOption) {
	c := newValues[T](p, "InterpolateInto", opts)
	from, to := reflect.TypeFor[T](), reflect.TypeFor[To]()
	for i := range p.inside.Schema.Components {
		if p.inside.Schema.Components[i].Typ == to {
			panic(fmt.Sprintf("playout: InterpolateInto: %v is registered in the schema: use a type that is not", to))
		}
	}
	if from == to || from.Kind() != to.Kind() || from.Size() != to.Size() || !from.ConvertibleTo(to) {
		panic(fmt.Sprintf("playout: InterpolateInto: %v does not have the fields of %v: declare it by \"type %s %s\"",
			to, from, to.Name(), from.Name()))
	}
	c.to = ecs.ComponentID[To](p.world)
	add(p, c, "InterpolateInto")
	p.twins = append(p.twins, newTwin(p, p.inside.Apply.View.Components[c.number], c.to, c))
}

// Custom makes [Playout.Advance] call a function for every mirrored entity with the component: with the values of the
// two states around the present time, and the fraction of the way between them that has passed, 0 to 1, or more if
// [Extrapolate] is set. Where there is only one state, both pointers are the same.
//
// The function may write to components, but not add or remove any, nor entities. It must not keep the pointers, nor
// change what they point to.
func Custom[T any](p *Playout, fn func(e ecs.Entity, a, b *T, f float32)) {
	if fn == nil {
		panic("playout: Custom needs a function")
	}
	c := newValues[T](p, "Custom", nil)
	c.custom = fn
	add(p, c, "Custom")
}

// Cut makes a change of the component, or of its fields with the given paths, a discontinuity: an entity is not
// interpolated between two states that differ in it, in no component. Let the server count teleports, respawns and the
// like in it. Paths are those of [replication.Field].
//
// Panics if the component is not registered, or has a condition such as [replication.OwnerOnly], or lacks a field.
func Cut[T any](p *Playout, fields ...string) {
	number, comp := component[T](p, "Cut")
	if comp.Class != 0 {
		panic(fmt.Sprintf("playout: Cut: %v has a condition: use a component that comes with the entity's others",
			comp.Typ))
	}
	c := cut{component: number, words: comp.Words}
	found := map[string]bool{}
	for i := range comp.Columns {
		col := &comp.Columns[i]
		path := col.Path
		if at := slices.Index(fields, path); len(fields) == 0 || at >= 0 {
			found[path] = true
			for w := range col.Codec.Words() {
				c.compared = append(c.compared, col.Word+w)
			}
		}
	}
	for _, path := range fields {
		if !found[path] {
			panic(fmt.Sprintf("playout: Cut: %v has no replicated field %q", comp.Typ, path))
		}
	}
	p.cuts = append(p.cuts, c)
}

// A cut is a component whose changes are discontinuities.
type cut struct {
	component, words int
	compared         []int // words of a row
}

// cutBetween reports whether there is a discontinuity between two states.
func (p *Playout) cutBetween(before, after *receive.HeldState) bool {
	for i := range p.cuts {
		c := &p.cuts[i]
		a, b := before.Row(c.component, c.words), after.Row(c.component, c.words)
		if a == nil || b == nil {
			continue
		}
		for _, w := range c.compared {
			if a[w] != b[w] {
				return true
			}
		}
	}
	return false
}
