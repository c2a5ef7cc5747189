package delta

// This file codes component sets.

import (
	"iter"
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// Set is a set of components, by their index in the layout.
type Set [MaxComponents / 64]uint64

// Add puts component c into the set.
func (s *Set) Add(c int) { s[c>>6] |= 1 << (c & 63) }

// AddAll puts all components of another set into the set.
func (s *Set) AddAll(other *Set) {
	for i := range s {
		s[i] |= other[i]
	}
}

// Toggle adds component c to the set or takes it out.
func (s *Set) Toggle(c int) { s[c>>6] ^= 1 << (c & 63) }

// Has reports whether component c is in the set.
func (s *Set) Has(c int) bool { return s[c>>6]>>(c&63)&1 != 0 }

// All iterates over the components in the set, in ascending order. A component may be taken out when it is its turn.
func (s *Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(i<<6 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}

// WriteSet appends the difference of s from ref: the number of components that only one of them
// has, and the gaps between these, in exp-Golomb codes of order 0.
func WriteSet(w *bitbuf.Writer, s, ref *Set) {
	var diff Set
	count := 0
	for i := range diff {
		diff[i] = s[i] ^ ref[i]
		count += bits.OnesCount64(diff[i])
	}
	w.WriteExpGolomb(uint64(count), 0)
	next := 0
	for c := range diff.All() {
		w.WriteExpGolomb(uint64(c-next), 0)
		next = c + 1
	}
}

// ReadSet reads what WriteSet wrote. Components that are not below n, the number of the layout's
// components, fail the Reader with [ErrCode].
func ReadSet(r *bitbuf.Reader, ref *Set, n int) Set {
	s := *ref
	next := uint64(0)
	for count := r.ReadExpGolomb(0); count > 0; count-- {
		gap := r.ReadExpGolomb(0)
		if gap >= uint64(n) || next+gap >= uint64(n) {
			r.Fail(ErrCode) // ends the loop however large the count is
			return s
		}
		s.Toggle(int(next + gap))
		next += gap + 1
	}
	return s
}
