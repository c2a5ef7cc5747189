package replication

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

// readBlock is how many values are read column by column before going on, so that their rows stay in the nearest cache.
const readBlock = 256

// readColumn quantises n consecutive component values starting at p into dst, row after row, and returns how many numbers
// were out of range and had to be clamped. It does not allocate.
//
// Precondition: len(dst) >= n*c.words.
func (c *component) readColumn(dst []uint32, p unsafe.Pointer, n int) (clamped int) {
	for n > 0 && len(c.columns) > 0 {
		block := min(n, readBlock)
		for i := range c.columns {
			col := &c.columns[i]
			if col.standIn != nil {
				continue
			}
			clamped += lane{
				dst:    dst[col.word : block*c.words],
				words:  c.words,
				p:      unsafe.Add(p, col.offset),
				stride: c.size,
				codec:  col.codec,
			}.read()
		}
		for _, in := range c.standIns {
			clamped += c.readStandIn(in, dst, p, block)
		}
		if n -= block; n > 0 { // never point behind the last value
			dst, p = dst[block*c.words:], unsafe.Add(p, uintptr(block)*c.size)
		}
	}
	return clamped
}

// markersAt returns the n markers from p on.
func markersAt(p unsafe.Pointer, n int) []Replicated { return unsafe.Slice((*Replicated)(p), n) }

// bytes returns how many bytes of each value are worth comparing with what they were.
func (c *component) bytes() uintptr {
	if c.words == 0 || c.volatile {
		return 0
	}
	return c.size
}

// sameBytes reports whether n consecutive values starting at p are known to be the same as those with the given bytes.
func (c *component) sameBytes(old []byte, p unsafe.Pointer, n int) bool {
	if c.volatile {
		return false
	}
	size := n * int(c.bytes())
	return bytes.Equal(old[:size], unsafe.Slice((*byte)(p), size))
}

// keepBytes copies the bytes of n consecutive values starting at p.
func (c *component) keepBytes(dst []byte, p unsafe.Pointer, n int) {
	copy(dst, unsafe.Slice((*byte)(p), n*int(c.bytes())))
}

// room returns the address of memory for n values. The garbage collector does not look for pointers there, unless they are
// handed to functions of the user.
func (c *component) room(n int) unsafe.Pointer {
	if c.volatile {
		return reflect.MakeSlice(reflect.SliceOf(c.typ), n, n).UnsafePointer()
	}
	return unsafe.Pointer(unsafe.SliceData(make([]uint64, (uintptr(n)*c.size+7)/8)))
}

// copyTo copies the value at p to the place of value i at dst.
func (c *component) copyTo(dst unsafe.Pointer, i int, p unsafe.Pointer) {
	if c.volatile {
		reflect.NewAt(c.typ, unsafe.Add(dst, uintptr(i)*c.size)).Elem().Set(reflect.NewAt(c.typ, p).Elem())
	} else if c.words > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Add(dst, uintptr(i)*c.size)), c.size), unsafe.Slice((*byte)(p), c.size))
	}
}

// lane is one leaf in a run of values, and where its codes go. The first code goes to dst[0], and there are as many values
// as dst has starts of codes: the loops end with dst and so can never read past the values. They copy what they need into
// local variables, which the compiler keeps in registers; the fields of a struct of this size it does not.
type lane struct {
	dst    []uint32
	words  int // from code to code
	p      unsafe.Pointer
	stride uintptr // from number to number
	codec  *codec
}

// read picks the loop: one switch for the whole lane instead of one for every value.
func (l lane) read() (clamped int) {
	switch l.codec.op {
	case opBool:
		readBools(l)
	case opInt:
		switch l.codec.kind {
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
	case opUint:
		switch l.codec.kind {
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
	case opEntity, opRelation:
		readEntities(l)
	case opIntStep, opIntWrap, opFlags:
		return readWholes(l)
	case opString:
		return readStrings(l)
	case opBytes:
		return readBytes(l)
	default:
		if l.codec.kind == reflect.Float32 {
			return readFloats[float32](l)
		}
		return readFloats[float64](l)
	}
	return 0
}

func readFloats[T float32 | float64](l lane) (clamped int) {
	switch l.codec.op {
	case opRaw:
		readRaw(l)
	case opFixed:
		return readFixed[T](l)
	case opFloat:
		return readSmallFloats[T](l)
	case opHalf:
		return readHalves[T](l)
	case opAngle:
		return readAngles[T](l)
	case opUnit:
		return readUnits[T](l)
	case opQuat:
		return readQuats[T](l)
	}
	return 0
}

func readBools(l lane) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		code := uint32(0)
		if *(*bool)(unsafe.Add(p, at)) {
			code = 1
		}
		dst[w] = code
	}
}

func readInts[T int8 | int16 | int32 | int64 | int](l lane) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	q, wide := l.codec.int, l.codec.bits > 32
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

func readUints[T uint8 | uint16 | uint32 | uint64 | uint](l lane) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	q, wide := l.codec.uint, l.codec.bits > 32
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
func readEntities(l lane) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		var e ecs.Entity
		if l.codec.op == opEntity {
			e = *(*ecs.Entity)(unsafe.Add(p, at))
		}
		dst[w], dst[w+1] = e.ID(), e.Generation()
	}
}

