package bitbuf

import "math/bits"

// WriteExpGolomb appends v in the Exp-Golomb code of order k, 0 to 63, in which the first 2^k values have the shortest
// code, the next 2^(k+1) one that is 2 bits longer, and so on. With
//
//	u = v + 2^k, a number of q+k+1 bits,
//
// the code is q zeros, a one, and u without its top bit, low bit first:
//
//	v   u     order 0       u     order 1
//	0   1     1             10    1 0
//	1   10    0 1 0         11    1 1
//	2   11    0 1 1         100   0 1 00
//	3   100   00 1 00       101   0 1 10
//
// That is 2q+k+1 bits, up to 129. After Teuhola, "A compression method for clustered bit-vectors", Information
// Processing Letters 7 (1978).
//
// Panics when k is above 63.
func (w *Writer) WriteExpGolomb(v uint64, k uint) {
	q, u := expGolombClass(v, k)
	n := 2*q + k + 1
	if n <= 64 {
		// lowBits drops u's top bit; then the code is (low, 1, q zeros) read upwards.
		w.WriteBits((u&lowBits[q+k]<<1|1)<<q, n)
		return
	}
	if !w.reserve(n) {
		return
	}
	w.WriteBits(0, q)
	w.WriteBits(1, 1)
	w.WriteBits(u, q+k)
}

// ReadExpGolomb returns the next value in the Exp-Golomb code of order k. A code for more than 64 bits fails with
// [ErrCode].
//
// Panics when k is above 63.
func (r *Reader) ReadExpGolomb(k uint) uint64 {
	if k > 63 {
		panic(badOrder)
	}
	p := r.Peek()
	q := uint(bits.TrailingZeros64(p))
	if n := 2*q + k + 1; n <= 64 {
		r.pos += uint64(n)
		if r.pos > r.end {
			return 0
		}
		return p>>(q+1)&lowBits[q+k] + 1<<(q+k) - 1<<k
	}
	return r.readLongExpGolomb(q, k)
}

// readLongExpGolomb is ReadExpGolomb for a code of more than 64 bits, of which the
// first q, of at most 64, are zeros.
func (r *Reader) readLongExpGolomb(q, k uint) uint64 {
	longest := 64 - k
	q = min(q, longest)
	r.pos += uint64(q)
	one := r.ReadBool()
	if one {
		u := r.ReadBits(q + k)
		if r.pos > r.end {
			return 0
		}
		if q < longest {
			return u + 1<<(q+k) - 1<<k
		}
		if u < 1<<k { // u's top bit has the value 2^64 here
			return u - 1<<k
		}
	}
	r.Fail(ErrCode)
	return 0
}

// expGolombLen returns the number of bits that WriteExpGolomb appends for v.
//
// Panics when k is above 63.
func expGolombLen(v uint64, k uint) uint {
	q, _ := expGolombClass(v, k)
	return 2*q + k + 1
}

// expGolombClass returns the length q of the code's prefix, and u modulo 2^64.
func expGolombClass(v uint64, k uint) (q uint, u uint64) {
	if k > 63 {
		panic(badOrder)
	}
	u, carry := bits.Add64(v, 1<<k, 0)
	if carry != 0 {
		return 64 - k, u
	}
	return uint(bits.Len64(u)) - 1 - k, u
}
