package replication

import (
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/arche-replicate/arche-replicate/quantize"
)

// Numeric field types of all kinds with their quantisers, and values worth testing.

// newColumnRand returns the generator of a random test.
func newColumnRand(t *testing.T) *rand.Rand {
	return rand.New(rand.NewPCG(seedOf(t), 0))
}

// scalarCase is a field type with a tag, and its quantiser made by hand: the oracle uses none of
// the schema's code.
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
	q := mustMake(quantize.NewInt(low, high, 1))
	return scalarCase{
		reflect.TypeFor[T](), tag,
		func(v reflect.Value) (uint64, bool) { return q.Encode(v.Int()) },
		func(code uint64) any { x, ok := q.Decode(code); return ifValid(T(x), ok && int64(T(x)) == x) },
	}
}

func uintCase[T uint | uint8 | uint16 | uint32 | uint64](tag string, low, high uint64) scalarCase {
	q := mustMake(quantize.NewInt(low, high, 1))
	return scalarCase{
		reflect.TypeFor[T](), tag,
		func(v reflect.Value) (uint64, bool) { return q.Encode(v.Uint()) },
		func(code uint64) any { x, ok := q.Decode(code); return ifValid(T(x), ok && uint64(T(x)) == x) },
	}
}

// floatQuantiser is the common interface of the float quantisers.
type floatQuantiser interface {
	Encode(v float64) (uint64, bool)
	Decode(code uint64) (float64, bool)
}

func float32Case(tag string, q floatQuantiser) scalarCase {
	return scalarCase{
		reflect.TypeFor[float32](), tag,
		func(v reflect.Value) (uint64, bool) { return q.Encode(v.Float()) },
		func(code uint64) any { x, ok := q.Decode(code); return ifValid(float32(x), ok) },
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
	q := mustMake(quantize.NewInt(low, high, step))
	return scalarCase{
		reflect.TypeFor[T](), tag,
		func(v reflect.Value) (uint64, bool) {
			if v.CanUint() && v.Uint() > math.MaxInt64 {
				return q.Max(), false
			}
			return q.Encode(bigInteger(v).Int64())
		},
		func(code uint64) any { x, ok := q.Decode(code); return ifValid(T(x), ok) },
	}
}

func turnCase[T int8 | int64 | uint16 | uint64](tag string, low, high int64) scalarCase {
	return scalarCase{
		reflect.TypeFor[T](), tag,
		func(v reflect.Value) (uint64, bool) {
			code := bigInteger(v)
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
				if bigInteger(v).Bit(i) != 0 && mask>>i&1 != 0 {
					code |= 1 << i
				}
			}
			return code, true
		},
		func(code uint64) any { return ifValid(T(code), code <= mask) }, // the padding bits are zero
	}
}

func bigInteger(v reflect.Value) *big.Int {
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

// interestingFloats are values at which encoders tend to fail. Tests add random ones.
var interestingFloats = []float64{
	0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1, -1, 0.1, 0.7, 0.3, 0.5, 32, -32, 31.9990234375, 32.0009765625,
	1000, -1000, 1000.001, -1000.001, 999.995, 10, -10, 1e6, 1e9, 65504, 65519.99, 65520, -65520, math.Pi, -math.Pi, 360, 1e30, -1e30,
	math.MaxFloat32, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat32, math.SmallestNonzeroFloat64, 0x1p-14, 0x1p-25,
}

// setRandom sets the number v to a value worth testing.
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
		if v.Kind() == reflect.Float32 && r.IntN(6) == 0 { // any bit pattern; every fourth is a signalling NaN
			bits := r.Uint32()
			if r.IntN(4) == 0 {
				bits = bits&^(1<<22) | 0xff<<23 | 1
			}
			*float32At(v) = math.Float32frombits(bits)
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

// sameBits compares numbers by their bits, because NaN differs from itself.
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
