package quantize

import "math"

// Raw32 carries the 32 bits of a float32 unchanged: infinities, negative zero and the payload of a NaN survive. The
// zero value is ready for use.
type Raw32 struct{}

// Bits returns 32.
func (Raw32) Bits() uint { return 32 }

// Max returns the largest code, 2^32 - 1.
func (Raw32) Max() uint64 { return math.MaxUint32 }

// MaxError returns 0.
func (Raw32) MaxError() float64 { return 0 }

// Encode returns the bits of v; ok is always true.
func (Raw32) Encode(v float32) (code uint64, ok bool) { return uint64(math.Float32bits(v)), true }

// Decode returns the float32 with these bits, or 0 and false if code > Max.
func (Raw32) Decode(code uint64) (v float32, ok bool) {
	if code > math.MaxUint32 {
		return 0, false
	}
	return math.Float32frombits(uint32(code)), true
}

// Raw64 carries the 64 bits of a float64 unchanged: infinities, negative zero and the payload of a NaN survive. The
// zero value is ready for use.
type Raw64 struct{}

// Bits returns 64.
func (Raw64) Bits() uint { return 64 }

// Max returns the largest code, 2^64 - 1.
func (Raw64) Max() uint64 { return math.MaxUint64 }

// MaxError returns 0.
func (Raw64) MaxError() float64 { return 0 }

// Encode returns the bits of v; ok is always true.
func (Raw64) Encode(v float64) (code uint64, ok bool) { return math.Float64bits(v), true }

// Decode returns the float64 with these bits; every code is valid.
func (Raw64) Decode(code uint64) (v float64, ok bool) { return math.Float64frombits(code), true }
