package replication

import (
	"math/bits"

	"github.com/mlange-42/arche/ecs"
)

// ownership is who owns which entities, for [OwnerOnly] and [ExceptOwner].
type ownership struct {
	of     map[ecs.Entity]*sight
	slots  []*sight                // the same by slot
	unseen map[ecs.Entity]struct{} // owned, and without a slot yet
}

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
	if !alive(s.snap.world, e) {
		panic("replication: SetOwner of a dead entity: set owners of entities that live")
	}
	if p != nil && p.server != s {
		panic("replication: SetOwner to a peer of another server: use one that this server's Connect returned")
	}
	s.noticeReset()
	if p == nil || p.conn.state == ended {
		s.interest.setOwner(e, nil)
	} else {
		s.interest.setOwner(e, &p.sight)
	}
}

// Owner returns the owner of an entity, nil if it has none.
func (s *Server) Owner(e ecs.Entity) *Peer {
	s.mustExist()
	s.noticeReset()
	if v := s.interest.owners.of[e]; v != nil {
		return v.holder.(*Peer)
	}
	return nil
}

// setOwner makes a peer the owner of an entity, nil nobody.
func (s *interestSets) setOwner(e ecs.Entity, p *sight) {
	o := &s.owners
	slot, seen := s.snap.slotOf(e)
	if seen {
		s.disown(slot, e)
	}
	delete(o.of, e)
	delete(o.unseen, e)
	if p == nil {
		return
	}
	if o.of == nil {
		o.of, o.unseen = map[ecs.Entity]*sight{}, map[ecs.Entity]struct{}{}
	}
	o.of[e] = p
	if seen {
		s.own(slot, p)
	} else {
		o.unseen[e] = struct{}{}
	}
}

// own notes that a peer owns what is in a slot.
func (s *interestSets) own(slot int, p *sight) {
	o := &s.owners
	if more := s.snap.slots.len() - len(o.slots); more > 0 {
		o.slots = append(o.slots, make([]*sight, more)...)
	}
	o.slots[slot] = p
	p.owned = p.owned.Grown(slot + 1)
	p.owned.Add(slot)
}

// disown notes that nobody owns the entity that is in a slot, or was.
func (s *interestSets) disown(slot int, e ecs.Entity) {
	o := &s.owners
	if slot >= len(o.slots) || o.slots[slot] == nil {
		return
	}
	o.slots[slot].owned.Remove(slot)
	o.slots[slot] = nil
	if _, again := o.unseen[e]; !again { // after a reset of the world another entity may look the same
		delete(o.of, e)
	}
}

// settleOwners gives slots to those that are owned and were not seen before.
func (s *interestSets) settleOwners() {
	for e := range s.owners.unseen {
		if !alive(s.snap.world, e) {
			delete(s.owners.unseen, e)
			delete(s.owners.of, e)
		} else if slot, ok := s.snap.slotOf(e); ok {
			delete(s.owners.unseen, e)
			s.own(slot, s.owners.of[e])
		}
	}
}

// disownAll notes that a peer owns nothing any more.
func (s *interestSets) disownAll(p *sight) {
	for b, word := range p.owned {
		for ; word != 0; word &= word - 1 {
			slot := b<<6 + bits.TrailingZeros64(word)
			s.disown(slot, s.snap.slots.info[slot].entity)
		}
	}
	for e := range s.owners.unseen {
		if s.owners.of[e] == p {
			delete(s.owners.unseen, e)
			delete(s.owners.of, e)
		}
	}
	p.owned = nil
}
