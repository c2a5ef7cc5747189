package quantize

import (
	"fmt"
	"math/bits"
)

// Int codes whole numbers of low..high, both included, in equal steps: low, low+step, low+2*step and so on. high always
// has a code, even if it is not on a step. With a step of 1 it is exact.
type Int[T int | int64 | uint64] struct {
	low, high T
	step      uint64
	max       uint64
	last      uint64 // length of the last step
}

// NewInt returns the quantiser of low..high in steps of step: 25..100 in steps of 1 takes 7 bits, 0..1000 in steps of
// 10 as well, and low == high none. It fails if low exceeds high or step is below 1; a step longer than the range
// leaves its two ends.
func NewInt[T int | int64 | uint64](low, high, step T) (Int[T], error) {
	if low > high {
		return Int[T]{}, fmt.Errorf("quantize: integer range %d..%d is empty: "+
			"the low bound must not exceed the high one, swap them", low, high)
	}
	if step < 1 {
		return Int[T]{}, fmt.Errorf("quantize: an integer step of %d: use 1 or more", step)
	}
	q := Int[T]{low: low, high: high, step: uint64(step)}
	span := uint64(high) - uint64(low)
	q.max, q.last = span/q.step, q.step
	if rest := span % q.step; rest != 0 {
		q.max, q.last = q.max+1, rest
	}
	return q, nil
}

// Range returns the smallest and the largest number in range.
func (q *Int[T]) Range() (low, high T) { return q.low, q.high }

// Bits returns the width of a code, 0..64.
func (q *Int[T]) Bits() uint { return uint(bits.Len64(q.max)) }

// Max returns the largest code, the number of steps.
func (q *Int[T]) Max() uint64 { return q.max }

// MaxError returns half a step, rounded down.
func (q *Int[T]) MaxError() float64 { return float64(q.step / 2) }

// Encode returns the code of the number nearest to v.
func (q *Int[T]) Encode(v T) (code uint64, ok bool) {
	switch {
	case v < q.low:
		return 0, false
	case v >= q.high:
		return q.max, v == q.high
	}
	d := uint64(v) - uint64(q.low)
	if q.step == 1 {
		return d, true
	}
	code = d / q.step
	below, above := d%q.step, q.step
	if code == q.max-1 {
		above = q.last
	}
	above -= below
	if below > above || below == above && code&1 != 0 {
		code++
	}
	return code, true
}

// EncodeWrap returns the code of v less full turns: high+1 is low again, as in degrees 0..359 and hours 0..23.
func (q *Int[T]) EncodeWrap(v T) (code uint64) {
	turn := uint64(q.high) - uint64(q.low) + 1
	switch {
	case v > q.high:
		v = T(uint64(q.low) + (uint64(v)-uint64(q.low))%turn)
	case v < q.low:
		v = T(uint64(q.high) - (uint64(q.low)-uint64(v)-1)%turn)
	}
	code, _ = q.Encode(v)
	return code
}

// Decode returns the number a code stands for.
func (q *Int[T]) Decode(code uint64) (v T, ok bool) {
	if code >= q.max {
		if code > q.max {
			return 0, false
		}
		return q.high, true
	}
	return T(uint64(q.low) + code*q.step), true
}
