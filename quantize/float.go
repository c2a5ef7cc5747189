package quantize

import (
	"fmt"
	"math"
	"math/bits"
)

// Float codes numbers as small floats: a sign, an exponent and a mantissa, each no wider than range and precision
// demand. The steps between values double from one power of two to the next, so small numbers are held far more finely
// than large ones.
//
//   - The mantissa is the shortest with which no number in range is off by more than precision. The widest steps are
//     those at the largest magnitude A; there a step may be 2*precision.
//   - The exponent is the narrowest that keeps the relative precision of that mantissa from A down to the magnitude
//     precision (or to the smallest magnitude in range, if larger). Below that the steps stay equal down to an exact
//     zero, like denormal floats.
//   - There is a sign only if the low bound is negative.
//
// Codes are the ranks of these numbers: code 0 is the low bound, a larger number never has a smaller code, and zero has
// one code. As with [Fixed], both ends of the range decode exactly.
//
// If only the absolute error matters, Fixed with a step of 2*precision is never wider:
//
//	range and precision     Float  Fixed, same bound  Fixed, as fine near 0
//	-10..10 by 0.5          7      5                  9
//	0..1000000 by 1         23     19                 38
//	0..1 by 0.0001          16     13                 27
//	-1..1 by 0.0001         17     14                 28
type Float struct {
	low      float64 // the bounds as the field holds them: codes 0 and last
	high     float64
	bottom   float64 // bottom..top is in range; it differs from low..high by the rounding of the field
	top      float64
	spacing  float64 // the step below the smallest normal magnitude
	perStep  float64 // 1 / spacing
	normal   float64 // the smallest normal magnitude
	rebias   uint64  // rank = roundMantissa(float64 bits) - rebias for normal magnitudes
	base     uint64  // code = base + rank, rank negative for negative numbers
	last     uint64
	maxError float64
	mantissa uint8
	exponent uint8
	shift    uint8 // 52 - mantissa
	bias     int16
}

// NewFloat returns the small float for low..high that is off by at most precision, for a float64 field. It fails if the
// range is empty or not finite, or if precision is not above zero, exceeds the largest magnitude in range, or asks for
// more than 50 mantissa bits.
func NewFloat(low, high, precision float64) (Float, error) {
	return newFloat(low, high, precision, float64Storage)
}

// NewFloat32 is [NewFloat] for a float32 field: at most 23 mantissa bits. Every value is a float32 exactly; the bounds
// are rounded to float32 first.
func NewFloat32(low, high, precision float64) (Float, error) {
	return newFloat(low, high, precision, float32Storage)
}

