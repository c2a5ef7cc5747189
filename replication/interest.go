package replication

import "github.com/mlange-42/arche/ecs"

// Interest is what a peer may see. An entity is visible to it if Filter and Visible
// agree, and it is in the view of Grid or in one of Sets, where there is one of these. The
// zero value shows everything. Who sees one entity of a [Group] sees all of them.
//
// Of entities that it may not see, a peer is sent nothing: no byte that it gets depends
// on them, except that they take slots. Resources are no entities: every peer gets them.
type Interest struct {
	// Filter shows entities by their components. It is asked once for every set of
	// components, and costs nothing beyond that.
	Filter ecs.Filter

	// Grid shows entities that are near the place of [Peer.LookFrom], and those without a
	// position in the grid.
	Grid *Grid

	// Sets show their members.
	Sets []*EntitySet

	// Visible is asked for every entity that passes all of the above, on the caller's
	// goroutine, in every Replicate in which the peer may be sent state or has a new message. It must not
	// change the world, or disconnect peers.
	Visible func(e ecs.Entity) bool

	// Keep leaves entities that go out of view with the client, as it saw them last. It
	// learns of their end only. Without Keep they are despawned there. A [Group] that was
	// kept is despawned together as soon as one of it ends, leaves it or comes into view.
	// What stands under a condition, as [OwnerOnly], is kept for as long as that holds.
	Keep bool
}
