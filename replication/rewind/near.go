package rewind

import (
	"reflect"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication/internal/arrival"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/history"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/mlange-42/arche/ecs"
)

// A placement finds out where entities are.
type placement struct {
	*kept
	fields   []numberField
	from, to unsafe.Pointer // memory for two values of the component
}

// A numberField is a float32 or a float64 in a value.
type numberField struct {
	offset uintptr
	single bool
}

// newPlacement returns the placement by a component, whose fields with the tag place are coordinates.
func newPlacement(k *kept) *placement {
	p := &placement{kept: k, from: reflect.New(k.typ).UnsafePointer(), to: reflect.New(k.typ).UnsafePointer()}
	for _, i := range schema.Places(k.comp) {
		if col := &k.comp.Columns[i]; col.StandIn == nil {
			p.fields = append(p.fields, numberField{col.Offset(), col.Codec.Kind == reflect.Float32})
		}
	}
	return p
}

// at returns the field of a value.
func (f *numberField) at(value unsafe.Pointer) float64 {
	if f.single {
		return float64(*(*float32)(unsafe.Add(value, f.offset)))
	}
	return *(*float64)(unsafe.Add(value, f.offset))
}

// Near calls fn for the entities that a client showed near a place: all those whose path between the two states that
// the client blended touches the box from low to high. Make the box larger than the path of the shot by the size of an
// entity, and [Get] the positions of those for which fn is called. The coordinates are the fields with the
// tag place, in their order; others are ignored.
//
// Entities that the peer owns (see [replication.Server.SetOwner]) are left out: players predict what they control and
// see it in the present, and nobody shoots himself. So are entities that no longer exist. fn must not change the world.
//
// Panics if no field of the schema has the tag place, if fn is nil, and if the view is of another history.
func (h *History) Near(v View, low, high [3]float64, fn func(e ecs.Entity)) {
	h.mustExist()
	p := h.place
	if p == nil {
		panic("rewind: Near without coordinates: give the fields of one component that are coordinates the tag place")
	}
	switch v.history {
	case h:
	case nil:
		return
	default:
		panic("rewind: Near with a view of another history: use one that this history's View returned")
	}
	if fn == nil {
		panic("rewind: Near needs a function")
	}
	k, slots := p.kept, &h.in.Snap.Slots
	var r arrival.Around
	var versions history.Versions
	for b, alive := range slots.Alive {
		if slots.Class(b) != k.comp.Class {
			continue
		}
		for slot := range bitset.Slots(b, alive) {
			if !k.past.Has(slot) && !k.past.Find(slot, &versions) { // it has never had the component
				continue
			}
			if v.around(&r, slot) && p.touches(&v, slot, &r, &low, &high) {
				e := slots.Info[slot].Entity
				if _, exists := h.in.Snap.SlotOf(e); exists && h.server.Owner(e) != v.peer {
					fn(e)
				}
			}
		}
	}
}

// touches reports whether the way of a slot between two states touches a box.
func (p *placement) touches(v *View, slot int, r *arrival.Around, low, high *[3]float64) bool {
	k := p.kept
	first, second := v.rows(k, slot, r)
	if first == nil {
		return false
	}
	if second == nil {
		second = first
	}
	k.comp.Write(p.from, first)
	k.comp.Write(p.to, second)
	var a, b [3]float64
	for i := range p.fields {
		a[i], b[i] = p.fields[i].at(p.from), p.fields[i].at(p.to)
	}
	k.kernel.Prepare(p.from, p.to)
	bent := v.bend(k, slot, r, p.to)
	for i := range p.fields {
		aside := 0.0
		if bent {
			aside = k.curve.Aside(p.fields[i].offset, k.from, k.to)
		}
		if max(a[i], b[i])+aside < low[i] || min(a[i], b[i])-aside > high[i] {
			return false
		}
	}
	return true
}
