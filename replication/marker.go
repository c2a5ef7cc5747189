package replication

import "github.com/mlange-42/arche/ecs"

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
	return func(o *serverOptions) { o.marker = ecs.ComponentID[T] }
}

// newOwner returns a number that tells a server's markers from those of others. It is
// never 0.
func newOwner() uint32 { return uint32(random64()) | 1 }

// maxContests is in how many ticks in a row the markers that a server wrote may be found
// with another server's writing. Once may be a saved world that was put back.
const maxContests = 3

// contest notes if the marker that this server wrote to a slot's entity is another's now.
func (c *capture) contest(m *Replicated, slot uint32) {
	if m.owner != 0 && m.owner != c.owner {
		c.contested = true
		*m = Replicated{slot + 1, c.owner} // who is still there will notice in turn
	}
}

// settleContests panics if two servers go on to take the same markers from each other.
func (c *capture) settleContests() {
	if !c.contested {
		c.contests = 0
		return
	}
	c.contested = false
	if c.contests++; c.contests == maxContests {
		c.contests = 0
		panic("replication: two servers replicate this world and write to the same markers: give each its own with WithMarker, or Close the one that is not in use")
	}
}
