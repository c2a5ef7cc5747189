package replication

import (
	"fmt"
	"math"
	"reflect"
	"unsafe" // for the name of the type that kernels take; no pointer is computed here

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/quantize"
)

// slowKernels are the twins of a component's kernels, without an address computed: each value goes through package reflect,
// one field at a time, to the quantisers' own methods. The kernels must do the same to the last bit.
type slowKernels struct{ *component }

// readColumn is the twin of [component.readColumn].
func (c slowKernels) readColumn(dst []uint32, p unsafe.Pointer, n int) (clamped int) {
	if n == 0 || len(c.columns) == 0 {
		return 0
	}
	values := reflect.SliceAt(c.typ, p, n)
	for i := range n {
		row := dst[i*c.words:][:c.words]
		for j := range c.columns {
			col := slowColumn{&c.columns[j]}
			if col.standIn == nil && !col.read(leaf(values.Index(i), col.steps), row[col.word:]) {
				clamped++
			}
		}
		for _, in := range c.standIns {
			p := c.standInAt(values.Index(i), in)
			clamped += in.conversion.read(&in.values, row[in.word:][:in.values.words], p)
		}
	}
	return clamped
}

// write is the twin of [component.write].
func (c slowKernels) write(p unsafe.Pointer, row []uint32) {
	v := reflect.NewAt(c.typ, p).Elem()
	for i := range c.columns {
		if col := (slowColumn{&c.columns[i]}); col.standIn == nil {
			col.write(leaf(v, col.steps), row)
		}
	}
	for _, in := range c.standIns {
		in.conversion.write(&in.values, c.standInAt(v, in), row[in.word:][:in.values.words])
	}
}

// refersToAny is the twin of [component.refersToAny].
func (c slowKernels) refersToAny(p unsafe.Pointer, n int, ids bitset.Set) (found bool) {
	values := reflect.SliceAt(c.typ, p, n)
	for i := range n {
		for j := range c.columns {
			if col := &c.columns[j]; col.codec.op == opEntity {
				found = found || ids.Holds(leaf(values.Index(i), col.steps).Interface().(ecs.Entity).ID())
			}
		}
	}
	return found
}

// readEntity is the twin of [component.readEntity].
func (c slowKernels) readEntity(p unsafe.Pointer, column int) ecs.Entity {
	return leaf(reflect.NewAt(c.typ, p).Elem(), c.columns[column].steps).Interface().(ecs.Entity)
}

// writeEntity is the twin of [component.writeEntity].
func (c slowKernels) writeEntity(p unsafe.Pointer, column int, e ecs.Entity) {
	leaf(reflect.NewAt(c.typ, p).Elem(), c.columns[column].steps).Set(reflect.ValueOf(e))
}

// copyTo is the twin of [component.copyTo].
func (c slowKernels) copyTo(dst unsafe.Pointer, i int, p unsafe.Pointer) {
	if c.words > 0 {
		reflect.SliceAt(c.typ, dst, i+1).Index(i).Set(reflect.NewAt(c.typ, p).Elem())
	}
}

// fits is the twin of [component.fits].
func (c slowKernels) fits(p unsafe.Pointer) error {
	whole := reflect.NewAt(c.typ, p).Elem()
	for i := range c.columns {
		col := &c.columns[i]
		if col.standIn != nil {
			continue
		}
		n := 0
		switch v := leaf(whole, col.steps); col.codec.op {
		case opString:
			n = v.Len()
		case opBytes:
			n = len(trimZeros(v.Bytes()))
		default:
			continue
		}
		if n > int(col.codec.max) {
			return c.textTooLong(col, n)
		}
	}
	for _, in := range c.standIns {
		if err := in.conversion.fits(&in.values, c.standInAt(whole, in)); err != nil {
			return err
		}
	}
	return nil
}

// holdStrings is the twin of [component.holdStrings].
func (c slowKernels) holdStrings(held []string, p unsafe.Pointer, n int) {
	values := reflect.SliceAt(c.typ, p, n)
	for row := range n {
		for k, i := range c.strings {
			held[row*len(c.strings)+k] = leaf(values.Index(row), c.columns[i].steps).String()
		}
	}
}

