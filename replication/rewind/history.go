// Package rewind lets a server find out what a client showed when its player acted: lag compensation. The player aims
// at what is on the screen, which is a fraction of a second old, and between two states that the server sent. Rewind
// judges the shot by exactly that.
//
//	history := rewind.New(server)
//	...
//	view, err := history.View(peer, tick) // what this client showed when it gave its input for the tick
//	var at Position
//	shown := err == nil && rewind.Get(view, target, &at)
//
// Inputs carry the time that the client showed, which package interpolation sets. The schema declares how components
// look between two states. The two that the client blended come from the histories that the server keeps for its
// updates anyway, and the client's acknowledgements show which of them it had. Nothing that is replicated is copied per
// tick, and the world is not changed.
//
// Everything here runs on the goroutine of the server, between calls of Replicate.
package rewind

import (
	"fmt"
	"math"
	"reflect"
	"time"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/arrival"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/arche-replicate/arche-replicate/replication/internal/history"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/mlange-42/arche/ecs"
)

// A History knows what the clients of a server showed. [New] makes one.
type History struct {
	server  *replication.Server
	in      seam.Server
	limits  limits
	kept    []*kept
	place   *placement // where entities are, for Near; nil: the schema has no field with the tag place
	cuts    []cut
	watches map[*replication.Peer]*watch
}

// limits are in ticks.
type limits struct {
	rewind delta.Tick // from the latest tick to the time of a view
	delay  delta.Tick // from the newest state that a client had to what it showed
	ahead  delta.Tick // the other way round
	steady delta.Tick // how long a new delay of a client must last until it is believed
	slack  int32      // parts of a tick by which stamps may differ from a steady pace
}

// A kept component is one that a view was asked for, or that is copied.
type kept struct {
	typ    reflect.Type
	number int // in the schema
	comp   *schema.Component
	kernel *blend.Kernel
	curve  *blend.Curve // nil: it moves straight
	past   *history.Rows
	second unsafe.Pointer // memory for a value

	from, to   unsafe.Pointer // memory for two velocities, if there is a curve
	velocities *history.Rows
	raw        any // *ring[T] if the component is not in the schema
}

// An Option configures a [History].
type Option func(*History)

// Limit sets how far back a view may go before the latest tick: one second by default, but never more than three
// quarters of the server's window (see [replication.Tuning]), since states must still be known around the time that
// was shown. It limits how long after they took cover players may be hit.
//
// [New] panics unless it is 1 ms to three quarters of the window.
func Limit(d time.Duration) Option {
	return func(h *History) {
		h.limits.rewind = h.ticks("Limit", d, h.in.Opts.Window*3/4, "three quarters of the server's window, "+
			"which Tuning.Window sets")
	}
}

// Delay sets the longest delay of interpolation that is believed: by how much the state that a client shows may be
// older than its newest one. The default is half a second. Clients with more jitter or loss than that allows are
// refused.
//
// [New] panics unless it is 1 ms to the server's window.
func Delay(d time.Duration) Option {
	return func(h *History) {
		h.limits.delay = h.ticks("Delay", d, h.in.Opts.Window, "the server's window")
	}
}

// ticks returns a duration in ticks, rounded up. It is that of an option, and most is the largest.
func (h *History) ticks(option string, d time.Duration, most int, what string) delta.Tick {
	rate := h.in.Opts.TickRate
	ticks := math.Ceil(d.Seconds()*float64(rate) - 1e-6)
	if d < time.Millisecond || ticks > float64(most) {
		panic(fmt.Sprintf("rewind: %s(%v): use 1ms to %v, %d ticks, %s", option, d,
			time.Second*time.Duration(most)/time.Duration(rate), most, what))
	}
	return delta.Tick(max(ticks, 1))
}

// New returns a history of what the clients of a server show. Make it before clients connect: what was acknowledged
// before is not known exactly. It lasts as long as the server; a server needs only one.
//
// Panics if there is no server, or if an option is nil.
func New(s *replication.Server, opts ...Option) *History {
	for _, o := range opts {
		if o == nil {
			panic("rewind: New: an option is nil: leave it out")
		}
	}
	h := &History{server: s, in: seam.OfServer(s), watches: map[*replication.Peer]*watch{}}
	rate := h.in.Opts.TickRate
	h.limits = limits{
		rewind: delta.Tick(max(1, min(rate, h.in.Opts.Window*3/4))),
		delay:  delta.Tick(max(2, rate/2)),
		ahead:  delta.Tick(max(2, rate/4)),
		steady: delta.Tick(max(4, rate/2)),
		slack:  int32(max(1, rate*slackMilliseconds*blend.Parts/1000)),
	}
	for _, o := range opts {
		o(h)
	}
	for _, c := range blend.Cuts(h.in.Schema) {
		h.cuts = append(h.cuts, cut{h.in.Snap.Histories[c.Number], c})
	}
	if k := schema.Place(h.in.Schema); k >= 0 {
		h.place = newPlacement(h.add(k))
	}
	h.in.Opts.KeepArrivals = true
	s.OnDisconnect(func(p *replication.Peer) { delete(h.watches, p) })
	return h
}

