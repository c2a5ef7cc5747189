package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// NetID returns the network ID of an entity that the latest Replicate found.
func (s *Server) NetID(e ecs.Entity) (NetID, bool) {
	s.mustExist()
	return s.netID(e)
}

func (s *Server) netID(e ecs.Entity) (NetID, bool) {
	slot, ok := s.snap.SlotOf(e)
	if !ok {
		return NetID{}, false
	}
	return NetID{Slot: uint32(slot), Generation: s.snap.Slots.Info[slot].Generation}, true
}

// Entity returns the entity with the given network ID, if the latest Replicate found it and it is still alive and
// replicated.
func (s *Server) Entity(id NetID) (ecs.Entity, bool) {
	s.mustExist()
	e := s.snap.EntityOf(wire.NetID(id))
	return e, !e.IsZero()
}

// SetOwner makes a peer the owner of an entity, in place of the previous one, from the next Replicate on; nil means no
// owner. The entity may get its marker later. Ownership ends when the entity leaves replication and when the peer is
// disconnected; a disconnected peer counts as nil. Clients are not informed of it.
//
// Panics if the entity is dead, or the peer is of another server.
func (s *Server) SetOwner(e ecs.Entity, p *Peer) {
	defer s.guard().Leave(s.guard().Enter(exclusive.SetOwner))
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

// Owner returns the owner of an entity, or nil if it has none.
func (s *Server) Owner(e ecs.Entity) *Peer {
	s.mustExist()
	s.noticeReset()
	if v := s.interest.Owners.Of[e]; v != nil {
		return v.Holder.(*Peer)
	}
	return nil
}

// SetPriority multiplies the weight of an entity's components (see [Priority]) for all peers, until it leaves
// replication; the default is 1. The entity may get its marker later. A dead entity has none.
//
// Panics if the weight is not positive.
func (s *Server) SetPriority(e ecs.Entity, weight float32) {
	defer s.guard().Leave(s.guard().Enter(exclusive.SetPriority))
	if !(weight > 0) {
		panic(fmt.Sprintf("replication: SetPriority(%v): use a positive weight", weight))
	}
	s.noticeReset()
	if slot, ok := s.snap.SlotOf(e); ok {
		s.snap.GiveWeight(slot, weight)
	} else if archeutil.Alive(s.snap.World, e) {
		if s.snap.Weights == nil {
			s.snap.Weights = map[ecs.Entity]float32{}
		}
		s.snap.Weights[e] = weight
	}
}

// NewEntitySet returns an empty set.
func (s *Server) NewEntitySet() *EntitySet {
	defer s.guard().Leave(s.guard().Enter(exclusive.NewEntitySet))
	return &EntitySet{server: s, in: s.interest.NewEntitySet()}
}

// NewGrid returns a grid over one to three fields of one component, each with a range and a step: "Position.X",
// "Position.Y". cell is the length of a cell's side, in the units of the fields, best about half the radius that peers
// see. It grows if there would be more than 1,048,576 cells.
//
// Panics if cell is not positive and finite, if the fields are not as above, or if they are of a resource or of a
// component with a condition.
func (s *Server) NewGrid(cell float64, fields ...string) *Grid {
	defer s.guard().Leave(s.guard().Enter(exclusive.NewGrid))
	return newGrid(s, cell, fields)
}

// NewGroup returns an empty group.
func (s *Server) NewGroup() *Group {
	defer s.guard().Leave(s.guard().Enter(exclusive.NewGroup))
	s.interest.Groups.Made++
	g := &Group{server: s}
	g.in.Snap, g.in.Sets, g.in.Phase = &s.snap, &s.interest, s.interest.Groups.Made
	return g
}

// noticeReset makes groups, sets and owners forget their entities if the world was reset: handles begin anew then, and
// those of before may mean others. The entities themselves need no care, since their markers are gone with them.
func (s *Server) noticeReset() {
	s.disownGone()
	if s.snap.Mark.Intact() {
		return
	}
	s.snap.Mark.Set()
	for _, g := range s.interest.Groups.List {
		for i := range g.Members {
			g.Part(&g.Members[i], s.snap.Tick+1)
		}
		clear(g.Members)
		g.Members, g.MembersChanged = g.Members[:0], true
	}
	s.interest.Groups.Of = nil
	for _, e := range s.interest.Sets {
		e.Forget()
	}
	for _, p := range s.peers {
		s.interest.DisownAll(&p.sight)
	}
	s.interest.Owners = interest.Ownership{}
	clear(s.snap.Weights)
	s.messages.Messenger.ForgetEntities()
}
