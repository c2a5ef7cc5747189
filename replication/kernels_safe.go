//go:build nounsafe

package replication

import (
	"math"
	"reflect"
	"unsafe" // for the name of the type that Arche hands out; no pointer is computed or converted here

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/quantize"
)

// This is the slow twin of kernels_unsafe.go, for builds that must not compute addresses: every value goes through package
// reflect, one field at a time.

// readColumn quantises n consecutive component values starting at p into dst, row after row, and returns how many numbers
// were out of range and had to be clamped.
//
// Precondition: len(dst) >= n*c.words.
func (c *component) readColumn(dst []uint32, p unsafe.Pointer, n int) (clamped int) {
	if n == 0 || len(c.columns) == 0 {
		return 0
	}
	values := reflect.SliceAt(c.typ, p, n)
	for i := range n {
		row := dst[i*c.words:][:c.words]
		for j := range c.columns {
			col := &c.columns[j]
			if col.standIn == nil && !col.read(leaf(values.Index(i), col.steps), row[col.word:]) {
				clamped++
			}
		}
		for _, in := range c.standIns {
			p := leaf(values.Index(i), in.steps).Addr().UnsafePointer()
			clamped += in.conversion.read(&in.values, row[in.word:][:in.values.words], p)
		}
	}
	return clamped
}

// markersAt returns the n markers from p on.
func markersAt(p unsafe.Pointer, n int) []Replicated {
	return reflect.SliceAt(reflect.TypeFor[Replicated](), p, n).Interface().([]Replicated)
}

// bytes returns how many bytes of each value are worth comparing with what they were: none, as bytes can't be had here.
func (c *component) bytes() uintptr { return 0 }

// sameBytes reports whether n consecutive values starting at p are known to have the given bytes.
func (c *component) sameBytes(_ []byte, _ unsafe.Pointer, _ int) bool { return c.words == 0 }

// keepBytes copies nothing.
func (c *component) keepBytes(_ []byte, _ unsafe.Pointer, _ int) {}

// room returns the address of memory for n values.
func (c *component) room(n int) unsafe.Pointer {
	return reflect.MakeSlice(reflect.SliceOf(c.typ), n, n).UnsafePointer()
}

// copyTo copies the value at p to the place of value i at dst.
func (c *component) copyTo(dst unsafe.Pointer, i int, p unsafe.Pointer) {
	if c.words > 0 {
		reflect.SliceAt(c.typ, dst, i+1).Index(i).Set(reflect.NewAt(c.typ, p).Elem())
	}
}

// write restores a row into the component value at p. Fields that are not replicated stay as they are, as do references.
//
// Precondition: validRow(row); codes that no quantiser produces become zeros.
func (c *component) write(p unsafe.Pointer, row []uint32) {
	if len(c.columns) == 0 {
		return
	}
	v := reflect.NewAt(c.typ, p).Elem()
	for i := range c.columns {
		if col := &c.columns[i]; col.standIn == nil {
			col.write(leaf(v, col.steps), row)
		}
	}
	for _, in := range c.standIns {
		in.conversion.write(&in.values, leaf(v, in.steps).Addr().UnsafePointer(), row[in.word:][:in.values.words])
	}
}

// refersToAny reports whether one of n consecutive values starting at p may refer to an entity whose ID is in the set.
func (c *component) refersToAny(_ unsafe.Pointer, _ int, _ bitset) bool { return true }

// readEntity returns what a column of the component value at p refers to.
func (c *component) readEntity(p unsafe.Pointer, column int) ecs.Entity {
	return leaf(reflect.NewAt(c.typ, p).Elem(), c.columns[column].steps).Interface().(ecs.Entity)
}

// writeEntity makes a column of the component value at p refer to the entity.
func (c *component) writeEntity(p unsafe.Pointer, column int, e ecs.Entity) {
	leaf(reflect.NewAt(c.typ, p).Elem(), c.columns[column].steps).Set(reflect.ValueOf(e))
}

// leaf returns the value inside a component value that the steps lead to.
func leaf(v reflect.Value, steps []int) reflect.Value {
	for _, step := range steps {
		v = part(v, step)
	}
	return v
}

// part returns field or element i of a struct or array.
func part(v reflect.Value, i int) reflect.Value {
	if v.Kind() == reflect.Struct {
		return v.Field(i)
	}
	return v.Index(i)
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

// read stores the codes of a value and reports whether it was in range.
func (col *column) read(v reflect.Value, dst []uint32) (ok bool) {
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
		return q.readText(v, dst)
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
		a, b, ok = q.unit.Encode([3]float64{part(v, 0).Float(), part(v, 1).Float(), part(v, 2).Float()})
		dst[0], dst[1] = uint32(a), uint32(b)
		return ok
	case opQuat:
		f := [4]float64{part(v, 0).Float(), part(v, 1).Float(), part(v, 2).Float(), part(v, 3).Float()}
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

func (col *column) write(v reflect.Value, row []uint32) {
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
		q.writeText(v, row[col.word:])
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
		v.SetFloat(q.decodeFloat(col.code(row)))
	}
}

// decodeFloat returns the number of a code; storing it in a float32 rounds as Decode32 does.
func (q *codec) decodeFloat(code uint64) (v float64) {
	switch q.op {
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
		part(v, i).SetFloat(x)
	}
}
