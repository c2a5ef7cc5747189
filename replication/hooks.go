package replication

import (
	"reflect"
	"unsafe" // for the name of the type that Arche hands out; no pointer is computed or converted here

	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/mlange-42/arche/ecs"
)

// Hooks are functions of the user's that a [Client] calls in Apply when the mirrored world
// changes: [Client.OnSpawn], [Client.OnDespawn], [OnAdd], [OnRemove] and [OnChange]. They
// are called at two points, at both of which the world is whole:
//
//   - Before Apply changes anything, for all that it is about to take away: OnRemove and
//     OnDespawn. Nothing has gone yet, and nothing has come.
//   - After Apply has changed everything, references included, for all that came and
//     changed: OnSpawn, OnAdd and OnChange.
type hooks struct {
	schema    *schema.Schema
	recv      *receiver
	view      *worldView
	referrers *referrers

	spawned, despawned []func(e ecs.Entity)
	components         []componentHooks // by number; none until there is a hook of one

	parting  bool // there are hooks for what goes
	arriving bool // there are hooks for what comes and changes
	running  bool

	events []hookEvent          // of this Apply, in order
	noted  map[hookKey]struct{} // components that the first of them are about, if references were mended
	listed int                  // how many
}

// componentHooks are those of a component.
type componentHooks struct {
	added, removed []func(e ecs.Entity, p unsafe.Pointer)
	changed        changeHooks // nil if there is none
}

// changeHooks are a component's hooks for changes. They know its type.
type changeHooks interface {
	keep(p unsafe.Pointer) int // copies the value before it changes, and returns the copy's index
	at(before int) unsafe.Pointer
	count() int
	call(hook int, e ecs.Entity, before int, p unsafe.Pointer)
	clear()
}

// changes implements changeHooks.
type changes[T any] struct {
	before []T // of this Apply
	hooks  []func(e ecs.Entity, before, now *T)
}

func (c *changes[T]) keep(p unsafe.Pointer) int {
	c.before = append(c.before, *(*T)(p))
	return len(c.before) - 1
}

func (c *changes[T]) at(before int) unsafe.Pointer { return unsafe.Pointer(&c.before[before]) }

func (c *changes[T]) count() int { return len(c.hooks) }

func (c *changes[T]) call(hook int, e ecs.Entity, before int, p unsafe.Pointer) {
	c.hooks[hook](e, &c.before[before], (*T)(p))
}

func (c *changes[T]) clear() {
	clear(c.before) // it may hold what the garbage collector could free
	c.before = c.before[:0]
}

// hookEvent is something that hooks are called for at the end of Apply.
type hookEvent struct {
	slot      uint32
	component int32      // eventSpawn for the entity itself
	before    int32      // the value before the change, eventAdd if there was none
	entity    ecs.Entity // none for resources
}

// hookKey is a component of what is in a slot.
type hookKey struct {
	slot      uint32
	component int32
}

const (
	eventSpawn = -1
	eventAdd   = -1
)

// OnSpawn makes the client call fn for every entity that Apply spawns or adopts (see
// [Expect]), when all is as the server says, other entities and references included. The
// hooks of its components ([OnAdd]) follow.
//
// In a hook the world may be changed in any way: entities and components may be created
// and removed, mirrored ones too. What a hook removes is not announced to later ones.
// All methods of the client may be called but Apply, Receive and Close, which panic.
// A hook must close the queries that it makes. Hooks of one kind are called in the order
// in which they were registered, entities in no particular order. A hook can't be
// unregistered, and is not called for what was there before: see [Client.Each].
//
// After [ecs.World.Reset], all entities are spawned anew, and hooks are called for it;
// what the reset removed is not announced. Entities that are taken over after a reconnect
// go on being what they were: they are neither despawned nor spawned.
func (c *Client) OnSpawn(fn func(e ecs.Entity)) {
	checkHook(c, "OnSpawn", fn == nil)
	c.apply.hooks.spawned, c.apply.hooks.arriving = append(c.apply.hooks.spawned, fn), true
}

// OnDespawn makes the client call fn for every mirrored entity that Apply or Close is
// about to remove. The world is as it was before, so that the entity and all else can still
// be read. The hooks of its components ([OnRemove]) were called before. What the user
// removed, or a reset of the world, is not announced.
//
// See [Client.OnSpawn] for what a hook may do.
func (c *Client) OnDespawn(fn func(e ecs.Entity)) {
	checkHook(c, "OnDespawn", fn == nil)
	c.apply.hooks.despawned, c.apply.hooks.parting = append(c.apply.hooks.despawned, fn), true
}

