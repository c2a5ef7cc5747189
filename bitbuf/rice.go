package bitbuf

import "math/bits"

// RiceEscape is the smallest quotient that a Rice code does not write in unary.
const RiceEscape = 32

// The code after an escape has an order this much higher, so that its first class
// holds as many values as all unary quotients together.
const riceEscapeOrder = 5

// WriteRice appends v in the Rice code of order k, 0 to 63, which suits values whose frequency falls off geometrically
// and whose mean is near 2^k. With q = v >> k the code is
//
//	q <  RiceEscape   q zeros, a one, the low k bits of v
//	q >= RiceEscape   RiceEscape zeros, then v - RiceEscape<<k in the Exp-Golomb code of order k+5
//
// so every value takes 156 bits or less. After Rice and Plaunt, "Adaptive variable-length coding for efficient
// compression of spacecraft television data", IEEE Transactions on Communication Technology 19 (1971).
//
// Panics when k is above 63.
func (w *Writer) WriteRice(v uint64, k uint) {
	if code, n := RiceCode(v, k); n > 0 {
		w.WriteBits(code, n)
		return
	}
	n, q := riceLen(v, k), v>>k
	switch {
	case !w.reserve(n):
	case q < RiceEscape:
		w.WriteBits(1<<q, uint(q)+1)
		w.WriteBits(v, k)
	default:
		w.WriteBits(0, RiceEscape)
		w.WriteExpGolomb(v-RiceEscape<<k, k+riceEscapeOrder)
	}
}

// RiceCode returns the Rice code of v and its length n in bits, as [Writer.WriteBits] takes them, or n = 0 if it is
// escaped or longer than 64 bits.
func RiceCode(v uint64, k uint) (code uint64, n uint) {
	q := v >> k
	if q >= RiceEscape || uint(q)+1+k > 64 {
		return 0, 0
	}
	return (v&lowBits[k]<<1 | 1) << q, uint(q) + 1 + k
}

// ReadRice returns the next value in the Rice code of order k. A code for more than 64 bits fails with [ErrCode].
//
// Panics when k is above 63.
func (r *Reader) ReadRice(k uint) uint64 {
	if k > 63 {
		panic(badOrder)
	}
	p := r.Peek()
	q := uint64(bits.TrailingZeros64(p))
	if q >= RiceEscape {
		return r.readRiceEscape(k)
	}
	var low uint64
	if n := uint(q) + 1 + k; n <= 64 {
		r.pos += uint64(n)
		low = p >> (q + 1) & lowBits[k]
	} else {
		r.pos += q + 1
		low = r.ReadBits(k)
	}
	switch {
	case r.pos > r.end:
		return 0
	case q > ^uint64(0)>>k:
		r.Fail(ErrCode)
		return 0
	}
	return q<<k | low
}

// readRiceEscape is ReadRice for a code that starts with RiceEscape zeros.
func (r *Reader) readRiceEscape(k uint) uint64 {
	r.pos += RiceEscape
	if k+riceEscapeOrder > 63 { // RiceEscape<<k takes more than 64 bits
		r.Fail(ErrCode)
		return 0
	}
	rest := r.ReadExpGolomb(k + riceEscapeOrder)
	if r.Err() != nil {
		return 0
	}
	v, carry := bits.Add64(rest, RiceEscape<<k, 0)
	if carry != 0 {
		r.Fail(ErrCode)
		return 0
	}
	return v
}

// riceLen returns the number of bits that WriteRice appends for v.
//
// Panics when k is above 63.
func riceLen(v uint64, k uint) uint {
	if k > 63 {
		panic(badOrder)
	}
	if q := v >> k; q < RiceEscape {
		return uint(q) + 1 + k
	}
	// q >= RiceEscape leaves k <= 58: the order below is in range.
	return RiceEscape + expGolombLen(v-RiceEscape<<k, k+riceEscapeOrder)
}
