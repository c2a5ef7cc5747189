package interpolation

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/mlange-42/arche/ecs"
)

// show makes p write a component, unless clients show its newest state anyway.
func show(p *Interpolation, number int) {
	s := p.inside.Schema
	comp := &s.Components[number]
	if comp.Resource || comp.Shown.Newest || comp.Once || len(comp.Columns) == 0 || number == s.Link {
		return
	}
	c := newColumn(p, number)
	if n := comp.Every; n > 1 && c.kernel.Moves() {
		panic(fmt.Sprintf("interpolation: Attach: %s is registered with Every(%d), so it would stand still for %d "+
			"ticks and cover all of the distance in one: leave out Every and use Peer.SetSendInterval to send motion "+
			"less often, give the fields that move the tag hold, or register it with Newest", comp.Name, n, n-1))
	}
	add(p, c)
	p.inside.Apply.View.Replaced.Add(number)
}

// Into leaves the component T as [replication.Client.Frame] received it, for systems that need the newest state, and
// writes the interpolated values into the component To. To is another type with the same fields:
//
//	type Drawn Position
//	interpolation.Into[Position, Drawn](shown)
//
// Each replica that has a T is given a To, which is removed when the T is gone. If package predict draws the T, To
// equals it.
//
// Panics if T is not registered as a component, or with [replication.Newest], or is a relation of Arche, of which an
// entity can't have two; if the fields differ; if To is registered, or has the values of another component already; and
// once the world is shown: call it after [Attach].
func Into[T, To any](p *Interpolation) {
	number := component[T](p, "Into")
	comp := &p.inside.Schema.Components[number]
	from, to := reflect.TypeFor[T](), reflect.TypeFor[To]()
	if comp.Shown.Newest {
		panic(fmt.Sprintf("interpolation: Into: %v is registered with Newest, so nothing of it is interpolated: "+
			"leave out Newest, since Into leaves %[1]v alone", from))
	}
	for i := range p.inside.Schema.Components {
		if p.inside.Schema.Components[i].Typ == to {
			panic(fmt.Sprintf("interpolation: Into: %v is registered in the schema: use a type that is not", to))
		}
	}
	if from == to || from.Kind() != to.Kind() || from.Size() != to.Size() || !from.ConvertibleTo(to) {
		panic(fmt.Sprintf("interpolation: Into: %v does not have the fields of %v: declare it by \"type %s %s\"",
			to, from, to.Name(), from.Name()))
	}
	own := p.inside.Apply.View.Components[number]
	if info, _ := ecs.ComponentInfo(p.world, own); info.IsRelation {
		panic(fmt.Sprintf("interpolation: Into: %v is a relation, and an entity can't have two: use Custom", from))
	}
	if p.looked {
		panic("interpolation: Into: the world is shown already: call Into right after Attach")
	}
	c := newColumn(p, number)
	c.to = ecs.ComponentID[To](p.world)
	for i := range p.twins {
		if p.twins[i].ids[0] == c.to {
			panic(fmt.Sprintf("interpolation: Into: %v has the values of a component already: "+
				"declare a type for each", to))
		}
	}
	leave(p, own)
	if replaced := &p.inside.Apply.View.Replaced; replaced.Has(number) {
		replaced.Toggle(number)
	}
	add(p, c)
	p.twins = append(p.twins, newTwin(p, own, c.to, c))
	if len(p.twins) == 1 {
		p.inside.Apply.Drawn = append(p.inside.Apply.Drawn, func() { followPredicted(p) })
	}
}

// leave stops writing a component.
func leave(p *Interpolation, id ecs.ID) {
	rest := p.columns[:0]
	for _, c := range p.columns {
		if c.to != id || c.custom != nil {
			rest = append(rest, c)
		}
	}
	p.columns = rest
}

// Custom calls fn in every frame for every replica that has the component T, after T was written. a and b are its
// values in the states before and after [Interpolation.Time], and f is the fraction of the time between them that has
// passed: 0 to 1, or more than 1 with [Extrapolate]. If there is nothing to interpolate, such as between two states
// that differ in a reference to an entity, a and b are the same pointer and f is 0. The target of a relation of Arche
// is in neither.
//
// fn may write to components, but must not add or remove components or entities. It must neither keep a and b nor
// change what they point to.
//
// Panics if T is not registered as a component, or if fn is nil.
func Custom[T any](p *Interpolation, fn func(e ecs.Entity, a, b *T, f float32)) {
	number := component[T](p, "Custom")
	if fn == nil {
		panic("interpolation: Custom needs a function")
	}
	c := newColumn(p, number)
	c.custom = func(e ecs.Entity, a, b unsafe.Pointer, f float32) { fn(e, (*T)(a), (*T)(b), f) }
	add(p, c)
}

// component returns the number of a registered component.
func component[T any](p *Interpolation, what string) int {
	p.mustExist()
	number := p.inside.Apply.View.Number("interpolation."+what, reflect.TypeFor[T]())
	if c := &p.inside.Schema.Components[number]; c.Resource {
		panic(fmt.Sprintf("interpolation: %s: %v is a resource: only components are shown as of another time",
			what, c.Typ))
	}
	return number
}

// cutBetween reports whether there is a discontinuity between two states.
func cutBetween(p *Interpolation, before, after *receive.HeldState) bool {
	for i := range p.cuts {
		c := &p.cuts[i]
		a, b := before.Row(c.Number, c.Words), after.Row(c.Number, c.Words)
		if a != nil && b != nil && c.Between(a, b) {
			return true
		}
	}
	return false
}
