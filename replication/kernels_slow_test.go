package replication

import (
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/quantize"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/field"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/mlange-42/arche/ecs"
)

// slowKernels are the reference implementation of a component's kernels. They compute no addresses:
// each value goes through package reflect, field by field, to the quantisers' methods. The kernels
// must match them to the last bit.
type slowKernels struct{ *schema.Component }

// readColumn is the reference of [schema.Component.ReadColumn].
func (c slowKernels) readColumn(dst []uint32, p unsafe.Pointer, n int) (clamped int) {
	if n == 0 || len(c.Columns) == 0 {
		return 0
	}
	values := reflect.SliceAt(c.Typ, p, n)
	for i := range n {
		row := dst[i*c.Words:][:c.Words]
		for j := range c.Columns {
			col := slowColumn{&c.Columns[j]}
			if col.StandIn == nil && !col.read(leaf(values.Index(i), col.Steps), row[col.Word:]) {
				clamped++
			}
		}
		for _, in := range c.StandIns {
			p := c.standInAt(values.Index(i), in)
			clamped += in.Conversion.Read(&in.Values, row[in.Word:][:in.Values.Words], p)
		}
	}
	return clamped
}

// write is the reference of [schema.Component.Write].
func (c slowKernels) write(p unsafe.Pointer, row []uint32) {
	v := reflect.NewAt(c.Typ, p).Elem()
	for i := range c.Columns {
		if col := (slowColumn{&c.Columns[i]}); col.StandIn == nil {
			col.write(leaf(v, col.Steps), row)
		}
	}
	for _, in := range c.StandIns {
		in.Conversion.Write(&in.Values, c.standInAt(v, in), row[in.Word:][:in.Values.Words])
	}
}

// refersToAny is the reference of [schema.Component.RefersToAny].
func (c slowKernels) refersToAny(p unsafe.Pointer, n int, ids bitset.Set) (found bool) {
	values := reflect.SliceAt(c.Typ, p, n)
	for i := range n {
		for j := range c.Columns {
			if col := &c.Columns[j]; col.Codec.Op == field.OpEntity {
				found = found || ids.Holds(leaf(values.Index(i), col.Steps).Interface().(ecs.Entity).ID())
			}
		}
	}
	return found
}

// readEntity is the reference of [schema.Component.ReadEntity].
func (c slowKernels) readEntity(p unsafe.Pointer, column int) ecs.Entity {
	return leaf(reflect.NewAt(c.Typ, p).Elem(), c.Columns[column].Steps).Interface().(ecs.Entity)
}

// writeEntity is the reference of [schema.Component.WriteEntity].
func (c slowKernels) writeEntity(p unsafe.Pointer, column int, e ecs.Entity) {
	leaf(reflect.NewAt(c.Typ, p).Elem(), c.Columns[column].Steps).Set(reflect.ValueOf(e))
}

// copyTo is the reference of [schema.Component.CopyTo].
func (c slowKernels) copyTo(dst unsafe.Pointer, i int, p unsafe.Pointer) {
	if c.Words > 0 {
		reflect.SliceAt(c.Typ, dst, i+1).Index(i).Set(reflect.NewAt(c.Typ, p).Elem())
	}
}

// fits is the reference of [schema.Component.Fits].
func (c slowKernels) fits(p unsafe.Pointer) error {
	component := reflect.NewAt(c.Typ, p).Elem()
	for i := range c.Columns {
		col := &c.Columns[i]
		if col.StandIn != nil {
			continue
		}
		n := 0
		switch v := leaf(component, col.Steps); col.Codec.Op {
		case field.OpString:
			n = v.Len()
		case field.OpBytes:
			n = len(field.TrimZeros(v.Bytes()))
		default:
			continue
		}
		if n > int(col.Codec.Max) {
			return c.TextTooLong(col, n)
		}
	}
	for _, in := range c.StandIns {
		if err := in.Conversion.Fits(&in.Values, c.standInAt(component, in)); err != nil {
			return err
		}
	}
	return nil
}

