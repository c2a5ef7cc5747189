package interpolation

import (
	"reflect"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// Pages are the entries of a column, by slot. Their values are of a type known at run time only, so they are handled by
// address; the memory has that type, so that the garbage collector finds the texts in it.
type pages struct {
	all []unsafe.Pointer // to arrays of entries with their values, or nil
	typ reflect.Type     // of an array

	stride        uintptr // of entries
	first, second uintptr // of the values, from the entry
	from, to      uintptr // of the velocities
}

// newPages returns no pages. curve may be nil.
func newPages(c *schema.Component, curve *blend.Curve) pages {
	fields := []reflect.StructField{
		{Name: "Entry", Type: reflect.TypeFor[entry]()},
		{Name: "First", Type: c.Typ},
		{Name: "Second", Type: c.Typ},
	}
	if curve != nil {
		fields = append(fields, reflect.StructField{Name: "From", Type: curve.Velocity.Typ},
			reflect.StructField{Name: "To", Type: curve.Velocity.Typ})
	}
	t := reflect.StructOf(fields)
	p := pages{
		typ: reflect.ArrayOf(receive.ReplicaPage, t), stride: t.Size(),
		first: t.Field(1).Offset, second: t.Field(2).Offset,
	}
	if curve != nil {
		p.from, p.to = t.Field(3).Offset, t.Field(4).Offset
	}
	return p
}

// page returns a page, by its number.
func (p *pages) page(number uint32, now delta.Tick) unsafe.Pointer {
	if i := int(number); i >= len(p.all) {
		p.all = append(p.all, make([]unsafe.Pointer, i+1-len(p.all))...)
	}
	if p.all[number] == nil {
		p.all[number] = reflect.New(p.typ).UnsafePointer()
		p.expire(p.all[number], now)
	}
	return p.all[number]
}

// entry returns the entry of a slot.
func (p *pages) entry(slot uint32, now delta.Tick) *entry {
	return (*entry)(at(p.page(slot/receive.ReplicaPage, now), int(slot%receive.ReplicaPage), p.stride))
}

// find returns the entry of a slot, or nil if there is none yet.
func (p *pages) find(slot uint32) *entry {
	i := int(slot / receive.ReplicaPage)
	if i >= len(p.all) || p.all[i] == nil {
		return nil
	}
	return (*entry)(at(p.all[i], int(slot%receive.ReplicaPage), p.stride))
}

// expire makes show look up the entries of a page again.
func (p *pages) expire(page unsafe.Pointer, now delta.Tick) {
	for i := range receive.ReplicaPage {
		(*entry)(at(page, i, p.stride)).until = now
	}
}

// invalidate makes show look up a slot again: there is a new state.
func (p *pages) invalidate(slot uint32, now delta.Tick) {
	if e := p.find(slot); e != nil {
		e.until = now
	}
}

// forget makes show look up all slots again: all states are other ones.
func (p *pages) forget(now delta.Tick) {
	for _, page := range p.all {
		if page != nil {
			p.expire(page, now)
		}
	}
}

func (p *pages) firstOf(e *entry) unsafe.Pointer  { return unsafe.Add(unsafe.Pointer(e), p.first) }
func (p *pages) secondOf(e *entry) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(e), p.second) }

func (p *pages) velocities(e *entry) (from, to unsafe.Pointer) {
	return unsafe.Add(unsafe.Pointer(e), p.from), unsafe.Add(unsafe.Pointer(e), p.to)
}
