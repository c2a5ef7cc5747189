package blend

// How fields other than linear floats are blended. Pointers are addresses of the field in component values.

import (
	"math"
	"unsafe"
)

// copyBytes is for fields without pointers that step: from the second value's time on, they have that.
func copyBytes(p *part, dst, from, second unsafe.Pointer, f float32) {
	if f >= 1 {
		from = second
	}
	if dst != from {
		copy(unsafe.Slice((*byte)(dst), p.size), unsafe.Slice((*byte)(from), p.size))
	}
}

// copyString is copyBytes for texts.
func copyString(_ *part, dst, from, second unsafe.Pointer, f float32) {
	if f >= 1 {
		from = second
	}
	*(*string)(dst) = *(*string)(from)
}

// turn prepares an angle: the second value becomes the shorter way to it.
func turn[T float32 | float64](p *part, from, second unsafe.Pointer) {
	period := p.codec.Angle.Period()
	way := float64(*(*T)(second)) - float64(*(*T)(from))
	switch {
	case way > period/2:
		way -= period
	case way < -period/2:
		way += period
	}
	*(*T)(second) = T(way)
}

// mixAngle keeps angles within half a period of zero, as the decoder does.
func mixAngle[T float32 | float64](p *part, dst, from, second unsafe.Pointer, f float32) {
	*(*T)(dst) = T(p.reduced(float64(*(*T)(from)) + float64(float64(*(*T)(second))*float64(f))))
}

// reduced returns an angle within half a period of zero.
func (p *part) reduced(v float64) float64 {
	period := p.codec.Angle.Period()
	if v < -period/2 || v >= period/2 {
		v -= period * math.Floor(v/period+0.5)
	}
	return v
}
