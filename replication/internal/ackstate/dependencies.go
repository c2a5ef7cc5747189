package ackstate

import (
	"cmp"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
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
	joining bool     // messages wait until the join is complete; the list lacks what was there when it began

	unsent    bitset.Set // slots of changes of which nothing has been sent since
	anyUnsent bool

	waits   bool       // a message waits that was not sent
	awaited delta.Tick // the tick of the oldest one
}

// A change is that a slot came into view or left it, or that its component set changed.
type change struct {
	Slot        uint32
	first, last delta.Tick // of the changes that the peer may not know of
	unsent      delta.Tick // of the first one since something was sent of the slot
	again       bool       // nothing was sent since the change before, which has that tick
}

// manyChanges is the number of entities beyond which all that a client is sent when it joins counts as one change.
const manyChanges = 1024

// CleanAt is how many changes must be added before settled ones are looked for.
const CleanAt = 64

// Await notes whether a message waits until something has been sent of all that it depends on, and the tick of the
// oldest one.
func (s *Structure) Await(at delta.Tick, waits bool) {
	if s != nil {
		s.awaited, s.waits = at, waits
	}
}

// holds reports whether a message of a tick waits until something is sent of a slot. What that is does not matter: if
// the slot has another entity by then, the client need not show the one of that tick.
func (s *Structure) holds(c *change, at delta.Tick) bool {
	return s.unsent.Has(int(c.Slot)) && !c.unsent.After(at)
}

// Waits reports whether a message waits.
func (s *Structure) Waits() bool { return s != nil && s.waits }

// FindAwaited makes a set that of the slots that the oldest waiting message waits for.
func (s *Structure) FindAwaited(set bitset.Set) {
	clear(set)
	s.tidy()
	for i := range s.Changes {
		if c := &s.Changes[i]; s.holds(c, s.awaited) {
			set.Add(int(c.Slot))
		}
	}
}

// noteSent notes that a packet carries something of slots.
func (s *Structure) noteSent(l *SentLog, sent *SentPacket) {
	for i := range sent.Count {
		if r := l.Record(sent, i); int(r.Block) < len(s.unsent) {
			s.unsent[r.Block] &^= r.Mask
		}
	}
}

// note adds changes of slots of a block, for which messages of the ticks from first on have to wait.
func (s *Structure) note(b int, mask uint64, first, now delta.Tick) {
	s.unsent = s.unsent.Grown(b<<6 + 64)
	for slot := range bitset.Slots(b, mask) {
		s.Changes = append(s.Changes, change{uint32(slot), first, now, first, s.unsent.Has(slot)})
	}
	s.unsent[b] |= mask
	s.anyUnsent = true
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
			if s.Changes[n-1].last = c.last; !c.again {
				s.Changes[n-1].unsent = c.unsent
			}
			continue
		}
		s.Changes[n] = c
		n++
	}
	s.Changes = s.Changes[:n]
	s.sorted = n
}