// holdStrings is the reference of [schema.Component.HoldStrings].
func (c slowKernels) holdStrings(held []string, p unsafe.Pointer, n int) {
	values := reflect.SliceAt(c.Typ, p, n)
	for row := range n {
		for k, i := range c.Strings {
			held[row*len(c.Strings)+k] = leaf(values.Index(row), c.Columns[i].Steps).String()
		}
	}
}

// standInAt returns the address of the value that a stand-in replaces: the part of its type at its
// offset.
func (c slowKernels) standInAt(v reflect.Value, in *schema.StandIn) unsafe.Pointer {
	part, offset := v, in.Offset
	for part.Type() != in.Conversion.Source() {
		inner, start := -1, uintptr(0)
		for i := range numParts(part) {
			if at := offsetOfPart(part.Type(), i); at <= offset && partOf(part, i).Type().Size() > 0 {
				inner, start = i, at
			}
		}
		if inner < 0 {
			panic(fmt.Sprintf("%v has no %v at %d", c.Typ, in.Conversion.Source(), in.Offset))
		}
		part, offset = partOf(part, inner), offset-start
	}
	if offset != 0 {
		panic(fmt.Sprintf("%v has no %v at %d", c.Typ, in.Conversion.Source(), in.Offset))
	}
	return part.Addr().UnsafePointer()
}

func offsetOfPart(t reflect.Type, i int) uintptr {
	if t.Kind() == reflect.Struct {
		return t.Field(i).Offset
	}
	return uintptr(i) * t.Elem().Size()
}

// leaf returns the value inside a component value at the end of a path of steps.
func leaf(v reflect.Value, steps []int) reflect.Value {
	for _, step := range steps {
		v = partOf(v, step)
	}
	return v
}

// float32At returns the address of a float32 of any named type. The getters and setters of package
// reflect go through float64, which changes the bits of a signalling NaN.
func float32At(v reflect.Value) *float32 {
	return v.Addr().Convert(reflect.TypeFor[*float32]()).Interface().(*float32)
}

// integerOf returns an integer of any type, and whether it is positive.
func integerOf(v reflect.Value) (x int64, positive bool) {
	if v.CanInt() {
		return v.Int(), v.Int() > 0
	}
	return int64(v.Uint()), v.Uint() > 0
}

// slowColumn reads and writes one column.
type slowColumn struct{ *schema.Column }

// read stores the codes of a value and reports whether it was in range.
func (col slowColumn) read(v reflect.Value, dst []uint32) (ok bool) {
	q := col.Codec
	var code uint64
	switch q.Op {
	case field.OpBool:
		ok = true
		if v.Bool() {
			code = 1
		}
	case field.OpInt:
		code, ok = q.Int.Encode(v.Int())
	case field.OpUint:
		code, ok = q.Uint.Encode(v.Uint())
	case field.OpIntStep:
		code, ok = q.StepCode(integerOf(v))
	case field.OpIntWrap:
		code, ok = q.WrapCode(integerOf(v)), true
	case field.OpFlags:
		x, _ := integerOf(v)
		code, ok = uint64(x)&q.Max, true
	case field.OpString, field.OpBytes:
		return col.readText(v, dst)
	case field.OpRaw:
		if q.Kind == reflect.Float32 {
			code, ok = uint64(math.Float32bits(*float32At(v))), true
		} else {
			code, ok = math.Float64bits(v.Float()), true
		}
	case field.OpFixed:
		code, ok = q.Fixed.Encode(v.Float())
	case field.OpFloat:
		code, ok = q.Float.Encode(v.Float())
	case field.OpHalf:
		code, ok = quantize.Half{}.Encode(v.Float())
	case field.OpAngle:
		code, ok = q.Angle.Encode(v.Float())
	case field.OpEntity, field.OpRelation: // relation targets are not in the component
		var e ecs.Entity
		if q.Op == field.OpEntity {
			e = v.Interface().(ecs.Entity)
		}
		dst[0], dst[1] = e.ID(), e.Generation()
		return true
	case field.OpUnit:
		var a, b uint64
		a, b, ok = q.Unit.Encode([3]float64{partOf(v, 0).Float(), partOf(v, 1).Float(), partOf(v, 2).Float()})
		dst[0], dst[1] = uint32(a), uint32(b)
		return ok
	case field.OpQuat:
		f := [4]float64{partOf(v, 0).Float(), partOf(v, 1).Float(), partOf(v, 2).Float(), partOf(v, 3).Float()}
		var c quantize.QuatCode
		if q.Kind == reflect.Float32 {
			c, ok = q.Quat.Encode32([4]float32{float32(f[0]), float32(f[1]), float32(f[2]), float32(f[3])})
		} else {
			c, ok = q.Quat.Encode(f)
		}
		dst[0], dst[1], dst[2], dst[3] = c.Largest, c.A, c.B, c.C
		return ok
	}
	dst[0] = uint32(code)
	if q.Bits > 32 {
		dst[1] = uint32(code >> 32)
	}
	return ok
}

