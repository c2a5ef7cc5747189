package quantize

import (
	"fmt"
	"math/bits"
)

// IntStep codes whole numbers of low..high in equal steps: low, low+step, low+2*step and so on.
// high always has a code, even if it is not on a step. IntStep is Fixed for integers: money in
// hundreds, or durations in milliseconds.
type IntStep struct {
	low, high int64
	step      uint64
	max       uint64
	last      uint64 // length of the last step
}

// NewIntStep returns the quantiser of low..high in steps of step. 0..1000 in steps of 10 takes 7 bits, and low == high
// none. Every range of int64 and every step above 0 works; a step longer than the range leaves its two ends.
func NewIntStep(low, high, step int64) (IntStep, error) {
	if low > high {
		return IntStep{}, errEmpty(low, high)
	}
	if step < 1 {
		return IntStep{}, fmt.Errorf("quantize: an integer step of %d: use 1 or more", step)
	}
	q := IntStep{low: low, high: high, step: uint64(step)}
	span := uint64(high) - uint64(low)
	q.max, q.last = span/q.step, q.step
	if rest := span % q.step; rest != 0 {
		q.max, q.last = q.max+1, rest
	}
	return q, nil
}

// Range returns the smallest and the largest number in range.
func (q IntStep) Range() (low, high int64) { return q.low, q.high }

// Bits returns the width of a code, 0..64.
func (q IntStep) Bits() uint { return uint(bits.Len64(q.max)) }

// Max returns the largest code.
func (q IntStep) Max() uint64 { return q.max }

// MaxError returns half a step, rounded down. With a step of 1 numbers survive unchanged.
func (q IntStep) MaxError() float64 { return float64(q.step / 2) }

// Encode returns the code of the number nearest to v, the even one of two. Out of range it returns the code of the
// nearer bound and false.
func (q IntStep) Encode(v int64) (code uint64, ok bool) {
	if v < q.low {
		return 0, false
	}
	if v >= q.high {
		return q.max, v == q.high
	}
	d := uint64(v) - uint64(q.low)
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

// Decode returns the number a code stands for, or 0 and false if code > Max.
func (q IntStep) Decode(code uint64) (v int64, ok bool) {
	if code >= q.max {
		if code > q.max {
			return 0, false
		}
		return q.high, true
	}
	return int64(uint64(q.low) + code*q.step), true
}
