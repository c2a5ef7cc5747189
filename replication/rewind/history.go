// Package rewind lets a server find out what a client showed when its player acted: lag compensation. The player aims
// at what is on the screen, which is a fraction of a second old, and between two states that the server sent. Rewind
// judges the shot by exactly that.
//
//	history := rewind.New(server)
//	rewind.Keep[Position](history)
//	...
//	view, err := history.View(peer, tick) // what this client showed when it gave its input for the tick
//	var at Position
//	shown := err == nil && rewind.Get(view, target, &at)
//
// Inputs carry the play-out time that the client showed, which package playout sets. The two states that the client
// blended come from the histories that the server keeps for its updates anyway, and the client's acknowledgements show
// which of them it had. Nothing that is replicated is copied per tick, and the world is not changed.
//
// Everything here runs on the goroutine of the server, between calls of Replicate.
package rewind

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/arrival"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/mlange-42/arche/ecs"
)

// A History knows what the clients of a server showed. [New] makes one.
type History struct {
	server  *replication.Server
	in      seam.Server
	limits  limits
	kept    []kept
	place   *placement // where entities are, for Near; nil: not known
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

// A kept component is one that views can be asked for.
type kept struct {
	typ    reflect.Type
	number int // in the schema
	comp   *schema.Component
	kernel *blend.Kernel
	past   *delta.History
	modes  []blend.FieldMode
	snap   float64        // distance per tick from which on a step is a teleport; 0: none is
	second unsafe.Pointer // memory for a value
	raw    any            // *ring[T] if the component is not replicated
}

// An Option configures a [History].
type Option func(*History)

// Limit sets how far back a view may go, in ticks before the latest one: one second by default, but never more than
// three quarters of the server's window (see [replication.WithWindow]), since states must still be known around the
// time that was shown. It limits how long after they took cover players may be hit.
//
// [New] panics outside 1 to three quarters of the window.
func Limit(ticks int) Option {
	return func(h *History) {
		if most := h.in.Opts.Window * 3 / 4; ticks < 1 || ticks > most {
			panic(fmt.Sprintf("rewind: Limit(%d): use 1 to %d ticks, three quarters of the server's window, "+
				"which WithWindow sets", ticks, most))
		}
		h.limits.rewind = delta.Tick(ticks)
	}
}

// Delay sets the longest play-out delay that is believed, in ticks: by how much the state that a client shows may be
// older than its newest one. The default is half a second. Clients with more jitter or loss than that allows are
// refused.
//
// [New] panics outside 1 to the server's window.
func Delay(ticks int) Option {
	return func(h *History) {
		if ticks < 1 || ticks > h.in.Opts.Window {
			panic(fmt.Sprintf("rewind: Delay(%d): use 1 to %d ticks, the server's window", ticks, h.in.Opts.Window))
		}
		h.limits.delay = delta.Tick(ticks)
	}
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
	h.in.Opts.KeepArrivals = true
	s.OnDisconnect(func(p *replication.Peer) { delete(h.watches, p) })
	return h
}

// Keep makes a component available to views, see [Get].
//
// One that is in the schema costs nothing until a view is asked for it: its values are those that the client blended,
// field by field as package playout does. Give it the options that the client gives to play-out. Of any other
// component, the server's values at the end of the latest ticks are copied, from the next Replicate on; a view returns
// that of its tick.
//
// Panics if T is kept already, or a resource of the schema, or if an option does not suit it.
func Keep[T any](h *History, opts ...KeepOption) {
	h.mustExist()
	typ := reflect.TypeFor[T]()
	if h.find(typ) != nil {
		panic(fmt.Sprintf("rewind: %v is kept already: call Keep once", typ))
	}
	k := kept{typ: typ}
	k.number, k.comp = h.component(typ)
	for _, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("rewind: Keep of %v: an option is nil: leave it out", typ))
		}
		if k.comp == nil {
			panic(fmt.Sprintf("rewind: Keep of %v with options: they are for components of the schema, of which "+
				"clients show what is between two states", typ))
		}
		o(h, &k)
	}
	if k.comp == nil {
		r := newRing[T](h)
		*h.in.Captured = append(*h.in.Captured, r.capture)
		k.raw = r
	} else {
		kernel, err := blend.New(k.comp, k.modes...)
		if err != nil {
			panic("rewind: Keep: " + err.Error())
		}
		k.kernel, k.past, k.second = kernel, h.in.Snap.Histories[k.number], unsafe.Pointer(new(T))
	}
	h.kept = append(h.kept, k)
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
				panic(fmt.Sprintf("rewind: %v is a resource: only components of entities can be kept", typ))
			}
			return i, c
		}
	}
	return -1, nil
}

// find returns what is kept of a type, or nil.
func (h *History) find(typ reflect.Type) *kept {
	for i := range h.kept {
		if h.kept[i].typ == typ {
			return &h.kept[i]
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
// Panics if T is not kept, or if out is nil.
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
// Panics if T is not kept, or is no relation whose target is replicated.
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
	k := h.find(typ)
	if k == nil {
		panic(fmt.Sprintf("rewind: %s of %v, which is not kept: call Keep when the history is made", what, typ))
	}
	return k
}

// slotOf returns the slot that has an entity's components of a class.
func (h *History) slotOf(e ecs.Entity, class int) (slot int, ok bool) {
	if slot, ok = h.in.Snap.SlotOf(e); ok && class > 0 {
		slot, ok = h.in.Snap.Slots.SubEntity(class-1, slot)
	}
	return slot, ok
}
