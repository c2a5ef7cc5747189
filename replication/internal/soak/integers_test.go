package soak

import (
	"fmt"
	"math"
	"reflect"
	"time"
)

type integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

type team uint8

var integerFields = []func(g *chance) fieldSpec{
	integerField[int], integerField[int8], integerField[int16], integerField[int32], integerField[int64],
	integerField[uint], integerField[uint8], integerField[uint16], integerField[uint32], integerField[uint64],
	integerField[team], integerField[time.Duration],
}

// span returns a range within the type, with bounds that a float64 holds exactly.
func span[T integer](g *chance) (low, high T) {
	bits := min(reflect.TypeFor[T]().Bits(), 40)
	if T(0)-1 < T(0) {
		half := int64(1) << (bits - 1)
		l := g.Int64N(2*half) - half
		if g.one(3) {
			l = -min(half, int64(1+g.IntN(100)))
		}
		h := min(l+1+g.Int64N(half-l), half-1)
		l = min(l, h-1)
		return T(l), T(h)
	}
	top := int64(1) << bits
	l := g.Int64N(top - 1)
	if g.one(2) {
		l = 0
	}
	return T(l), T(l + 1 + g.Int64N(top-l-1))
}

// integerField is an integer with a random tag.
func integerField[T integer](g *chance) fieldSpec {
	read := func(v *T, out []cell) { out[0] = cell{u: uint64(*v)} }
	low, high := span[T](g)
	width := uint64(high) - uint64(low) // may exceed T
	speed := T(1 + g.IntN(3))
	drift := func(v *T) { *v += speed }
	jump := func(g *chance, v *T) {
		switch g.IntN(8) {
		case 0:
			*v = T(g.Uint64())
		case 1:
			*v = pick(g, low, high, low-1, high+1, 0, 1)
		case 2, 3:
			*v -= speed
		default:
			*v = low + T(g.Uint64()>>1%(width+1))
		}
	}
	exact := func(rule func(v T) T) func(want, got []cell) bool {
		return func(want, got []cell) bool { return T(got[0].u) == rule(T(want[0].u)) }
	}
	clamp := func(v T) T { return min(max(v, low), high) }
	bounds := fmt.Sprintf("range=%d:%d", low, high)
	bits := reflect.TypeFor[T]().Bits()
	hint := ""
	switch g.IntN(5) {
	case 0:
		hint = ",linear"
	case 1:
		hint = ",counter"
	}
	switch g.IntN(8) {
	case 0, 1: // at full width
		if g.one(4) {
			hint = ",wrap"
		}
		tag := ""
		if hint != "" {
			tag = hint[1:]
		}
		return simple(tag, 1, read, drift, jump, exact(func(v T) T { return v }))
	case 2: // in steps
		step := T(1 + g.Uint64N(min(width/2+1, 100)))
		if step == 1 { // the same as none
			break
		}
		return simple(fmt.Sprintf("%s,step=%d%s", bounds, step, hint), 1, read, drift, jump,
			func(want, got []cell) bool {
				v, w := T(got[0].u), clamp(T(want[0].u))
				off := uint64(max(v, w)) - uint64(min(v, w))
				return v >= low && v <= high && float64(off) <= withMargin*float64(step)/2 && (v == high || (uint64(v)-uint64(low))%uint64(step) == 0)
			})
	case 3: // wrapping around
		if bits == 64 { // this rule would overflow
			break
		}
		return simple(bounds+",wrap", 1, read, drift, jump,
			exact(func(v T) T {
				turn := int64(high) - int64(low) + 1
				return T(int64(low) + ((int64(v)-int64(low))%turn+turn)%turn)
			}))
	case 4:
		n := 2 + g.IntN(1<<min(bits-1, 9)-2)
		return simple(fmt.Sprintf("enum=%d", n), 1, read, drift, jump,
			exact(func(v T) T { return min(max(v, 0), T(n-1)) }))
	case 5:
		kind := reflect.TypeFor[T]().Kind()
		n := 1 + g.IntN(bits)
		if kind == reflect.Int || kind == reflect.Uint {
			n = min(n, 32)
		}
		ones := uint64(math.MaxUint64) >> (64 - n)
		mask := T(ones)
		flip := func(g *chance, v *T) {
			*v ^= 1 << g.IntN(n)
			if g.one(8) {
				*v = T(g.Uint64())
			}
		}
		return simple(fmt.Sprintf("flags=%d", n), 1, read,
			func(v *T) { *v ^= 1 }, flip, exact(func(v T) T { return v & mask }))
	}
	return simple(bounds+hint, 1, read, drift, jump, exact(clamp))
}
