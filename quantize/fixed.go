package quantize

import (
	"fmt"
	"math"
	"math/bits"
)

// Fixed codes the numbers of a range by a grid of equal steps: code = round((v - low) / step), half to even.
//
// Both ends of the range decode exactly. If the range is not a whole number of steps, the last step is shorter: 0..1 by
// 0.3 has the values 0, 0.3, 0.6, 0.9 and 1. Zero is exact if it lies on the grid, and where range and step are decimal
// fractions every decoded value is the float nearest to the decimal: 7 steps of 0.1 give 0.7, not 0.7000000000000001.
//
// Encode takes about a nanosecond; pointer receivers spare a copy per call.
type Fixed struct {
	// The fields that Encode reads. From bottom to ceiling the formula holds, from ceiling to top
	// the code is last, and everything else is out of range. A float32 field cannot hold a bound
	// such as 0.1 but only a number beside it, which may be a little outside; bottom and top let it
	// pass, and the ceiling is no more than what last decodes to as a float32.
	bottom, ceiling, low, inv float64
	last                      uint64
	top                       float64

	// The fields that Decode reads: value = (start + code*stride) * scale / divisor, but low and high at the ends.
	high, start, stride, scale, divisor float64

	step, maxError float64
}

// fixedLimit bounds max(|low|, |high|) / step: up to here the roundings in Encode and Decode add up to less than half a
// step.
const fixedLimit = 1 << 47

// NewFixed returns the quantiser of low..high by step for a float64 field. Codes take at most 48 bits. It fails if the
// range is empty or not finite, if the step is not positive or exceeds the range, or if it is finer than 2^-47 of the
// larger bound.
func NewFixed(low, high, step float64) (Fixed, error) {
	return newFixed(low, high, step, float64Storage)
}

// NewFixed32 is [NewFixed] for a float32 field: the step must not be finer than the gap between neighbouring float32
// numbers at the larger bound.
func NewFixed32(low, high, step float64) (Fixed, error) {
	return newFixed(low, high, step, float32Storage)
}

func newFixed(low, high, step float64, field storage) (Fixed, error) {
	if err := checkRange(low, high, field); err != nil {
		return Fixed{}, err
	}
	low, high = low+0, high+0 // no negative zeros
	span, bound := high-low, math.Max(math.Abs(low), math.Abs(high))
	// A span such as 0.3 - 0.1 may come out a little less than a step of 0.2.
	if !(step > 0 && step <= span+(math.Abs(low)+math.Abs(high))*0x1p-50) {
		return Fixed{}, fmt.Errorf("quantize: step %v does not suit the range %v..%v: "+
			"it must be above 0 and at most %v", step, low, high, span)
	}
	if bound/step > fixedLimit || step < 0x1p-1000 {
		return Fixed{}, fmt.Errorf("quantize: step %v is too fine for the range %v..%v: use %.2g or more",
			step, low, high, math.Max(bound/fixedLimit, 0x1p-1000))
	}
	if gap := field.spacing(bound); field == float32Storage && !onFloat32Grid(low, step, gap) {
		return Fixed{}, fmt.Errorf("quantize: step %v over the range %v..%v is finer than a float32 can hold: "+
			"use %.2g or more, or a float64 field", step, low, high, gap/0.97)
	}

	q := Fixed{low: low, high: high, step: step, inv: 1 / step, scale: 1, divisor: 1}
	q.bottom, q.ceiling = math.Min(low, field.round(low)), math.Min(high, field.round(high))
	q.top = math.Max(high, field.round(high))

	// Bounds and step are seldom exact in binary. Ratios to the step closer to an integer than this are taken for one.
	tolerance := (math.Abs(low) + math.Abs(high)) / step * 0x1p-50
	steps := math.Round(span / step)
	if math.Abs(span/step-steps) > tolerance {
		steps = math.Ceil(span / step)
	}
	q.last = uint64(steps)
	q.chooseGrid(steps, tolerance)
	if steps > 1 && field.round(q.grid(steps-1)) >= q.ceiling {
		q.last-- // the short step at the top is too short for the field to see
	}

	// The roundings, generously: half an ulp of the larger bound for each operation and each inexact input, and the
	// grid may have been shifted by the tolerance. The last cell may reach farther than half a step if its value was
	// moved.
	q.maxError = step/2 + math.Max(0, high-q.grid(float64(q.last))) + bound*0x1p-48
	if field == float32Storage {
		q.maxError += field.spacing(bound) / 2
	}
	return q, nil
}

