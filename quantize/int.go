package quantize

import (
	"fmt"
	"math/bits"
)

// Int codes the whole numbers low..high, both included, by their distance from low. It is exact.
type Int struct {
	low, high int64
}

// NewInt returns the quantiser of low..high; 25..100 takes 7 bits, and low == high takes none. Every range of int64
// works.
func NewInt(low, high int64) (Int, error) {
	if low > high {
		return Int{}, errEmpty(low, high)
	}
	return Int{low: low, high: high}, nil
}

// Range returns the smallest and the largest number in range.
func (q Int) Range() (low, high int64) { return q.low, q.high }

// Bits returns the width of a code, 0..64.
func (q Int) Bits() uint { return uint(bits.Len64(q.Max())) }

// Max returns the largest code: high - low.
func (q Int) Max() uint64 { return uint64(q.high) - uint64(q.low) }

// MaxError returns 0: every number in range survives unchanged.
func (q Int) MaxError() float64 { return 0 }

// Encode returns the code of v. Out of range it returns the code of the nearer bound and false.
func (q Int) Encode(v int64) (code uint64, ok bool) {
	if v < q.low {
		return 0, false
	}
	if v > q.high {
		return q.Max(), false
	}
	return uint64(v) - uint64(q.low), true
}

// EncodeWrap returns the code of v less full turns: high+1 is low again, as in degrees 0..359 and hours 0..23.
func (q Int) EncodeWrap(v int64) (code uint64) {
	turn := q.Max() + 1
	switch {
	case v >= q.low && v <= q.high:
		return uint64(v) - uint64(q.low)
	case v > q.high:
		return (uint64(v) - uint64(q.low)) % turn
	}
	return q.Max() - (uint64(q.low)-uint64(v)-1)%turn
}

// Decode returns the number a code stands for, or 0 and false if code > Max.
func (q Int) Decode(code uint64) (v int64, ok bool) {
	if code > q.Max() {
		return 0, false
	}
	return int64(uint64(q.low) + code), true
}

// errEmpty returns the error about an integer range whose bounds are in the wrong order.
func errEmpty[T int64 | uint64](low, high T) error {
	return fmt.Errorf("quantize: integer range %d..%d is empty: "+
		"the low bound must not exceed the high one, swap them", low, high)
}
