package replication

import "github.com/mlange-42/arche/ecs"

// An ecs.Entity means something in its own world only. On the wire it is the [NetID] of
// the entity that it refers to, and nothing if that is not replicated or does not exist
// any more; in a row, slot+1 and generation. This file is the server's half: entities to
// NetIDs. The client's is in referrers.go.
//
// The bytes of a component don't tell what becomes of the entities it refers to: one may
// die, or enter replication in the same tick, in a table that is captured later. So
// components with references are captured when it is known who is who, after all others,
// and bytes that are as before prove nothing where they refer to somebody who came or
// went.

// Entity returns the entity of the server's world that has the given network ID, if the
// latest Replicate found it. It may have been removed since, but not by a reset of the world.
func (s *Server) Entity(id NetID) (ecs.Entity, bool) {
	s.mustExist()
	return s.snap.EntityIn(id.Slot, id.Generation)
}
