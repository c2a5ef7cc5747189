package schema

import (
	"bytes"
	"math"
	"reflect"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/quantize"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/mlange-42/arche/ecs"
)

// This file, kernels_integers.go and kernels_text.go are the only ones that follow raw pointers. They rely on p being the
// address of n values of c.typ, one behind the other, and on offsets that come from package reflect. Tests compare each of
// them with a slow twin that goes through package reflect.

// ReadBlock is how many values are read column by column before going on, so that their rows stay in the nearest cache.
const ReadBlock = 256

// ReadColumn quantises n consecutive component values starting at p into dst, row after row, and returns how many numbers
// were out of range and had to be clamped. It does not allocate.
//
// Precondition: len(dst) >= n*c.words.
func (c *Component) ReadColumn(dst []uint32, p unsafe.Pointer, n int) (clamped int) {
	for n > 0 && len(c.Columns) > 0 {
		block := min(n, ReadBlock)
		for i := range c.Columns {
			col := &c.Columns[i]
			if col.StandIn != nil {
				continue
			}
			clamped += channel{
				dst:    dst[col.Word : block*c.Words],
				words:  c.Words,
				p:      unsafe.Add(p, col.offset),
				stride: c.Size,
				codec:  col.Codec,
			}.read()
		}
		for _, in := range c.StandIns {
			clamped += c.readStandIn(in, dst, p, block)
		}
		if n -= block; n > 0 { // never point behind the last value
			dst, p = dst[block*c.Words:], unsafe.Add(p, uintptr(block)*c.Size)
		}
	}
	return clamped
}

// Bytes returns how many bytes of each value are worth comparing with what they were.
func (c *Component) Bytes() uintptr {
	if c.Words == 0 || c.Volatile {
		return 0
	}
	return c.Size
}

// SameBytes reports whether n consecutive values starting at p are known to be the same as those with the given bytes.
func (c *Component) SameBytes(old []byte, p unsafe.Pointer, n int) bool {
	if c.Volatile {
		return false
	}
	size := n * int(c.Bytes())
	return bytes.Equal(old[:size], unsafe.Slice((*byte)(p), size))
}

// KeepBytes copies the bytes of n consecutive values starting at p.
func (c *Component) KeepBytes(dst []byte, p unsafe.Pointer, n int) {
	copy(dst, unsafe.Slice((*byte)(p), n*int(c.Bytes())))
}

// Room returns the address of memory for n values. The garbage collector does not look for pointers there, unless they are
// handed to functions of the user.
func (c *Component) Room(n int) unsafe.Pointer {
	if c.Volatile {
		return reflect.MakeSlice(reflect.SliceOf(c.Typ), n, n).UnsafePointer()
	}
	return unsafe.Pointer(unsafe.SliceData(make([]uint64, (uintptr(n)*c.Size+7)/8)))
}

// CopyTo copies the value at p to the place of value i at dst.
func (c *Component) CopyTo(dst unsafe.Pointer, i int, p unsafe.Pointer) {
	if c.Volatile {
		reflect.NewAt(c.Typ, unsafe.Add(dst, uintptr(i)*c.Size)).Elem().Set(reflect.NewAt(c.Typ, p).Elem())
	} else if c.Words > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Add(dst, uintptr(i)*c.Size)), c.Size), unsafe.Slice((*byte)(p), c.Size))
	}
}

// channel is one leaf in a run of values, and where its codes go. The first code goes to dst[0], and there are as many values
// as dst has starts of codes: the loops end with dst and so can never read past the values. They copy what they need into
// local variables, which the compiler keeps in registers; the fields of a struct of this size it does not.
type channel struct {
	dst    []uint32
	words  int // from code to code
	p      unsafe.Pointer
	stride uintptr // from number to number
	codec  *Codec
}

// read picks the loop: one switch for the whole channel instead of one for every value.
func (l channel) read() (clamped int) {
	switch l.codec.Op {
	case OpBool:
		readBools(l)
	case OpInt:
		switch l.codec.Kind {
		case reflect.Int8:
			return readInts[int8](l)
		case reflect.Int16:
			return readInts[int16](l)
		case reflect.Int32:
			return readInts[int32](l)
		case reflect.Int64:
			return readInts[int64](l)
		default:
			return readInts[int](l)
		}
	case OpUint:
		switch l.codec.Kind {
		case reflect.Uint8:
			return readUints[uint8](l)
		case reflect.Uint16:
			return readUints[uint16](l)
		case reflect.Uint32:
			return readUints[uint32](l)
		case reflect.Uint64:
			return readUints[uint64](l)
		default:
			return readUints[uint](l)
		}
	case OpEntity, OpRelation:
		readEntities(l)
	case OpIntStep, OpIntWrap, OpFlags:
		return readWholes(l)
	case OpString:
		return readStrings(l)
	case OpBytes:
		return readBytes(l)
	default:
		if l.codec.Kind == reflect.Float32 {
			return readFloats[float32](l)
		}
		return readFloats[float64](l)
	}
	return 0
}

