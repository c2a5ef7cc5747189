package interpolation

import (
	"math"
	"reflect"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/apply"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A column is a component that is shown as of another time, in all entities. Which states an entity is between is
// looked up in the client's held states once per span of time, and kept by slot.
type column struct {
	number int // of the component
	comp   *schema.Component
	kernel *blend.Kernel
	curve  *blend.Curve // nil: it moves straight
	to     ecs.ID       // the component that is written: its own or a twin's
	wanted ecs.Mask     // of entities that have it
	filter ecs.CachedFilter
	pages  pages
	zero   unsafe.Pointer                                     // a value
	custom func(e ecs.Entity, a, b unsafe.Pointer, f float32) // instead of writing
	refs   *references                                        // or nil

	samples samples

	// Of the entity that was looked up last.
	beyond float32  // fraction, if it is guessed
	row    []uint32 // as of the time that is shown, or nil if there is nothing to show
}

// An entry is what an entity shows in the present span of time: two values of the component, the second
// one prepared for the kernel if there is no custom function, and two prepared velocities if there is a curve.
type entry struct {
	first      unsafe.Pointer
	second     unsafe.Pointer
	velocities unsafe.Pointer // or nil
	span       blend.Span
	until      delta.Tick // when the states have to be looked up again
	jump       delta.Tick // the end of the latest teleport
	generation uint16     // of the entity
	state      state
	bent       bool // the velocities are known
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

// newColumn returns the column of a component, which p does not show yet.
func newColumn(p *Interpolation, number int) *column {
	comp := &p.inside.Schema.Components[number]
	c := &column{
		number: number, comp: comp, kernel: blend.New(comp), to: p.inside.Apply.View.Components[number],
		zero: reflect.New(comp.Typ).UnsafePointer(), refs: newReferences(comp),
	}
	c.curve = blend.NewCurve(p.inside.Schema, c.kernel)
	c.pages = newPages(comp, c.curve)
	return c
}

// add makes p show a column.
func add(p *Interpolation, c *column) {
	c.wanted = ecs.All(p.marker, p.inside.Apply.View.Components[c.number], c.to)
	filter := c.wanted
	c.filter = p.world.Cache().Register(&filter)
	p.columns = append(p.columns, c)
}

// show writes the component of all entities.
func (c *column) show(p *Interpolation) {
	if c.custom != nil {
		c.callAll(p)
		return
	}
	withheld := c.withheld(p)
	p.tables.Each(c.wanted, func(t *archeutil.Table, n int, q *ecs.Query) {
		if n == 0 {
			q.Close()
			return
		}
		if withheld != nil && t.Mask.Get(withheld.Marker) {
			for q.Next() {
				c.skip(p, q.Get(p.marker))
			}
			return
		}
		if t.Related {
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

// withheld returns what selects the entities in which the column is left alone, or nil if it is in none.
func (c *column) withheld(p *Interpolation) *apply.Withheld {
	w := &p.inside.Apply.View.Withheld
	if !w.On || !w.Components.Has(c.number) {
		return nil
	}
	return w
}

// skip leaves an entity alone, by its replica's marker. What it shows is looked up when it is interpolated again.
func (c *column) skip(p *Interpolation, marker unsafe.Pointer) {
	if id, own := p.replica(marker); own {
		if e := c.pages.find(id.Slot); e != nil {
			e.state, e.until = unknown, p.at.Tick
		}
	}
}

// aim notes the entity of a query if its relation has another target than it shows.
func (c *column) aim(p *Interpolation, q *ecs.Query) {
	if !c.refs.targeted() {
		return
	}
	id, own := p.replica(q.Get(p.marker))
	if own && c.pages.entry(id.Slot, p.at.Tick).state != unknown {
		c.refs.aim(p, id.Slot, q.Entity(), q.Relation(c.to))
	}
}

// showRows writes the component of entities that lie side by side.
func (c *column) showRows(p *Interpolation, n int, markers, values unsafe.Pointer) {
	now := p.at
	offset, floats := c.kernel.Run()
	if c.curve != nil || c.refs != nil {
		floats = 0
	}
	size := c.comp.Size
	var page *page
	number := ^uint32(0)
	for i := range n {
		id, own := p.replica(archeutil.At(markers, i, unsafe.Sizeof(seam.Mirrored{})))
		if !own {
			continue
		}
		if id.Slot/receive.ReplicaPage != number {
			number = id.Slot / receive.ReplicaPage
			page = c.pages.page(number, now.Tick)
		}
		e := &page[id.Slot%receive.ReplicaPage]
		dst := archeutil.At(values, i, size)
		if e.generation != id.Generation || int32(now.Tick-e.until) >= 0 {
			c.look(p, e, id)
			if len(c.comp.StandIns) > 0 && c.row != nil { // once for each state: these values do not move
				c.comp.WriteConverted(dst, c.row)
			}
		}
		if floats == 0 || e.state != moving {
			c.write(p, e, dst)
			if c.refs != nil && e.state != unknown {
				c.refs.write(p, id.Slot, dst)
			}
			continue
		}
		// This is what the kernel does, without a call for each entity.
		v := unsafe.Add(dst, offset)
		a, b := unsafe.Add(e.first, offset), unsafe.Add(e.second, offset)
		if f := e.span.Fraction(now); floats == 3 {
			blend.Three(v, a, b, f)
		} else {
			blend.Floats(v, a, b, floats, f)
		}
	}
}

// write writes the component of an entity.
func (c *column) write(p *Interpolation, e *entry, dst unsafe.Pointer) {
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
		c.kernel.Mix(dst, e.first, c.zero, 0)
		return
	default:
		return
	}
	c.kernel.Mix(dst, e.first, e.second, f)
	if e.bent && e.state == moving {
		from, to := c.pages.velocitiesOf(e)
		c.curve.Bend(dst, from, to, f)
	}
}

func (c *column) copy(to, from unsafe.Pointer) {
	c.kernel.Mix(to, from, c.zero, 0)
	c.refs.copy(to, from)
}

// callAll calls the user's function for all entities.
func (c *column) callAll(p *Interpolation) {
	q, done := p.world.Query(&c.filter), false
	defer func() {
		if !done { // the function has panicked
			q.Close()
		}
	}()
	withheld := c.withheld(p)
	for q.Next() {
		id, own := p.replica(q.Get(p.marker))
		if !own || withheld != nil && q.Has(withheld.Marker) {
			continue
		}
		e := c.pages.entry(id.Slot, p.at.Tick)
		if e.generation != id.Generation || int32(p.at.Tick-e.until) >= 0 {
			c.look(p, e, id)
		}
		c.call(p, e, id.Slot, q.Entity())
	}
	done = true
}

// call calls the user's function.
func (c *column) call(p *Interpolation, e *entry, slot uint32, entity ecs.Entity) {
	first, second := e.first, e.second
	if c.refs != nil && e.state != unknown {
		c.refs.write(p, slot, first)
		c.refs.copy(second, first)
	}
	switch e.state {
	case moving:
		c.custom(entity, first, second, e.span.Fraction(p.at))
	case guessing:
		p.guessed = true
		c.custom(entity, first, second, c.beyond)
	case waiting, resting, rested:
		c.custom(entity, first, first, 0)
	}
}

// forLong is for how many ticks an entity may rest before it is looked up again: serial arithmetic needs an end.
const forLong = 1 << 30

// look finds the states of an entity around the present time.
func (c *column) look(p *Interpolation, e *entry, id wire.NetID) {
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
	jumps := false
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
	case second == nil || c.kernel.CutBetween(first, second):
		c.rest(e, id.Slot, first, waiting, after.Tick)
	case cutBetween(p, before, after):
		c.rest(e, id.Slot, first, waiting, after.Tick)
		jumps = c.kernel.Moves()
	default:
		c.move(e, id.Slot, before, after)
		jumps = e.state == waiting
	}
	if jumps && e.jump != after.Tick { // it may be looked up several times
		e.jump = after.Tick
		p.teleports++
	}
}

// rowOf returns a state's row of the component, or nil.
func (c *column) rowOf(s *receive.HeldState, generation uint16) []uint32 {
	if s == nil || s.Layout == nil || s.Generation != generation {
		return nil
	}
	return s.Row(c.number, c.comp.Words)
}

// rest makes an entity stay at a row.
func (c *column) rest(e *entry, slot uint32, row []uint32, s state, until delta.Tick) {
	c.comp.Write(e.first, row)
	c.refs.keep(slot, row)
	e.state, e.until, e.span, c.row = s, until, blend.Span{}, row
}

// move makes an entity move from one state to the next, which has the same references. If it is known to have rested at
// the first one, it sets out when that ended.
func (c *column) move(e *entry, slot uint32, before, after *receive.HeldState) {
	from := before.Tick
	if rested, ok := after.Rested(); ok && rested.After(from) {
		from = rested
	}
	c.row = c.rowOf(before, before.Generation)
	c.refs.keep(slot, c.row)
	first, second := e.first, e.second
	c.comp.Write(first, c.row)
	c.comp.Write(second, c.rowOf(after, after.Generation))
	e.state, e.until, e.span, e.bent = moving, after.Tick, blend.NewSpan(from, after.Tick), false
	if c.custom != nil {
		return
	}
	c.kernel.Prepare(first, second)
	switch {
	case c.kernel.Snaps(first, second, after.Tick-from):
		e.state = waiting
	case c.curve != nil:
		c.bend(e, before, after, after.Tick-from)
	}
}

// bend finds the velocities of an entity on its way, which takes so many ticks.
func (c *column) bend(e *entry, before, after *receive.HeldState, ticks delta.Tick) {
	v := c.curve.Velocity
	a, b := before.Row(c.curve.Number, v.Words), after.Row(c.curve.Number, v.Words)
	if a == nil || b == nil {
		return
	}
	from, to := c.pages.velocitiesOf(e)
	v.Write(from, a)
	v.Write(to, b)
	c.curve.Prepare(e.second, from, to, ticks)
	e.bent = true
}

// guess makes an entity go on from its newest state as it moved before, if the user wants that, and if it is not known
// to rest.
func (c *column) guess(p *Interpolation, e *entry, slot uint32, r *receive.Replica, newest *receive.HeldState) bool {
	if p.clock.ahead == 0 || p.restsAt(newest.Tick) {
		return false
	}
	if _, gone := newest.Ended(); gone {
		return false
	}
	before, _ := r.Held.Around(newest.Tick - 1)
	first, second := c.rowOf(before, newest.Generation), c.rowOf(newest, newest.Generation)
	if first == nil || cutBetween(p, before, newest) || c.kernel.CutBetween(first, second) {
		return false
	}
	c.move(e, slot, before, newest)
	if e.state != moving {
		return false
	}
	at := p.at
	end := blend.Time{Tick: newest.Tick}.Add(int64(math.Round(p.clock.ahead * blend.Parts)))
	if at.Tick.After(end.Tick) || at.Tick == end.Tick && at.Part > end.Part {
		at = end
	}
	c.beyond, c.row = e.span.Fraction(at), second
	e.state, e.until = guessing, p.at.Tick // until the next frame
	return true
}
