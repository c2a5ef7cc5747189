package ackstate

import (
	"cmp"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// What messages wait for. A message must not be delivered before the client's world has the
// entities and component sets of the tick in which the message was sent. A Structure lists the
// slots whose entity or component set changed and of which the peer may not know that yet. A
// message waits for the changes in the list that are older than the message.
//
// The client delivers the message when it shows, for each of the message's slots, a state of the
// listed tick or a later one. So states that were sent in the meantime count, and the loss of a
// packet delays only the messages that depend on it. A message is not sent before everything that it waits for has
// been: it could not be delivered any earlier, and much of what waits for its turn ends before that.

// A Structure lists changes of entities and component sets for one peer.
type Structure struct {
	Changes []change // the first ones by slot, the others by tick
	sorted  int      // how many are in the order of slots
	kept    int      // how many were left when the list was last cleaned

	unsent    bitset.Set // slots of changes of which nothing has been sent since
	anyUnsent bool

	waits   bool       // a message waits for changes
	awaited delta.Tick // up to which tick, the oldest such message
}

// Await notes whether a message waits for changes, and up to which tick the oldest one does.
func (s *Structure) Await(at delta.Tick, waits bool) {
	if s != nil {
		s.awaited, s.waits = at, waits
	}
}

// AddAwaited adds to a set the slots of the changes that the oldest waiting message waits for, and others that the peer
// has learnt of lately. It returns false if no message waits.
func (s *Structure) AddAwaited(set bitset.Set) bool {
	if s == nil || !s.waits {
		return false
	}
	for i := range s.Changes {
		if c := &s.Changes[i]; !c.first.After(s.awaited) {
			set.Add(int(c.Slot))
		}
	}
	return true
}

// A change is that a slot came into view or left it, or that its component set changed.
type change struct {
	Slot        uint32
	first, last delta.Tick // of the changes that the peer may not know of
}

// CleanAt is how many changes must be added before settled ones are looked for.
const CleanAt = 64

// Unsent reports whether nothing has been sent yet of a slot that a message waits for.
func (s *Structure) Unsent(deps []wire.Dependency) bool {
	return s.anyUnsent && slices.ContainsFunc(deps, func(d wire.Dependency) bool { return s.unsent.Has(int(d.Slot)) })
}

// noteSent notes that a packet carries something of slots.
func (s *Structure) noteSent(l *SentLog, sent *SentPacket) {
	for i := range sent.Count {
		if r := l.Record(sent, i); int(r.Block) < len(s.unsent) {
			s.unsent[r.Block] &^= r.Mask
		}
	}
}

// note adds changes of slots of a block.
func (s *Structure) note(b int, mask uint64, now delta.Tick) {
	s.unsent = s.unsent.Grown(b<<6 + 64)
	s.unsent[b] |= mask
	s.anyUnsent = true
	for slot := range bitset.Slots(b, mask) {
		s.Changes = append(s.Changes, change{uint32(slot), now, now})
	}
}

// tidy sorts the list by slot and merges the changes of each slot.
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
