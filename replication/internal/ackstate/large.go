package ackstate

import "github.com/arche-replicate/arche-replicate/delta"

// An entity whose entry is larger than a packet is sent as its whole state at one tick,
// cut into parts that are each sent until acknowledged. The client shows it when all
// have come, so that it never shows a mixture of ticks, and the state is a baseline
// like any other from then on.

// A LargeState is on its way in parts.
type LargeState struct {
	Tick    delta.Tick
	Encoded []byte // wire.EntryFull's head and rows
	Size    int    // bytes of a part; the last one may be shorter
	Parts   []PartStatus
	Missed  int // parts not acknowledged yet
}

// PartStatus is what became of a part of a large state.
type PartStatus uint8

const (
	PartUnsent PartStatus = iota
	PartInFlight
	partAcked
)
