package wire

// This file has the heads of entries in state packets.

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
)

// EntryKind is the kind of an entry in a state packet. It is written in unary, so the most
// frequent kind is the shortest.
type EntryKind uint8

const (
	EntryUpdate    EntryKind = iota // an update against the baselines in front of the list
	EntryNamed                      // an update against baselines that it names
	EntryFull                       // a full state, with the generation
	EntryDespawn                    // the slot is empty
	EntrySetChange                  // an update that changes the component set
	EntryPart                       // a part of a full state that is larger than a packet
	LastEntryKind  = EntryPart
)

const (
	GapOrderBits    = 4 // in a state packet: the order of the Rice code of slot gaps
	GenerationOrder = 4 // of the exp-Golomb code of generations
	PartOrder       = 3 // of the exp-Golomb codes in the heads of parts
	MaxEntityBits   = 32 << 10 * 8
)

// WriteUpdate writes the head of an update, between the gap and the rows.
func WriteUpdate(w *bitbuf.Writer, names *delta.Names, b delta.Baselines, newComponents bool) {
	front := names.AtFront(b)
	switch {
	case newComponents:
		w.WriteUnary(uint(EntrySetChange), uint(LastEntryKind))
		w.WriteBool(front)
	case front:
		w.WriteUnary(uint(EntryUpdate), uint(LastEntryKind))
	default:
		w.WriteUnary(uint(EntryNamed), uint(LastEntryKind))
	}
	names.Write(w, b)
}

// MaxWindow is the largest number of ticks for which a client keeps states.
const MaxWindow = 120
