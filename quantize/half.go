package quantize

import "math"

// Half codes a number as an IEEE 754 binary16: one sign bit, five exponent bits, ten mantissa bits. The range is
// -65504..65504; the relative error is at most 2^-11 down to 2^-14, below which the absolute error is at most 2^-25.
// Codes are the bit patterns, whose order is not that of the values. The zero value is ready for use.
type Half struct{}

const (
	halfMantissa = 10
	halfShift    = 52 - halfMantissa
	halfRebias   = (1022 - 14) << halfMantissa // the float64 exponent of 2^-14, less one, in half precision's place
	halfSign     = 0x8000
	halfMax      = 0x7bff // 65504
	halfSpacing  = 0x1p-24
	halfOverflow = 65520 // half-way between 65504 and what would be the next step: rounds to infinity
)

// Bits returns 16.
func (Half) Bits() uint { return 16 }

// Max returns the largest code: the pattern of -65504.
func (Half) Max() uint64 { return halfSign | halfMax }

// MaxError returns 16, half the step between 32768 and 65504.
func (Half) MaxError() float64 { return 16 }

// Encode returns the pattern nearest to v. Numbers that would round to infinity give ±65504 and false; negative numbers
// that round to zero give +0.
func (Half) Encode(v float64) (code uint64, ok bool) {
	if math.IsNaN(v) {
		return 0, false
	}
	sign := uint64(0)
	if v < 0 {
		sign, v = halfSign, -v
	}
	if v >= halfOverflow {
		return sign | halfMax, false
	}
	if v < 0x1p-14 {
		code = roundCode(float64(math.Abs(v) / halfSpacing))
		if code == 0 {
			return 0, true
		}
		return sign | code, true
	}
	return sign | (roundMantissa(math.Float64bits(v), halfShift) - halfRebias), true
}

// Decode returns the number a pattern stands for, a float32 exactly. Infinities, NaNs and negative zero give 0 and
// false.
func (Half) Decode(code uint64) (v float64, ok bool) {
	magnitude := code &^ halfSign
	if magnitude > halfMax || code == halfSign {
		return 0, false
	}
	if magnitude < 1<<halfMantissa {
		v = float64(magnitude) * halfSpacing
	} else {
		v = math.Float64frombits((magnitude + halfRebias) << halfShift)
	}
	if code >= halfSign {
		v = -v
	}
	return v, true
}
