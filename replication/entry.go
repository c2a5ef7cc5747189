package replication

// entryKind is the kind of an entry in a state packet, written in unary: the most
// frequent is the shortest.
type entryKind uint8

const (
	entryUpdate      entryKind = iota // against a baseline, same component set
	entryRestructure                  // against a baseline, other component set
	entryWhole                        // without baseline, with the generation
	entryDespawn                      // the slot is empty
	entryPart                         // a part of a whole that is larger than a packet
	lastEntryKind    = entryPart
)

const (
	gapOrderBits    = 4 // in a state packet: the order of the Rice code of slot gaps
	generationOrder = 4 // of the exp-Golomb code of generations
	maxEntityBits   = 32 << 10 * 8
)
