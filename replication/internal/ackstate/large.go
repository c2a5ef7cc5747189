package ackstate

import (
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
)

// Large states. An entity whose entry does not fit into a packet is sent in full as of one tick, in
// parts that are each retransmitted until acknowledged. The client shows the state when all parts
// have arrived, so it never shows a mixture of ticks. The state is then a baseline like any other.

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