// slowMarkersAt is the twin of [markersAt].
func slowMarkersAt(p unsafe.Pointer, n int) []Replicated {
	return reflect.SliceAt(reflect.TypeFor[Replicated](), p, n).Interface().([]Replicated)
}

// standInAt returns the address of what a stand-in stands for: the part of its type at its offset.
func (c slowKernels) standInAt(v reflect.Value, in *standIn) unsafe.Pointer {
	part, offset := v, in.offset
	for part.Type() != in.conversion.source() {
		inner, start := -1, uintptr(0)
		for i := range numParts(part) {
			if at := offsetOfPart(part.Type(), i); at <= offset && partOf(part, i).Type().Size() > 0 {
				inner, start = i, at
			}
		}
		if inner < 0 {
			panic(fmt.Sprintf("%v has no %v at %d", c.typ, in.conversion.source(), in.offset))
		}
		part, offset = partOf(part, inner), offset-start
	}
	if offset != 0 {
		panic(fmt.Sprintf("%v has no %v at %d", c.typ, in.conversion.source(), in.offset))
	}
	return part.Addr().UnsafePointer()
}

func offsetOfPart(t reflect.Type, i int) uintptr {
	if t.Kind() == reflect.Struct {
		return t.Field(i).Offset
	}
	return uintptr(i) * t.Elem().Size()
}

// leaf returns the value inside a component value that the steps lead to.
func leaf(v reflect.Value, steps []int) reflect.Value {
	for _, step := range steps {
		v = partOf(v, step)
	}
	return v
}

// float32At returns the address of a float32 of any type; reflect's own getters and setters go through float64, which
// changes the bits of a signalling NaN.
func float32At(v reflect.Value) *float32 {
	return v.Addr().Convert(reflect.TypeFor[*float32]()).Interface().(*float32)
}

// wholeOf returns an integer of any type, and whether it is positive as that has it.
func wholeOf(v reflect.Value) (x int64, positive bool) {
	if v.CanInt() {
		return v.Int(), v.Int() > 0
	}
	return int64(v.Uint()), v.Uint() > 0
}

// slowColumn reads and writes one column.
type slowColumn struct{ *column }

// read stores the codes of a value and reports whether it was in range.
func (col slowColumn) read(v reflect.Value, dst []uint32) (ok bool) {
	q := col.codec
	var code uint64
	switch q.op {
	case opBool:
		ok = true
		if v.Bool() {
			code = 1
		}
	case opInt:
		code, ok = q.int.Encode(v.Int())
	case opUint:
		code, ok = q.uint.Encode(v.Uint())
	case opIntStep:
		code, ok = q.stepCode(wholeOf(v))
	case opIntWrap:
		code, ok = q.turnCode(wholeOf(v)), true
	case opFlags:
		x, _ := wholeOf(v)
		code, ok = uint64(x)&q.max, true
	case opString, opBytes:
		return col.readText(v, dst)
	case opRaw:
		if q.kind == reflect.Float32 {
			code, ok = quantize.Raw32{}.Encode(*float32At(v))
		} else {
			code, ok = quantize.Raw64{}.Encode(v.Float())
		}
	case opFixed:
		code, ok = q.fixed.Encode(v.Float())
	case opFloat:
		code, ok = q.float.Encode(v.Float())
	case opHalf:
		code, ok = quantize.Half{}.Encode(v.Float())
	case opAngle:
		code, ok = q.angle.Encode(v.Float())
	case opEntity, opRelation: // the targets of relations are not in the component
		var e ecs.Entity
		if q.op == opEntity {
			e = v.Interface().(ecs.Entity)
		}
		dst[0], dst[1] = e.ID(), e.Generation()
		return true
	case opUnit:
		var a, b uint64
		a, b, ok = q.unit.Encode([3]float64{partOf(v, 0).Float(), partOf(v, 1).Float(), partOf(v, 2).Float()})
		dst[0], dst[1] = uint32(a), uint32(b)
		return ok
	case opQuat:
		f := [4]float64{partOf(v, 0).Float(), partOf(v, 1).Float(), partOf(v, 2).Float(), partOf(v, 3).Float()}
		var c quantize.QuatCode
		if q.kind == reflect.Float32 {
			c, ok = q.quat.Encode32([4]float32{float32(f[0]), float32(f[1]), float32(f[2]), float32(f[3])})
		} else {
			c, ok = q.quat.Encode(f)
		}
		dst[0], dst[1], dst[2], dst[3] = c.Largest, c.A, c.B, c.C
		return ok
	}
	dst[0] = uint32(code)
	if q.bits > 32 {
		dst[1] = uint32(code >> 32)
	}
	return ok
}

