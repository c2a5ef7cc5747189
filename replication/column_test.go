package replication

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/quantize"
)

// newColumnRand returns a generator that prints its seed if the test fails.
func newColumnRand(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

// scalarCase is a field type with a tag, and its quantiser made by hand: the oracle takes no part of the schema's way.
type scalarCase struct {
	typ    reflect.Type
	tag    string
	encode func(v reflect.Value) (uint64, bool)
	decode func(code uint64) any // nil if the code is not valid
}

func mustMake[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func ifValid[T any](v T, ok bool) any {
	if !ok {
		return nil
	}
	return v
}

func intCase[T int | int8 | int16 | int32 | int64](tag string, low, high int64) scalarCase {
	q := mustMake(quantize.NewInt(low, high))
	return scalarCase{
		reflect.TypeFor[T](), tag,
		func(v reflect.Value) (uint64, bool) { return q.Encode(v.Int()) },
		func(code uint64) any { x, ok := q.Decode(code); return ifValid(T(x), ok && int64(T(x)) == x) },
	}
}

func uintCase[T uint | uint8 | uint16 | uint32 | uint64](tag string, low, high uint64) scalarCase {
	q := mustMake(quantize.NewUint(low, high))
	return scalarCase{
		reflect.TypeFor[T](), tag,
		func(v reflect.Value) (uint64, bool) { return q.Encode(v.Uint()) },
		func(code uint64) any { x, ok := q.Decode(code); return ifValid(T(x), ok && uint64(T(x)) == x) },
	}
}

// floatQuantiser is what the quantisers of floats have in common.
type floatQuantiser interface {
	Encode(v float64) (uint64, bool)
	Decode(code uint64) (float64, bool)
	Decode32(code uint64) (float32, bool)
}

func float32Case(tag string, q floatQuantiser) scalarCase {
	return scalarCase{
		reflect.TypeFor[float32](), tag,
		func(v reflect.Value) (uint64, bool) { return q.Encode(v.Float()) },
		func(code uint64) any { return ifValid(q.Decode32(code)) },
	}
}

func float64Case(tag string, q floatQuantiser) scalarCase {
	return scalarCase{
		reflect.TypeFor[float64](), tag,
		func(v reflect.Value) (uint64, bool) { return q.Encode(v.Float()) },
		func(code uint64) any { return ifValid(q.Decode(code)) },
	}
}

func stepCase[T int8 | int64 | uint16 | uint64](tag string, low, high, step int64) scalarCase {
	q := mustMake(quantize.NewIntStep(low, high, step))
	return scalarCase{
		reflect.TypeFor[T](), tag,
		func(v reflect.Value) (uint64, bool) {
			if v.CanUint() && v.Uint() > math.MaxInt64 {
				return q.Max(), false
			}
			return q.Encode(wholeNumber(v).Int64())
		},
		func(code uint64) any { x, ok := q.Decode(code); return ifValid(T(x), ok) },
	}
}

func turnCase[T int8 | int64 | uint16 | uint64](tag string, low, high int64) scalarCase {
	return scalarCase{
		reflect.TypeFor[T](), tag,
		func(v reflect.Value) (uint64, bool) {
			code := wholeNumber(v)
			turn := new(big.Int).Sub(big.NewInt(high+1), big.NewInt(low))
			return code.Mod(code.Sub(code, big.NewInt(low)), turn).Uint64(), true
		},
		func(code uint64) any { return ifValid(T(low+int64(code)), code <= uint64(high-low)) },
	}
}

func flagsCase[T int8 | int64 | uint16 | uint64](tag string, mask uint64) scalarCase {
	return scalarCase{
		reflect.TypeFor[T](), tag,
		func(v reflect.Value) (uint64, bool) { // bit by bit
			code := uint64(0)
			for i := range 64 {
				if wholeNumber(v).Bit(i) != 0 && mask>>i&1 != 0 {
					code |= 1 << i
				}
			}
			return code, true
		},
		func(code uint64) any { return ifValid(T(code), code <= mask) }, // over zeros
	}
}

func wholeNumber(v reflect.Value) *big.Int {
	if v.CanUint() {
		return new(big.Int).SetUint64(v.Uint())
	}
	return big.NewInt(v.Int())
}

func scalarCases() []scalarCase {
	addr := func(q quantize.Fixed) *quantize.Fixed { return &q }
	small := func(q quantize.Float) *quantize.Float { return &q }
	return []scalarCase{
		{
			reflect.TypeFor[bool](), "",
			func(v reflect.Value) (uint64, bool) {
				if v.Bool() {
					return 1, true
				}
				return 0, true
			},
			func(code uint64) any { return ifValid(code == 1, code <= 1) },
		},
		intCase[int8]("", math.MinInt8, math.MaxInt8),
		intCase[int16]("", math.MinInt16, math.MaxInt16),
		intCase[int32]("", math.MinInt32, math.MaxInt32),
		intCase[int64]("", math.MinInt64, math.MaxInt64),
		intCase[int]("", math.MinInt64, math.MaxInt64),
		uintCase[uint8]("", 0, math.MaxUint8),
		uintCase[uint16]("", 0, math.MaxUint16),
		uintCase[uint32]("", 0, math.MaxUint32),
		uintCase[uint64]("", 0, math.MaxUint64),
		uintCase[uint]("", 0, math.MaxUint64),
		intCase[int8]("range=-3:100", -3, 100),
		intCase[int16]("range=-300:-3", -300, -3),
		intCase[int32]("range=0:1e6", 0, 1e6),
		intCase[int64]("range=-9223372036854775808:5", math.MinInt64, 5),
		intCase[int]("range=-1000:1000", -1000, 1000),
		uintCase[uint8]("range=3:100", 3, 100),
		uintCase[uint16]("range=0:100", 0, 100),
		uintCase[uint32]("range=7:4294967295", 7, math.MaxUint32),
		uintCase[uint64]("range=5:18446744073709551615", 5, math.MaxUint64),
		uintCase[uint]("range=0:1000", 0, 1000),
		intCase[int8]("enum=5", 0, 4),
		intCase[int]("enum=70000", 0, 69999),
		uintCase[uint8]("enum=256", 0, 255),
		uintCase[uint32]("enum=2", 0, 1),
		intCase[int16]("counter", math.MinInt16, math.MaxInt16),
		uintCase[uint8]("wrap", 0, math.MaxUint8),
		uintCase[uint16]("range=0:100,linear", 0, 100),
		intCase[int32]("range=0:100,step=1", 0, 100),
		stepCase[int8]("range=-100:100,step=7", -100, 100, 7),
		stepCase[uint16]("range=10:60000,step=50,counter", 10, 60000, 50),
		stepCase[int64]("range=-1000000000000000000:1000000000000000000,step=1000000", -1e18, 1e18, 1e6), // two words
		stepCase[int64]("range=0s:1h,step=1ms,linear", 0, 3600e9, 1e6),
		stepCase[uint64]("range=0:9e15,step=2", 0, 9e15, 2),
		turnCase[int8]("range=-12:12,wrap", -12, 12),
		turnCase[uint16]("range=0:359,wrap", 0, 359),
		turnCase[int64]("range=-9223372036854775808:5,wrap", math.MinInt64, 5), // two words
		turnCase[uint64]("range=100:9000000000000000,wrap", 100, 9e15),
		flagsCase[int8]("flags=8", 255),
		flagsCase[uint16]("flags=5", 31),
		flagsCase[int64]("flags=33", 1<<33-1),
		flagsCase[uint64]("flags=64", math.MaxUint64),
		{
			reflect.TypeFor[float32](), "",
			func(v reflect.Value) (uint64, bool) { return uint64(math.Float32bits(v.Interface().(float32))), true },
			func(code uint64) any { return ifValid(math.Float32frombits(uint32(code)), code <= math.MaxUint32) },
		},
		{
			reflect.TypeFor[float64](), "raw",
			func(v reflect.Value) (uint64, bool) { return math.Float64bits(v.Float()), true },
			func(code uint64) any { return math.Float64frombits(code) },
		},
		float32Case("range=-32:32,step=0.001953125", addr(mustMake(quantize.NewFixed32(-32, 32, 0.001953125)))),
		float32Case("range=-1000:1000,step=0.01", addr(mustMake(quantize.NewFixed32(-1000, 1000, 0.01)))),
		float32Case("range=0.1:0.7,step=0.1", addr(mustMake(quantize.NewFixed32(0.1, 0.7, 0.1)))),
		float32Case("range=0:1,step=0.3", addr(mustMake(quantize.NewFixed32(0, 1, 0.3)))),
		float64Case("range=-1000:1000,step=0.01", addr(mustMake(quantize.NewFixed(-1000, 1000, 0.01)))),
		float64Case("range=0:1e9,step=1e-4", addr(mustMake(quantize.NewFixed(0, 1e9, 1e-4)))), // two words
		float32Case("range=-10:10,precision=0.01", small(mustMake(quantize.NewFloat32(-10, 10, 0.01)))),
		float32Case("range=0.5:1e6,precision=1", small(mustMake(quantize.NewFloat32(0.5, 1e6, 1)))),
		float64Case("range=-10:10,precision=0.01", small(mustMake(quantize.NewFloat(-10, 10, 0.01)))),
		float64Case("range=-10:10,precision=1e-12", small(mustMake(quantize.NewFloat(-10, 10, 1e-12)))), // two words
		float32Case("half", quantize.Half{}),
		float64Case("half", quantize.Half{}),
		float32Case("angle,bits=10", mustMake(quantize.NewAngle32(2*math.Pi, 10))),
		float64Case("angle,bits=10,period=360", mustMake(quantize.NewAngle(360, 10))),
		float64Case("angle,bits=40", mustMake(quantize.NewAngle(2*math.Pi, 40))), // two words
	}
}

// interestingFloats are where encoders tend to go wrong; random ones come on top.
var interestingFloats = []float64{
	0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1, -1, 0.1, 0.7, 0.3, 0.5, 32, -32, 31.9990234375, 32.0009765625,
	1000, -1000, 1000.001, -1000.001, 999.995, 10, -10, 1e6, 1e9, 65504, 65519.99, 65520, -65520, math.Pi, -math.Pi, 360, 1e30, -1e30,
	math.MaxFloat32, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat32, math.SmallestNonzeroFloat64, 0x1p-14, 0x1p-25,
}

// setRandom fills the number v with one worth testing.
func setRandom(v reflect.Value, r *rand.Rand) {
	bits := r.Uint64() >> r.UintN(64)
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(bits&1 == 1)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(bits) * int64(1-2*r.IntN(2)) >> r.UintN(2))
		if r.IntN(8) == 0 {
			v.SetInt(math.MinInt64 >> (64 - v.Type().Bits()))
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(bits)
	case reflect.Float32, reflect.Float64:
		switch r.IntN(6) {
		case 0:
			v.SetFloat(interestingFloats[r.IntN(len(interestingFloats))])
		case 1:
			v.SetFloat(math.Float64frombits(r.Uint64()))
		case 2:
			x := interestingFloats[r.IntN(len(interestingFloats))]
			v.SetFloat(math.Nextafter(x, r.NormFloat64()))
		default:
			v.SetFloat(r.NormFloat64() * math.Pow(10, float64(r.IntN(7)-2)))
		}
		if v.Kind() == reflect.Float32 && r.IntN(6) == 0 { // all patterns, signalling NaNs too
			*v.Addr().Interface().(*float32) = math.Float32frombits(r.Uint32())
		}
	case reflect.Array, reflect.Struct:
		for i := range numParts(v) {
			setRandom(partOf(v, i), r)
		}
	default:
		panic(v.Kind())
	}
}

func numParts(v reflect.Value) int {
	if v.Kind() == reflect.Struct {
		return v.NumField()
	}
	return v.Len()
}

func partOf(v reflect.Value, i int) reflect.Value {
	if v.Kind() == reflect.Struct {
		return v.Field(i)
	}
	return v.Index(i)
}

// sameBits compares numbers by their bits, as NaN differs from itself.
func sameBits(a, b any) bool {
	switch x := a.(type) {
	case float32:
		y, ok := b.(float32)
		return ok && math.Float32bits(x) == math.Float32bits(y)
	case float64:
		y, ok := b.(float64)
		return ok && math.Float64bits(x) == math.Float64bits(y)
	}
	return a == b
}

func componentOf(t *testing.T, typ reflect.Type, opts ...ComponentOption) *component {
	t.Helper()
	s := NewSchema()
	RegisterType(s, typ, append(opts, Name("P"))...)
	s.seal()
	return &s.components[0]
}

// Every kind of number, coded by its column, against its quantiser called by hand. The field has neighbours so that a wrong
// stride or width shows.
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
			words := c.words
			dst := make([]uint32, rows*words+1)
			dst[rows*words] = 0xdeadbeef
			clamped := c.readColumn(dst, values.UnsafePointer(), rows)
			require.Equal(t, uint32(0xdeadbeef), dst[rows*words], "wrote behind the last row")

			wantClamped := 0
			back := reflect.New(typ)
			for i := range rows {
				row, v := dst[i*words:][:words], values.Index(i)
				want, ok := sc.encode(v.Field(1))
				if !ok {
					wantClamped++
				}
				got := c.columns[1].code(row)
				require.Equal(t, want, got, "code of %v", v.Field(1))
				require.Equal(t, uint32(v.Field(0).Uint()), row[0])
				require.Equal(t, uint32(v.Field(3).Uint()), row[words-1])
				require.True(t, c.validRow(row))
				require.True(t, c.layout.Valid(row))

				back.Elem().Field(2).SetUint(77)
				c.write(back.UnsafePointer(), row)
				require.True(t, sameBits(sc.decode(got), back.Elem().Field(1).Interface()), "value of code %d: want %v, got %v", got, sc.decode(got), back.Elem().Field(1))
				require.Equal(t, v.Field(0).Uint(), back.Elem().Field(0).Uint())
				require.Equal(t, uint64(77), back.Elem().Field(2).Uint(), "a skipped field was touched")
				require.Equal(t, v.Field(3).Uint(), back.Elem().Field(3).Uint())
			}
			require.Equal(t, wantClamped, clamped)

			// Any row: valid just if the quantiser accepts its code, and written as zero if not.
			row := make([]uint32, words)
			for range 2000 {
				code := r.Uint64() >> r.UintN(64)
				if r.IntN(4) == 0 {
					code = c.columns[1].codec.max + uint64(r.IntN(3))
				}
				row[1] = uint32(code)
				if c.columns[1].codec.bits > 32 {
					row[2] = uint32(code >> 32)
				}
				code = c.columns[1].code(row)
				want := sc.decode(code)
				require.Equal(t, want != nil, c.validRow(row), "code %d", code)
				if want != nil {
					c.write(back.UnsafePointer(), row)
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
		for j := range 4 { // unit quaternions mostly, as in life
			v.Q1[j] = r.NormFloat64()
			if i%3 > 0 {
				v.Q0[j] = float32(r.NormFloat64())
			}
		}
		v.V2, v.V3 = vec32(fieldsOf3(v.V0)), vec64(fieldsOf3(v.V1))
		v.Q2, v.Q3 = rot32(fieldsOf4(v.Q0)), rot64(fieldsOf4(v.Q1))
	}
	dst := make([]uint32, rows*c.words)
	clamped := c.readColumn(dst, reflect.ValueOf(values).UnsafePointer(), rows)

	wantClamped := 0
	for i, v := range values {
		row := dst[i*c.words:][:c.words]
		require.True(t, c.validRow(row))
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
		c.write(reflect.ValueOf(&back).UnsafePointer(), row)
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

	// Forged rows: valid just if every quantiser accepts its codes.
	row := slices.Clone(dst[:c.words])
	accepted, refused := 0, 0
	for range 5000 {
		i := 1 + r.IntN(c.words-2)
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
		require.Equal(t, ok, c.validRow(row), "row %d", row)
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

// Nested, embedded and array fields: every column must read the value that its path names.
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
	row := make([]uint32, c.words)
	require.Zero(t, c.readColumn(row, reflect.ValueOf(&v).UnsafePointer(), 1))
	got := map[string]int64{}
	for i := range c.columns {
		col := &c.columns[i]
		got[col.path] = int64(col.code(row))
		if col.codec.op == opInt {
			got[col.path] += math.MinInt32
		}
	}
	require.Equal(t, map[string]int64{
		"base.Level": 1, "Pad": 2, "In.A": 3, "In.B[0]": 4, "In.B[1]": 5,
		"Arr[0].A": 6, "Arr[0].B[0]": 7, "Arr[0].B[1]": 8, "Arr[1].A": 9, "Arr[1].B[0]": 10, "Arr[1].B[1]": 11,
		"Grid[0][0]": 12, "Grid[0][1]": 13, "Grid[0][2]": 14, "Grid[1][0]": 15, "Grid[1][1]": 16, "Grid[1][2]": 17,
		"Flag[0]": 0, "Flag[1]": 1, "Flag[2]": 0,
	}, got)

	var back outer
	c.write(reflect.ValueOf(&back).UnsafePointer(), row)
	require.Equal(t, v, back)
}

func TestTagComponentsAndEmptyColumns(t *testing.T) {
	c := componentOf(t, reflect.TypeFor[struct{}]())
	var v struct{}
	require.Zero(t, c.readColumn(nil, reflect.ValueOf(&v).UnsafePointer(), 1000))
	c.write(reflect.ValueOf(&v).UnsafePointer(), nil)
	require.True(t, c.validRow(nil))

	c = componentOf(t, reflect.TypeFor[schemaVec]())
	require.Zero(t, c.readColumn(nil, nil, 0))
}

type benchPosition struct {
	X, Y, Z float32 `repl:"range=-1000:1000,step=0.01"`
}

type benchVelocity struct {
	X, Y, Z float32 `repl:"range=-32:32,step=0.001953125"`
}

type benchHealth struct {
	Points uint16 `repl:"range=0:100"`
	Alive  bool
}

func benchColumns[T any](b *testing.B, fill func(v *T, r *rand.Rand)) {
	s := NewSchema()
	Register[T](s)
	s.seal()
	c := &s.components[0]
	const rows = 10000
	values := make([]T, rows)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range values {
		fill(&values[i], r)
	}
	dst := make([]uint32, rows*c.words)
	p := reflect.ValueOf(values).UnsafePointer()
	b.ReportAllocs()
	for b.Loop() {
		c.readColumn(dst, p, rows)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
}

func BenchmarkReadColumn(b *testing.B) {
	b.Run("Position", func(b *testing.B) {
		benchColumns(b, func(v *benchPosition, r *rand.Rand) {
			v.X, v.Y, v.Z = float32(r.NormFloat64()*100), float32(r.NormFloat64()*100), float32(r.NormFloat64()*100)
		})
	})
	b.Run("Velocity", func(b *testing.B) {
		benchColumns(b, func(v *benchVelocity, r *rand.Rand) {
			v.X, v.Y, v.Z = float32(r.NormFloat64()), float32(r.NormFloat64()), float32(r.NormFloat64())
		})
	})
	b.Run("Health", func(b *testing.B) {
		benchColumns(b, func(v *benchHealth, r *rand.Rand) { v.Points, v.Alive = uint16(r.IntN(101)), true })
	})
	b.Run("Ship", func(b *testing.B) {
		benchColumns(b, func(v *schemaShip, _ *rand.Rand) { v.Rot.W = 1 })
	})
}

func BenchmarkWriteRow(b *testing.B) {
	s := NewSchema()
	Register[benchPosition](s)
	c := &s.components[0]
	v := benchPosition{1, 2, 3}
	row := make([]uint32, c.words)
	p := reflect.ValueOf(&v).UnsafePointer()
	c.readColumn(row, p, 1)
	b.ReportAllocs()
	for b.Loop() {
		c.write(p, row)
	}
}
