package field

// This file quantises fields of component values in memory. It and write.go are the only files of
// the package that follow raw pointers. They rely on the address, type and stride that the caller
// gives, which come from package reflect. Tests compare each loop with a slow twin that goes
// through package reflect.

import (
	"math"
	"reflect"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/quantize"
	"github.com/mlange-42/arche/ecs"
)

// Read quantises the field of consecutive component values, the first of which has the field at p
// and the next one stride bytes on. The codes of the first value start at dst[0], those of the next
// one rowWords words on. Read takes as many values as dst has starts of codes. It returns how many
// numbers were out of range and had to be clamped.
func (q *Codec) Read(dst []uint32, rowWords int, p unsafe.Pointer, stride uintptr) (clamped int) {
	return column{dst: dst, words: rowWords, p: p, stride: stride, codec: q}.read()
}

// column has the arguments of [Codec.Read]. The loops end with dst, and so can never read past the
// values. They copy what they need into local variables, which the compiler keeps in registers; it
// doesn't do that with fields of a struct of this size.
type column struct {
	dst    []uint32
	words  int // from code to code
	p      unsafe.Pointer
	stride uintptr // from number to number
	codec  *Codec
}

// read selects the loop: one switch for the column instead of one for every value.
func (c column) read() (clamped int) {
	switch c.codec.Op {
	case OpBool:
		readBools(c)
	case OpInt:
		switch c.codec.Kind {
		case reflect.Int8:
			return readInts[int8](c)
		case reflect.Int16:
			return readInts[int16](c)
		case reflect.Int32:
			return readInts[int32](c)
		case reflect.Int64:
			return readInts[int64](c)
		default:
			return readInts[int](c)
		}
	case OpUint:
		switch c.codec.Kind {
		case reflect.Uint8:
			return readUints[uint8](c)
		case reflect.Uint16:
			return readUints[uint16](c)
		case reflect.Uint32:
			return readUints[uint32](c)
		case reflect.Uint64:
			return readUints[uint64](c)
		default:
			return readUints[uint](c)
		}
	case OpEntity, OpRelation:
		readEntities(c)
	case OpIntStep, OpIntWrap, OpFlags:
		return readIntegers(c)
	case OpString:
		return readStrings(c)
	case OpBytes:
		return readBytes(c)
	default:
		if c.codec.Kind == reflect.Float32 {
			return readFloats[float32](c)
		}
		return readFloats[float64](c)
	}
	return 0
}

func readFloats[T float32 | float64](c column) (clamped int) {
	switch c.codec.Op {
	case OpRaw:
		readRaw(c)
	case OpFixed:
		return readFixed[T](c)
	case OpFloat:
		return readSmallFloats[T](c)
	case OpHalf:
		return readHalves[T](c)
	case OpAngle:
		return readAngles[T](c)
	case OpUnit:
		return readUnits[T](c)
	case OpQuat:
		return readQuats[T](c)
	}
	return 0
}

func readBools(c column) {
	dst, words, p, stride, at := c.dst, c.words, c.p, c.stride, uintptr(0)
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		code := uint32(0)
		if *(*bool)(unsafe.Add(p, at)) {
			code = 1
		}
		dst[w] = code
	}
}

func readInts[T int8 | int16 | int32 | int64 | int](c column) (clamped int) {
	dst, words, p, stride, at := c.dst, c.words, c.p, c.stride, uintptr(0)
	q, wide := &c.codec.Int, c.codec.Bits > 32
	low, high := q.Range()
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		v := int64(*(*T)(unsafe.Add(p, at)))
		code, ok := uint64(v)-uint64(low), true
		if v < low || v > high {
			code, ok = q.Encode(v)
		}
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

func readUints[T uint8 | uint16 | uint32 | uint64 | uint](c column) (clamped int) {
	dst, words, p, stride, at := c.dst, c.words, c.p, c.stride, uintptr(0)
	q, wide := &c.codec.Uint, c.codec.Bits > 32
	low, high := q.Range()
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		v := uint64(*(*T)(unsafe.Add(p, at)))
		code, ok := v-low, true
		if v < low || v > high {
			code, ok = q.Encode(v)
		}
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

// readEntities stores the IDs and generations of this world. The target of a relation is not in the
// component: its codes are zero.
func readEntities(c column) {
	dst, words, p, stride, at := c.dst, c.words, c.p, c.stride, uintptr(0)
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		var e ecs.Entity
		if c.codec.Op == OpEntity {
			e = *(*ecs.Entity)(unsafe.Add(p, at))
		}
		dst[w], dst[w+1] = e.ID(), e.Generation()
	}
}

// readRaw copies bit patterns.
func readRaw(c column) {
	dst, words, p, stride, at := c.dst, c.words, c.p, c.stride, uintptr(0)
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		p := unsafe.Add(p, at)
		if c.codec.Kind == reflect.Float32 {
			dst[w] = *(*uint32)(p)
		} else {
			code := math.Float64bits(*(*float64)(p))
			dst[w], dst[w+1] = uint32(code), uint32(code>>32)
		}
	}
}

