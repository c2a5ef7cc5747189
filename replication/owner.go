package replication

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/mlange-42/arche/ecs"
)

// SetOwner makes a peer the owner of an entity, in place of the one before, from the next
// Replicate on; nil makes it nobody's. The entity may get its marker later. That it is owned
// ends by itself when the entity leaves replication, and when the peer is disconnected: a
// peer that is so already is as good as nil.
//
// Ownership is the server's affair: clients are not told of it but by what they see.
//
// Panics if the entity is dead, or the peer is of another server.
func (s *Server) SetOwner(e ecs.Entity, p *Peer) {
	s.mustExist()
	if !archeutil.Alive(s.snap.World, e) {
		panic("replication: SetOwner of a dead entity: set owners of entities that live")
	}
	if p != nil && p.server != s {
		panic("replication: SetOwner to a peer of another server: use one that this server's Connect returned")
	}
	s.noticeReset()
	if p == nil || p.conn.State == session.Ended {
		s.interest.SetOwner(e, nil)
	} else {
		s.interest.SetOwner(e, &p.sight)
	}
}

// Owner returns the owner of an entity, nil if it has none.
func (s *Server) Owner(e ecs.Entity) *Peer {
	s.mustExist()
	s.noticeReset()
	if v := s.interest.Owners.Of[e]; v != nil {
		return v.Holder.(*Peer)
	}
	return nil
}
