package wire

// This file codes the component sets of entities.

import (
	"iter"
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
)

// ComponentSet is a set of components, by their index in the layout.
type ComponentSet [delta.MaxComponents / 64]uint64

// Add puts component c into the set.
func (s *ComponentSet) Add(c int) { s[c>>6] |= 1 << (c & 63) }

// AddAll puts all components of another set into the set.
func (s *ComponentSet) AddAll(other *ComponentSet) {
	for i := range s {
		s[i] |= other[i]
	}
}

// Toggle adds component c to the set or takes it out.
func (s *ComponentSet) Toggle(c int) { s[c>>6] ^= 1 << (c & 63) }

// Has reports whether component c is in the set.
func (s *ComponentSet) Has(c int) bool { return s[c>>6]>>(c&63)&1 != 0 }

// All iterates over the components in the set, in ascending order. A component may be taken out when it is its turn.
func (s *ComponentSet) All() iter.Seq[int] {
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

// WriteComponentSet appends the difference of s from ref: the number of components that only one of them
// has, and the gaps between these, in exp-Golomb codes of order 0.
func WriteComponentSet(w *bitbuf.Writer, s, ref *ComponentSet) {
	var diff ComponentSet
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

// ReadComponentSet reads what WriteComponentSet wrote. Components that are not below n, the number of the layout's
// components, fail the Reader with [delta.ErrCode].
func ReadComponentSet(r *bitbuf.Reader, ref *ComponentSet, n int) ComponentSet {
	s := *ref
	next := uint64(0)
	for count := r.ReadExpGolomb(0); count > 0; count-- {
		gap := r.ReadExpGolomb(0)
		if gap >= uint64(n) || next+gap >= uint64(n) {
			r.Fail(delta.ErrCode) // ends the loop however large the count is
			return s
		}
		s.Toggle(int(next + gap))
		next += gap + 1
	}
	return s
}
