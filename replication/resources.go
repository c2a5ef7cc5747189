package replication

import (
	"reflect"
	"slices"

	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// A resource of Arche is a value that a world has once: the score of a match, the weather.
// All resources of a world that the schema names share a slot, as the components of an
// entity do: which of them are there is the slot's component set. So they are acknowledged,
// delta-coded and sent like everything else, and a client shows all of them as they were at
// one tick. The slot is the first one, whether there are resources or none, and nothing else
// is ever in it: both ends know it by its number. It has no entity. What both
// ends know of resources is in package archeutil, the server's half in snapshot, the client's in apply.

// RegisterResource adds the resource type T to the schema: what a server's world has as a *T in [ecs.World.Resources],
// the client's world has, too. There is no marker, and every peer gets all resources, whatever its [Interest].
//
// Tags and options are those of [Register], and resources count as components in every limit. The server's resources of
// a schema may take 32 KiB at fixed width in all: [NewServer] panics beyond that.
//
// Panics where [Register] does, and if the type is registered as a component or is a relation.
func RegisterResource[T any](s *Schema, opts ...ComponentOption) {
	RegisterResourceType(s, reflect.TypeFor[T](), opts...)
}

// RegisterResourceType is [RegisterResource] for a type known at run time.
func RegisterResourceType(s *Schema, t reflect.Type, opts ...ComponentOption) {
	RegisterType(s, t, append(slices.Clip(opts), componentOption(func(o *schema.Options) { o.Resource = true }))...)
}
