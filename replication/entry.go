package replication

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
)

// entryKind is the kind of an entry in a state packet, written in unary: the most
// frequent is the shortest.
type entryKind uint8

const (
	entryUpdate      entryKind = iota // against the baselines in front of the list
	entryNamed                        // the same against others, which it names
	entryWhole                        // without baseline, with the generation
	entryDespawn                      // the slot is empty
	entryRestructure                  // against baselines, other component set
	entryPart                         // a part of a whole that is larger than a packet
	lastEntryKind    = entryPart
)

const (
	gapOrderBits    = 4 // in a state packet: the order of the Rice code of slot gaps
	generationOrder = 4 // of the exp-Golomb code of generations
	maxEntityBits   = 32 << 10 * 8
)

// writeUpdate writes what stands between the gap and the run of an entry against
// baselines.
func writeUpdate(w *bitbuf.Writer, names *delta.Names, b delta.Baselines, restructure bool) {
	leads := names.Leads(b)
	switch {
	case restructure:
		w.WriteUnary(uint(entryRestructure), uint(lastEntryKind))
		w.WriteBool(leads)
	case leads:
		w.WriteUnary(uint(entryUpdate), uint(lastEntryKind))
	default:
		w.WriteUnary(uint(entryNamed), uint(lastEntryKind))
	}
	names.Write(w, b)
}
