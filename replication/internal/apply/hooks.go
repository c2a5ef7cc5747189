package apply

import (
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/mlange-42/arche/ecs"
)

// Hooks are functions of the user that a [Client] calls in Frame when its world changes:
// [OnSpawn], [OnDespawn], [OnAdd], [OnRemove] and [OnChange]. They are called at two
// points, where the world is consistent:
//
//   - Before Frame changes anything, for everything that it is about to remove: OnRemove and
//     OnDespawn. Nothing has gone yet, and nothing has come.
//   - After Frame has changed everything, including references, for everything that came or
//     changed: OnSpawn, OnAdd and OnChange.
type hooks struct {
	schema    *schema.Schema
	recv      *receive.Receiver
	view      *worldView
	referrers *referrers

	Spawned, Despawned []func(e ecs.Entity)
	Components         []ComponentHooks // by number; empty until one has a hook

	Parting  bool // there are hooks for what is removed
	Arriving bool // there are hooks for what comes or changes
	running  bool
	changing bool // the world is being changed

	events []hookEvent          // of this Frame, in order
	noted  map[hookKey]struct{} // components of the first events, for noteMend
	listed int                  // how many events are in noted
}

// ComponentHooks are the hooks of a component.
type ComponentHooks struct {
	Added, Removed []func(e ecs.Entity, p unsafe.Pointer)
	Changed        changeHooks // nil if there is none
}

// changeHooks are a component's hooks for changes, which know its type.
type changeHooks interface {
	keep(p unsafe.Pointer) int // copies a value before it changes, and returns the index of the copy
	at(before int) unsafe.Pointer
	count() int
	call(hook int, e ecs.Entity, before int, p unsafe.Pointer)
	clear()
}

// Changes implements changeHooks.
type Changes[T any] struct {
	before []T // of this Frame
	Hooks  []func(e ecs.Entity, before, now *T)
}

func (c *Changes[T]) keep(p unsafe.Pointer) int {
	c.before = append(c.before, *(*T)(p))
	return len(c.before) - 1
}

func (c *Changes[T]) at(before int) unsafe.Pointer { return unsafe.Pointer(&c.before[before]) }

func (c *Changes[T]) count() int { return len(c.Hooks) }

func (c *Changes[T]) call(hook int, e ecs.Entity, before int, p unsafe.Pointer) {
	c.Hooks[hook](e, &c.before[before], (*T)(p))
}

func (c *Changes[T]) clear() {
	clear(c.before) // so that the garbage collector can free what the values point to
	c.before = c.before[:0]
}

// hookEvent is an event for which hooks are called at the end of Frame.
type hookEvent struct {
	slot      uint32
	component int32      // or eventSpawn
	before    int32      // index of the value before the change, or eventAdd
	entity    ecs.Entity // none for resources
}

// hookKey is a component in a slot.
type hookKey struct {
	slot      uint32
	component int32
}

const (
	eventSpawn = -1
	eventAdd   = -1
)

// NotInHook panics if a hook is running, or if the world is being changed, where Arche calls its listener.
func (h *hooks) NotInHook(method string) {
	where := "a hook"
	switch {
	case h.running:
	case h.changing:
		where = "a function that Frame or Close calls, such as Arche's listener"
	default:
		return
	}
	panic("replication: " + method + " in " + where +
		": the Frame that called it has not ended; note it and do so afterwards")
}

// begin notes that the world is being changed until the function that it returns is called.
func (h *hooks) begin() (end func()) {
	h.changing = true
	return func() { h.changing = false }
}

// announceAll calls the hooks for everything that Frame is about to remove: entities of former
// sessions, as outlived reports, and what the new states lack.
func (h *hooks) announceAll(some, foreign bool) {
	if some {
		for i, page := range h.view.Replicas.Pages {
			for j := range page {
				switch m := &page[j]; {
				case !foreign && m.Any:
				case m.Shown:
					h.announceEntity(uint32(i*receive.ReplicaPage+j), m)
				case m.attached():
					h.announceSubEntity(m, some, foreign)
				}
			}
		}
		if foreign {
			return // everything is removed
		}
	}
	for _, slot := range h.recv.Dirty {
		m := h.view.Replicas.At(slot)
		if m == nil {
			continue // the world shows nothing of it
		}
		if m.attached() {
			h.announceSubEntity(m, some, foreign)
		}
		switch {
		case !m.Shown:
		case h.view.leaves(m, false, false):
			h.announceEntity(slot, m)
		default:
			if state := m.Held.At(m.Newest); state != nil {
				h.announceLost(m, state)
			}
		}
	}
}

// announceEntity calls the hooks for an entity that is about to be removed.
func (h *hooks) announceEntity(slot uint32, m *replica) {
	h.announceComponents(m)
	h.announceSubEntities(slot, m)
	for _, fn := range h.Despawned {
		if !h.view.present(m) {
			return
		}
		fn(m.Entity)
	}
}

// announceComponent calls the hooks for a component that is about to be removed.
func (h *hooks) announceComponent(m *replica, k int) {
	for _, fn := range h.Components[k].Removed {
		if p := h.view.place(m, k); p != nil {
			fn(m.Entity, p)
		}
	}
}

// watch reports whether a component has hooks for its arrival or its changes.
func (h *hooks) watch(k int) bool {
	return k < len(h.Components) && (h.Components[k].Added != nil || h.Components[k].Changed != nil)
}