func newFloat(low, high, precision float64, field storage) (Float, error) {
	if err := checkRange(low, high, field); err != nil {
		return Float{}, err
	}
	q := Float{low: field.round(low) + 0, high: field.round(high) + 0}
	q.bottom, q.top = math.Min(low, q.low), math.Max(high, q.high)
	if q.low == q.high {
		return Float{}, fmt.Errorf("quantize: the bounds of %v..%v are the same %v number: "+
			"widen the range or use a float64 field", low, high, field)
	}
	largest := math.Max(-q.low, q.high)
	if !(precision > 0 && precision <= largest) {
		return Float{}, fmt.Errorf("quantize: precision %v does not suit the range %v..%v: "+
			"it must be above 0 and at most %v", precision, low, high, largest)
	}

	// The binade that holds the largest magnitude, which itself may be the upper end of it.
	highest := math.Ilogb(largest)
	if math.Ldexp(1, highest) == largest {
		highest--
	}
	limit := 50
	lowestExponent := -1000
	if field == float32Storage {
		limit, lowestExponent = 23, -149
	}
	mantissa := 0
	for math.Ldexp(1, highest-mantissa-1) > precision {
		mantissa++
	}
	if mantissa > limit {
		return Float{}, fmt.Errorf("quantize: precision %v over the range %v..%v is finer than a %v can hold: "+
			"use %.2g or more", precision, low, high, field, math.Ldexp(1, highest-limit-1))
	}
	smallest := precision
	if q.low > 0 {
		smallest = math.Max(precision, q.low)
	} else if q.high < 0 {
		smallest = math.Max(precision, -q.high)
	}
	lowest := math.Ilogb(smallest)
	if lowest > highest {
		lowest = highest
	}
	if lowest-mantissa < lowestExponent {
		return Float{}, fmt.Errorf("quantize: precision %v over the range %v..%v needs numbers smaller than 2^%d: "+
			"scale the values up", precision, low, high, lowestExponent)
	}

	q.spacing, q.perStep = math.Ldexp(1, lowest-mantissa), math.Ldexp(1, mantissa-lowest)
	q.normal = math.Ldexp(1, lowest)
	q.rebias = uint64(lowest+1022) << uint(mantissa)
	q.mantissa, q.shift, q.bias = uint8(mantissa), uint8(52-mantissa), int16(1-lowest)
	q.maxError = math.Ldexp(1, highest-mantissa-1)
	first, final := -q.outerRank(-q.low), q.outerRank(q.high)
	q.base, q.last = uint64(-first), uint64(final-first)
	widest := final
	if -first > widest {
		widest = -first
	}
	q.exponent = uint8(bits.Len64(uint64(widest) >> uint(mantissa)))
	return q, nil
}

// outerRank returns the rank of the first grid value not below v; the codes at the ends stand for those, and decode to
// the bounds instead. Taking the nearest grid value could leave numbers farther than half a step from every value.
func (q *Float) outerRank(v float64) int64 {
	if v < 0 {
		rank := int64(q.rank(-v))
		if q.magnitude(uint64(rank)) > -v {
			rank--
		}
		return -rank
	}
	rank := int64(q.rank(v))
	if q.magnitude(uint64(rank)) < v {
		rank++
	}
	return rank
}

// rank returns which grid magnitude, counted from 0, is nearest to v >= 0.
func (q *Float) rank(v float64) uint64 {
	if v < q.normal {
		return roundCode(float64(v * q.perStep))
	}
	return roundMantissa(math.Float64bits(v), uint(q.shift)) - q.rebias
}

// magnitude is the inverse of rank.
func (q *Float) magnitude(rank uint64) float64 {
	if rank < 1<<q.mantissa {
		return float64(rank) * q.spacing
	}
	return math.Float64frombits((rank + q.rebias) << q.shift)
}

// Range returns the smallest and the largest number in range, as the field holds them.
func (q *Float) Range() (low, high float64) { return q.low, q.high }

// Bits returns the width of a code.
func (q *Float) Bits() uint { return uint(bits.Len64(q.last)) }

// Max returns the largest code, that of the high bound.
func (q *Float) Max() uint64 { return q.last }

// MaxError returns the largest error, that at the largest magnitude: at most precision.
func (q *Float) MaxError() float64 { return q.maxError }

// Encode returns the code of v. A bound as the field holds it counts as in range.
func (q *Float) Encode(v float64) (code uint64, ok bool) {
	switch {
	case v > q.low && v < q.high:
		if v < 0 {
			return q.base - q.rank(-v), true
		}
		return q.base + q.rank(math.Abs(v)), true
	case v >= q.high:
		return q.last, v <= q.top
	case v <= q.low:
		return 0, v >= q.bottom
	case q.low <= 0 && q.high >= 0:
		return q.base, false
	}
	return 0, false
}

// Decode returns the value of a code.
func (q *Float) Decode(code uint64) (v float64, ok bool) {
	switch {
	case code > q.last:
		return 0, false
	case code == q.last:
		return q.high, true
	case code == 0:
		return q.low, true
	case code < q.base && int64(q.base) > 0:
		return -q.magnitude(q.base - code), true
	}
	return q.magnitude(code - q.base), true
}
