package replication

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/quantize"
	"github.com/arche-replicate/arche-replicate/replication/internal/field"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/stretchr/testify/require"
)

func componentOf(t *testing.T, typ reflect.Type, opts ...ComponentOption) *schema.Component {
	t.Helper()
	s := NewSchema()
	RegisterType(s, typ, append(opts, Name("P"))...)
	s.raw.Freeze()
	return &s.raw.Components[0]
}

// TestColumnsEncodeAsTheirQuantisersDo codes every kind of number with its column and with its
// quantiser called by hand. The field has neighbours so that a wrong stride or width shows.
func TestColumnsEncodeAsTheirQuantisersDo(t *testing.T) {
	const rows = 700 // more than two blocks
	r := newColumnRand(t)
	for _, sc := range scalarCases() {
		t.Run(fmt.Sprint(sc.typ, " ", sc.tag), func(t *testing.T) {
			typ := reflect.StructOf([]reflect.StructField{
				{Name: "Before", Type: reflect.TypeFor[uint8]()},
				{Name: "X", Type: sc.typ, Tag: reflect.StructTag(`repl:"` + sc.tag + `"`)},
				{Name: "Skipped", Type: reflect.TypeFor[uint8](), Tag: `repl:"-"`},
				{Name: "After", Type: reflect.TypeFor[uint8]()},
			})
			c := componentOf(t, typ)
			values := reflect.MakeSlice(reflect.SliceOf(typ), rows, rows)
			for i := range rows {
				setRandom(values.Index(i), r)
				if x := values.Index(i).Field(1); i < len(interestingFloats) && x.CanFloat() {
					x.SetFloat(interestingFloats[i])
				}
			}
			words := c.Words
			dst := make([]uint32, rows*words+1)
			dst[rows*words] = 0xdeadbeef
			clamped := c.ReadColumn(dst, values.UnsafePointer(), rows)
			require.Equal(t, uint32(0xdeadbeef), dst[rows*words], "wrote behind the last row")

			wantClamped := 0
			back := reflect.New(typ)
			for i := range rows {
				row, v := dst[i*words:][:words], values.Index(i)
				want, ok := sc.encode(v.Field(1))
				if !ok {
					wantClamped++
				}
				got := c.Columns[1].Code(row)
				require.Equal(t, want, got, "code of %v", v.Field(1))
				require.Equal(t, uint32(v.Field(0).Uint()), row[0])
				require.Equal(t, uint32(v.Field(3).Uint()), row[words-1])
				require.True(t, c.ValidRow(row))
				require.True(t, c.Layout.Valid(row))

				back.Elem().Field(2).SetUint(77)
				c.Write(back.UnsafePointer(), row)
				require.True(t, sameBits(sc.decode(got), back.Elem().Field(1).Interface()), "value of code %d: want %v, got %v", got, sc.decode(got), back.Elem().Field(1))
				require.Equal(t, v.Field(0).Uint(), back.Elem().Field(0).Uint())
				require.Equal(t, uint64(77), back.Elem().Field(2).Uint(), "a skipped field was touched")
				require.Equal(t, v.Field(3).Uint(), back.Elem().Field(3).Uint())
			}
			require.Equal(t, wantClamped, clamped)

			// Any row is valid if and only if the quantiser accepts its code. An invalid row is
			// written as zero.
			row := make([]uint32, words)
			for range 2000 {
				code := r.Uint64() >> r.UintN(64)
				if r.IntN(4) == 0 {
					code = c.Columns[1].Codec.Max + uint64(r.IntN(3))
				}
				row[1] = uint32(code)
				if c.Columns[1].Codec.Bits > 32 {
					row[2] = uint32(code >> 32)
				}
				code = c.Columns[1].Code(row)
				want := sc.decode(code)
				require.Equal(t, want != nil, c.ValidRow(row), "code %d", code)
				if want != nil {
					c.Write(back.UnsafePointer(), row)
					require.True(t, sameBits(want, back.Elem().Field(1).Interface()), "code %d", code)
				}
			}
		})
	}
}