// readRaw copies bit patterns.
func readRaw(l lane) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		p := unsafe.Add(p, at)
		if l.codec.kind == reflect.Float32 {
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
func readFixed[T float32 | float64](l lane) (clamped int) {
	if l.codec.bits > 32 {
		return readWideFixed[T](l)
	}
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	q := &l.codec.fixed
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
func readWideFixed[T float32 | float64](l lane) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	q := &l.codec.fixed
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		code, ok := q.Encode(float64(*(*T)(unsafe.Add(p, at))))
		dst[w], dst[w+1] = uint32(code), uint32(code>>32)
		if !ok {
			clamped++
		}
	}
	return clamped
}

func readSmallFloats[T float32 | float64](l lane) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	q, wide := &l.codec.float, l.codec.bits > 32
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

func readHalves[T float32 | float64](l lane) (clamped int) {
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

func readAngles[T float32 | float64](l lane) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	q, wide := l.codec.angle, l.codec.bits > 32
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

func readUnits[T float32 | float64](l lane) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	q := l.codec.unit
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

func readQuats[T float32 | float64](l lane) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	q, single := l.codec.quat, l.codec.kind == reflect.Float32
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

// write restores a row into the component value at p. Fields that are not replicated stay as they are, as do references. It
// does not allocate.
//
// Precondition: validRow(row); codes that no quantiser produces become zeros.
func (c *component) write(p unsafe.Pointer, row []uint32) {
	if len(c.standIns) > 0 {
		c.writeStandIns(p, row)
		return
	}
	for i := range c.columns {
		col := &c.columns[i]
		col.write(unsafe.Add(p, col.offset), row)
	}
}

// refersToAny reports whether one of n consecutive values starting at p refers to an entity whose ID is in the set.
func (c *component) refersToAny(p unsafe.Pointer, n int, ids bitset.Set) bool {
	for _, k := range c.references {
		col := &c.columns[k]
		if col.codec.op != opEntity {
			continue
		}
		for i, at := 0, col.offset; i < n; i, at = i+1, at+c.size {
			if ids.Holds((*ecs.Entity)(unsafe.Add(p, at)).ID()) {
				return true
			}
		}
	}
	return false
}

// readEntity returns what a column of the component value at p refers to.
func (c *component) readEntity(p unsafe.Pointer, column int) ecs.Entity {
	return *(*ecs.Entity)(unsafe.Add(p, c.columns[column].offset))
}

// writeEntity makes a column of the component value at p refer to the entity.
func (c *component) writeEntity(p unsafe.Pointer, column int, e ecs.Entity) {
	*(*ecs.Entity)(unsafe.Add(p, c.columns[column].offset)) = e
}

// writeStandIns is write for a component that has stand-ins.
func (c *component) writeStandIns(p unsafe.Pointer, row []uint32) {
	for i := range c.columns {
		if col := &c.columns[i]; col.standIn == nil {
			col.write(unsafe.Add(p, col.offset), row)
		}
	}
	for _, in := range c.standIns {
		in.conversion.write(&in.values, unsafe.Add(p, in.offset), row[in.word:][:in.values.words])
	}
}

// readStandIn quantises a stand-in in n consecutive component values starting at p.
func (c *component) readStandIn(in *standIn, dst []uint32, p unsafe.Pointer, n int) (clamped int) {
	p = unsafe.Add(p, in.offset)
	for i := range n {
		row := dst[i*c.words+in.word:][:in.values.words]
		clamped += in.conversion.read(&in.values, row, unsafe.Add(p, uintptr(i)*c.size))
	}
	return clamped
}

func (col *column) write(p unsafe.Pointer, row []uint32) {
	q := col.codec
	switch q.op {
	case opEntity, opRelation: // by writeEntity, when it is known who that is here
	case opBool:
		*(*bool)(p) = row[col.word] != 0
	case opInt:
		v, _ := q.int.Decode(col.code(row))
		switch q.kind {
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
	case opUint:
		v, _ := q.uint.Decode(col.code(row))
		switch q.kind {
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
	case opIntStep, opIntWrap, opFlags, opString, opBytes:
		col.writeMore(p, row)
	default:
		if q.kind == reflect.Float32 {
			col.write32(p, row)
		} else {
			col.write64(p, row)
		}
	}
}

func (col *column) write32(p unsafe.Pointer, row []uint32) {
	q, v := col.codec, (*float32)(p)
	switch q.op {
	case opRaw:
		*(*uint32)(p) = row[col.word]
	case opFixed:
		*v, _ = q.fixed.Decode32(col.code(row))
	case opFloat:
		*v, _ = q.float.Decode32(col.code(row))
	case opHalf:
		*v, _ = quantize.Half{}.Decode32(col.code(row))
	case opAngle:
		*v, _ = q.angle.Decode32(col.code(row))
	case opUnit:
		*(*[3]float32)(p), _ = q.unit.Decode32(uint64(row[col.word]), uint64(row[col.word+1]))
	case opQuat:
		*(*[4]float32)(p), _ = q.quat.Decode32(col.quatCode(row))
	}
}

func (col *column) write64(p unsafe.Pointer, row []uint32) {
	q, v := col.codec, (*float64)(p)
	switch q.op {
	case opRaw:
		*v = math.Float64frombits(col.code(row))
	case opFixed:
		*v, _ = q.fixed.Decode(col.code(row))
	case opFloat:
		*v, _ = q.float.Decode(col.code(row))
	case opHalf:
		*v, _ = quantize.Half{}.Decode(col.code(row))
	case opAngle:
		*v, _ = q.angle.Decode(col.code(row))
	case opUnit:
		*(*[3]float64)(p), _ = q.unit.Decode(uint64(row[col.word]), uint64(row[col.word+1]))
	case opQuat:
		*(*[4]float64)(p), _ = q.quat.Decode(col.quatCode(row))
	}
}
