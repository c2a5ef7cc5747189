package main

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHalfAndTwiceTheStepOfEveryKindOfTag(t *testing.T) {
	f32, i64 := reflect.TypeFor[float32](), reflect.TypeFor[int64]()
	for _, c := range []struct {
		typ         reflect.Type
		tag         string
		half, twice string // tags, or the error
	}{
		{f32, "range=-5:5,step=0.01", "range=-5:5,step=0.005", "range=-5:5,step=0.02"},
		{f32, "range=-32:32,step=0.001953125", "range=-32:32,step=0.0009765625", "range=-32:32,step=0.00390625"},
		{f32, "step=3,range=0:9,jump", "step=1.5,range=0:9,jump", "step=6,range=0:9,jump"},
		{f32, "range=0:1e6,precision=1", "range=0:1e6,precision=0.5", "range=0:1e6,precision=2"},
		{f32, "angle,bits=10,period=360", "angle,bits=11,period=360", "angle,bits=9,period=360"},
		{reflect.TypeFor[[4]float64](), "quat,bits=9", "quat,bits=10", "quat,bits=8"},
		{reflect.TypeFor[[3]float32](), "unit,bits=8", "unit,bits=9", "unit,bits=7"},
		{reflect.TypeFor[uint16](), "range=0:1000,step=10", "range=0:1000,step=5", "range=0:1000,step=20"},
		{i64, "range=0:1000,step=5", "a step of 5 has no integer half", "range=0:1000,step=10"},
		{i64, "range=0s:1h,step=1ms", "range=0s:1h,step=500µs", "range=0s:1h,step=2ms"},
		{i64, "range=0:1,step=8000000000000000000", "range=0:1,step=4000000000000000000", "twice 8000000000000000000 is more than an int64 holds"},
		{i64, "range=0:1,step=x", `"x" is neither a whole number nor a duration`, `"x" is neither a whole number nor a duration`},
	} {
		f := field{typ: c.typ, tag: c.tag, array: c.typ.Kind() == reflect.Array}
		for half, want := range map[bool]string{true: c.half, false: c.twice} {
			got, item, err := f.scaled(half)
			if err != nil {
				require.EqualError(t, err, want, c.tag)
				continue
			}
			require.Equal(t, want, got)
			require.Contains(t, got, item)
		}
	}
}

func TestWhatHasNoStepIsNamed(t *testing.T) {
	for _, c := range []struct {
		typ       reflect.Type
		tag, want string
	}{
		{reflect.TypeFor[bool](), "", "exact"},
		{reflect.TypeFor[int32](), "range=-5:5", "exact"},
		{reflect.TypeFor[[3]uint16](), "", "exact"},
		{reflect.TypeFor[uint8](), "enum=5", "exact"},
		{reflect.TypeFor[float32](), "", "raw"},
		{reflect.TypeFor[float64](), "raw", "raw"},
		{reflect.TypeFor[float32](), "half", "half float"},
	} {
		f := field{typ: c.typ, tag: c.tag, array: c.typ.Kind() == reflect.Array}
		_, _, ok := f.precision()
		require.False(t, ok, c.tag)
		require.Equal(t, c.want, f.unscaled(), "%v %s", c.typ, c.tag)
	}
	f := field{typ: reflect.TypeFor[int32](), tag: "range=0:9,step=1"}
	require.True(t, f.stepOfOne(), "nothing is finer than that")
}

func TestRetaggingLeavesTheOriginalAlone(t *testing.T) {
	before := []component{{name: "P", fields: []field{{name: "X", typ: reflect.TypeFor[float32](), tag: "range=0:1,step=0.1"}}}}
	before[0].typ = structOf("P", before[0].fields)
	old := before[0].typ
	after := retags{"P.X": "range=0:1,step=0.2"}.apply(before)
	require.Equal(t, "range=0:1,step=0.2", after[0].typ.Field(0).Tag.Get("repl"))
	require.Equal(t, "range=0:1,step=0.1", before[0].fields[0].tag)
	require.Equal(t, old, before[0].typ)
}
