package schema

import (
	"reflect"
	"unsafe"
)

// readWholes is for the ops that are for integers of any type.
func readWholes(l channel) (clamped int) {
	switch l.codec.Kind {
	case reflect.Int8:
		return readInteger[int8](l)
	case reflect.Int16:
		return readInteger[int16](l)
	case reflect.Int32:
		return readInteger[int32](l)
	case reflect.Int64:
		return readInteger[int64](l)
	case reflect.Int:
		return readInteger[int](l)
	case reflect.Uint8:
		return readInteger[uint8](l)
	case reflect.Uint16:
		return readInteger[uint16](l)
	case reflect.Uint32:
		return readInteger[uint32](l)
	case reflect.Uint64:
		return readInteger[uint64](l)
	default:
		return readInteger[uint](l)
	}
}

// integer is any integer type.
type integer interface {
	int8 | int16 | int32 | int64 | int | uint8 | uint16 | uint32 | uint64 | uint
}

func readInteger[T integer](l channel) (clamped int) {
	switch l.codec.Op {
	case OpIntStep:
		return readSteps[T](l)
	case OpIntWrap:
		return readWrapped[T](l)
	}
	readFlags[T](l)
	return 0
}

func readSteps[T integer](l channel) (clamped int) {
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

func readWrapped[T integer](l channel) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	q, wide := l.codec, l.codec.Bits > 32
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		v := *(*T)(unsafe.Add(p, at))
		code := q.WrapCode(int64(v), v > 0)
		dst[w] = uint32(code)
		if wide {
			dst[w+1] = uint32(code >> 32)
		}
	}
	return 0
}

func readFlags[T integer](l channel) {
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
		col.writeInteger(p, row)
	}
}

// writeInteger is for the ops that are for integers of any type.
func (col *Column) writeInteger(p unsafe.Pointer, row []uint32) {
	switch col.Codec.Kind {
	case reflect.Int8:
		storeInteger[int8](col, p, row)
	case reflect.Int16:
		storeInteger[int16](col, p, row)
	case reflect.Int32:
		storeInteger[int32](col, p, row)
	case reflect.Int64:
		storeInteger[int64](col, p, row)
	case reflect.Int:
		storeInteger[int](col, p, row)
	case reflect.Uint8:
		storeInteger[uint8](col, p, row)
	case reflect.Uint16:
		storeInteger[uint16](col, p, row)
	case reflect.Uint32:
		storeInteger[uint32](col, p, row)
	case reflect.Uint64:
		storeInteger[uint64](col, p, row)
	default:
		storeInteger[uint](col, p, row)
	}
}

func storeInteger[T integer](col *Column, p unsafe.Pointer, row []uint32) {
	v := (*T)(p)
	*v = T(col.Codec.IntegerValue(col.Code(row), int64(*v)))
}
