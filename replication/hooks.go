package replication

import (
	"reflect"
	"unsafe" // for the name of the type that Arche hands out; no pointer is computed or converted here

	"github.com/arche-replicate/arche-replicate/replication/internal/apply"
	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/mlange-42/arche/ecs"
)

// OnSpawn makes the client call fn for every entity that Frame spawns or matches (see [Expect]), when everything is as
// it was at the server, including other entities and references. The hooks of its components ([OnAdd]) follow.
//
// A hook may change the world in any way, including replicas, and call all methods of the client except Receive, Frame
// and Close, which panic. It must close the queries that it makes. What it removes is not announced to later hooks.
// Hooks of one kind are called in the order in which they were registered, entities in no particular order. A hook
// can't be unregistered, and is not called for what was there before: see [Client.Entities].
//
// Hooks are called for entities that spawn anew after [ecs.World.Reset], but not for what the reset removed, nor for
// entities that are taken over after a reconnect.
func OnSpawn(c *Client, fn func(e ecs.Entity)) {
	defer c.guard().Leave(c.guard().Enter(exclusive.OnSpawn))
	checkHook("OnSpawn", fn == nil)
	c.apply.Hooks.Spawned, c.apply.Hooks.Arriving = append(c.apply.Hooks.Spawned, fn), true
}

// OnDespawn makes the client call fn for every replica that Frame or Close is about to remove, after the hooks of its
// components ([OnRemove]) and before anything is removed from the world. It is not called for what the user removed.
// [Client.HasEnded] distinguishes entities that ended from those that left the view.
//
// fn may do what one of [OnSpawn] may.
func OnDespawn(c *Client, fn func(e ecs.Entity)) {
	defer c.guard().Leave(c.guard().Enter(exclusive.OnDespawn))
	checkHook("OnDespawn", fn == nil)
	c.apply.Hooks.Despawned, c.apply.Hooks.Parting = append(c.apply.Hooks.Despawned, fn), true
}

// OnAdd makes the client call fn when a replica, new or not, has got the component T from the server. All its
// components have their values, but those under a condition, such as [OwnerOnly], may arrive later than the others. v
// is valid until fn changes the world. T may be the type of a resource: then e is the zero entity.
//
// fn may do what one of [OnSpawn] may. Panics if T is not in the schema.
func OnAdd[T any](c *Client, fn func(e ecs.Entity, v *T)) {
	defer c.guard().Leave(c.guard().Enter(exclusive.OnAdd))
	checkHook("OnAdd", fn == nil)
	h := hooksOf[T](c, "OnAdd")
	h.Added, c.apply.Hooks.Arriving = append(h.Added, func(e ecs.Entity, p unsafe.Pointer) { fn(e, (*T)(p)) }), true
}

// OnRemove makes the client call fn before a replica loses the component T, as the server's entity did, or is removed
// itself. Nothing has been removed yet. A component that the user removed is not announced. v and e are as for [OnAdd].
//
// fn may do what one of [OnSpawn] may. Panics if T is not in the schema.
func OnRemove[T any](c *Client, fn func(e ecs.Entity, v *T)) {
	defer c.guard().Leave(c.guard().Enter(exclusive.OnRemove))
	checkHook("OnRemove", fn == nil)
	h := hooksOf[T](c, "OnRemove")
	h.Removed, c.apply.Hooks.Parting = append(h.Removed, func(e ecs.Entity, p unsafe.Pointer) { fn(e, (*T)(p)) }), true
}

// OnChange makes the client call fn when the server has changed the value of a component that a replica already had, or
// its target if it is a relation. A reference to an entity also changes when that entity arrives or is gone. fn is
// called at most once for a component in a Frame, when everything that changed has its new value.
//
// before is a copy of what the world held until then, including what the user wrote since the server's earlier value;
// it is valid until fn returns. Slices and maps of values of [As] are not copied, so use functions that make new ones.
// now is valid until fn changes the world. T may be the type of a resource: then e is the zero entity.
//
// fn may do what one of [OnSpawn] may. Panics if T is not in the schema.
func OnChange[T any](c *Client, fn func(e ecs.Entity, before, now *T)) {
	defer c.guard().Leave(c.guard().Enter(exclusive.OnChange))
	checkHook("OnChange", fn == nil)
	h := hooksOf[T](c, "OnChange")
	if h.Changed == nil {
		h.Changed = &apply.Changes[T]{}
	}
	own := h.Changed.(*apply.Changes[T])
	own.Hooks, c.apply.Hooks.Arriving = append(own.Hooks, fn), true
}

func checkHook(name string, missing bool) {
	if missing {
		panic("replication: " + name + " needs a function")
	}
}

// hooksOf returns the hooks of component T.
func hooksOf[T any](c *Client, name string) *apply.ComponentHooks {
	k := c.apply.View.Number(name, reflect.TypeFor[T]())
	if c.apply.Hooks.Components == nil {
		c.apply.Hooks.Components = make([]apply.ComponentHooks, len(c.apply.View.Components))
	}
	return &c.apply.Hooks.Components[k]
}
