// Package archeutil adds what Arche lacks: a safe test whether a handle is alive, a watch for world
// resets, the relation of an entity, resources by type, and the table from entities to NetIDs. It
// takes worlds and handles, keeps little state of its own, and is used by both ends: snapshot and
// interest on the server, receive and apply on the client.
package archeutil

import (
	"unsafe"

	"github.com/mlange-42/arche/ecs"
)

// Only this file asks a world whether an entity is alive; a test ensures that. Elsewhere, code may
// use a handle only after asking here, or if it has just created the entity.

// Alive reports whether an entity is alive, so that its components can be read. It accepts any
// handle, also one of another world, and one from before [ecs.World.Reset] or
// [ecs.World.LoadEntities]. If a new entity has the same handle, Alive is about the new one.
//
// Arche (v0.15.3) has no such function. Its own Alive compares the handle's generation with the one
// stored for the ID, and
//
//   - stores nothing for IDs that were not used since the world was reset: it indexes a slice out
//     of range;
//   - stores for a removed entity the generation of the ID's next entity. A handle from before a
//     reset may have that generation. Alive is true then, and everything else dereferences nil,
//     since the entity has no archetype.
//
// Only the archetype distinguishes the last case, and no method of Arche reports that it is
// missing. So this function reads through it, and recovers from the panic. That takes microseconds,
// but only for handles that the world has not used since its reset; for all others the answer takes
// a few nanoseconds, about twice as long as Arche's.
func Alive(w *ecs.World, e ecs.Entity) (ok bool) {
	if e.IsZero() {
		return false // Arche stores a generation for its ID as well
	}
	defer func() { _ = recover() }() // then ok is false
	if !w.Alive(e) {
		return false
	}
	w.Relations().GetUnchecked(e, ecs.ID{}) // the cheapest call that reads the archetype; any component will do
	return true
}

// LookUp returns the address of an entity's component, or nil if the entity is not alive or has no
// such component. It accepts any handle, as Alive does.
func LookUp(w *ecs.World, e ecs.Entity, id ecs.ID) unsafe.Pointer {
	if !Alive(w, e) {
		return nil
	}
	return w.GetUnchecked(e, id)
}
