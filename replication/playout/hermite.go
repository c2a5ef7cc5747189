package playout

import (
	"fmt"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// Hermite is [Interpolate] for a component T whose float fields that move linearly have their velocities in another
// component, V, in the same order. They move along a cubic curve that has these velocities at both ends, so that turns
// have no corners. A velocity times perTick is the distance covered in a server tick: for velocities per second,
// perTick is 1 divided by the tick rate. V need not be interpolated.
//
// Use it only if the velocities fit the motion: if they do not, entities swing.
//
// Panics as [Interpolate] does, and if V has another condition than T, or does not have a linear float field, of the
// same type, for each of T.
func Hermite[T, V any](p *Playout, perTick float64, opts ...ComponentOption) {
	c := newValues[T](p, "Hermite", opts)
	number, comp := component[V](p, "Hermite")
	if comp.Class != c.comp.Class {
		panic(fmt.Sprintf("playout: Hermite: %v and %v have other conditions: they must come together",
			c.comp.Typ, comp.Typ))
	}
	kernel, err := blend.New(comp)
	if err != nil {
		panic("playout: Hermite: " + err.Error())
	}
	curve, err := blend.NewCurve(c.kernel, kernel)
	if err != nil {
		panic("playout: Hermite: " + err.Error())
	}
	c.bends = &velocities[V]{number: number, comp: comp, curve: curve, perTick: perTick}
	add(p, c, "Hermite")
	p.inside.Apply.View.Replaced.Add(c.number)
}

// bends is what Hermite adds to a column.
type bends interface {
	// look finds the velocities for the way between two states in so many ticks.
	look(slot uint32, before, after *receive.HeldState, way unsafe.Pointer, ticks delta.Tick)
	// bend moves a value from the straight way to the curve.
	bend(slot uint32, value unsafe.Pointer, f float32)
}

// velocities are the velocities of type V.
type velocities[V any] struct {
	number  int // of the component
	comp    *schema.Component
	curve   *blend.Curve
	perTick float64
	pages   []*[receive.ReplicaPage]ends[V] // by slot
}

// ends are the velocities of an entity at both ends of its way, prepared.
type ends[V any] struct {
	known         bool
	first, second V
}

func (v *velocities[V]) look(slot uint32, before, after *receive.HeldState, way unsafe.Pointer, ticks delta.Tick) {
	i := int(slot / receive.ReplicaPage)
	if i >= len(v.pages) {
		v.pages = append(v.pages, make([]*[receive.ReplicaPage]ends[V], i+1-len(v.pages))...)
	}
	if v.pages[i] == nil {
		v.pages[i] = new([receive.ReplicaPage]ends[V])
	}
	e := &v.pages[i][slot%receive.ReplicaPage]
	a, b := before.Row(v.number, v.comp.Words), after.Row(v.number, v.comp.Words)
	if e.known = a != nil && b != nil; !e.known {
		return
	}
	first, second := unsafe.Pointer(&e.first), unsafe.Pointer(&e.second)
	v.comp.Write(first, a)
	v.comp.Write(second, b)
	v.curve.Prepare(way, first, second, v.perTick*float64(ticks))
}

func (v *velocities[V]) bend(slot uint32, value unsafe.Pointer, f float32) {
	if e := &v.pages[slot/receive.ReplicaPage][slot%receive.ReplicaPage]; e.known {
		v.curve.Bend(value, unsafe.Pointer(&e.first), unsafe.Pointer(&e.second), f)
	}
}
