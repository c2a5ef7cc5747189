package replication

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/mlange-42/arche/ecs"
)

// Replicated is the marker component: a [Server] replicates the entities of its world
// that have it. Add the zero value; the server writes the entity's slot into it.
//
// Don't copy a Replicated from one entity to another: the copy is detected and counted
// ([ServerStats.CopiedMarkers]), and the entity that was found second gets a slot of
// its own.
//
// Two servers of one world need a marker each; see [WithMarker].
type Replicated struct {
	slot  uint32 // slot+1; 0 before the server has seen the entity
	owner uint32 // the server that wrote it
}

// ReplicatedID returns the ID of the marker component [Replicated] in a world.
func ReplicatedID(w *ecs.World) ecs.ID {
	if w == nil {
		panic("replication: ReplicatedID needs a world")
	}
	return ecs.ComponentID[Replicated](w)
}

// WithMarker gives the server a marker component of its own in place of [Replicated], so
// that several servers can replicate one world, each the entities that have its marker:
//
//	type ForSpectators replication.Replicated
//
//	players := replication.NewServer(&world, schema)
//	spectators := replication.NewServer(&world, publicSchema, replication.WithMarker[ForSpectators]())
//	world.NewEntity(positionID, replication.ReplicatedID(&world), ecs.ComponentID[ForSpectators](&world))
//
// T is a type of the user's that is made of Replicated in this way.
func WithMarker[T ~struct{ slot, owner uint32 }]() ServerOption {
	return func(o *config.ServerOptions) { o.Marker = ecs.ComponentID[T] }
}
