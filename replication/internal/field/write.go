package field

// This file restores fields of component values in memory from codes.

import (
	"math"
	"reflect"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/quantize"
)

// Write restores the field at p from the words of a value. It leaves references alone: who knows
// which entity of this world is meant sets those.
//
// Precondition: q.Valid(words); codes that no quantiser produces become zeros.
func (q *Codec) Write(p unsafe.Pointer, words []uint32) {
	switch q.Op {
	case OpEntity, OpRelation:
	case OpBool:
		*(*bool)(p) = words[0] != 0
	case OpInt:
		v, _ := q.Int.Decode(q.Code(words))
		switch q.Kind {
		case reflect.Int8:
			*(*int8)(p) = int8(v)
		case reflect.Int16:
			*(*int16)(p) = int16(v)
		case reflect.Int32:
			*(*int32)(p) = int32(v)
		case reflect.Int64:
			*(*int64)(p) = v
		default:
			*(*int)(p) = int(v)
		}
	case OpUint:
		v, _ := q.Uint.Decode(q.Code(words))
		switch q.Kind {
		case reflect.Uint8:
			*(*uint8)(p) = uint8(v)
		case reflect.Uint16:
			*(*uint16)(p) = uint16(v)
		case reflect.Uint32:
			*(*uint32)(p) = uint32(v)
		case reflect.Uint64:
			*(*uint64)(p) = v
		default:
			*(*uint)(p) = uint(v)
		}
	case OpIntStep, OpIntWrap, OpFlags, OpString, OpBytes:
		q.writeRare(p, words)
	default:
		if q.Kind == reflect.Float32 {
			q.write32(p, words)
		} else {
			q.write64(p, words)
		}
	}
}

// Written is a row that is to be written into the component value at an address.
type Written struct {
	At  unsafe.Pointer
	Row []uint32
}

// WriteColumn restores the field at an offset of each value from the words of its row that begin with the given one. It
// is [Codec.Write] for each.
func (q *Codec) WriteColumn(rows []Written, offset uintptr, word int) {
	switch {
	case q.Op == OpFixed && q.Kind == reflect.Float32 && q.Bits <= 32:
		for i := range rows {
			w := &rows[i]
			v, _ := q.Fixed.Decode(uint64(w.Row[word]))
			*(*float32)(unsafe.Add(w.At, offset)) = float32(v)
		}
	case q.Op == OpQuat && q.Kind == reflect.Float32:
		for i := range rows {
			w := &rows[i]
			*(*[4]float32)(unsafe.Add(w.At, offset)), _ = q.Quat.Decode32(QuatCode(w.Row[word:]))
		}
	default:
		for i := range rows {
			w := &rows[i]
			q.Write(unsafe.Add(w.At, offset), w.Row[word:])
		}
	}
}

func (q *Codec) write32(p unsafe.Pointer, words []uint32) {
	switch q.Op {
	case OpRaw:
		*(*uint32)(p) = words[0]
	case OpUnit:
		*(*[3]float32)(p), _ = q.Unit.Decode32(uint64(words[0]), uint64(words[1]))
	case OpQuat:
		*(*[4]float32)(p), _ = q.Quat.Decode32(QuatCode(words))
	default:
		var v float64
		q.write64(unsafe.Pointer(&v), words)
		*(*float32)(p) = float32(v)
	}
}

func (q *Codec) write64(p unsafe.Pointer, words []uint32) {
	v := (*float64)(p)
	switch q.Op {
	case OpRaw:
		*v = math.Float64frombits(q.Code(words))
	case OpFixed:
		*v, _ = q.Fixed.Decode(q.Code(words))
	case OpFloat:
		*v, _ = q.Float.Decode(q.Code(words))
	case OpHalf:
		*v, _ = quantize.Half{}.Decode(q.Code(words))
	case OpAngle:
		*v, _ = q.Angle.Decode(q.Code(words))
	case OpUnit:
		*(*[3]float64)(p), _ = q.Unit.Decode(uint64(words[0]), uint64(words[1]))
	case OpQuat:
		*(*[4]float64)(p), _ = q.Quat.Decode(QuatCode(words))
	}
}

// writeRare restores fields of the ops that are less frequent.
func (q *Codec) writeRare(p unsafe.Pointer, words []uint32) {
	switch q.Op {
	case OpString:
		SetString((*string)(p), words, q.Max)
	case OpBytes:
		SetBytes(unsafe.Slice((*byte)(p), q.Size), words, q.Max)
	default:
		q.writeInteger(p, words)
	}
}

// writeInteger is for the ops that take any integer type.
func (q *Codec) writeInteger(p unsafe.Pointer, words []uint32) {
	switch q.Kind {
	case reflect.Int8:
		storeInteger[int8](q, p, words)
	case reflect.Int16:
		storeInteger[int16](q, p, words)
	case reflect.Int32:
		storeInteger[int32](q, p, words)
	case reflect.Int64:
		storeInteger[int64](q, p, words)
	case reflect.Int:
		storeInteger[int](q, p, words)
	case reflect.Uint8:
		storeInteger[uint8](q, p, words)
	case reflect.Uint16:
		storeInteger[uint16](q, p, words)
	case reflect.Uint32:
		storeInteger[uint32](q, p, words)
	case reflect.Uint64:
		storeInteger[uint64](q, p, words)
	default:
		storeInteger[uint](q, p, words)
	}
}

func storeInteger[T integer](q *Codec, p unsafe.Pointer, words []uint32) {
	v := (*T)(p)
	*v = T(q.IntegerValue(q.Code(words), int64(*v)))
}