// roundMagic rounds a float64 below 2^51 by addition: the low bits of the sum are the nearest
// integer, half to even. The low 32 bits of roundMagic are zero, so those of the sum are the code.
const roundMagic = 3 << 51

// readFixed does the arithmetic of [quantize.Fixed.Encode] in its loop for numbers that are safely
// inside the range, and calls it for all others. That takes half the time, because the loop needs
// fewer registers.
func readFixed[T float32 | float64](c column) (clamped int) {
	if c.codec.Bits > 32 {
		return readWideFixed[T](c)
	}
	dst, words, p, stride, at := c.dst, c.words, c.p, c.stride, uintptr(0)
	q := &c.codec.Fixed
	low, high := q.Range()
	inv, limit := 1/q.Step(), high-q.Step()
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		v := float64(*(*T)(unsafe.Add(p, at)))
		if v > low && v < limit {
			dst[w] = uint32(math.Float64bits(float64((v-low)*inv) + roundMagic))
			continue
		}
		code, ok := q.Encode(v)
		dst[w] = uint32(code)
		if !ok {
			clamped++
		}
	}
	return clamped
}

// ReadThree is [Codec.Read] for three float32 fields that lie side by side, in the value and in the row, and have this
// codec or an equal one: positions and velocities. The codec is one that [Codec.ReadsThree].
func (q *Codec) ReadThree(dst []uint32, rowWords int, p unsafe.Pointer, stride uintptr) (clamped int) {
	at, fixed := uintptr(0), &q.Fixed
	low, high := fixed.Range()
	inv, limit := 1/fixed.Step(), high-fixed.Step()
	for w := 0; w+2 < len(dst); w, at = w+rowWords, at+stride {
		f, row := (*[3]float32)(unsafe.Add(p, at)), (*[3]uint32)(dst[w:])
		x, y, z := float64(f[0]), float64(f[1]), float64(f[2])
		if x > low && x < limit && y > low && y < limit && z > low && z < limit {
			row[0] = uint32(math.Float64bits(float64((x-low)*inv) + roundMagic))
			row[1] = uint32(math.Float64bits(float64((y-low)*inv) + roundMagic))
			row[2] = uint32(math.Float64bits(float64((z-low)*inv) + roundMagic))
			continue
		}
		for i, v := range f {
			code, ok := fixed.Encode(float64(v))
			row[i] = uint32(code)
			if !ok {
				clamped++
			}
		}
	}
	return clamped
}

// ReadsThree reports whether three fields with this codec can be read at once.
func (q *Codec) ReadsThree() bool {
	return q.Op == OpFixed && q.Kind == reflect.Float32 && q.Bits <= 32
}

// readWideFixed is readFixed for codes of two words.
func readWideFixed[T float32 | float64](c column) (clamped int) {
	dst, words, p, stride, at := c.dst, c.words, c.p, c.stride, uintptr(0)
	q := &c.codec.Fixed
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		code, ok := q.Encode(float64(*(*T)(unsafe.Add(p, at))))
		dst[w], dst[w+1] = uint32(code), uint32(code>>32)
		if !ok {
			clamped++
		}
	}
	return clamped
}

func readSmallFloats[T float32 | float64](c column) (clamped int) {
	dst, words, p, stride, at := c.dst, c.words, c.p, c.stride, uintptr(0)
	q, wide := &c.codec.Float, c.codec.Bits > 32
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		code, ok := q.Encode(float64(*(*T)(unsafe.Add(p, at))))
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

func readHalves[T float32 | float64](c column) (clamped int) {
	dst, words, p, stride, at := c.dst, c.words, c.p, c.stride, uintptr(0)
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		code, ok := quantize.Half{}.Encode(float64(*(*T)(unsafe.Add(p, at))))
		dst[w] = uint32(code)
		if !ok {
			clamped++
		}
	}
	return clamped
}

