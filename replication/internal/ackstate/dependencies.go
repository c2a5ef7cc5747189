package ackstate

import (
	"cmp"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A message from the server must not be handed over before the client's world has the structure of the tick that it was sent
// in: who is there, and with which components. A structure lists for a peer which slots changed in that, as far as the peer
// is not known to have learnt of it. What of that list is older than a message is what the message waits for.
//
// The client hands the message over when it shows, for each slot in its list, a state of that tick or a later one. So does
// what was sent in the meantime count, and packets that get lost delay no message that has nothing to do with them.

// A Structure is the list of a peer.
type Structure struct {
	Changes []change // in the order of slots as far as they are sorted, in that of ticks behind
	sorted  int
	kept    int // were left when the list was last cleaned
}

// A change of a slot: it came or went for the peer, or its component set changed.
type change struct {
	Slot        uint32
	first, last delta.Tick // of those that the peer may not know of
}

// CleanAt is how many changes more than before make it worth to look which are settled.
const CleanAt = 64

// note adds changes of slots of a block.
func (s *Structure) note(b int, mask uint64, now delta.Tick) {
	for slot := range bitset.Slots(b, mask) {
		s.Changes = append(s.Changes, change{uint32(slot), now, now})
	}
}

// settled returns whether the peer knows of a slot what was at a tick, or is not to be told.
func (p *Tracker) settled(slot int, at delta.Tick) bool {
	learnt, ok := p.learnt(slot)
	return ok && !learnt.Before(at)
}

// learnt returns up to which tick the peer knows what became of a slot.
func (p *Tracker) learnt(slot int) (delta.Tick, bool) {
	b, bit := slot>>6, uint64(1)<<(slot&63)
	now := p.Snap.Tick
	if p.sight.View.Sees(b, p.Snap.Slots.Alive[b])&bit == 0 {
		return now, p.Gone(b)&bit == 0
	}
	at, ok := p.Acks.Holds(slot)
	if ok && !p.Snap.Slots.ChangedAt[slot].After(at) {
		return now, true // it holds what there is, so nothing newer will be sent; it may have been kept while out of view
	}
	return at, ok
}

// tidy brings the list into the order of slots, with each slot once.
func (s *Structure) tidy() {
	if s.sorted == len(s.Changes) {
		return
	}
	slices.SortStableFunc(s.Changes, func(a, b change) int { return cmp.Compare(a.Slot, b.Slot) })
	n := 0
	for _, c := range s.Changes {
		if n > 0 && s.Changes[n-1].Slot == c.Slot {
			s.Changes[n-1].last = c.last
			continue
		}
		s.Changes[n] = c
		n++
	}
	s.Changes = s.Changes[:n]
	s.sorted = n
}

// narrow takes out of a change what the peer knows, and returns false if that is all.
func (p *Tracker) narrow(c *change) bool {
	learnt, ok := p.learnt(int(c.Slot))
	if !ok || learnt.Before(c.first) {
		return true
	}
	c.first = learnt + 1
	return c.last.After(learnt)
}

// Bound keeps the list from growing when there are no messages.
func (p *Tracker) Bound() {
	s := p.Structure
	clean := p.Snap.Tick%CleanAt == 0
	if n := len(s.Changes); n > 2*s.kept+CleanAt || n > CleanAt && clean {
		p.Dependencies(p.Snap.Tick, nil, -1)
		s.kept = len(s.Changes)
	}
	if n, c := len(s.Changes), cap(s.Changes); clean && c > 16*CleanAt && c > 8*n { // a client has got to know a large world
		s.Changes = append(make([]change, 0, 2*n), s.Changes...)
	}
}

// Dependencies appends what a message of tick at has to wait for, in the order of slots, and returns false if that is more
// than limit; -1 is none. It drops from the list what is settled.
func (p *Tracker) Dependencies(at delta.Tick, deps []wire.Dependency, limit int) ([]wire.Dependency, bool) {
	s := p.Structure
	s.tidy()
	all, kept, ok := s.Changes, 0, true
	for i := range all {
		c := all[i]
		if !p.narrow(&c) {
			continue
		}
		if limit >= 0 && !c.first.After(at) {
			if len(deps) == limit {
				ok = false
				kept += copy(all[kept:], all[i:])
				break
			}
			deps = append(deps, wire.Dependency{Slot: c.Slot, Tick: c.last})
		}
		all[kept] = c
		kept++
	}
	s.Changes, s.sorted = all[:kept], kept
	return deps, ok
}

// StillWaits keeps those of the dependencies that are not settled.
func (p *Tracker) StillWaits(deps, open []wire.Dependency) []wire.Dependency {
	for _, d := range deps {
		if !p.settled(int(d.Slot), d.Tick) {
			open = append(open, d)
		}
	}
	return open
}

// Views reports whether the peer sees an entity, or saw it before it ended in this tick. id is its NetID in the tick before, if
// that is known.
func (p *Tracker) Views(e ecs.Entity, id wire.NetID, known bool) bool {
	s := &p.Snap.Slots
	if slot, ok := p.Snap.SlotOf(e); ok && s.Alive.Has(slot) && s.Info[slot].Entity == e {
		return p.sight.View.Sees(slot>>6, 1<<(slot&63)) != 0
	}
	if !known || s.Info[id.Slot].Generation != id.Generation {
		return false
	}
	b, bit := int(id.Slot>>6), uint64(1)<<(id.Slot&63)
	// A slot that ended now was severed now if the peer saw it. Else the client may show what was in it before, but not this.
	return b < len(p.Dirty) && p.Gone(b)&bit != 0 && p.Acks.endedAt(int(id.Slot), p.Snap.Tick)
}

// noteStructure notes that slots of a block came or went for the peer, or changed their components.
func (p *Tracker) noteStructure(b int, mask uint64) {
	if p.Structure != nil && mask != 0 {
		p.Structure.note(b, mask, p.Snap.Tick)
	}
}
