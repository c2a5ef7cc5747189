package config

// A few bits may stand for an entity of thousands of fields that are as predicted, and a client
// has to predict them all. So the work that a packet may make is bounded. Both ends count it in
// the same way: the server before it adds an entry, the client while it decodes.
//
// The work of an entry is that of the rows of its set. A row at rest, which is the same as at its
// baselines, counts 1 and one of no bits nothing, since the client shares it with the baseline.
// Any other row counts [delta.Component.Work], whatever is coded of it. Despawns count nothing,
// nor do parts.

// A WorkBound is how much work a packet may make beside 1 for each bit of its entries.
type WorkBound int

// Allows reports whether a packet with so many bits of entries may make so much work. One of a
// single entry may make any: what that takes is bounded by the schema.
func (b WorkBound) Allows(work, bits int) bool { return work-int(b) <= bits } // a sum may be more than an int of 32 bits

// FreeWork is that of all packets. It keeps those of 1200 bytes below 2 ms: in Compact a field that
// is as expected takes 10 to 40 ns.
const FreeWork WorkBound = 1 << 15
