package replication

// A bitset is a set of slots.
type bitset []uint64

// grown returns the set with room for slots below n.
func (b bitset) grown(n int) bitset {
	for len(b) < (n+63)/64 {
		b = append(b, 0)
	}
	return b
}

func (b bitset) set(slot int)   { b[slot>>6] |= 1 << (slot & 63) }
func (b bitset) clear(slot int) { b[slot>>6] &^= 1 << (slot & 63) }

// add puts the members of a set that is not larger into b.
func (b bitset) add(other bitset) {
	for i, word := range other {
		b[i] |= word
	}
}
