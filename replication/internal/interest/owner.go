package interest

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/mlange-42/arche/ecs"
)

// Ownership knows who owns which entities, for replication.OwnerOnly and ExceptOwner.
type Ownership struct {
	Of     map[ecs.Entity]*Sight
	slots  []*Sight                // owners by slot
	all    bitset.Set              // slots whose entities have an owner
	unseen map[ecs.Entity]struct{} // owned entities without a slot
}

// SetOwner makes a peer the owner of an entity, or nobody if it is nil.
func (s *Shared) SetOwner(e ecs.Entity, p *Sight) {
	o := &s.Owners
	slot, seen := s.Snap.SlotOf(e)
	if seen {
		s.Disown(slot, e)
	}
	delete(o.Of, e)
	delete(o.unseen, e)
	if p == nil {
		return
	}
	if o.Of == nil {
		o.Of, o.unseen = map[ecs.Entity]*Sight{}, map[ecs.Entity]struct{}{}
	}
	o.Of[e] = p
	if seen {
		s.own(slot, p)
	} else {
		o.unseen[e] = struct{}{}
	}
}

// own notes that a peer owns the entity in a slot.
func (s *Shared) own(slot int, p *Sight) {
	o := &s.Owners
	if more := s.Snap.Slots.Len() - len(o.slots); more > 0 {
		o.slots = append(o.slots, make([]*Sight, more)...)
	}
	o.slots[slot] = p
	p.owned = p.owned.Grown(slot + 1)
	p.owned.Add(slot)
	o.all = o.all.Grown(slot + 1)
	o.all.Add(slot)
}

// Disown notes that nobody owns an entity, which is in a slot or was.
func (s *Shared) Disown(slot int, e ecs.Entity) {
	o := &s.Owners
	if slot >= len(o.slots) || o.slots[slot] == nil {
		return
	}
	o.slots[slot].owned.Remove(slot)
	o.all.Remove(slot)
	o.slots[slot] = nil
	if _, known := o.unseen[e]; !known { // after a reset of the world, another entity may have the same handle
		delete(o.Of, e)
	}
}

// unseat notes that the entity in a slot will get another one. It keeps its owner.
func (s *Shared) unseat(slot int, e ecs.Entity) {
	o := &s.Owners
	if p := o.Of[e]; p != nil {
		s.Disown(slot, e)
		o.Of[e], o.unseen[e] = p, struct{}{}
	}
}

// SettleOwners finds the slots of owned entities that had none.
func (s *Shared) SettleOwners() {
	for e := range s.Owners.unseen {
		if !archeutil.Alive(s.Snap.World, e) {
			delete(s.Owners.unseen, e)
			delete(s.Owners.Of, e)
		} else if slot, ok := s.Snap.SlotOf(e); ok {
			delete(s.Owners.unseen, e)
			s.own(slot, s.Owners.Of[e])
		}
	}
}

// DisownAll ends a peer's ownership of everything.
func (s *Shared) DisownAll(p *Sight) {
	for slot := range p.owned.All() {
		s.Disown(slot, s.Snap.Slots.Info[slot].Entity)
	}
	for e := range s.Owners.unseen {
		if s.Owners.Of[e] == p {
			delete(s.Owners.unseen, e)
			delete(s.Owners.Of, e)
		}
	}
	p.owned = nil
}
