package blend

// How integers are blended.

import (
	"math"
	"reflect"
	"unsafe"
)

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// integerMix has the functions and the range of one type.
type integerMix struct {
	linear, circle, round, flags mixFunc
	way                          wayFunc
	low, high                    uint64

	fadingLinear, fadingCircle, fadingRound fading
}

// integers returns the functions for a kind, and false if that is no integer.
func integers(kind reflect.Kind) (m integerMix, ok bool) {
	switch kind {
	case reflect.Int:
		kind = [...]reflect.Kind{4: reflect.Int32, 8: reflect.Int64}[unsafe.Sizeof(int(0))]
	case reflect.Uint:
		kind = [...]reflect.Kind{4: reflect.Uint32, 8: reflect.Uint64}[unsafe.Sizeof(uint(0))]
	}
	switch kind {
	case reflect.Int8:
		return integersOf[int8](), true
	case reflect.Int16:
		return integersOf[int16](), true
	case reflect.Int32:
		return integersOf[int32](), true
	case reflect.Int64:
		return integersOf[int64](), true
	case reflect.Uint8:
		return integersOf[uint8](), true
	case reflect.Uint16:
		return integersOf[uint16](), true
	case reflect.Uint32:
		return integersOf[uint32](), true
	case reflect.Uint64:
		return integersOf[uint64](), true
	}
	return m, false
}

func integersOf[T integer]() integerMix {
	m := integerMix{
		linear: mixLinear[T], circle: mixCircle[T], round: mixRound[T], flags: mixFlags[T], way: wayOf[T],
		fadingLinear: fadingLinear[T](), fadingCircle: fadingCircle[T](), fadingRound: fadingRound[T](),
	}
	all := ^T(0)
	if m.high = uint64(all); all < 0 { // signed
		m.high = 1<<(8*unsafe.Sizeof(all)-1) - 1
		m.low = ^m.high
	}
	return m
}

// mixLinear rounds to the nearest integer. Beyond the second value, it stops at the end of the range.
func mixLinear[T integer](p *part, dst, from, second unsafe.Pointer, f float32) {
	a, b := *(*T)(from), *(*T)(second)
	if b >= a {
		*(*T)(dst) = a + T(min(share(uint64(b)-uint64(a), f), p.high-uint64(a)))
	} else {
		*(*T)(dst) = a - T(min(share(uint64(a)-uint64(b), f), uint64(a)-p.low))
	}
}

// wayOf returns the distance between two integers.
func wayOf[T integer](from, second unsafe.Pointer) float64 {
	return float64(*(*T)(second)) - float64(*(*T)(from))
}

// mixRound is for integers that go round in all that their type has.
func mixRound[T integer](_ *part, dst, from, second unsafe.Pointer, f float32) {
	a, b := *(*T)(from), *(*T)(second)
	unused := 64 - 8*unsafe.Sizeof(a)
	if way := int64(uint64(b-a)<<unused) >> unused; way >= 0 {
		*(*T)(dst) = a + T(around(uint64(way), f, 0))
	} else {
		*(*T)(dst) = a - T(around(-uint64(way), f, 0))
	}
}

// mixCircle is for integers that go round in a range.
func mixCircle[T integer](p *part, dst, from, second unsafe.Pointer, f float32) {
	a, b := *(*T)(from), *(*T)(second)
	code := p.circle(p.codec.WrapCode(int64(a), a > 0), p.codec.WrapCode(int64(b), b > 0), f)
	*(*T)(dst) = T(p.codec.IntegerValue(code, 0))
}

// circle returns the code between two.
func (p *part) circle(start, end uint64, f float32) (code uint64) {
	way, up := p.shorter(start, end)
	return p.shift(start, around(way, f, p.codec.Max+1), up)
}

// shorter returns the shorter way round from one code to another, and whether it goes up.
func (p *part) shorter(start, end uint64) (way uint64, up bool) {
	turn := p.codec.Max + 1 // 0 for all that 64 bits have, which the arithmetic takes as well
	way = end - start
	if end < start {
		way += turn
	}
	if way <= p.codec.Max/2 {
		return way, true
	}
	return turn - way, false
}

// shift returns the code that is a way, of less than a turn, from another one.
func (p *part) shift(start, way uint64, up bool) (code uint64) {
	turn := p.codec.Max + 1
	if up {
		if code = start + way; code < start || code > p.codec.Max {
			code -= turn
		}
	} else if code = start - way; way > start {
		code += turn
	}
	return code
}

// mixFlags is copyBytes for flags. It leaves the bits alone that are not replicated.
func mixFlags[T integer](p *part, dst, from, second unsafe.Pointer, f float32) {
	if f >= 1 {
		from = second
	}
	mask := T(p.codec.Max)
	*(*T)(dst) = *(*T)(dst)&^mask | *(*T)(from)&mask
}

// share returns the integer nearest to a fraction of the way, or the largest one if that is less.
func share(way uint64, f float32) uint64 {
	return saturated(math.RoundToEven(float64(way) * float64(f)))
}

// saturated returns the integer of a float64 that has no fraction and no sign, or the largest one if that is less.
func saturated(v float64) uint64 {
	if v >= 1<<64 {
		return math.MaxUint64
	}
	return uint64(v)
}

// around returns the integer nearest to a fraction of the way, less all full turns. A turn of 0 is one of 2^64.
func around(way uint64, f float32, turn uint64) uint64 {
	return within(math.RoundToEven(float64(way)*float64(f)), turn)
}

// within returns a way, which has no fraction and no sign, less all full turns.
func within(v float64, turn uint64) uint64 {
	if turn == 0 {
		return uint64(math.Mod(v, 1<<64))
	}
	return uint64(math.Mod(v, float64(turn))) % turn // of a large turn, the float64 may be more
}
