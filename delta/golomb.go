package delta

// This file has the code of residuals: a capped exp-Golomb code.

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// maxPrefix is the longest prefix of a residual's code. A residual that needs a longer one is
// written at full width behind it, so that a large change costs little more than an absolute value.
const maxPrefix = 10

// prefixLimit returns the prefix that means "full width" for codes of order k.
func prefixLimit(k, width uint) uint { return min(width-k, maxPrefix) }

// shortResidual returns the capped exp-Golomb code of order k for v < 2^width, and its bits: the
// class q in truncated unary, then k+q bits, or all width bits in the last class. k is at most
// width, which is at most maxStepBits.
func shortResidual(v uint32, k, width uint) (code uint64, n uint) {
	limit := prefixLimit(k, width)
	x := v + 1<<(k&31)
	top := uint(bits.Len32(x)) - 1 // class q begins with x = 2^(k+q)
	if q := top - k; q < limit {
		return (2*uint64(x) + 1 - 2<<(top&31)) << (q & 31), q + 1 + top
	}
	return uint64(v) << limit, limit + width
}

// residual appends v < 2^width in the code of shortResidual, for any width. An order above the
// width counts as the width.
func (d bitString) residual(words []uint64, v uint64, k, width uint) bitString {
	k = min(k, width)
	limit := prefixLimit(k, width)
	q := uint(bits.Len64(v>>k+1)) - 1
	if q >= limit {
		return d.put(words, 0, limit).put(words, v, width)
	}
	return d.put(words, 1<<q, q+1).put(words, v-(1<<q-1)<<k, k+q)
}

// readResidual reads what residual wrote.
func readResidual(r *bitbuf.Reader, k, width uint) uint64 {
	k = min(k, width)
	limit := prefixLimit(k, width)
	q := r.ReadUnary(limit)
	if q == limit {
		return r.ReadBits(width)
	}
	return r.ReadBits(k+q) + (1<<q-1)<<k
}
