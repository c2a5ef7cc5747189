package quantize

import (
	"math/bits"
)

// IntWrap codes whole numbers that wrap from high to low: degrees 0..359, hours 0..23. It is Angle
// for integers, and exact except for full turns.
type IntWrap struct {
	low, high int64
}

// NewIntWrap returns the quantiser of the circle low..high; 0..359 takes 9 bits, and low == high none. Every range of
// int64 works.
func NewIntWrap(low, high int64) (IntWrap, error) {
	if low > high {
		return IntWrap{}, errEmpty(low, high)
	}
	return IntWrap{low: low, high: high}, nil
}

// Range returns the smallest and the largest number that Decode returns.
func (q IntWrap) Range() (low, high int64) { return q.low, q.high }

// Bits returns the width of a code, 0..64.
func (q IntWrap) Bits() uint { return uint(bits.Len64(q.Max())) }

// Max returns the largest code: high - low.
func (q IntWrap) Max() uint64 { return uint64(q.high) - uint64(q.low) }

// MaxError returns 0: every number comes back unchanged, or full turns away.
func (q IntWrap) MaxError() float64 { return 0 }

// Encode returns the code of v less full turns. ok is always true.
func (q IntWrap) Encode(v int64) (code uint64, ok bool) {
	turn := q.Max() + 1
	switch {
	case v >= q.low && v <= q.high:
		return uint64(v) - uint64(q.low), true
	case v > q.high:
		return (uint64(v) - uint64(q.low)) % turn, true
	}
	return q.Max() - (uint64(q.low)-uint64(v)-1)%turn, true
}

// Decode returns the number a code stands for, or 0 and false if code > Max.
func (q IntWrap) Decode(code uint64) (v int64, ok bool) {
	if code > q.Max() {
		return 0, false
	}
	return int64(uint64(q.low) + code), true
}
