// Package bitset has sets of slots, as words of 64 bits. A word is a block of slots: most tables of
// the server are kept and read block by block. Every package that keeps sets of slots uses it.
package bitset

import (
	"iter"
	"math/bits"
)

// A Set is a set of slots, with one word for every block of 64.
type Set []uint64

// Grown returns the set with room for slots below n.
func (b Set) Grown(n int) Set {
	if more := (n+63)/64 - len(b); more > 0 {
		b = append(b, make(Set, more)...)
	}
	return b
}

// Has reports whether a slot is in the set, which must have room for it.
func (b Set) Has(slot int) bool { return b[slot>>6]>>(slot&63)&1 != 0 }

// Add adds a slot. The set must have room for it.
func (b Set) Add(slot int) { b[slot>>6] |= 1 << (slot & 63) }

// Remove removes a slot. The set must have room for it.
func (b Set) Remove(slot int) { b[slot>>6] &^= 1 << (slot & 63) }

// Count returns the number of slots in the set.
func (b Set) Count() (n int) {
	for _, word := range b {
		n += bits.OnesCount64(word)
	}
	return n
}

// next returns the first slot of the set at or after a slot, or a slot past the room of the set if
// there is none.
func (b Set) next(slot int) int {
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

// All iterates over the set in ascending order. A slot may be removed when it is its turn.
func (b Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for block, word := range b {
			for ; word != 0; word &= word - 1 {
				if !yield(block<<6 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}

// Between iterates over the members of the set from one up to another, which is not included.
func (b Set) Between(from, to int) iter.Seq[int] {
	return func(yield func(int) bool) {
		to := min(to, len(b)<<6)
		for i := b.next(from); i < to; i = b.next(i + 1) {
			if !yield(i) {
				return
			}
		}
	}
}

// Blocks returns the set of the blocks that have slots of the set. It writes over another set, which may be too small.
func (b Set) Blocks(over Set) Set {
	over = over.Grown(len(b))
	clear(over)
	for block, word := range b {
		if word != 0 {
			over.Add(block)
		}
	}
	return over
}

// Slots iterates over the slots of a block whose bits are set in a mask, in ascending order.
func Slots(block int, mask uint64) iter.Seq[int] {
	return func(yield func(int) bool) {
		for ; mask != 0; mask &= mask - 1 {
			if !yield(block<<6 + bits.TrailingZeros64(mask)) {
				return
			}
		}
	}
}

// Holds reports whether a slot is in the set, which may have no room for it.
func (b Set) Holds(i uint32) bool {
	return uint64(i>>6) < uint64(len(b)) && b[i>>6]>>(i&63)&1 != 0
}
