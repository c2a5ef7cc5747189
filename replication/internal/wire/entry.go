package wire

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
)

// EntryKind is the kind of an entry in a state packet, written in unary: the most
// frequent is the shortest.
type EntryKind uint8

const (
	EntryUpdate    EntryKind = iota // against the baselines in front of the list
	EntryNamed                      // the same against others, which it names
	EntryFull                       // without baseline, with the generation
	EntryDespawn                    // the slot is empty
	EntrySetChange                  // against baselines, other component set
	EntryPart                       // a part of a whole that is larger than a packet
	LastEntryKind  = EntryPart
)

const (
	GapOrderBits    = 4 // in a state packet: the order of the Rice code of slot gaps
	GenerationOrder = 4 // of the exp-Golomb code of generations
	MaxEntityBits   = 32 << 10 * 8
)

// WriteUpdate writes what stands between the gap and the run of an entry against
// baselines.
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

const MaxWindow = 120
