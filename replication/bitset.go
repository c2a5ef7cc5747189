package replication

import (
	"iter"
	"math/bits"
)

// A bitset is a set of slots, a word for every block of 64.
type bitset []uint64

// grown returns the set with room for slots below n.
func (b bitset) grown(n int) bitset {
	if more := (n+63)/64 - len(b); more > 0 {
		b = append(b, make(bitset, more)...)
	}
	return b
}

func (b bitset) has(slot int) bool { return b[slot>>6]>>(slot&63)&1 != 0 }
func (b bitset) set(slot int)      { b[slot>>6] |= 1 << (slot & 63) }
func (b bitset) clear(slot int)    { b[slot>>6] &^= 1 << (slot & 63) }

// count returns the number of slots in the set.
func (b bitset) count() (n int) {
	for _, word := range b {
		n += bits.OnesCount64(word)
	}
	return n
}

// next returns the first slot of the set from a given one on, or one that there is no room for.
func (b bitset) next(slot int) int {
	if slot>>6 >= len(b) {
		return slot
	}
	word := b[slot>>6] >> (slot & 63) << (slot & 63)
	for i := slot >> 6; ; word = b[i] {
		if word != 0 {
			return i<<6 + bits.TrailingZeros64(word)
		}
		if i++; i == len(b) {
			return i << 6
		}
	}
}

// slotsOf iterates over the slots of a block that a mask names.
func slotsOf(block int, mask uint64) iter.Seq[int] {
	return func(yield func(int) bool) {
		for ; mask != 0; mask &= mask - 1 {
			if !yield(block<<6 + bits.TrailingZeros64(mask)) {
				return
			}
		}
	}
}