func readFloats[T float32 | float64](l channel) (clamped int) {
	switch l.codec.Op {
	case OpRaw:
		readRaw(l)
	case OpFixed:
		return readFixed[T](l)
	case OpFloat:
		return readSmallFloats[T](l)
	case OpHalf:
		return readHalves[T](l)
	case OpAngle:
		return readAngles[T](l)
	case OpUnit:
		return readUnits[T](l)
	case OpQuat:
		return readQuats[T](l)
	}
	return 0
}

func readBools(l channel) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		code := uint32(0)
		if *(*bool)(unsafe.Add(p, at)) {
			code = 1
		}
		dst[w] = code
	}
}

func readInts[T int8 | int16 | int32 | int64 | int](l channel) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	q, wide := l.codec.Int, l.codec.Bits > 32
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		code, ok := q.Encode(int64(*(*T)(unsafe.Add(p, at))))
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

func readUints[T uint8 | uint16 | uint32 | uint64 | uint](l channel) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	q, wide := l.codec.Uint, l.codec.Bits > 32
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		code, ok := q.Encode(uint64(*(*T)(unsafe.Add(p, at))))
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

// readEntities stores IDs and generations as they are in this world. The targets of relations are not in the component.
func readEntities(l channel) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		var e ecs.Entity
		if l.codec.Op == OpEntity {
			e = *(*ecs.Entity)(unsafe.Add(p, at))
		}
		dst[w], dst[w+1] = e.ID(), e.Generation()
	}
}

// readRaw copies bit patterns.
func readRaw(l channel) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		p := unsafe.Add(p, at)
		if l.codec.Kind == reflect.Float32 {
			dst[w] = *(*uint32)(p)
		} else {
			code := math.Float64bits(*(*float64)(p))
			dst[w], dst[w+1] = uint32(code), uint32(code>>32)
		}
	}
}

// roundMagic rounds a float64 below 2^51 by addition: the sum's low bits are the nearest integer, half to even. As its own
// low 32 bits are zero, those of the sum are the code.
const roundMagic = 3 << 51

// readFixed has the arithmetic of [quantize.Fixed.Encode] in its loop, for numbers that are safely inside the range; whatever
// is special goes the long way. It takes half the time, since fewer numbers have to be kept at hand.
func readFixed[T float32 | float64](l channel) (clamped int) {
	if l.codec.Bits > 32 {
		return readWideFixed[T](l)
	}
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	q := &l.codec.Fixed
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

// readWideFixed is readFixed for codes of two words.
func readWideFixed[T float32 | float64](l channel) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	q := &l.codec.Fixed
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		code, ok := q.Encode(float64(*(*T)(unsafe.Add(p, at))))
		dst[w], dst[w+1] = uint32(code), uint32(code>>32)
		if !ok {
			clamped++
		}
	}
	return clamped
}

func readSmallFloats[T float32 | float64](l channel) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	q, wide := &l.codec.Float, l.codec.Bits > 32
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

func readHalves[T float32 | float64](l channel) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		code, ok := quantize.Half{}.Encode(float64(*(*T)(unsafe.Add(p, at))))
		dst[w] = uint32(code)
		if !ok {
			clamped++
		}
	}
	return clamped
}

func readAngles[T float32 | float64](l channel) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	q, wide := l.codec.Angle, l.codec.Bits > 32
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

func readUnits[T float32 | float64](l channel) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	q := l.codec.Unit
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

func readQuats[T float32 | float64](l channel) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	q, single := l.codec.Quat, l.codec.Kind == reflect.Float32
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

// Write restores a row into the component value at p. Fields that are not replicated stay as they are, as do references. It
// does not allocate.
//
// Precondition: validRow(row); codes that no quantiser produces become zeros.
func (c *Component) Write(p unsafe.Pointer, row []uint32) {
	if len(c.StandIns) > 0 {
		c.writeStandIns(p, row)
		return
	}
	for i := range c.Columns {
		col := &c.Columns[i]
		col.write(unsafe.Add(p, col.offset), row)
	}
}

