package field

// This file keeps codes. A number between two steps whose noise takes it to either side would get another code in every
// other tick. So the codes of a component that were recorded last are kept until one of its numbers has left its cell
// by a margin.
//
// Whether they are kept depends on the values and the recorded codes alone. A number on the grid always gets its own
// code: what comes to rest there arrives exactly, and a server that passes received values on sends the codes that it
// got.

import (
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/quantize"
)

const (
	// usualMargin is the margin of fields without the tag margin, in steps. Noise of half as much to both sides never
	// changes a code, wherever between the steps the number is.
	usualMargin = 0.125
	// mostMargin keeps a number on the grid well away from holding the code beside its own.
	mostMargin = 0.4
)

// setMargin sets from how far recorded codes are held.
func (b *builder) setMargin() error {
	m := b.tag.margin
	switch b.Op {
	case OpFixed, OpFloat, OpHalf, OpAngle, OpUnit, OpQuat, OpIntStep:
	default:
		if m.given {
			return fmt.Errorf("margin is for fields that are rounded to steps")
		}
		return nil
	}
	if !m.given {
		m.value = usualMargin
	}
	if !(m.value >= 0 && m.value <= mostMargin) {
		return fmt.Errorf("margin=%v: use 0 to %v of a step", m.value, mostMargin)
	}
	if m.value > 0 {
		b.reach = 0.5 + m.value
	}
	return nil
}

// Keeps reports whether the value at p, which has the codes in words, is to keep the recorded ones. It is if they are
// the same.
func Keeps(q *Codec, words, recorded []uint32, p unsafe.Pointer) bool {
	n := q.Words()
	words, recorded = words[:n], recorded[:n]
	return !differ(words, recorded) || q.reach > 0 && holds(q, words, recorded, p)
}

func differ(a, b []uint32) bool {
	for i, x := range a {
		if b[i] != x {
			return true
		}
	}
	return false
}

// holds reports whether the value at p, which has other codes than the recorded ones, is to keep these.
func holds(q *Codec, words, recorded []uint32, p unsafe.Pointer) bool {
	switch q.Op {
	case OpQuat:
		v := [4]float64{floatAt(q, p, 0), floatAt(q, p, 1), floatAt(q, p, 2), floatAt(q, p, 3)}
		return q.Quat.Holds(v, QuatCode(recorded), q.reach)
	case OpUnit:
		v := [3]float64{floatAt(q, p, 0), floatAt(q, p, 1), floatAt(q, p, 2)}
		return q.Unit.Holds(v, uint64(recorded[0]), uint64(recorded[1]), q.reach)
	}
	code, old := q.Code(words), q.Code(recorded)
	beside := (code - old + 1) &^ 2 // 0 if they are
	if q.Op == OpAngle {
		beside &= q.Max
	}
	if beside != 0 {
		return false
	}
	from, gap := distances(q, code, old, p)
	return from <= float64(q.reach*gap)
}

// distances returns how far the number at p is from the value of the recorded code, and how far the value of its own
// code is from that.
func distances(q *Codec, code, recorded uint64, p unsafe.Pointer) (from, gap float64) {
	var at, next float64
	switch q.Op {
	case OpFixed:
		at, _ = q.Fixed.Decode(recorded)
		next, _ = q.Fixed.Decode(code)
	case OpFloat:
		at, _ = q.Float.Decode(recorded)
		next, _ = q.Float.Decode(code)
	case OpHalf:
		at, _ = quantize.Half{}.Decode(recorded)
		next, _ = quantize.Half{}.Decode(code)
	case OpAngle:
		at, _ = q.Angle.Decode(recorded)
		period := q.Angle.Period()
		return math.Abs(math.Remainder(floatAt(q, p, 0)-at, period)), math.Ldexp(period, -int(q.Bits))
	default:
		low, _ := q.Int.Decode(recorded)
		high, _ := q.Int.Decode(code)
		return apart(integerAt(q, p), low), apart(high, low)
	}
	return math.Abs(floatAt(q, p, 0) - at), math.Abs(next - at)
}

// floatAt returns number i of the field at p.
func floatAt(q *Codec, p unsafe.Pointer, i uintptr) float64 {
	if q.Kind == reflect.Float32 {
		return float64(*(*float32)(unsafe.Add(p, 4*i)))
	}
	return *(*float64)(unsafe.Add(p, 8*i))
}

// integerAt returns the integer at p.
func integerAt(q *Codec, p unsafe.Pointer) int64 {
	switch q.Kind {
	case reflect.Int8:
		return int64(*(*int8)(p))
	case reflect.Int16:
		return int64(*(*int16)(p))
	case reflect.Int32:
		return int64(*(*int32)(p))
	case reflect.Int64:
		return *(*int64)(p)
	case reflect.Int:
		return int64(*(*int)(p))
	case reflect.Uint8:
		return int64(*(*uint8)(p))
	case reflect.Uint16:
		return int64(*(*uint16)(p))
	case reflect.Uint32:
		return int64(*(*uint32)(p))
	case reflect.Uint64:
		return int64(min(*(*uint64)(p), math.MaxInt64)) // no larger one is in range
	default:
		return int64(min(uint64(*(*uint)(p)), math.MaxInt64))
	}
}

// apart returns the distance of two integers.
func apart(a, b int64) float64 { return float64(uint64(max(a, b)) - uint64(min(a, b))) }
