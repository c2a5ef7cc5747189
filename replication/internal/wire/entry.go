package wire

// This file has the heads of entries in state packets.

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
	GenerationOrder = 4 // of the exp-Golomb code of generations
	PartOrder       = 3 // of the exp-Golomb codes in the heads of parts
	MaxEntityBits   = 32 << 10 * 8
	MaxFrontBits    = 32 // more than the front of a packet takes
)

// MinWindow and MaxWindow bound the number of ticks for which a client keeps states.
const (
	MinWindow = 8
	MaxWindow = 120
)

// SlotWork is the work of an entry that may be the first one of its slot, a full state or a despawn, besides that of
// its rows: the client may have to make room for slots near it, 2 KB. See config.WorkBound.
const SlotWork = 32
