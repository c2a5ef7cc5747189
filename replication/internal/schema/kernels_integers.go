package schema

import (
	"reflect"
	"unsafe"
)

// readWholes is for the ops that are for integers of any type.
func readWholes(l channel) (clamped int) {
	switch l.codec.Kind {
	case reflect.Int8:
		return readWhole[int8](l)
	case reflect.Int16:
		return readWhole[int16](l)
	case reflect.Int32:
		return readWhole[int32](l)
	case reflect.Int64:
		return readWhole[int64](l)
	case reflect.Int:
		return readWhole[int](l)
	case reflect.Uint8:
		return readWhole[uint8](l)
	case reflect.Uint16:
		return readWhole[uint16](l)
	case reflect.Uint32:
		return readWhole[uint32](l)
	case reflect.Uint64:
		return readWhole[uint64](l)
	default:
		return readWhole[uint](l)
	}
}

// whole is any integer type.
type whole interface {
	int8 | int16 | int32 | int64 | int | uint8 | uint16 | uint32 | uint64 | uint
}

func readWhole[T whole](l channel) (clamped int) {
	switch l.codec.Op {
	case OpIntStep:
		return readSteps[T](l)
	case OpIntWrap:
		return readTurns[T](l)
	}
	readFlags[T](l)
	return 0
}

func readSteps[T whole](l channel) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	q, wide := l.codec, l.codec.Bits > 32
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		v := *(*T)(unsafe.Add(p, at))
		code, ok := q.StepCode(int64(v), v > 0)
		dst[w] = uint32(code)
		if wide {
			dst[w+1] = uint32(code >> 32)
		}
		if !ok {
			clamped++
		}
	}
	return clamped
}

func readTurns[T whole](l channel) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	q, wide := l.codec, l.codec.Bits > 32
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		v := *(*T)(unsafe.Add(p, at))
		code := q.TurnCode(int64(v), v > 0)
		dst[w] = uint32(code)
		if wide {
			dst[w+1] = uint32(code >> 32)
		}
	}
	return 0
}

func readFlags[T whole](l channel) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	mask, wide := l.codec.Max, l.codec.Bits > 32
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		code := uint64(*(*T)(unsafe.Add(p, at))) & mask
		dst[w] = uint32(code)
		if wide {
			dst[w+1] = uint32(code >> 32)
		}
	}
}

// writeMore is for the ops that are not so frequent.
func (col *Column) writeMore(p unsafe.Pointer, row []uint32) {
	if col.Codec.IsText() {
		col.writeText(p, row)
	} else {
		col.writeWhole(p, row)
	}
}

// writeWhole is for the ops that are for integers of any type.
func (col *Column) writeWhole(p unsafe.Pointer, row []uint32) {
	switch col.Codec.Kind {
	case reflect.Int8:
		storeWhole[int8](col, p, row)
	case reflect.Int16:
		storeWhole[int16](col, p, row)
	case reflect.Int32:
		storeWhole[int32](col, p, row)
	case reflect.Int64:
		storeWhole[int64](col, p, row)
	case reflect.Int:
		storeWhole[int](col, p, row)
	case reflect.Uint8:
		storeWhole[uint8](col, p, row)
	case reflect.Uint16:
		storeWhole[uint16](col, p, row)
	case reflect.Uint32:
		storeWhole[uint32](col, p, row)
	case reflect.Uint64:
		storeWhole[uint64](col, p, row)
	default:
		storeWhole[uint](col, p, row)
	}
}

func storeWhole[T whole](col *Column, p unsafe.Pointer, row []uint32) {
	v := (*T)(p)
	*v = T(col.Codec.WholeValue(col.Code(row), int64(*v)))
}