func TestRotationsAndDirectionsAsArrayAndStruct(t *testing.T) {
	type (
		vec32 struct{ X, Y, Z float32 }
		vec64 struct{ X, Y, Z float64 }
		rot32 struct{ X, Y, Z, W float32 }
		rot64 struct{ X, Y, Z, W float64 }
		all   struct {
			A  bool
			V0 [3]float32 `repl:"unit,bits=10"`
			V1 [3]float64 `repl:"unit,bits=12"`
			V2 vec32      `repl:"unit,bits=10"`
			V3 vec64      `repl:"unit,bits=12"`
			Q0 [4]float32 `repl:"quat,bits=9"`
			Q1 [4]float64 `repl:"quat,bits=15"`
			Q2 rot32      `repl:"quat,bits=9"`
			Q3 rot64      `repl:"quat,bits=15"`
			Z  bool
		}
	)
	c := componentOf(t, reflect.TypeFor[all]())
	unit10, unit12 := mustMake(quantize.NewUnitVector(10)), mustMake(quantize.NewUnitVector(12))
	quat9, quat15 := mustMake(quantize.NewQuat(9)), mustMake(quantize.NewQuat(15))
	quatWords := func(q quantize.QuatCode) []uint32 { return []uint32{q.Largest, q.A, q.B, q.C} }

	r := newColumnRand(t)
	const rows = 600
	values := make([]all, rows)
	for i := range values {
		v := &values[i]
		setRandom(reflect.ValueOf(v).Elem(), r)
		for j := range 4 { // mostly unit quaternions, as in practice
			v.Q1[j] = r.NormFloat64()
			if i%3 > 0 {
				v.Q0[j] = float32(r.NormFloat64())
			}
		}
		v.V2, v.V3 = vec32(fieldsOf3(v.V0)), vec64(fieldsOf3(v.V1))
		v.Q2, v.Q3 = rot32(fieldsOf4(v.Q0)), rot64(fieldsOf4(v.Q1))
	}
	dst := make([]uint32, rows*c.Words)
	clamped := c.ReadColumn(dst, reflect.ValueOf(values).UnsafePointer(), rows)

	wantClamped := 0
	for i, v := range values {
		row := dst[i*c.Words:][:c.Words]
		require.True(t, c.ValidRow(row))
		a0, b0, ok0 := unit10.Encode32(v.V0)
		a1, b1, ok1 := unit12.Encode(v.V1)
		q0, ok2 := quat9.Encode32(v.Q0)
		q1, ok3 := quat15.Encode(v.Q1)
		for _, ok := range []bool{ok0, ok1, ok2, ok3} {
			if !ok {
				wantClamped += 2
			}
		}
		want := []uint32{0, uint32(a0), uint32(b0), uint32(a1), uint32(b1), uint32(a0), uint32(b0), uint32(a1), uint32(b1)}
		want = slices.Concat(want, quatWords(q0), quatWords(q1), quatWords(q0), quatWords(q1), []uint32{0})
		if v.A {
			want[0] = 1
		}
		if v.Z {
			want[len(want)-1] = 1
		}
		require.Equal(t, want, row)

		var back all
		c.Write(reflect.ValueOf(&back).UnsafePointer(), row)
		wantBack := all{A: v.A, Z: v.Z}
		wantBack.V0, _ = unit10.Decode32(a0, b0)
		wantBack.V1, _ = unit12.Decode(a1, b1)
		wantBack.Q0, _ = quat9.Decode32(q0)
		wantBack.Q1, _ = quat15.Decode(q1)
		wantBack.V2, wantBack.V3 = vec32(fieldsOf3(wantBack.V0)), vec64(fieldsOf3(wantBack.V1))
		wantBack.Q2, wantBack.Q3 = rot32(fieldsOf4(wantBack.Q0)), rot64(fieldsOf4(wantBack.Q1))
		require.Equal(t, wantBack, back)
	}
	require.Equal(t, wantClamped, clamped)

	// Forged rows are valid if and only if every quantiser accepts its code.
	row := slices.Clone(dst[:c.Words])
	accepted, refused := 0, 0
	for range 5000 {
		i := 1 + r.IntN(c.Words-2)
		old := row[i]
		row[i] = r.Uint32() >> (16 + r.UintN(16))
		ok := true
		for j, q := range []quantize.UnitVector{unit10, unit12, unit10, unit12} {
			_, good := q.Decode(uint64(row[1+2*j]), uint64(row[2+2*j]))
			ok = ok && good
		}
		for j, q := range []quantize.Quat{quat9, quat15, quat9, quat15} {
			w := row[9+4*j:]
			_, good := q.Decode(quantize.QuatCode{Largest: w[0], A: w[1], B: w[2], C: w[3]})
			ok = ok && good
		}
		require.Equal(t, ok, c.ValidRow(row), "row %d", row)
		if ok {
			accepted++
		} else {
			refused++
			row[i] = old
		}
	}
	require.NotZero(t, accepted)
	require.NotZero(t, refused)
}