// RefersToAny reports whether one of n consecutive values starting at p refers to an entity whose ID is in the set.
func (c *Component) RefersToAny(p unsafe.Pointer, n int, ids bitset.Set) bool {
	for _, k := range c.References {
		col := &c.Columns[k]
		if col.Codec.Op != OpEntity {
			continue
		}
		for i, at := 0, col.offset; i < n; i, at = i+1, at+c.Size {
			if ids.Holds((*ecs.Entity)(unsafe.Add(p, at)).ID()) {
				return true
			}
		}
	}
	return false
}

// ReadEntity returns what a column of the component value at p refers to.
func (c *Component) ReadEntity(p unsafe.Pointer, column int) ecs.Entity {
	return *(*ecs.Entity)(unsafe.Add(p, c.Columns[column].offset))
}

// WriteEntity makes a column of the component value at p refer to the entity.
func (c *Component) WriteEntity(p unsafe.Pointer, column int, e ecs.Entity) {
	*(*ecs.Entity)(unsafe.Add(p, c.Columns[column].offset)) = e
}

// writeStandIns is write for a component that has stand-ins.
func (c *Component) writeStandIns(p unsafe.Pointer, row []uint32) {
	for i := range c.Columns {
		if col := &c.Columns[i]; col.StandIn == nil {
			col.write(unsafe.Add(p, col.offset), row)
		}
	}
	for _, in := range c.StandIns {
		in.Conversion.Write(&in.Values, unsafe.Add(p, in.Offset), row[in.Word:][:in.Values.Words])
	}
}

// readStandIn quantises a stand-in in n consecutive component values starting at p.
func (c *Component) readStandIn(in *StandIn, dst []uint32, p unsafe.Pointer, n int) (clamped int) {
	p = unsafe.Add(p, in.Offset)
	for i := range n {
		row := dst[i*c.Words+in.Word:][:in.Values.Words]
		clamped += in.Conversion.Read(&in.Values, row, unsafe.Add(p, uintptr(i)*c.Size))
	}
	return clamped
}

func (col *Column) write(p unsafe.Pointer, row []uint32) {
	q := col.Codec
	switch q.Op {
	case OpEntity, OpRelation: // by writeEntity, when it is known who that is here
	case OpBool:
		*(*bool)(p) = row[col.Word] != 0
	case OpInt:
		v, _ := q.Int.Decode(col.Code(row))
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
		v, _ := q.Uint.Decode(col.Code(row))
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
		col.writeMore(p, row)
	default:
		if q.Kind == reflect.Float32 {
			col.write32(p, row)
		} else {
			col.write64(p, row)
		}
	}
}

func (col *Column) write32(p unsafe.Pointer, row []uint32) {
	q, v := col.Codec, (*float32)(p)
	switch q.Op {
	case OpRaw:
		*(*uint32)(p) = row[col.Word]
	case OpFixed:
		*v, _ = q.Fixed.Decode32(col.Code(row))
	case OpFloat:
		*v, _ = q.Float.Decode32(col.Code(row))
	case OpHalf:
		*v, _ = quantize.Half{}.Decode32(col.Code(row))
	case OpAngle:
		*v, _ = q.Angle.Decode32(col.Code(row))
	case OpUnit:
		*(*[3]float32)(p), _ = q.Unit.Decode32(uint64(row[col.Word]), uint64(row[col.Word+1]))
	case OpQuat:
		*(*[4]float32)(p), _ = q.Quat.Decode32(col.QuatCode(row))
	}
}

func (col *Column) write64(p unsafe.Pointer, row []uint32) {
	q, v := col.Codec, (*float64)(p)
	switch q.Op {
	case OpRaw:
		*v = math.Float64frombits(col.Code(row))
	case OpFixed:
		*v, _ = q.Fixed.Decode(col.Code(row))
	case OpFloat:
		*v, _ = q.Float.Decode(col.Code(row))
	case OpHalf:
		*v, _ = quantize.Half{}.Decode(col.Code(row))
	case OpAngle:
		*v, _ = q.Angle.Decode(col.Code(row))
	case OpUnit:
		*(*[3]float64)(p), _ = q.Unit.Decode(uint64(row[col.Word]), uint64(row[col.Word+1]))
	case OpQuat:
		*(*[4]float64)(p), _ = q.Quat.Decode(col.QuatCode(row))
	}
}
