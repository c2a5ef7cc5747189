package playout

import (
	"fmt"
	"reflect"

	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/mlange-42/arche/ecs"
)

// Interpolate makes [Playout.Advance] overwrite the component T of all replicas with its value at [Playout.Time]. A
// field's codec determines how it moves between two states: floats, and integers with the tag linear, move linearly;
// angles, and integers with the tag wrap, the shorter way round; quaternions and unit vectors by the shortest rotation.
// Everything else, such as other integers, bools, enums, texts and references to entities, changes at the time of the
// next state. Fields that are not replicated are left alone.
//
// Between two states that differ in a reference, the other fields do not move either, but change with it: what is
// relative to one entity must not be shown relative to another. A reference is zero while the client does not have its
// entity. The target of a relation of Arche is treated as a reference is.
//
// If systems need the newest state, use [InterpolateInto]. [replication.Client.Verify] skips the component.
//
// Panics if T is not registered as a component in the schema or is interpolated already, if an option does not suit it,
// or if it is registered with [replication.Every] and has fields that move: these would stand still and jump. Use
// [replication.Peer.SetSendInterval] instead, or the option [Step].
func Interpolate[T any](p *Playout, opts ...ComponentOption) {
	c := newValues[T](p, "Interpolate", opts)
	add(p, c, "Interpolate")
	p.inside.Apply.View.Replaced.Add(c.number)
}

// InterpolateInto is [Interpolate] for a world whose systems need the newest state: T stays as
// [replication.Client.Apply] wrote it, and the component To gets the interpolated values. To is another type with the
// same fields:
//
//	type Drawn Position
//	playout.InterpolateInto[Position, Drawn](p)
//
// [Playout.Advance] adds a To to each replica that has a T, and removes it when the T is gone.
//
// Panics as [Interpolate] does, and if the fields differ, or To is registered in the schema or has the values of
// another component already, or T is a relation of Arche: an entity can't have two.
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
	if info, _ := ecs.ComponentInfo(p.world, c.to); info.IsRelation {
		panic(fmt.Sprintf("playout: InterpolateInto: %v is a relation, and an entity can't have two: use Custom", from))
	}
	c.to = ecs.ComponentID[To](p.world)
	for i := range p.twins {
		if p.twins[i].ids[0] == c.to {
			panic(fmt.Sprintf("playout: InterpolateInto: %v has the values of a component already: "+
				"declare a type for each", to))
		}
	}
	add(p, c, "InterpolateInto")
	p.twins = append(p.twins, newTwin(p, p.inside.Apply.View.Components[c.number], c.to, c))
}

// Custom makes [Playout.Advance] call fn for every replica that has the component T. a and b are its values in the
// states before and after [Playout.Time], and f is the fraction of the time between them that has passed: 0 to 1, or
// more than 1 with [Extrapolate]. If there is nothing to interpolate, such as between two states that differ in a
// reference to an entity, a and b are the same pointer and f is 0. The target of a relation of Arche is in neither: use
// [Interpolate] as well.
//
// fn may write to components, but must not add or remove components or entities. It must neither keep a and b nor
// change what they point to.
//
// Panics if T is not registered as a component in the schema, or if fn is nil.
func Custom[T any](p *Playout, fn func(e ecs.Entity, a, b *T, f float32)) {
	if fn == nil {
		panic("playout: Custom needs a function")
	}
	c := newValues[T](p, "Custom", nil)
	c.custom = fn
	add(p, c, "Custom")
}

// Cut makes a change of the component T a discontinuity: between two states in which T differs, no component of the
// entity is interpolated; it stays at the first state until the time of the second. With fields, only these count. Let
// the server count teleports, respawns and the like in T. Paths are those of [replication.Field].
//
// Components with a condition, such as [replication.OwnerOnly], have states of their own. They are cut by a T with the
// same condition, and such a T cuts nothing else. So a client that does not see T does not see what T would cut.
//
// Panics if T is not registered as a component in the schema, or lacks a field.
func Cut[T any](p *Playout, fields ...string) {
	number, comp := component[T](p, "Cut")
	c, missing := blend.NewCut(comp, fields)
	if missing != "" {
		panic(fmt.Sprintf("playout: Cut: %v has no replicated field %q", comp.Typ, missing))
	}
	p.cuts = append(p.cuts, cut{number, comp.Words, c})
}

// A cut is a component whose changes are discontinuities.
type cut struct {
	component, words int
	blend.Cut
}

// cutBetween reports whether there is a discontinuity between two states.
func (p *Playout) cutBetween(before, after *receive.HeldState) bool {
	for i := range p.cuts {
		c := &p.cuts[i]
		a, b := before.Row(c.component, c.words), after.Row(c.component, c.words)
		if a != nil && b != nil && c.Between(a, b) {
			return true
		}
	}
	return false
}
