package blend

// How integers are blended.

import (
	"math"
	"reflect"
	"unsafe"
)

type integer interface {
	int8 | int16 | int32 | int64 | int | uint8 | uint16 | uint32 | uint64 | uint
}

// integerMix has the functions for one type.
type integerMix struct{ linear, circle, round, flags mixFunc }

// integers returns the functions for a kind, and false if that is no integer.
func integers(kind reflect.Kind) (m integerMix, ok bool) {
	switch kind {
	case reflect.Int8:
		return integersOf[int8](), true
	case reflect.Int16:
		return integersOf[int16](), true
	case reflect.Int32:
		return integersOf[int32](), true
	case reflect.Int64:
		return integersOf[int64](), true
	case reflect.Int:
		return integersOf[int](), true
	case reflect.Uint8:
		return integersOf[uint8](), true
	case reflect.Uint16:
		return integersOf[uint16](), true
	case reflect.Uint32:
		return integersOf[uint32](), true
	case reflect.Uint64:
		return integersOf[uint64](), true
	case reflect.Uint:
		return integersOf[uint](), true
	}
	return m, false
}

func integersOf[T integer]() integerMix {
	return integerMix{linear: mixLinear[T], circle: mixCircle[T], round: mixRound[T], flags: mixFlags[T]}
}

// mixLinear rounds to the nearest integer.
func mixLinear[T integer](_ *part, dst, from, second unsafe.Pointer, f float32) {
	a, b := *(*T)(from), *(*T)(second)
	*(*T)(dst) = a + T(nearest(float64(b)-float64(a), f))
}

// mixRound is for integers that go round in all that their type has.
func mixRound[T integer](_ *part, dst, from, second unsafe.Pointer, f float32) {
	a, b := *(*T)(from), *(*T)(second)
	unused := 64 - 8*unsafe.Sizeof(a)
	way := int64(uint64(b-a)<<unused) >> unused
	*(*T)(dst) = a + T(nearest(float64(way), f))
}

// mixCircle is for integers that go round in a range.
func mixCircle[T integer](p *part, dst, from, second unsafe.Pointer, f float32) {
	a, b := *(*T)(from), *(*T)(second)
	turn := p.codec.Max + 1 // 0 for all that 64 bits have, which the arithmetic takes as well
	start, end := p.codec.WrapCode(int64(a), a > 0), p.codec.WrapCode(int64(b), b > 0)
	up := end - start
	if end < start {
		up += turn
	}
	way := float64(up)
	if up > p.codec.Max/2 {
		way = -float64(turn - up)
	}
	code := start + uint64(nearest(way, f))
	switch {
	case turn == 0:
	case code >= turn && way < 0:
		code += turn
	case code >= turn:
		code -= turn
	}
	*(*T)(dst) = T(p.codec.IntegerValue(code, 0))
}

// mixFlags steps and leaves the bits alone that are not replicated.
func mixFlags[T integer](p *part, dst, from, _ unsafe.Pointer, _ float32) {
	mask := T(p.codec.Max)
	*(*T)(dst) = *(*T)(dst)&^mask | *(*T)(from)&mask
}

// nearest returns the integer nearest to a fraction of the way.
func nearest(way float64, f float32) int64 { return int64(math.RoundToEven(way * float64(f))) }