func (col slowColumn) write(v reflect.Value, row []uint32) {
	q := col.codec
	switch q.op {
	case opEntity, opRelation: // by writeEntity, when it is known who that is here
	case opBool:
		v.SetBool(row[col.word] != 0)
	case opInt:
		x, _ := q.int.Decode(col.code(row))
		v.SetInt(x)
	case opUint:
		x, _ := q.uint.Decode(col.code(row))
		v.SetUint(x)
	case opIntStep, opIntWrap, opFlags:
		old, _ := wholeOf(v)
		if x := q.wholeValue(col.code(row), old); v.CanInt() {
			v.SetInt(x)
		} else {
			v.SetUint(uint64(x))
		}
	case opString, opBytes:
		col.writeText(v, row[col.word:])
	case opRaw:
		if q.kind == reflect.Float32 {
			*float32At(v) = math.Float32frombits(row[col.word])
		} else {
			v.SetFloat(math.Float64frombits(col.code(row)))
		}
	case opUnit:
		a, b := uint64(row[col.word]), uint64(row[col.word+1])
		if q.kind == reflect.Float32 {
			x, _ := q.unit.Decode32(a, b)
			setFloats(v, float64(x[0]), float64(x[1]), float64(x[2]))
		} else {
			x, _ := q.unit.Decode(a, b)
			setFloats(v, x[:]...)
		}
	case opQuat:
		if q.kind == reflect.Float32 {
			x, _ := q.quat.Decode32(col.quatCode(row))
			setFloats(v, float64(x[0]), float64(x[1]), float64(x[2]), float64(x[3]))
		} else {
			x, _ := q.quat.Decode(col.quatCode(row))
			setFloats(v, x[:]...)
		}
	default:
		v.SetFloat(col.decodeFloat(col.code(row)))
	}
}

// decodeFloat returns the number of a code; storing it in a float32 rounds as Decode32 does.
func (col slowColumn) decodeFloat(code uint64) (v float64) {
	switch q := col.codec; q.op {
	case opFixed:
		v, _ = q.fixed.Decode(code)
	case opFloat:
		v, _ = q.float.Decode(code)
	case opHalf:
		v, _ = quantize.Half{}.Decode(code)
	case opAngle:
		v, _ = q.angle.Decode(code)
	}
	return v
}

func setFloats(v reflect.Value, numbers ...float64) {
	for i, x := range numbers {
		partOf(v, i).SetFloat(x)
	}
}

// readText stores a text and reports whether all of it.
func (col slowColumn) readText(v reflect.Value, dst []uint32) (ok bool) {
	q := col.codec
	dst = dst[:q.words()]
	if q.op == opString {
		var s string
		s, ok = cutString(v.String(), int(q.max))
		putText(dst, s)
		return ok
	}
	b, ok := cutBytes(v.Bytes(), int(q.max))
	putText(dst, b)
	return ok
}

func (col slowColumn) writeText(v reflect.Value, row []uint32) {
	if col.codec.op == opString {
		s := v.String()
		col.codec.setString(&s, row)
		v.SetString(s)
	} else {
		col.codec.setBytes(v.Bytes(), row)
	}
}
