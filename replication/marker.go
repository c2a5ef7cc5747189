package replication

import "github.com/arche-replicate/arche-replicate/replication/internal/apply"

// Replicated is the marker component: a [Server] replicates the entities of its world that have it. Add the zero value;
// the server writes the entity's slot into it. Don't copy it from one entity to another: [ServerStats.CopiedMarkers]
// counts copies, and the entity that was found second gets a slot of its own.
//
// Two servers of one world need a marker each; see [WithMarker].
type Replicated struct {
	slot  uint32 // slot+1; 0 before the server has seen the entity
	owner uint32 // the server that wrote it
}

// Replica is the component that marks replicas.
type Replica struct {
	inside apply.Mirrored
}

// NetID returns the ID of the server's entity. Panics if m is nil, as for an entity that is not a replica.
func (m *Replica) NetID() NetID {
	if m == nil {
		panic("replication: the entity is not a replica: ask Client.NetID, or query for entities with Replica")
	}
	return NetID(m.inside.ID)
}
