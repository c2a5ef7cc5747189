package replication

import "github.com/arche-replicate/arche-replicate/delta"

// A few bits may stand for an entity of thousands of fields that are as predicted, and a client
// has to predict them all. So the work that a packet may make is bounded. Both ends count it in
// the same way: the server before it adds an entry, the client while it decodes.
//
// The work of an entry is that of the rows of its set. A row at rest, which is the same as at its
// baselines, counts 1 and one of no bits nothing, since the client shares it with the baseline.
// Any other row counts [delta.Component.Work], whatever is coded of it. Despawns count nothing,
// nor do parts.

// A workBound is how much work a packet may make beside 1 for each bit of its entries.
type workBound int

// freeWork is that of all packets. It keeps those of 1200 bytes below 2 ms: in Compact a field that
// is as expected takes 10 to 40 ns.
const freeWork workBound = 1 << 15

// allows reports whether a packet with so many bits of entries may make so much work. One of a
// single entry may make any: what that takes is bounded by the schema.
func (b workBound) allows(work, bits int) bool { return work-int(b) <= bits } // a sum may be more than an int of 32 bits

// rowWork returns the work of a row, at rest or not.
func rowWork(c *delta.Component, changed bool) int {
	switch {
	case changed:
		return c.Work()
	case c.Width() > 0:
		return 1
	}
	return 0
}
