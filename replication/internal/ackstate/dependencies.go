package ackstate

import (
	"cmp"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
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
