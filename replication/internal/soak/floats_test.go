package soak

import (
	"fmt"
	"math"
	"strconv"
)

type float interface{ float32 | float64 }

// grain is the relative precision of a type.
func grain[T float]() float64 {
	if T(1)+T(1e-10) == 1 {
		return 0x1p-23
	}
	return 0x1p-52
}

// bitsOf returns the bits, which a conversion of a NaN would change.
func bitsOf[T float](v *T) uint64 {
	switch v := any(v).(type) {
	case *float32:
		return uint64(*at[uint32](ptr(v), 0))
	case *float64:
		return *at[uint64](ptr(v), 0)
	}
	panic("not a float")
}

func valueOf[T float](c cell) float64 {
	if grain[T]() == 0x1p-52 {
		return math.Float64frombits(c.u)
	}
	return float64(math.Float32frombits(uint32(c.u)))
}

func readFloat[T float](v *T, out []cell) { out[0] = cell{u: bitsOf(v)} }

// strange returns a NaN, an infinity or an extreme value.
func strange[T float](g *chance) T {
	return T(pick(g, math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 1e-42, 3.4e38, -3.4e38))
}

// wander returns functions that change a float in a range.
func wander[T float](g *chance, low, high, step float64) (drift func(v *T), jump func(g *chance, v *T)) {
	speed := T(step * g.between(-3, 3))
	drift = func(v *T) {
		if *v += speed; !(float64(*v) > low && float64(*v) < high) {
			*v = T(low + (high-low)/4)
		}
	}
	jump = func(g *chance, v *T) {
		switch g.IntN(10) {
		case 0:
			*v = strange[T](g)
		case 1:
			*v = T(pick(g, low, high, 0, low+step/2, high-step/2, low+step*1.5))
		case 2:
			*v = T(g.between(low-(high-low)/10, high+(high-low)/10))
		case 3, 4, 5:
			*v += T(step * g.between(-2, 2))
		default:
			*v = T(g.between(low, high))
		}
	}
	return drift, jump
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// isNegativeZero: quantisers never return one.
func isNegativeZero(v float64) bool { return v == 0 && math.Signbit(v) }

// withMargin is by how much the margin of fields increases their largest error.
const withMargin = 1.25

// stepRule is the documented rule of range and step.
func stepRule[T float](low, high, step float64) func(want, got []cell) bool {
	slack := step*1e-9 + 2*grain[T]()*math.Max(math.Abs(low), math.Abs(high))
	return func(want, got []cell) bool {
		w, v := valueOf[T](want[0]), valueOf[T](got[0])
		if w != w {
			w = low
		}
		w = math.Min(math.Max(w, low), high)
		return math.Abs(v-w) <= step/2*withMargin+slack && v >= float64(T(low)) && v <= float64(T(high)) && !isNegativeZero(v)
	}
}

func stepField[T float](g *chance) fieldSpec {
	low := float64(-g.IntN(1000))
	high := low + float64(1+g.IntN(2000))
	step := min(pick(g, 0.5, 0.25, 0.1, 0.03, 0.01, 1.5), high-low)
	tag := fmt.Sprintf("range=%s:%s,step=%s", number(low), number(high), number(step))
	switch g.IntN(6) {
	case 0:
		tag += ",jump"
	case 1:
		tag += ",counter"
	}
	drift, jump := wander[T](g, low, high, step)
	return simple(tag, 1, readFloat[T], drift, jump, stepRule[T](low, high, step))
}

// floatField is a float with a random tag.
func floatField[T float](g *chance) fieldSpec {
	switch g.IntN(8) {
	case 0, 1:
		drift, jump := wander[T](g, -1000, 1000, 1)
		if g.one(2) {
			return simple("raw", 1, readFloat[T], drift, jump, sameCells)
		}
		return simple("", 1, readFloat[T], drift, jump, sameCells)
	case 2, 3:
		low := pick(g, 0.0, -1000, 5, -1e6)
		high := pick(g, 10.0, 1000, 1e6)
		precision := pick(g, 0.01, 0.5, 1)
		if math.Max(-low, high) > 1000 { // the precision of a float32
			precision = 1
		}
		drift, jump := wander[T](g, low, high, precision)
		slack := precision*1e-9 + 2*grain[T]()*math.Max(math.Abs(low), high)
		return simple(fmt.Sprintf("range=%s:%s,precision=%s", number(low), number(high), number(precision)), 1, readFloat[T], drift, jump,
			func(want, got []cell) bool {
				w, v := valueOf[T](want[0]), valueOf[T](got[0])
				if w != w {
					w = math.Max(0, low)
				}
				w = math.Min(math.Max(w, low), high)
				return math.Abs(v-w) <= precision*withMargin+slack && v >= low && v <= high && !isNegativeZero(v)
			})
	case 4, 5:
		bits, period := uint(2+g.IntN(18)), 2*math.Pi
		tag := fmt.Sprintf("angle,bits=%d", bits)
		if g.one(2) {
			period = 360
			tag += ",period=360"
		}
		if g.one(4) {
			tag += ",jump"
		}
		drift, jump := wander[T](g, -9*period, 9*period, period/64)
		limit := withMargin*period/math.Ldexp(1, int(bits)+1) + 20*grain[T]()*period
		return simple(tag, 1, readFloat[T], drift, jump, func(want, got []cell) bool {
			w, v := valueOf[T](want[0]), valueOf[T](got[0])
			if math.IsNaN(w) || math.IsInf(w, 0) {
				return v == 0 && !isNegativeZero(v)
			}
			if math.Abs(w) > 1e6 { // the reduction of such values is not documented
				w = v
			}
			return math.Abs(math.Remainder(v-w, period)) <= limit && math.Abs(v) <= period/2*(1+grain[T]()) && !isNegativeZero(v)
		})
	case 6:
		drift, jump := wander[T](g, -70000, 70000, 3)
		return simple("half", 1, readFloat[T], drift, jump, func(want, got []cell) bool {
			w, v := valueOf[T](want[0]), valueOf[T](got[0])
			if w != w {
				w = 0
			}
			w = math.Min(math.Max(w, -65504), 65504)
			return math.Abs(v-w) <= withMargin*math.Max(math.Abs(w)*0x1p-11, 0x1p-25)*(1+0x1p-10) && math.Abs(v) <= 65504 && !isNegativeZero(v)
		})
	}
	return stepField[T](g)
}
