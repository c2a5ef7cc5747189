package interpolation

import (
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/mlange-42/arche/ecs"
)

// references are the references to entities in the rows that a column shows. The entities that they name come and go
// independently of that, so they are looked up in every frame.
type references struct {
	comp  *schema.Component
	pages [][]uint32 // by slot, two words for each reference
	moved []retarget // scratch memory
}

// A retarget is an entity whose relation gets another target.
type retarget struct{ entity, target ecs.Entity }

// newReferences returns the references of a component, or nil if it has none.
func newReferences(c *schema.Component) *references {
	if !c.Refers() {
		return nil
	}
	return &references{comp: c}
}

// targeted reports whether the first reference is the target of a relation of Arche, which is in no field.
func (r *references) targeted() bool { return r != nil && r.comp.Targeted() }

// fields returns the columns of the references that are fields, and the number of the first one.
func (r *references) fields() (columns []int, first int) {
	if r.comp.Targeted() {
		first = 1
	}
	return r.comp.References[first:], first
}

// keep remembers the references of the row that a slot shows.
func (r *references) keep(slot uint32, row []uint32) {
	if r == nil {
		return
	}
	page, n := int(slot/receive.ReplicaPage), 2*len(r.comp.References)
	if page >= len(r.pages) {
		r.pages = append(r.pages, make([][]uint32, page+1-len(r.pages))...)
	}
	if r.pages[page] == nil {
		r.pages[page] = make([]uint32, receive.ReplicaPage*n)
	}
	kept := r.of(slot)
	for i, k := range r.comp.References {
		copy(kept[2*i:], row[r.comp.Columns[k].Word:][:2])
	}
}

// of returns what is kept for a slot.
func (r *references) of(slot uint32) []uint32 {
	n := 2 * len(r.comp.References)
	return r.pages[slot/receive.ReplicaPage][int(slot%receive.ReplicaPage)*n:][:n]
}

// write makes the fields of a value refer to the entities that a slot's row names.
func (r *references) write(p *Interpolation, slot uint32, value unsafe.Pointer) {
	kept := r.of(slot)
	columns, first := r.fields()
	for i, k := range columns {
		r.comp.WriteEntity(value, k, p.inside.Apply.View.Named(kept[2*(first+i):]))
	}
}

// copy copies the references of a value.
func (r *references) copy(to, from unsafe.Pointer) {
	if r == nil {
		return
	}
	columns, _ := r.fields()
	for _, k := range columns {
		r.comp.WriteEntity(to, k, r.comp.ReadEntity(from, k))
	}
}

// aim notes an entity whose relation has another target than the row that its slot shows.
func (r *references) aim(p *Interpolation, slot uint32, e, has ecs.Entity) {
	if target := p.inside.Apply.View.Named(r.of(slot)); target != has {
		r.moved = append(r.moved, retarget{e, target})
	}
}

// retarget sets the targets of the entities that were noted.
func (r *references) retarget(w *ecs.World, relation ecs.ID) {
	for _, m := range r.moved {
		// Arche's listener may have removed any of it.
		here := m.target.IsZero() || archeutil.Alive(w, m.target)
		if here && archeutil.Alive(w, m.entity) && w.Has(m.entity, relation) {
			w.Relations().Set(m.entity, relation, m.target)
		}
	}
	r.moved = r.moved[:0]
}