func readAngles[T float32 | float64](c column) (clamped int) {
	dst, words, p, stride, at := c.dst, c.words, c.p, c.stride, uintptr(0)
	q, wide := c.codec.Angle, c.codec.Bits > 32
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		code, ok := q.Encode(float64(*(*T)(unsafe.Add(p, at))))
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

func readUnits[T float32 | float64](c column) (clamped int) {
	dst, words, p, stride, at := c.dst, c.words, c.p, c.stride, uintptr(0)
	q := c.codec.Unit
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		f := (*[3]T)(unsafe.Add(p, at))
		u, v, ok := q.Encode([3]float64{float64(f[0]), float64(f[1]), float64(f[2])})
		dst[w], dst[w+1] = uint32(u), uint32(v)
		if !ok {
			clamped++
		}
	}
	return clamped
}

func readQuats[T float32 | float64](c column) (clamped int) {
	dst, words, p, stride, at := c.dst, c.words, c.p, c.stride, uintptr(0)
	q, single := c.codec.Quat, c.codec.Kind == reflect.Float32
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		f := (*[4]T)(unsafe.Add(p, at))
		var code quantize.QuatCode
		var ok bool
		if single {
			code, ok = q.Encode32([4]float32{float32(f[0]), float32(f[1]), float32(f[2]), float32(f[3])})
		} else {
			code, ok = q.Encode([4]float64{float64(f[0]), float64(f[1]), float64(f[2]), float64(f[3])})
		}
		row := dst[w:][:4]
		row[0], row[1], row[2], row[3] = code.Largest, code.A, code.B, code.C
		if !ok {
			clamped++
		}
	}
	return clamped
}

// readIntegers is for the ops that take any integer type.
func readIntegers(c column) (clamped int) {
	switch c.codec.Kind {
	case reflect.Int8:
		return readIntegersOf[int8](c)
	case reflect.Int16:
		return readIntegersOf[int16](c)
	case reflect.Int32:
		return readIntegersOf[int32](c)
	case reflect.Int64:
		return readIntegersOf[int64](c)
	case reflect.Int:
		return readIntegersOf[int](c)
	case reflect.Uint8:
		return readIntegersOf[uint8](c)
	case reflect.Uint16:
		return readIntegersOf[uint16](c)
	case reflect.Uint32:
		return readIntegersOf[uint32](c)
	case reflect.Uint64:
		return readIntegersOf[uint64](c)
	default:
		return readIntegersOf[uint](c)
	}
}

// integer is any integer type.
type integer interface {
	int8 | int16 | int32 | int64 | int | uint8 | uint16 | uint32 | uint64 | uint
}

func readIntegersOf[T integer](c column) (clamped int) {
	switch c.codec.Op {
	case OpIntStep:
		return readSteps[T](c)
	case OpIntWrap:
		return readWrapped[T](c)
	}
	readFlags[T](c)
	return 0
}

func readSteps[T integer](c column) (clamped int) {
	dst, words, p, stride, at := c.dst, c.words, c.p, c.stride, uintptr(0)
	q, wide := c.codec, c.codec.Bits > 32
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

func readWrapped[T integer](c column) (clamped int) {
	dst, words, p, stride, at := c.dst, c.words, c.p, c.stride, uintptr(0)
	q, wide := c.codec, c.codec.Bits > 32
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

func readFlags[T integer](c column) {
	dst, words, p, stride, at := c.dst, c.words, c.p, c.stride, uintptr(0)
	mask, wide := c.codec.Max, c.codec.Bits > 32
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		code := uint64(*(*T)(unsafe.Add(p, at))) & mask
		dst[w] = uint32(code)
		if wide {
			dst[w+1] = uint32(code >> 32)
		}
	}
}

func readStrings(c column) (clamped int) {
	dst, words, p, stride, at := c.dst, c.words, c.p, c.stride, uintptr(0)
	limit, own := int(c.codec.Max), c.codec.Words()
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		s, ok := CutString(*(*string)(unsafe.Add(p, at)), limit)
		PutText(dst[w:][:own], s)
		if !ok {
			clamped++
		}
	}
	return clamped
}

func readBytes(c column) (clamped int) {
	dst, words, p, stride, at := c.dst, c.words, c.p, c.stride, uintptr(0)
	limit, size, own := int(c.codec.Max), c.codec.Size, c.codec.Words()
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		b, ok := CutBytes(unsafe.Slice((*byte)(unsafe.Add(p, at)), size), limit)
		PutText(dst[w:][:own], b)
		if !ok {
			clamped++
		}
	}
	return clamped
}
