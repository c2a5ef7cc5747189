package playout

import (
	"fmt"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A column is a component that is shown as of another time, in all entities.
type column interface {
	show(p *Playout)                        // one frame
	sample(p *Playout)                      // after that: looks whether the component suffers from its precision
	coarse() string                         // the name of the component if it does
	invalidate(slot uint32, now delta.Tick) // there is a new state
	forget(now delta.Tick)                  // all states are other ones
	copy(to, from unsafe.Pointer)           // what is replicated of a component
}

// values is the column of a component of type T. Which states an entity is between is looked up in the client's held
// states once per span of time, and kept by slot.
type values[T any] struct {
	number  int // of the component
	comp    *schema.Component
	kernel  *blend.Kernel
	to      ecs.ID   // the component that is written: T's or a twin's
	wanted  ecs.Mask // of entities that have it
	filter  ecs.CachedFilter
	pages   []*[receive.ReplicaPage]entry[T] // by slot
	snap    float64                          // distance per tick from which on a step is a teleport; 0: none is
	zero    T
	custom  func(e ecs.Entity, a, b *T, f float32) // instead of writing
	bends   bends                                  // of Hermite, or nil
	refs    *references                            // or nil
	samples samples

	// Of the entity that was looked up last.
	beyond float32  // fraction, if it is guessed
	row    []uint32 // as of the time that is shown, or nil if there is nothing to show
}

// An entry is what an entity shows in the present span of time.
type entry[T any] struct {
	span       blend.Span
	until      delta.Tick // when the states have to be looked up again
	generation uint16     // of the entity
	state      state
	first      T
	second     T // prepared for the kernel, if there is no custom function
}

type state uint8

const (
	unknown  state = iota // there is nothing to show
	moving                // from the first value to the second
	waiting               // at the first value, until the next state
	resting               // at the first value, which is the newest, and not written yet
	rested                // the same, written
	guessing              // extrapolated
)

func newValues[T any](p *Playout, what string, opts []ComponentOption) *values[T] {
	number, comp := component[T](p, what)
	var o componentOptions
	for _, opt := range opts {
		if opt == nil {
			panic("playout: " + what + ": an option is nil: leave it out")
		}
		opt(&o)
	}
	kernel, err := blend.New(comp, o.modes...)
	if err != nil {
		panic("playout: " + what + ": " + err.Error())
	}
	return &values[T]{
		number: number, comp: comp, kernel: kernel, snap: o.snap, to: p.inside.Apply.View.Components[number],
		refs: newReferences(comp),
	}
}

// add makes p show the column.
func add[T any](p *Playout, c *values[T], what string) {
	if n := c.comp.Every; n > 1 && c.custom == nil && c.kernel.Moves() {
		panic(fmt.Sprintf("playout: %s: %v is registered with Every(%d), so it would stand still for %d ticks and "+
			"cover all of the distance in one: leave out Every and use Peer.SetSendInterval to send motion less "+
			"often, or name all fields that move in the option Step", what, c.comp.Typ, n, n-1))
	}
	for _, other := range p.columns {
		o, ok := other.(*values[T])
		if !ok || o.custom != nil || c.custom != nil {
			continue
		}
		own := p.inside.Apply.View.Components[c.number]
		switch {
		case o.to == c.to:
			panic(fmt.Sprintf("playout: %s: %v is interpolated already: name every component once", what, c.comp.Typ))
		case o.to == own || c.to == own:
			panic(fmt.Sprintf("playout: %s: %v is to be overwritten and to stay as Apply wrote it: "+
				"use either Interpolate or InterpolateInto", what, c.comp.Typ))
		}
	}
	c.wanted = ecs.All(p.marker, p.inside.Apply.View.Components[c.number], c.to)
	filter := c.wanted
	c.filter = p.world.Cache().Register(&filter)
	p.columns = append(p.columns, c)
}

// show writes the component of all entities.
func (c *values[T]) show(p *Playout) {
	if c.custom != nil {
		c.callAll(p)
		return
	}
	p.tables.each(c.wanted, func(t *table, n int, q *ecs.Query) {
		if n == 0 {
			q.Close()
			return
		}
		if t.related {
			for q.Next() {
				c.showRows(p, 1, q.Get(p.marker), q.Get(c.to))
				c.aim(p, q)
			}
			return
		}
		q.Next()
		c.showRows(p, n, q.Get(p.marker), q.Get(c.to))
		q.Close()
	})
	if c.refs.targeted() {
		c.refs.retarget(p.world, c.to)
	}
}

// aim notes the entity of a query if its relation has another target than it shows.
func (c *values[T]) aim(p *Playout, q *ecs.Query) {
	if !c.refs.targeted() {
		return
	}
	id, own := p.replica(q.Get(p.marker))
	if own && c.page(id.Slot/receive.ReplicaPage, p.at.Tick)[id.Slot%receive.ReplicaPage].state != unknown {
		c.refs.aim(p, id.Slot, q.Entity(), q.Relation(c.to))
	}
}

// showRows writes the component of entities that lie side by side.
func (c *values[T]) showRows(p *Playout, n int, markers, values unsafe.Pointer) {
	now := p.at
	offset, floats := c.kernel.Run()
	if c.bends != nil || c.refs != nil {
		floats = 0
	}
	var page *[receive.ReplicaPage]entry[T]
	number := ^uint32(0)
	for i := range n {
		id, own := p.replica(at(markers, i, unsafe.Sizeof(seam.Mirrored{})))
		if !own {
			continue
		}
		if id.Slot/receive.ReplicaPage != number {
			number = id.Slot / receive.ReplicaPage
			page = c.page(number, now.Tick)
		}
		e := &page[id.Slot%receive.ReplicaPage]
		dst := at(values, i, unsafe.Sizeof(c.zero))
		if e.generation != id.Generation || int32(now.Tick-e.until) >= 0 {
			c.look(p, e, id)
			if len(c.comp.StandIns) > 0 && c.row != nil { // once for each state: these values do not move
				c.comp.WriteConverted(dst, c.row)
			}
		}
		if floats == 0 || e.state != moving {
			c.write(p, e, id.Slot, dst)
			if c.refs != nil && e.state != unknown {
				c.refs.write(p, id.Slot, dst)
			}
			continue
		}
		// This is what the kernel does, without a call for each entity.
		v := unsafe.Add(dst, offset)
		a, b := unsafe.Add(unsafe.Pointer(&e.first), offset), unsafe.Add(unsafe.Pointer(&e.second), offset)
		if f := e.span.Fraction(now); floats == 3 {
			blend.Three(v, a, b, f)
		} else {
			blend.Floats(v, a, b, floats, f)
		}
	}
}

// write writes the component of an entity.
func (c *values[T]) write(p *Playout, e *entry[T], slot uint32, dst unsafe.Pointer) {
	f := float32(0)
	switch e.state {
	case moving:
		f = e.span.Fraction(p.at)
	case guessing:
		p.guessed, f = true, c.beyond
	case resting:
		e.state = rested
		fallthrough
	case waiting:
		c.kernel.Mix(dst, unsafe.Pointer(&e.first), unsafe.Pointer(&c.zero), 0)
		return
	default:
		return
	}
	c.kernel.Mix(dst, unsafe.Pointer(&e.first), unsafe.Pointer(&e.second), f)
	if c.bends != nil && e.state == moving {
		c.bends.bend(slot, dst, f)
	}
}

func (c *values[T]) copy(to, from unsafe.Pointer) {
	c.kernel.Mix(to, from, unsafe.Pointer(&c.zero), 0)
	c.refs.copy(to, from)
}

// callAll calls the user's function for all entities.
func (c *values[T]) callAll(p *Playout) {
	q, done := p.world.Query(&c.filter), false
	defer func() {
		if !done { // the function has panicked
			q.Close()
		}
	}()
	for q.Next() {
		id, own := p.replica(q.Get(p.marker))
		if !own {
			continue
		}
		e := &c.page(id.Slot/receive.ReplicaPage, p.at.Tick)[id.Slot%receive.ReplicaPage]
		if e.generation != id.Generation || int32(p.at.Tick-e.until) >= 0 {
			c.look(p, e, id)
		}
		c.call(p, e, id.Slot, q.Entity())
	}
	done = true
}

// call calls the user's function.
func (c *values[T]) call(p *Playout, e *entry[T], slot uint32, entity ecs.Entity) {
	if c.refs != nil && e.state != unknown {
		c.refs.write(p, slot, unsafe.Pointer(&e.first))
		c.refs.copy(unsafe.Pointer(&e.second), unsafe.Pointer(&e.first))
	}
	switch e.state {
	case moving:
		c.custom(entity, &e.first, &e.second, e.span.Fraction(p.at))
	case guessing:
		p.guessed = true
		c.custom(entity, &e.first, &e.second, c.beyond)
	case waiting, resting, rested:
		c.custom(entity, &e.first, &e.first, 0)
	}
}

// page returns a page of entries, by its number.
func (c *values[T]) page(number uint32, now delta.Tick) *[receive.ReplicaPage]entry[T] {
	if i := int(number); i >= len(c.pages) {
		c.pages = append(c.pages, make([]*[receive.ReplicaPage]entry[T], i+1-len(c.pages))...)
	}
	if c.pages[number] == nil {
		c.pages[number] = new([receive.ReplicaPage]entry[T])
		expire(c.pages[number], now)
	}
	return c.pages[number]
}

// expire makes show look up entries again.
func expire[T any](page *[receive.ReplicaPage]entry[T], now delta.Tick) {
	for i := range page {
		page[i].until = now
	}
}

func (c *values[T]) invalidate(slot uint32, now delta.Tick) {
	if i := int(slot / receive.ReplicaPage); i < len(c.pages) && c.pages[i] != nil {
		c.pages[i][slot%receive.ReplicaPage].until = now
	}
}

func (c *values[T]) forget(now delta.Tick) {
	for _, page := range c.pages {
		if page != nil {
			expire(page, now)
		}
	}
}

// forLong is for how many ticks an entity may rest before it is looked up again: serial arithmetic needs an end.
const forLong = 1 << 30

// look finds the states of an entity around the present time.
func (c *values[T]) look(p *Playout, e *entry[T], id wire.NetID) {
	// Until something is known, the component stays as it is: the entity is about to go, or to become another one, or
	// nothing has come of it in this session.
	e.state, e.until, e.generation, c.row = unknown, p.at.Tick, id.Generation, nil
	r := p.inside.Apply.RowsOf(id.Slot, c.number)
	if r == nil || !r.Any {
		return
	}
	generation := id.Generation
	if c.comp.Class > 0 { // the slot is not the entity's own
		newest := r.Held.At(r.Newest)
		if newest == nil || r.Empty {
			return
		}
		generation = newest.Generation
	}
	before, after := r.Held.Around(p.at.Tick)
	first, second := c.rowOf(before, generation), c.rowOf(after, generation)
	if after != nil && first != nil {
		if end, gone := after.Ended(); gone && p.at.Tick.Before(end) {
			c.rest(e, id.Slot, first, waiting, end)
			return
		} else if gone { // it is another appearance, as if the entity were new
			first = nil
		}
	}
	switch {
	case first == nil: // the entity is not there yet at that time, or has no such component
		for ; after != nil && second == nil; second = c.rowOf(after, generation) {
			_, after = r.Held.Around(after.Tick)
		}
		if second != nil {
			c.rest(e, id.Slot, second, waiting, after.Tick)
		}
	case after == nil:
		if r.Empty || !c.guess(p, e, id.Slot, r, before) {
			c.rest(e, id.Slot, first, resting, p.at.Tick+forLong)
		}
	case second == nil || p.cutBetween(before, after) || c.kernel.CutBetween(first, second):
		c.rest(e, id.Slot, first, waiting, after.Tick)
	default:
		c.move(e, id.Slot, before, after)
	}
}

// rowOf returns a state's row of the component, or nil.
func (c *values[T]) rowOf(s *receive.HeldState, generation uint16) []uint32 {
	if s == nil || s.Layout == nil || s.Generation != generation {
		return nil
	}
	return s.Row(c.number, c.comp.Words)
}

// rest makes an entity stay at a row.
func (c *values[T]) rest(e *entry[T], slot uint32, row []uint32, s state, until delta.Tick) {
	c.comp.Write(unsafe.Pointer(&e.first), row)
	c.refs.keep(slot, row)
	e.state, e.until, e.span, c.row = s, until, blend.Span{}, row
}

// move makes an entity move from one state to the next, which has the same references. If it is known to have rested at
// the first one, it sets out when that ended.
func (c *values[T]) move(e *entry[T], slot uint32, before, after *receive.HeldState) {
	from := before.Tick
	if rested, ok := after.Rested(); ok && rested.After(from) {
		from = rested
	}
	c.row = c.rowOf(before, before.Generation)
	c.refs.keep(slot, c.row)
	c.comp.Write(unsafe.Pointer(&e.first), c.row)
	c.comp.Write(unsafe.Pointer(&e.second), c.rowOf(after, after.Generation))
	e.state, e.until, e.span = moving, after.Tick, blend.NewSpan(from, after.Tick)
	if c.custom != nil {
		return
	}
	first, second := unsafe.Pointer(&e.first), unsafe.Pointer(&e.second)
	c.kernel.Prepare(first, second)
	if far := c.snap * float64(after.Tick-from); c.snap > 0 && c.kernel.Distance(first, second) > far*far {
		e.state = waiting
		return
	}
	if c.bends != nil {
		c.bends.look(slot, before, after, second, after.Tick-from)
	}
}

// guess makes an entity go on from its newest state as it moved before, if the user wants that, and if it is not known
// to rest.
func (c *values[T]) guess(p *Playout, e *entry[T], slot uint32, r *receive.Replica, newest *receive.HeldState) bool {
	if p.extrapolate == 0 || p.restsAt(newest.Tick) {
		return false
	}
	if _, gone := newest.Ended(); gone {
		return false
	}
	before, _ := r.Held.Around(newest.Tick - 1)
	first, second := c.rowOf(before, newest.Generation), c.rowOf(newest, newest.Generation)
	if first == nil || p.cutBetween(before, newest) || c.kernel.CutBetween(first, second) {
		return false
	}
	c.move(e, slot, before, newest)
	if e.state != moving {
		return false
	}
	at := p.at
	if end := newest.Tick + p.extrapolate; at.Tick.After(end) {
		at = blend.Time{Tick: end}
	}
	c.beyond, c.row = e.span.Fraction(at), second
	e.state, e.until = guessing, p.at.Tick // until the next frame
	return true
}
