package main

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseIntoSetsEveryType(t *testing.T) {
	for _, c := range []struct {
		cell string
		want any
	}{
		{"true", true},
		{"false", false},
		{"-128", int8(-128)},
		{"-32768", int16(math.MinInt16)},
		{"2147483647", int32(math.MaxInt32)},
		{"-9223372036854775808", int64(math.MinInt64)},
		{"255", uint8(255)},
		{"65535", uint16(math.MaxUint16)},
		{"4294967295", uint32(math.MaxUint32)},
		{"18446744073709551615", uint64(math.MaxUint64)},
		{"0.1", float32(0.1)},
		{"-1e-3", -1e-3},
		{"16777217", float32(16777216)},
		{"16777217", float64(16777217)},
	} {
		v := reflect.New(reflect.TypeOf(c.want)).Elem()
		require.NoError(t, parseInto(v, c.cell))
		require.Equal(t, c.want, v.Interface())
	}
}

func TestParseIntoRefuses(t *testing.T) {
	for _, c := range []struct {
		cell string
		zero any
		want string
	}{
		{"abc", float32(0), `"abc" is not a float32`},
		{"1e39", float32(0), `"1e39" does not fit a float32`},
		{"1e309", float64(0), `"1e309" does not fit a float64`},
		{"1", false, `"1" is not a bool: write true or false`},
		{"TRUE", false, `"TRUE" is not a bool: write true or false`},
		{"128", int8(0), `"128" does not fit an int8`},
		{"1.5", int32(0), `"1.5" is not an int32`},
		{"-1", uint16(0), `"-1" is not a uint16`},
		{" 1", uint16(0), `" 1" is not a uint16`},
		{"", uint64(0), `"" is not a uint64`},
	} {
		v := reflect.New(reflect.TypeOf(c.zero)).Elem()
		require.EqualError(t, parseInto(v, c.cell), c.want)
		require.Equal(t, c.zero, v.Interface(), "%q left a trace", c.cell)
	}
}