// OnAdd makes the client call fn when a mirrored entity has got the component T from the
// server, be it new itself or not. All its components have their values, but those under
// a condition, as [OwnerOnly], may come later than the others. v is valid until fn changes the
// world. T may be the type of a resource: then e is the zero entity.
//
// See [Client.OnSpawn] for what a hook may do. Panics if T is not in the schema.
func OnAdd[T any](c *Client, fn func(e ecs.Entity, v *T)) {
	checkHook(c, "OnAdd", fn == nil)
	h := hooksOf[T](c, "OnAdd")
	h.added, c.apply.hooks.arriving = append(h.added, func(e ecs.Entity, p unsafe.Pointer) { fn(e, (*T)(p)) }), true
}

// OnRemove makes the client call fn before a mirrored entity loses the component T, as the
// server's entity did, or is removed itself. Nothing has been removed yet. A component
// that the user removed is not announced. v is valid until fn changes the world. T may be
// the type of a resource: then e is the zero entity.
//
// See [Client.OnSpawn] for what a hook may do. Panics if T is not in the schema.
func OnRemove[T any](c *Client, fn func(e ecs.Entity, v *T)) {
	checkHook(c, "OnRemove", fn == nil)
	h := hooksOf[T](c, "OnRemove")
	h.removed, c.apply.hooks.parting = append(h.removed, func(e ecs.Entity, p unsafe.Pointer) { fn(e, (*T)(p)) }), true
}

// OnChange makes the client call fn when the server's value of a component that a mirrored
// entity had already has changed, or its target if it is a relation. All that changed in
// this Apply has its new values.
//
// before is a copy of what the world held until then: the server's earlier value, with all
// that the user wrote to the component since. Only replicated fields were overwritten. It is
// valid until fn returns, now until fn changes the world. An Apply calls fn once for a
// component, however many states the server sent of it. That a field which refers to an
// entity is filled in when that comes, or becomes zero when it goes, is a change as well.
//
// T may be the type of a resource: then e is the zero entity.
//
// See [Client.OnSpawn] for what a hook may do. Panics if T is not in the schema.
func OnChange[T any](c *Client, fn func(e ecs.Entity, before, now *T)) {
	checkHook(c, "OnChange", fn == nil)
	h := hooksOf[T](c, "OnChange")
	if h.changed == nil {
		h.changed = &changes[T]{}
	}
	own := h.changed.(*changes[T])
	own.hooks, c.apply.hooks.arriving = append(own.hooks, fn), true
}

func checkHook(c *Client, name string, missing bool) {
	c.mustExist()
	if missing {
		panic("replication: " + name + " needs a function")
	}
}

// hooksOf returns the hooks of component T.
func hooksOf[T any](c *Client, name string) *componentHooks {
	k := c.apply.view.number(name, reflect.TypeFor[T]())
	if c.apply.hooks.components == nil {
		c.apply.hooks.components = make([]componentHooks, len(c.apply.view.components))
	}
	return &c.apply.hooks.components[k]
}

// notInHook panics if a hook is running.
func (h *hooks) notInHook(method string) {
	if h.running {
		panic("replication: " + method + " in a hook: the Apply that called it has not ended; note it and do so afterwards")
	}
}

func (h *hooks) announceAll(some, foreign bool) {
	if some {
		for i, page := range h.view.replicas.pages {
			for j := range page {
				switch m := &page[j]; {
				case !foreign && m.any:
				case m.shown:
					h.announceEntity(uint32(i*mirrorPage+j), m)
				case m.attached():
					h.announceFacet(m, some, foreign)
				}
			}
		}
		if foreign {
			return // that was all
		}
	}
	for _, slot := range h.recv.dirty {
		m := h.view.replicas.at(slot)
		if m == nil {
			continue // nothing is shown
		}
		if m.attached() {
			h.announceFacet(m, some, foreign)
		}
		switch {
		case !m.shown:
		case h.view.leaves(m, false, false):
			h.announceEntity(slot, m)
		default:
			if state := m.held.at(m.newest); state != nil {
				h.announceLost(m, state)
			}
		}
	}
}

// announceEntity calls the hooks for an entity that is about to be removed.
func (h *hooks) announceEntity(slot uint32, m *replica) {
	h.announceComponents(m)
	h.announceFacets(slot, m)
	for _, fn := range h.despawned {
		if !h.view.present(m) {
			return
		}
		fn(m.entity)
	}
}

