package interpolation

import (
	"reflect"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// Pages are the entries of a column, by slot. Their values are of a type known at run time only, so they are handled by
// address; the memory has that type, so that the garbage collector finds the texts in it. They are not in a struct with
// the entry, since reflect.StructOf would add 24 kB to each client in a browser, compressed.
type pages struct {
	all                []*page
	values, velocities reflect.Type // arrays of all of a page; no velocities: nil
	size, velocity     uintptr      // of one
}

type page [receive.ReplicaPage]entry

// newPages returns no pages. curve may be nil.
func newPages(c *schema.Component, curve *blend.Curve) pages {
	p := pages{values: reflect.ArrayOf(2*receive.ReplicaPage, c.Typ), size: c.Size}
	if curve != nil {
		p.velocities, p.velocity = reflect.ArrayOf(2*receive.ReplicaPage, curve.Velocity.Typ), curve.Velocity.Size
	}
	return p
}

// page returns a page, by its number.
func (p *pages) page(number uint32, now delta.Tick) *page {
	if i := int(number); i >= len(p.all) {
		p.all = append(p.all, make([]*page, i+1-len(p.all))...)
	}
	if p.all[number] == nil {
		made, values := new(page), reflect.New(p.values).UnsafePointer()
		for i := range made {
			made[i].first, made[i].second = archeutil.At(values, 2*i, p.size), archeutil.At(values, 2*i+1, p.size)
		}
		if p.velocities != nil {
			values = reflect.New(p.velocities).UnsafePointer()
			for i := range made {
				made[i].velocities = archeutil.At(values, 2*i, p.velocity)
			}
		}
		made.expire(now)
		p.all[number] = made
	}
	return p.all[number]
}

// entry returns the entry of a slot.
func (p *pages) entry(slot uint32, now delta.Tick) *entry {
	return &p.page(slot/receive.ReplicaPage, now)[slot%receive.ReplicaPage]
}

// find returns the entry of a slot, or nil if there is none yet.
func (p *pages) find(slot uint32) *entry {
	i := int(slot / receive.ReplicaPage)
	if i >= len(p.all) || p.all[i] == nil {
		return nil
	}
	return &p.all[i][slot%receive.ReplicaPage]
}

// expire makes show look up the entries of a page again.
func (p *page) expire(now delta.Tick) {
	for i := range p {
		p[i].until = now
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
			page.expire(now)
		}
	}
}

func (p *pages) velocitiesOf(e *entry) (from, to unsafe.Pointer) {
	return e.velocities, unsafe.Add(e.velocities, p.velocity)
}
