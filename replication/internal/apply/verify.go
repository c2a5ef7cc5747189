package apply

import (
	"reflect"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"

	"github.com/arche-replicate/arche-replicate/replication/internal/field"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// Divergence is replication.Divergence inside.
type Divergence struct {
	NetID     wire.NetID
	Entity    ecs.Entity
	Tick      delta.Tick
	Component string
	Field     string
	Got, Want any
}

// named returns the NetID of what is in a slot. Resources have none.
func (v *worldView) named(slot uint32, generation uint16) (id wire.NetID) {
	if !v.Resources.In(int(slot)) {
		id = wire.NetID{Slot: slot, Generation: generation}
	}
	return id
}

// verifyEntity returns the first field of an entity, or of the resources, that differs from the state.
func (v *worldView) verifyEntity(m *replica, state *receive.HeldState) *Divergence {
	for k := range state.Layout.Set.All() {
		p := v.place(m, k)
		if p == nil || v.Replaced.Has(k) || v.Withheld.has(v.World, m.Entity, k) {
			continue
		}
		comp := &v.schema.Components[k]
		row := state.Row(k, comp.Words)
		i := v.differs(m.Entity, k, p, row)
		if i < 0 {
			continue
		}
		d := &Divergence{Entity: m.Entity, Tick: state.Tick, Component: comp.Name, Field: comp.Columns[i].Path}
		d.Got, d.Want = v.valuesOf(m.Entity, k, i, p, row)
		return d
	}
	return nil
}

// differs returns the first column in which an entity's component, whose value is at p, differs
// from the row, or -1.
func (v *worldView) differs(e ecs.Entity, k int, p unsafe.Pointer, row []uint32) int {
	comp := &v.schema.Components[k]
	if cap(v.codes) < comp.Words {
		v.codes = make([]uint32, comp.Words)
	}
	codes := v.codes[:comp.Words]
	comp.ReadColumn(codes, p, 1)
	for i := range comp.Columns {
		col := &comp.Columns[i]
		own, other := codes[col.Word:][:col.Codec.Words()], row[col.Word:][:col.Codec.Words()]
		switch col.Codec.Op {
		case field.OpEntity:
			if !v.refersTo(own[0], own[1], other) {
				return i
			}
		case field.OpRelation:
			target := v.World.Relations().Get(e, v.Components[k])
			if !v.refersTo(target.ID(), target.Generation(), other) {
				return i
			}
		default:
			if !receive.SameRow(own, other) {
				return i
			}
		}
	}
	return -1
}

// refersTo reports whether an entity, by ID and generation, is the one that the words of a
// reference mean. If the user removed that entity, its handle counts as none.
func (v *worldView) refersTo(id, generation uint32, words []uint32) bool {
	none := ecs.Entity{}
	isNone := id == none.ID() && generation == none.Generation()
	m := v.referred(words)
	if m == nil {
		return isNone
	}
	return id == m.Entity.ID() && generation == m.Entity.Generation() || isNone && !v.present(m)
}

// referred returns the replica that the words of a reference mean, or nil.
func (v *worldView) referred(words []uint32) *replica {
	if words[0] == 0 {
		return nil
	}
	if m := v.Replicas.At(words[0] - 1); m != nil && m.Shown && m.generation == uint16(words[1]) {
		return m
	}
	return nil
}

// valuesOf returns a field of an entity's component at p, and the value that the row has for it.
func (v *worldView) valuesOf(e ecs.Entity, k, i int, p unsafe.Pointer, row []uint32) (got, want any) {
	comp := &v.schema.Components[k]
	col := &comp.Columns[i]
	if col.Codec.Op == field.OpEntity || col.Codec.Op == field.OpRelation {
		var target ecs.Entity
		if m := v.referred(row[col.Word:]); m != nil {
			target = m.Entity
		}
		if col.Codec.Op == field.OpRelation {
			return v.World.Relations().Get(e, v.Components[k]), target
		}
		return col.Of(reflect.NewAt(comp.Typ, p).Elem()), target
	}
	return col.Of(reflect.NewAt(comp.Typ, p).Elem()), comp.Value(i, row)
}