func (col slowColumn) write(v reflect.Value, row []uint32) {
	q := col.Codec
	switch q.Op {
	case field.OpEntity, field.OpRelation: // written by writeEntity, once the local entity is known
	case field.OpBool:
		v.SetBool(row[col.Word] != 0)
	case field.OpInt:
		x, _ := q.Int.Decode(col.Code(row))
		v.SetInt(x)
	case field.OpUint:
		x, _ := q.Uint.Decode(col.Code(row))
		v.SetUint(x)
	case field.OpIntStep, field.OpIntWrap, field.OpFlags:
		old, _ := integerOf(v)
		if x := q.IntegerValue(col.Code(row), old); v.CanInt() {
			v.SetInt(x)
		} else {
			v.SetUint(uint64(x))
		}
	case field.OpString, field.OpBytes:
		col.writeText(v, row[col.Word:])
	case field.OpRaw:
		if q.Kind == reflect.Float32 {
			*float32At(v) = math.Float32frombits(row[col.Word])
		} else {
			v.SetFloat(math.Float64frombits(col.Code(row)))
		}
	case field.OpUnit:
		a, b := uint64(row[col.Word]), uint64(row[col.Word+1])
		if q.Kind == reflect.Float32 {
			x, _ := q.Unit.Decode32(a, b)
			setFloats(v, float64(x[0]), float64(x[1]), float64(x[2]))
		} else {
			x, _ := q.Unit.Decode(a, b)
			setFloats(v, x[:]...)
		}
	case field.OpQuat:
		if q.Kind == reflect.Float32 {
			x, _ := q.Quat.Decode32(field.QuatCode(row[col.Word:]))
			setFloats(v, float64(x[0]), float64(x[1]), float64(x[2]), float64(x[3]))
		} else {
			x, _ := q.Quat.Decode(field.QuatCode(row[col.Word:]))
			setFloats(v, x[:]...)
		}
	default:
		v.SetFloat(col.decodeFloat(col.Code(row)))
	}
}

// decodeFloat returns the number of a code. Storing it in a float32 rounds it.
func (col slowColumn) decodeFloat(code uint64) (v float64) {
	switch q := col.Codec; q.Op {
	case field.OpFixed:
		v, _ = q.Fixed.Decode(code)
	case field.OpFloat:
		v, _ = q.Float.Decode(code)
	case field.OpHalf:
		v, _ = quantize.Half{}.Decode(code)
	case field.OpAngle:
		v, _ = q.Angle.Decode(code)
	}
	return v
}

func setFloats(v reflect.Value, numbers ...float64) {
	for i, x := range numbers {
		partOf(v, i).SetFloat(x)
	}
}

// readText stores a text and reports whether all of it fits.
func (col slowColumn) readText(v reflect.Value, dst []uint32) (ok bool) {
	q := col.Codec
	dst = dst[:q.Words()]
	if q.Op == field.OpString {
		var s string
		s, ok = field.CutString(v.String(), int(q.Max))
		field.PutText(dst, s)
		return ok
	}
	b, ok := field.CutBytes(v.Bytes(), int(q.Max))
	field.PutText(dst, b)
	return ok
}

func (col slowColumn) writeText(v reflect.Value, row []uint32) {
	if col.Codec.Op == field.OpString {
		s := v.String()
		field.SetString(&s, row, col.Codec.Max)
		v.SetString(s)
	} else {
		field.SetBytes(v.Bytes(), row, col.Codec.Max)
	}
}
