// Package tolerance compares rows of codes of a component, one that was predicted with the server's.
package tolerance

import (
	"math"
	"reflect"
	"slices"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication/internal/field"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// A Tolerance is how two rows of a component are compared.
type Tolerance struct {
	steps   uint32
	fields  []comparedField
	numbers bool // all words are compared as numbers
}

// comparedField is how a field is compared.
type comparedField struct {
	word, words int
	kind        comparison
	period      uint32 // of those that wrap, or 0 for 2^32
	column      *schema.Column
}

type comparison uint8

const (
	equal     comparison = iota
	near                 // within the tolerance, as numbers
	round                // the same, on a circle
	magnitude            // the same, with the sign in bit 15
	rotation             // quaternions
)

// New returns the tolerance of so many steps of their precision for numbers on a scale: floats, angles, directions and
// rotations. All else must be equal.
func New(comp *schema.Component, steps int) Tolerance {
	t := Tolerance{steps: uint32(steps), numbers: true}
	for i := range comp.Columns {
		col := &comp.Columns[i]
		c := comparedField{word: col.Word, words: col.Codec.Words(), column: col}
		switch {
		case col.Codec.Op == field.OpEntity:
			t.numbers = false
			continue
		case steps == 0 || col.StandIn != nil:
		case col.Codec.Op == field.OpFixed || col.Codec.Op == field.OpFloat || col.Codec.Op == field.OpUnit:
			c.kind = near
		case col.Codec.Op == field.OpHalf:
			c.kind = magnitude
		case col.Codec.Op == field.OpQuat:
			c.kind = rotation
		case col.Codec.Op == field.OpAngle:
			c.kind = round
			c.period = uint32(1) << (col.Codec.Bits % 32)
			if col.Codec.Bits == 32 {
				c.period = 0
			}
		}
		t.numbers = t.numbers && c.kind == near
		t.fields = append(t.fields, c)
	}
	return t
}

// Agrees reports whether two rows of codes agree, references aside.
func (t *Tolerance) Agrees(a, b []uint32) bool {
	if t.numbers {
		for i, v := range a {
			if v-b[i]+t.steps > 2*t.steps {
				return false
			}
		}
		return true
	}
	for i := range t.fields {
		f := &t.fields[i]
		if f.kind == rotation && sameRotation(f, a, b, t.steps) || f.agrees(a, b, t.steps) {
			continue
		}
		return false
	}
	return true
}

// agrees reports whether two rows of codes agree in a field, rotations aside.
func (c *comparedField) agrees(a, b []uint32, tolerance uint32) bool {
	for w := c.word; w < c.word+c.words; w++ {
		if a[w] == b[w] {
			continue
		}
		d := a[w] - b[w]
		switch c.kind {
		case near:
		case round:
			if c.period != 0 {
				d &= c.period - 1
				d = min(d, c.period-d)
			}
		case magnitude:
			const sign = 1 << 15
			if (a[w]^b[w])&sign != 0 {
				d = a[w]&^sign + b[w]&^sign
			}
		default:
			return false
		}
		if min(d, -d) > tolerance {
			return false
		}
	}
	return true
}

// sameRotation reports whether two quaternions, of which there are codes, are the same within so many steps.
func sameRotation(f *comparedField, a, b []uint32, steps uint32) bool {
	col := f.column
	if slices.Equal(a[f.word:f.word+f.words], b[f.word:f.word+f.words]) {
		return true
	}
	var q [2][4]float64
	for i, row := range [2][]uint32{a, b} {
		if col.Codec.Kind == reflect.Float32 {
			var v [4]float32
			col.Codec.Write(unsafe.Pointer(&v), row[col.Word:])
			for k := range v {
				q[i][k] = float64(v[k])
			}
		} else {
			col.Codec.Write(unsafe.Pointer(&q[i]), row[col.Word:])
		}
	}
	dot := 0.0
	for k := range q[0] {
		dot += q[0][k] * q[1][k]
	}
	far := float64(steps) * math.Sqrt2 / float64(col.Codec.Quat.Max()) * 2
	return 1-math.Abs(dot) <= far*far/2
}
