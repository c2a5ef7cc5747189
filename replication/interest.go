package replication

import "github.com/mlange-42/arche/ecs"

// Interest is what a peer may see. An entity is visible to it if Filter and Visible accept it, and, where there is a
// Grid or Sets, if it is in the view of Grid or in one of Sets. The zero value shows everything. A peer that sees one
// entity of a [Group] sees all of them. Every peer gets all resources.
//
// No byte that a peer gets depends on entities that it may not see, except that they take slots.
type Interest struct {
	// Filter shows entities by their components. It is evaluated once for every set of components.
	Filter ecs.Filter

	// Grid shows entities near the place of [Peer.LookFrom], and those without a position in the grid.
	Grid *Grid

	// Margin keeps in view what is in view of Grid already, up to this distance beyond the radius of [Peer.LookFrom],
	// so that an entity at the edge does not come and go all the time.
	Margin float64

	// Sets show their members.
	Sets []*EntitySet

	// Visible is called for every entity that passes all of the above, in every Replicate in which the peer may be sent
	// state or has a new message. It must not change the world, the server or its peers.
	Visible func(e ecs.Entity) bool

	// Keep leaves entities that go out of view with the client, as it saw them last, until they end; without it they
	// are despawned. A kept [Group] is despawned together as soon as one of its entities ends, leaves it or comes into
	// view. Components under a condition, such as [OwnerOnly], are kept for as long as that holds.
	Keep bool
}
