package quantize

import (
	"math/bits"
)

// Uint codes the whole numbers low..high, both included, by their distance from low. It is exact.
type Uint struct {
	low, high uint64
}

// NewUint returns the quantiser of low..high; 0..1 takes one bit, and low == high takes none. Every range of uint64
// works.
func NewUint(low, high uint64) (Uint, error) {
	if low > high {
		return Uint{}, errEmpty(low, high)
	}
	return Uint{low: low, high: high}, nil
}

// Range returns the smallest and the largest number in range.
func (q Uint) Range() (low, high uint64) { return q.low, q.high }

// Bits returns the width of a code, 0..64.
func (q Uint) Bits() uint { return uint(bits.Len64(q.Max())) }

// Max returns the largest code: high - low.
func (q Uint) Max() uint64 { return q.high - q.low }

// MaxError returns 0: every number in range survives unchanged.
func (q Uint) MaxError() float64 { return 0 }

// Encode returns the code of v. Out of range it returns the code of the nearer bound and false.
func (q Uint) Encode(v uint64) (code uint64, ok bool) {
	if v < q.low {
		return 0, false
	}
	if v > q.high {
		return q.Max(), false
	}
	return v - q.low, true
}

// Decode returns the number a code stands for, or 0 and false if code > Max.
func (q Uint) Decode(code uint64) (v uint64, ok bool) {
	if code > q.Max() {
		return 0, false
	}
	return q.low + code, true
}
