package bitbuf

import "math/bits"

// maxUnary is the largest limit of the truncated unary code.
const maxUnary = 63

// WriteUnary appends n in truncated unary: n zeros and a one, which is left out when n is the limit.
//
// Panics when n is above limit or limit above 63.
func (w *Writer) WriteUnary(n, limit uint) {
	if n > limit || limit > maxUnary {
		panic("bitbuf: WriteUnary outside its limit: pass n <= limit <= 63")
	}
	if n == limit {
		w.WriteBits(0, n)
		return
	}
	w.WriteBits(1<<n, n+1)
}

// ReadUnary returns the next number in truncated unary, at most limit.
//
// Panics when limit is above 63.
func (r *Reader) ReadUnary(limit uint) uint {
	if limit > maxUnary {
		panic("bitbuf: ReadUnary outside its limit: pass limit <= 63")
	}
	n := min(uint(bits.TrailingZeros64(r.Peek())), limit)
	r.pos += uint64(n)
	if n < limit {
		r.pos++ // over the one
	}
	if r.pos > r.end {
		return 0
	}
	return n
}
