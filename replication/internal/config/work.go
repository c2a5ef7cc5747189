package config

// WorkBound is the work that a packet may cause beyond 1 for each bit of its entries.
//
// A few bits can code an entity of thousands of fields that equal their prediction, and a client has to
// predict all of them. So the work of a packet is bounded. Both ends count it in the same way: the server
// before it adds an entry, the client while it decodes. The work of an entry is that of the rows of its
// component set. A row that equals its baselines counts 1, and one without bits 0, since the client shares
// it with the baseline. Any other row counts [delta.Component.Work]. A full state and a despawn count [wire.SlotWork]
// more. Parts count 0.
type WorkBound int

// Allows reports whether a packet with so many bits of entries may cause so much work. A packet with a
// single entry may cause any work: the schema bounds that.
func (b WorkBound) Allows(work, bits int) bool {
	return work-int(b) <= bits // a sum could overflow an int of 32 bits
}

// FreeWork is the bound of all packets. It keeps packets of 1200 bytes below 2 ms: a field that equals its
// prediction takes 10 to 40 ns in Compact.
const FreeWork WorkBound = 1 << 15
