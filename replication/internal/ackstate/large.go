package ackstate

import (
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
)

// Large states. An entity whose entry does not fit into a packet is sent in full as of one tick, in
// parts that are each retransmitted until acknowledged. The client shows the state when all parts
// have arrived, so it never shows a mixture of ticks. The state is then a baseline like any other.

// LargeStates has the states that are being sent in parts, by slot.
type LargeStates struct {
	set    bitset.Set
	bySlot map[int]*LargeState
}

// Any reports whether there is one.
func (l *LargeStates) Any() bool { return len(l.bySlot) > 0 }

// In returns the slots of a block that have one.
func (l *LargeStates) In(b int) uint64 {
	if b >= len(l.set) {
		return 0
	}
	return l.set[b]
}

// Of returns that of a slot, or nil.
func (l *LargeStates) Of(slot int) *LargeState { return l.bySlot[slot] }

// Begin adds an empty one.
func (l *LargeStates) Begin(slot int) {
	if l.bySlot == nil {
		l.bySlot = map[int]*LargeState{}
	}
	l.bySlot[slot] = &LargeState{}
	l.set = l.set.Grown(slot + 1)
	l.set.Add(slot)
}

// drop removes those of slots of a block.
func (l *LargeStates) drop(b int, mask uint64) {
	if mask &= l.In(b); mask == 0 {
		return
	}
	for slot := range bitset.Slots(b, mask) {
		delete(l.bySlot, slot)
	}
	l.set[b] &^= mask
}

// A LargeState is a state that is sent in parts. It is empty until the first of them is sent.
type LargeState struct {
	Tick    delta.Tick
	Encoded []byte // generation, component set and rows, as in a wire.EntryFull
	Size    int    // bytes of a part; the last one may be shorter
	Parts   []PartStatus
	Missed  int // parts not acknowledged yet
}

// PartStatus is what is known about the fate of a part.
type PartStatus uint8

const (
	PartUnsent PartStatus = iota
	PartInFlight
	partAcked
)

// TurnEnds reports whether the parts that were sent make up packets of so many bytes, at least a part, so that others
// have their turn. Some were sent.
func (l *LargeState) TurnEnds(packet int) bool {
	return slices.Index(l.Parts, PartUnsent)%(packet/l.Size) == 0
}