// noteSpawn records that an entity has come.
func (h *hooks) noteSpawn(slot uint32, m *replica) {
	if !h.Arriving {
		return
	}
	if h.Spawned != nil {
		h.events = append(h.events, hookEvent{slot, eventSpawn, 0, m.Entity})
	}
	for k := range h.Components {
		if h.watch(k) && m.Layout.Set.Has(k) {
			h.noteAdd(slot, m, k)
		}
	}
}

// noteAdd records that a component has come, even without hooks for that: references that are
// resolved in the same Frame are no change.
func (h *hooks) noteAdd(slot uint32, m *replica, k int) {
	if h.Components[k].Added != nil || h.schema.Components[k].Refers() {
		h.events = append(h.events, hookEvent{slot, int32(k), eventAdd, m.Entity})
	}
}

// noteChange records that a component at p, which is about to be written, comes or changes. differs
// is false if the value may be the same as before.
func (h *hooks) noteChange(slot uint32, m *replica, k int, p unsafe.Pointer, row []uint32, differs bool) {
	own := &h.Components[k]
	switch {
	case !m.Shown && !m.SubEntity, !m.Layout.Set.Has(k):
		h.noteAdd(slot, m, k)
	case own.Changed == nil || len(row) == 0:
	case differs && !h.schema.Components[k].Refers(), h.view.differs(m.Entity, k, p, row) >= 0:
		h.events = append(h.events, hookEvent{slot, int32(k), int32(own.Changed.keep(p)), m.Entity})
	}
}

// noteMend records that a reference of a component at p is about to be resolved or cleared. If the
// component came or changed in this Frame, hooks are called for that already.
func (h *hooks) noteMend(slot uint32, m *replica, k int, p unsafe.Pointer) {
	if k >= len(h.Components) || h.Components[k].Changed == nil {
		return
	}
	if h.noted == nil {
		h.noted = map[hookKey]struct{}{}
	}
	for ; h.listed < len(h.events); h.listed++ {
		h.noted[hookKey{h.events[h.listed].slot, h.events[h.listed].component}] = struct{}{}
	}
	if _, ok := h.noted[hookKey{slot, int32(k)}]; !ok {
		h.events = append(h.events, hookEvent{slot, int32(k), int32(h.Components[k].Changed.keep(p)), m.Entity})
	}
}

// callAll calls the hooks for all events.
func (h *hooks) callAll() {
	defer h.drop()
	h.callFrom(0)
}

// callFrom calls the hooks for the events from the given one on, also for those after one whose hook panics.
func (h *hooks) callFrom(event int) {
	defer func() {
		if event < len(h.events) {
			h.callFrom(event)
		}
	}()
	for event < len(h.events) {
		ev := h.events[event]
		event++
		m := h.view.Replicas.At(ev.slot)
		if ev.component == eventSpawn {
			h.callSpawned(m, ev.entity)
		} else {
			h.callComponent(m, &ev)
		}
	}
}

// drop forgets the events.
func (h *hooks) drop() {
	h.events, h.listed = h.events[:0], 0
	clear(h.noted)
	for k := range h.Components {
		if own := h.Components[k].Changed; own != nil {
			own.clear()
		}
	}
}

// callSpawned calls the hooks for an entity that has come.
func (h *hooks) callSpawned(m *replica, e ecs.Entity) {
	for _, fn := range h.Spawned {
		if !h.view.present(m) || m.Entity != e { // removed by a hook, or before, as a function of the user's panicked
			return
		}
		fn(e)
	}
}

// callComponent calls the hooks for a component that was added or has changed.
func (h *hooks) callComponent(m *replica, ev *hookEvent) {
	own := &h.Components[ev.component]
	n := len(own.Added)
	if ev.before != eventAdd {
		if n = own.Changed.count(); h.unchanged(m, ev) {
			return
		}
	}
	for i := range n {
		p := h.view.place(m, int(ev.component))
		switch {
		case p == nil || m.Entity != ev.entity:
			// Removed by a hook, left out since the entity has another relation, or on another entity now.
		case ev.before == eventAdd:
			own.Added[i](ev.entity, p)
		default:
			own.Changed.call(i, ev.entity, int(ev.before), p)
		}
	}
}

// unchanged reports whether a component is the same as before after all: it may have been changed
// to refer to an entity that went in the same Frame.
func (h *hooks) unchanged(m *replica, ev *hookEvent) bool {
	comp := &h.schema.Components[ev.component]
	p := h.view.place(m, int(ev.component))
	if p == nil || !comp.Refers() || comp.Targeted() {
		return false
	}
	if cap(h.view.codes) < 2*comp.Words {
		h.view.codes = make([]uint32, 2*comp.Words)
	}
	before, now := h.view.codes[:comp.Words], h.view.codes[comp.Words:][:comp.Words]
	comp.ReadColumn(before, h.Components[ev.component].Changed.at(int(ev.before)), 1)
	comp.ReadColumn(now, p, 1)
	return receive.SameRow(before, now)
}

// announceEnd calls the hooks for everything that the world shows, or only for what the server has removed.
func (h *hooks) announceEnd(removed bool) {
	for i, page := range h.view.Replicas.Pages {
		for j := range page {
			if m := &page[j]; m.Shown && (m.ended || !removed) {
				h.announceEntity(uint32(i*receive.ReplicaPage+j), m)
			}
		}
	}
}
