package wire

// State hashes show whether the states that a client holds are those of the server, and name the first
// field that differs. They need no memory of what was sent: the server sends a digest of an entity and
// the tick of its last change, and a client that holds a state of the entity from that tick on must have
// the same digest. A packet of state hashes always has a checksum; behind it are
//
//	kind 8 | tick 32 | entries | 0 | padding
//	entry: 1 | gap, exp-Golomb of order 4 | generation 16 | age, exp-Golomb of order 0 |
//	       set against the entry before | digests
//
// Entries are in the order of slots, with gaps like those in state packets. The entity last changed age
// ticks before the packet's tick. There is a digest for each field of each component, in the order of the
// schema: a code of 8 bits or less itself, or else 8 bits of a hash of the field's words and the tick, so
// that a difference that one hash misses shows in the next.

// KindHashes is the kind of a packet of state hashes. It shares its number with acks, which go the other
// way.
const KindHashes = KindAck

// HashGapOrder is the order of the exp-Golomb code of slot gaps in a packet of state hashes.
const HashGapOrder = 4