func fieldsOf3[T float32 | float64](a [3]T) struct{ X, Y, Z T } {
	return struct{ X, Y, Z T }{a[0], a[1], a[2]}
}

func fieldsOf4[T float32 | float64](a [4]T) struct{ X, Y, Z, W T } {
	return struct{ X, Y, Z, W T }{a[0], a[1], a[2], a[3]}
}

// TestColumnsReadTheFieldTheyAreNamedAfter: with nested, embedded and array fields, every column
// reads the value that its path names.
func TestColumnsReadTheFieldTheyAreNamedAfter(t *testing.T) {
	type named int32
	type inner struct {
		A uint8
		B [2]named
	}
	type base struct{ Level uint16 }
	type outer struct {
		base
		Pad  uint8
		In   inner
		Arr  [2]inner
		Grid [2][3]uint16
		Flag [3]bool
	}
	c := componentOf(t, reflect.TypeFor[outer]())
	v := outer{
		base: base{1}, Pad: 2, In: inner{3, [2]named{4, 5}},
		Arr:  [2]inner{{6, [2]named{7, 8}}, {9, [2]named{10, 11}}},
		Grid: [2][3]uint16{{12, 13, 14}, {15, 16, 17}},
		Flag: [3]bool{false, true, false},
	}
	row := make([]uint32, c.Words)
	require.Zero(t, c.ReadColumn(row, reflect.ValueOf(&v).UnsafePointer(), 1))
	got := map[string]int64{}
	for i := range c.Columns {
		col := &c.Columns[i]
		got[col.Path] = int64(col.Code(row))
		if col.Codec.Op == field.OpInt {
			got[col.Path] += math.MinInt32
		}
	}
	require.Equal(t, map[string]int64{
		"base.Level": 1, "Pad": 2, "In.A": 3, "In.B[0]": 4, "In.B[1]": 5,
		"Arr[0].A": 6, "Arr[0].B[0]": 7, "Arr[0].B[1]": 8, "Arr[1].A": 9, "Arr[1].B[0]": 10, "Arr[1].B[1]": 11,
		"Grid[0][0]": 12, "Grid[0][1]": 13, "Grid[0][2]": 14, "Grid[1][0]": 15, "Grid[1][1]": 16, "Grid[1][2]": 17,
		"Flag[0]": 0, "Flag[1]": 1, "Flag[2]": 0,
	}, got)

	var back outer
	c.Write(reflect.ValueOf(&back).UnsafePointer(), row)
	require.Equal(t, v, back)
}

func TestTagComponentsAndEmptyColumns(t *testing.T) {
	c := componentOf(t, reflect.TypeFor[struct{}]())
	var v struct{}
	require.Zero(t, c.ReadColumn(nil, reflect.ValueOf(&v).UnsafePointer(), 1000))
	c.Write(reflect.ValueOf(&v).UnsafePointer(), nil)
	require.True(t, c.ValidRow(nil))

	c = componentOf(t, reflect.TypeFor[schemaVec]())
	require.Zero(t, c.ReadColumn(nil, nil, 0))
}
