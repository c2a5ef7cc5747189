package quantize

import (
	"fmt"
	"math"
)

// Angle codes a number that wraps: v and v + period are the same. The code is v counted in period/2^bits, modulo
// 2^bits, so that code arithmetic modulo 2^bits is angle arithmetic. Decoded values lie in [-period/2, period/2); 0 is
// exact.
type Angle struct {
	perUnit float64 // 2^bits / period
	unit    float64 // period / 2^bits
	bits    uint32
	field   storage
}

// NewAngle returns the quantiser of angles with the given period, 1e-30..1e30, such as 360 or 2*math.Pi, for a float64
// field. Bits must be 1..48.
func NewAngle(period float64, bits uint) (Angle, error) {
	return newAngle(period, bits, 48, float64Storage)
}

// NewAngle32 is [NewAngle] for a float32 field, of 1..23 bits.
func NewAngle32(period float64, bits uint) (Angle, error) {
	return newAngle(period, bits, 23, float32Storage)
}

func newAngle(period float64, bits, limit uint, field storage) (Angle, error) {
	if bits < 1 || bits > limit {
		return Angle{}, fmt.Errorf("quantize: an angle of %d bits does not suit a %v field: use 1..%d bits",
			bits, field, limit)
	}
	if !(period >= 1e-30 && period <= 1e30) {
		return Angle{}, fmt.Errorf("quantize: period %v is out of bounds: "+
			"use 1e-30..1e30, such as 360 or 6.283185307179586", period)
	}
	units := math.Ldexp(1, int(bits))
	return Angle{perUnit: units / period, unit: period / units, bits: uint32(bits), field: field}, nil
}

// Period returns the period.
func (q Angle) Period() float64 { return math.Ldexp(q.unit, int(q.bits)) }

// Bits returns the width of a code.
func (q Angle) Bits() uint { return uint(q.bits) }

// Max returns the largest code, 2^Bits - 1; it stands for the angle just below zero.
func (q Angle) Max() uint64 { return 1<<q.bits - 1 }

// MaxError returns the largest error, measured around the circle.
func (q Angle) MaxError() float64 {
	period := q.Period()
	return q.unit/2 + period*0x1p-50 + q.field.spacing(period/2)
}

// Encode returns the code of v, whatever its number of turns. Beyond one turn it takes longer.
func (q Angle) Encode(v float64) (code uint64, ok bool) {
	turns := float64(v * q.perUnit)
	if limit := float64(q.Max() + 1); !(turns >= -limit && turns <= limit) {
		v = math.Mod(v, q.Period())
		if math.IsNaN(v) {
			return 0, false
		}
		turns = float64(v * q.perUnit)
	}
	return roundCode(turns) & q.Max(), true
}

// Decode returns the angle of a code. As a float32 it may be slightly less than -period/2, which encodes to the same
// code.
func (q Angle) Decode(code uint64) (v float64, ok bool) {
	if code > q.Max() {
		return 0, false
	}
	unused := 64 - q.bits
	return float64(float64(int64(code<<unused)>>unused) * q.unit), true
}
