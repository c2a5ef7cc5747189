package delta

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// maxPrefix is the longest prefix of a residual's code. A residual that needs a
// longer one is written at full width behind it, so that a jump costs little more
// than an absolute value.
const maxPrefix = 10

// prefixLimit returns the prefix that means "full width" for codes of order k.
func prefixLimit(k, width uint) uint { return min(width-k, maxPrefix) }

// writeResidual appends v < 2^width in a capped exp-Golomb code of order k: the
// class q as truncated unary, then k+q bits, or all width bits in the last class.
// An order above the width counts as the width.
func writeResidual(w *bitbuf.Writer, v uint64, k, width uint) {
	k = min(k, width)
	limit := prefixLimit(k, width)
	q := uint(bits.Len64(v>>k+1)) - 1
	if q >= limit {
		w.WriteUnary(limit, limit)
		w.WriteBits(v, width)
		return
	}
	low := v - (1<<q-1)<<k
	if n := 2*q + 1 + k; n <= 64 {
		w.WriteBits(low<<(q+1)|1<<q, n)
		return
	}
	w.WriteUnary(q, limit)
	w.WriteBits(low, k+q)
}

// readResidual reads what writeResidual wrote.
func readResidual(r *bitbuf.Reader, k, width uint) uint64 {
	k = min(k, width)
	limit := prefixLimit(k, width)
	q := r.ReadUnary(limit)
	if q == limit {
		return r.ReadBits(width)
	}
	return r.ReadBits(k+q) + (1<<q-1)<<k
}