// checkRange returns an error unless low..high is a range of numbers that the field can hold.
func checkRange(low, high float64, field storage) error {
	limit := field.largest()
	if !(low >= -limit && low < high && high <= limit) {
		return fmt.Errorf("quantize: range %v..%v is not a range of %v numbers: "+
			"the low bound must be less than the high one, and both finite", low, high, field)
	}
	if math.IsInf(high-low, 0) {
		return fmt.Errorf("quantize: range %v..%v is too wide: its width must be finite", low, high)
	}
	return nil
}

// onFloat32Grid reports whether the values low, low+step, ... stay apart when rounded to numbers gap apart: rounding
// must move them by clearly less than half a step, or not at all.
func onFloat32Grid(low, step, gap float64) bool {
	return gap <= 0.98*step || gap == step && math.Mod(low, gap) == 0
}

// chooseGrid sets how Decode computes a value: the first of three ways that applies.
func (q *Fixed) chooseGrid(steps, tolerance float64) {
	const exact = 1 << 53
	// Decimal: low and step are integer multiples of 1/divisor, so the numerator is an integer and one division rounds
	// once.
	for divisor := 1.0; divisor <= 1e15; divisor *= 10 {
		start, stride := math.Round(q.low*divisor), math.Round(q.step*divisor)
		if width := float64(steps * stride); math.Abs(start) > exact || width > exact || start+width > exact {
			break
		}
		if stride > 0 && start/divisor == q.low && stride/divisor == q.step {
			q.start, q.stride, q.divisor = start, stride, divisor
			return
		}
	}
	// Multiples of the step, so that zero is exact.
	if k := math.Round(q.low / q.step); math.Abs(q.low/q.step-k) <= tolerance {
		q.start, q.stride, q.scale = k, 1, q.step
		return
	}
	q.start, q.stride = q.low, q.step
}

// grid returns the value of a code by the formula alone.
func (q *Fixed) grid(code float64) float64 {
	return float64((q.start+float64(code*q.stride))*q.scale) / q.divisor
}

// Range returns the smallest and the largest number in range.
func (q *Fixed) Range() (low, high float64) { return q.low, q.high }

// Step returns the distance between neighbouring values.
func (q *Fixed) Step() float64 { return q.step }

// Bits returns the width of a code, 1..48.
func (q *Fixed) Bits() uint { return uint(bits.Len64(q.last)) }

// Max returns the largest code, the number of steps.
func (q *Fixed) Max() uint64 { return q.last }

// MaxError returns the largest error: half a step and the rounding of the field.
func (q *Fixed) MaxError() float64 { return q.maxError }

// Encode returns the code of v. A bound as the field holds it, such as float32(0.1), counts as in range.
func (q *Fixed) Encode(v float64) (code uint64, ok bool) {
	if v >= q.bottom && v < q.ceiling {
		return roundCode(float64((v - q.low) * q.inv)), true
	}
	if v >= q.ceiling {
		return q.last, v <= q.top
	}
	return 0, false
}

// Decode returns the value of a code.
func (q *Fixed) Decode(code uint64) (v float64, ok bool) {
	switch {
	case code > q.last:
		return 0, false
	case code == q.last:
		return q.high, true
	case code == 0:
		return q.low, true
	}
	return q.grid(float64(code)), true
}
