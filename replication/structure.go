package replication

import (
	"cmp"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/mlange-42/arche/ecs"
)

// A message from the server must not be handed over before the client's world has the structure of the tick that it was sent
// in: who is there, and with which components. A structure lists for a peer which slots changed in that, as far as the peer
// is not known to have learnt of it. What of that list is older than a message is what the message waits for.
//
// The client hands the message over when it shows, for each slot in its list, a state of that tick or a later one. So does
// what was sent in the meantime count, and packets that get lost delay no message that has nothing to do with them.

// A structure is the list of a peer.
type structure struct {
	changes []change // in the order of slots as far as they are sorted, in that of ticks behind
	sorted  int
	kept    int // were left when the list was last cleaned
}

// A change of a slot: it came or went for the peer, or its component set changed.
type change struct {
	slot        uint32
	first, last delta.Tick // of those that the peer may not know of
}

// cleanAt is how many changes more than before make it worth to look which are settled.
const cleanAt = 64

// note adds changes of slots of a block.
func (s *structure) note(b int, mask uint64, now delta.Tick) {
	for slot := range bitset.Slots(b, mask) {
		s.changes = append(s.changes, change{uint32(slot), now, now})
	}
}

// settled returns whether the peer knows of a slot what was at a tick, or is not to be told.
func (p *tracker) settled(slot int, at delta.Tick) bool {
	learnt, ok := p.learnt(slot)
	return ok && !learnt.Before(at)
}

// learnt returns up to which tick the peer knows what became of a slot.
func (p *tracker) learnt(slot int) (delta.Tick, bool) {
	b, bit := slot>>6, uint64(1)<<(slot&63)
	now := p.snap.tick
	if p.sight.view.sees(b, p.snap.slots.alive[b])&bit == 0 {
		return now, p.gone(b)&bit == 0
	}
	at, ok := p.acks.holds(slot)
	if ok && !p.snap.slots.changed[slot].After(at) {
		return now, true // it holds what there is, so nothing newer will be sent; it may have been kept while out of view
	}
	return at, ok
}

// tidy brings the list into the order of slots, with each slot once.
func (s *structure) tidy() {
	if s.sorted == len(s.changes) {
		return
	}
	slices.SortStableFunc(s.changes, func(a, b change) int { return cmp.Compare(a.slot, b.slot) })
	n := 0
	for _, c := range s.changes {
		if n > 0 && s.changes[n-1].slot == c.slot {
			s.changes[n-1].last = c.last
			continue
		}
		s.changes[n] = c
		n++
	}
	s.changes = s.changes[:n]
	s.sorted = n
}

// narrow takes out of a change what the peer knows, and returns false if that is all.
func (p *tracker) narrow(c *change) bool {
	learnt, ok := p.learnt(int(c.slot))
	if !ok || learnt.Before(c.first) {
		return true
	}
	c.first = learnt + 1
	return c.last.After(learnt)
}

// bound keeps the list from growing when there are no messages.
func (p *tracker) bound() {
	s := p.structure
	turn := p.snap.tick%cleanAt == 0
	if n := len(s.changes); n > 2*s.kept+cleanAt || n > cleanAt && turn {
		p.dependencies(p.snap.tick, nil, -1)
		s.kept = len(s.changes)
	}
	if n, c := len(s.changes), cap(s.changes); turn && c > 16*cleanAt && c > 8*n { // a client has got to know a large world
		s.changes = append(make([]change, 0, 2*n), s.changes...)
	}
}

// dependencies appends what a message of tick at has to wait for, in the order of slots, and returns false if that is more
// than limit; -1 is none. It drops from the list what is settled.
func (p *tracker) dependencies(at delta.Tick, deps []dependency, limit int) ([]dependency, bool) {
	s := p.structure
	s.tidy()
	all, kept, ok := s.changes, 0, true
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
			deps = append(deps, dependency{c.slot, c.last})
		}
		all[kept] = c
		kept++
	}
	s.changes, s.sorted = all[:kept], kept
	return deps, ok
}

// stillWaits keeps those of the dependencies that are not settled.
func (p *tracker) stillWaits(deps, open []dependency) []dependency {
	for _, d := range deps {
		if !p.settled(int(d.slot), d.tick) {
			open = append(open, d)
		}
	}
	return open
}

// views reports whether the peer sees an entity, or saw it before it ended in this tick. id is its NetID in the tick before, if
// that is known.
func (p *tracker) views(e ecs.Entity, id netID, known bool) bool {
	s := &p.snap.slots
	if slot, ok := p.snap.slotOf(e); ok && s.alive.Has(slot) && s.info[slot].entity == e {
		return p.sight.view.sees(slot>>6, 1<<(slot&63)) != 0
	}
	if !known || s.info[id.Slot].generation != id.Generation {
		return false
	}
	b, bit := int(id.Slot>>6), uint64(1)<<(id.Slot&63)
	// A slot that ended now was severed now if the peer saw it. Else the client may show what was in it before, but not this.
	return b < len(p.due) && p.gone(b)&bit != 0 && p.acks.severedAt(int(id.Slot), p.snap.tick)
}
