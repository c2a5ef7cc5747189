// Package archeutil has what Arche lacks: whether a handle lives, whether a world was reset, relations and
// resources by type, and which entity goes by which ID on the network.
package archeutil

import (
	"unsafe"

	"github.com/mlange-42/arche/ecs"
)

// This file is the only one that asks a world whether an entity lives: a test sees to that. Elsewhere a handle may only be used
// after it was asked about here, or was just made.

// Alive reports whether an entity lives in the world and so can be asked for its components. It takes any handle: also one of
// another world, and one from before [ecs.World.Reset] or [ecs.World.LoadEntities]. If a new entity has got the same handle,
// then that is the one that is meant.
//
// Arche (v0.15.3) has no such question. Its Alive compares the handle's generation with the one that is noted for the ID, and
//   - has nothing noted for IDs that were not given out since the world was reset: it indexes a slice out of range;
//   - has the generation of the next entity noted for the ID of one that was removed. A handle from before a reset may have
//     just that generation. Alive is true then, and everything else dereferences nil, since the entity has no archetype.
//
// Only the archetype tells the last case, and no method of Arche's returns that it is missing. So this reads through it, and
// recovers. That takes microseconds, and happens only for handles that the world has not given out since it was reset; for all
// others the answer takes a few nanoseconds, about twice as long as Arche's.
func Alive(w *ecs.World, e ecs.Entity) (ok bool) {
	if e.IsZero() {
		return false // Arche has noted a generation for its ID, too
	}
	defer func() { _ = recover() }() // ok is false then
	if !w.Alive(e) {
		return false
	}
	w.Relations().GetUnchecked(e, ecs.ID{}) // the cheapest of what reads the archetype; the component does not matter
	return true
}

// LookUp returns where an entity has a component, or nil if it does not live or has none. It takes any handle, as alive does.
func LookUp(w *ecs.World, e ecs.Entity, id ecs.ID) unsafe.Pointer {
	if !Alive(w, e) {
		return nil
	}
	return w.Get(e, id)
}