// Keep makes a component that is not in the schema available to views, see [Get]: its values at the end of the latest
// ticks are copied, from the next Replicate on, and a view returns that of its tick. Those of the schema are available
// anyway, and cost nothing until a view is asked for them.
//
// Panics if T is kept already, or in the schema.
func Keep[T any](h *History) {
	h.mustExist()
	typ := reflect.TypeFor[T]()
	if number, _ := h.component(typ); number >= 0 {
		panic(fmt.Sprintf("rewind: Keep of %v, which is in the schema: views have it without Keep", typ))
	}
	if h.find(typ) != nil {
		panic(fmt.Sprintf("rewind: %v is kept already: call Keep once", typ))
	}
	r := newRing[T](h)
	*h.in.Captured = append(*h.in.Captured, r.capture)
	h.kept = append(h.kept, &kept{typ: typ, raw: r})
}

// add prepares a component of the schema for views.
func (h *History) add(number int) *kept {
	comp := &h.in.Schema.Components[number]
	k := &kept{
		typ: comp.Typ, number: number, comp: comp, kernel: blend.New(comp), past: h.in.Snap.Histories[number],
		second: reflect.New(comp.Typ).UnsafePointer(),
	}
	if k.curve = blend.NewCurve(h.in.Schema, k.kernel); k.curve != nil {
		k.velocities = h.in.Snap.Histories[k.curve.Number]
		k.from = reflect.New(k.curve.Velocity.Typ).UnsafePointer()
		k.to = reflect.New(k.curve.Velocity.Typ).UnsafePointer()
	}
	h.kept = append(h.kept, k)
	return k
}

// mustExist panics if there is no history.
func (h *History) mustExist() {
	if h == nil || h.server == nil {
		panic("rewind: there is no History: New makes one")
	}
}

// component returns a component of the schema, or nil.
func (h *History) component(typ reflect.Type) (number int, c *schema.Component) {
	for i := range h.in.Schema.Components {
		if c = &h.in.Schema.Components[i]; c.Typ == typ {
			if c.Resource {
				panic(fmt.Sprintf("rewind: %v is a resource: only components of entities have views", typ))
			}
			return i, c
		}
	}
	return -1, nil
}

// find returns what is kept of a type, or nil.
func (h *History) find(typ reflect.Type) *kept {
	for _, k := range h.kept {
		if k.typ == typ {
			return k
		}
	}
	return nil
}

// Get stores the value of an entity's component that the client of a view showed. It returns false, and leaves out
// alone, if the client showed no such component, or if the entity no longer exists. References are to entities of the
// server's world; one is zero if the client did not show the entity, or if that no longer exists. Fields that are not
// replicated are left alone, and the target of a relation is got with [Target].
//
// The client shows an entity that is new to it in its first state until the time of that state.
//
// Panics if T is neither in the schema nor kept, or if out is nil.
func Get[T any](v View, e ecs.Entity, out *T) bool {
	if v.history == nil {
		return false
	}
	k := v.history.mustFind("Get", reflect.TypeFor[T]())
	if out == nil {
		panic(fmt.Sprintf("rewind: Get of %v into nil: pass a pointer to a variable", k.typ))
	}
	if k.raw != nil {
		return k.raw.(*ring[T]).get(v, e, out)
	}
	slot, ok := v.history.slotOf(e, k.comp.Class)
	return ok && v.value(k, slot, unsafe.Pointer(out))
}

// Target returns the target that the client of a view showed of an entity's relation: the component T embeds
// ecs.Relation. The target is the zero entity if there was none, if the client did not show it, or if it no longer
// exists. ok is as that of [Get].
//
// Panics if T is no relation whose target is replicated.
func Target[T any](v View, e ecs.Entity) (target ecs.Entity, ok bool) {
	if v.history == nil {
		return target, false
	}
	k := v.history.mustFind("Target", reflect.TypeFor[T]())
	if k.comp == nil || !k.comp.Targeted() {
		panic(fmt.Sprintf("rewind: Target of %v, which has no target that is replicated: "+
			"embed ecs.Relation, without a tag, and register it", k.typ))
	}
	slot, ok := v.history.slotOf(e, k.comp.Class)
	if !ok {
		return target, false
	}
	var r arrival.Around
	v.around(&r, slot)
	if row, _ := v.rows(k, slot, &r); row != nil {
		return v.named(row), true
	}
	return target, false
}

// mustFind returns what is kept of a type, and panics if that is nothing.
func (h *History) mustFind(what string, typ reflect.Type) *kept {
	if k := h.find(typ); k != nil {
		return k
	}
	number, _ := h.component(typ)
	if number < 0 {
		panic(fmt.Sprintf("rewind: %s of %v, which is neither in the schema nor kept: call Keep when the history "+
			"is made", what, typ))
	}
	return h.add(number)
}

// slotOf returns the slot that has an entity's components of a class.
func (h *History) slotOf(e ecs.Entity, class int) (slot int, ok bool) {
	if slot, ok = h.in.Snap.SlotOf(e); ok && class > 0 {
		slot, ok = h.in.Snap.Slots.SubEntity(class-1, slot)
	}
	return slot, ok
}