// announceComponent calls the hooks for a component that is about to be removed.
func (h *hooks) announceComponent(m *replica, k int) {
	for _, fn := range h.components[k].removed {
		if p := h.view.place(m, k); p != nil {
			fn(m.entity, p)
		}
	}
}

// watch reports whether there are hooks for the arrival or for changes of a component.
func (h *hooks) watch(k int) bool {
	return k < len(h.components) && (h.components[k].added != nil || h.components[k].changed != nil)
}

// noteSpawn notes that an entity has come.
func (h *hooks) noteSpawn(slot uint32, m *replica) {
	if !h.arriving {
		return
	}
	if h.spawned != nil {
		h.events = append(h.events, hookEvent{slot, eventSpawn, 0, m.entity})
	}
	for k := range h.components {
		if h.watch(k) && m.shape.set.Has(k) {
			h.noteAdd(slot, m, k)
		}
	}
}

// noteAdd notes that a component has come. Even if there is no hook for that: what its references are filled in with in
// this Apply is no change.
func (h *hooks) noteAdd(slot uint32, m *replica, k int) {
	if h.components[k].added != nil || h.schema.Components[k].Refers() {
		h.events = append(h.events, hookEvent{slot, int32(k), eventAdd, m.entity})
	}
}

// noteChange notes that a component, whose value is at p and is about to be written,
// comes or changes. differs is false if it is only known that it may.
func (h *hooks) noteChange(slot uint32, m *replica, k int, p unsafe.Pointer, row []uint32, differs bool) {
	own := &h.components[k]
	switch {
	case !m.shown && !m.facet, !m.shape.set.Has(k):
		h.noteAdd(slot, m, k)
	case own.changed != nil && len(row) > 0 && (differs && !h.schema.Components[k].Refers() || h.view.differs(m.entity, k, p, row) >= 0):
		h.events = append(h.events, hookEvent{slot, int32(k), int32(own.changed.keep(p)), m.entity})
	}
}

// noteMend notes that a reference of a component, whose value is at p, is about to be filled in or to become zero. The
// component may have come or changed in this Apply: then that is what hooks are called for.
func (h *hooks) noteMend(slot uint32, m *replica, k int, p unsafe.Pointer) {
	if k >= len(h.components) || h.components[k].changed == nil {
		return
	}
	if h.noted == nil {
		h.noted = map[hookKey]struct{}{}
	}
	for ; h.listed < len(h.events); h.listed++ {
		h.noted[hookKey{h.events[h.listed].slot, h.events[h.listed].component}] = struct{}{}
	}
	if _, ok := h.noted[hookKey{slot, int32(k)}]; !ok {
		h.events = append(h.events, hookEvent{slot, int32(k), int32(h.components[k].changed.keep(p)), m.entity})
	}
}

func (h *hooks) tellAll() {
	defer func() {
		h.events, h.listed = h.events[:0], 0
		clear(h.noted)
		for k := range h.components {
			if own := h.components[k].changed; own != nil {
				own.clear()
			}
		}
	}()
	for _, ev := range h.events {
		m := h.view.replicas.at(ev.slot)
		if ev.component == eventSpawn {
			for _, fn := range h.spawned {
				if !h.view.present(m) {
					break
				}
				fn(ev.entity)
			}
			continue
		}
		own := &h.components[ev.component]
		n := len(own.added)
		if ev.before != eventAdd {
			if n = own.changed.count(); h.unchanged(m, &ev) {
				continue
			}
		}
		for i := range n {
			p := h.view.place(m, int(ev.component))
			switch {
			case p == nil || m.entity != ev.entity: // removed by a hook, or never added for want of room; or now on another entity
			case ev.before == eventAdd:
				own.added[i](ev.entity, p)
			default:
				own.changed.call(i, ev.entity, int(ev.before), p)
			}
		}
	}
}

// unchanged reports whether a component is after all what it was: it may have been made to refer to somebody who went in
// the same Apply.
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
	comp.ReadColumn(before, h.components[ev.component].changed.at(int(ev.before)), 1)
	comp.ReadColumn(now, p, 1)
	return sameRow(before, now)
}

// announceEnd calls the hooks for all that is mirrored.
func (h *hooks) announceEnd() {
	for i, page := range h.view.replicas.pages {
		for j := range page {
			if m := &page[j]; m.shown {
				h.announceEntity(uint32(i*mirrorPage+j), m)
			}
		}
	}
}
