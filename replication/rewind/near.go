package rewind

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/arrival"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/mlange-42/arche/ecs"
)

// A placement finds out where entities are.
type placement struct {
	kept     int // index in History.kept
	fields   []numberField
	from, to unsafe.Pointer // memory for two values of the component
}

// A numberField is a float32 or a float64 in a value.
type numberField struct {
	offset uintptr
	single bool
}

// Place makes the component the one that [History.Near] goes by: up to three of its fields are coordinates. Each is a
// replicated float32 or float64, named as in "X" or "At.X".
//
// [Keep] panics if Place is used twice, for no fields or more than three, for a component that is not in the schema, or
// for other fields.
func Place(fields ...string) KeepOption {
	return func(h *History, k *kept) {
		if k.comp == nil || h.place != nil || len(fields) < 1 || len(fields) > 3 {
			panic(fmt.Sprintf("rewind: Place%q of %v: use it once, for 1 to 3 fields of a component of the schema",
				fields, k.typ))
		}
		from, to := reflect.New(k.typ).UnsafePointer(), reflect.New(k.typ).UnsafePointer()
		p := &placement{kept: len(h.kept), from: from, to: to}
		for _, name := range fields {
			p.fields = append(p.fields, k.number64(name))
		}
		h.place = p
	}
}

// number64 returns the field with a path.
func (k *kept) number64(path string) numberField {
	for i := range k.comp.Columns {
		c := &k.comp.Columns[i]
		kind := c.Codec.Kind
		if c.Path == path && c.StandIn == nil && (kind == reflect.Float32 || kind == reflect.Float64) {
			return numberField{c.Offset(), kind == reflect.Float32}
		}
	}
	panic(fmt.Sprintf("rewind: Place: %v has no field %q that is a replicated float32 or float64", k.typ, path))
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
// entity, and [Get] the positions of those for which fn is called. Coordinates beyond the fields of [Place] are
// ignored.
//
// Entities that the peer owns (see [replication.Server.SetOwner]) are left out: players predict what they control and
// see it in the present, and nobody shoots himself. So are entities that no longer exist. fn must not change the world.
//
// Panics if no component was kept with Place, if fn is nil, and if the view is of another history.
func (h *History) Near(v View, low, high [3]float64, fn func(e ecs.Entity)) {
	h.mustExist()
	p := h.place
	if p == nil {
		panic("rewind: Near without coordinates: keep a component with the option Place")
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
	k, slots := &h.kept[p.kept], &h.in.Snap.Slots
	var r arrival.Around
	var versions delta.Versions
	for b, alive := range slots.Alive {
		if slots.Class(b) != k.comp.Class {
			continue
		}
		for slot := range bitset.Slots(b, alive) {
			if !k.past.Has(slot) && !k.past.Find(slot, &versions) { // it has never had the component
				continue
			}
			if v.around(&r, slot) && p.touches(&v, k, slot, &r, &low, &high) {
				e := slots.Info[slot].Entity
				if _, exists := h.in.Snap.SlotOf(e); exists && h.server.Owner(e) != v.peer {
					fn(e)
				}
			}
		}
	}
}

// touches reports whether the way of a slot between two states touches a box.
func (p *placement) touches(v *View, k *kept, slot int, r *arrival.Around, low, high *[3]float64) bool {
	first, second := v.rows(k, slot, r)
	if first == nil {
		return false
	}
	if second == nil {
		second = first
	}
	k.comp.Write(p.from, first)
	k.comp.Write(p.to, second)
	for i := range p.fields {
		a, b := p.fields[i].at(p.from), p.fields[i].at(p.to)
		if max(a, b) < low[i] || min(a, b) > high[i] {
			return false
		}
	}
	return true
}
