package quantize_test

import (
	"math"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/quantize"
)

// halfValue is binary16 as IEEE 754 defines it, term by term.
func halfValue(pattern int) float64 {
	sign, exponent, mantissa := pattern>>15, pattern>>10&31, float64(pattern&1023)/1024
	v := math.Ldexp(1+mantissa, exponent-15)
	if exponent == 0 {
		v = math.Ldexp(mantissa, -14)
	}
	if sign == 1 {
		return -v
	}
	return v
}

func TestHalfDecodesEveryPattern(t *testing.T) {
	var q quantize.Half
	for pattern := range 1 << 17 {
		v, ok := q.Decode(uint64(pattern))
		if pattern >= 1<<16 || pattern>>10&31 == 31 || pattern == 0x8000 {
			require.False(t, ok, "%#x", pattern)
			require.Zero(t, v)
			continue
		}
		if !ok || v != halfValue(pattern) {
			t.Fatalf("%#x decodes to %v %v, want %v", pattern, v, ok, halfValue(pattern))
		}
	}
}

func TestHalfRoundsToTheNearestEven(t *testing.T) {
	var q quantize.Half
	c := &contract{t: t, name: "Half", q: q, min: math.Nextafter(-65520, 0), max: math.Nextafter(65520, 0), float32s: true}
	c.edges()
	c.random(newRand(t), 1_000_000)
	require.Greater(t, c.worst, 15.9)

	patterns := []int{}
	for pattern := range 0x7c00 {
		patterns = append(patterns, pattern)
	}
	for _, pattern := range patterns[:len(patterns)-1] {
		low, high := halfValue(pattern), halfValue(pattern+1)
		middle := (low + high) / 2
		for _, p := range []struct {
			v    float64
			want int
		}{{low, pattern}, {math.Nextafter(middle, 0), pattern}, {middle, pattern + pattern&1}, {math.Nextafter(middle, 1e9), pattern + 1}} {
			code, ok := q.Encode(p.v)
			negative, _ := q.Encode(-p.v)
			want := uint64(p.want)
			if !ok || code != want || want != 0 && negative != want|0x8000 || want == 0 && negative != 0 {
				t.Fatalf("%v encodes to %#x, its negative to %#x, want %#x", p.v, code, negative, want)
			}
		}
	}
	require.True(t, sort.SliceIsSorted(patterns, func(i, j int) bool { return halfValue(patterns[i]) < halfValue(patterns[j]) }))
}

func TestHalfClampsWhatRoundsToInfinity(t *testing.T) {
	var q quantize.Half
	for _, c := range []struct {
		v    float64
		code uint64
		ok   bool
	}{
		{65504, 0x7bff, true},
		{65519.99, 0x7bff, true},
		{65520, 0x7bff, false},
		{math.Inf(1), 0x7bff, false},
		{-65520, 0xfbff, false},
		{math.Inf(-1), 0xfbff, false},
		{math.NaN(), 0, false},
		{math.Copysign(0, -1), 0, true},
		{-0x1p-26, 0, true},
		{1, 0x3c00, true},
	} {
		code, ok := q.Encode(c.v)
		require.Equal(t, c.code, code, "%v", c.v)
		require.Equal(t, c.ok, ok, "%v", c.v)
	}
	require.EqualValues(t, 0xfbff, q.Max())
	require.EqualValues(t, 16, q.Bits())
}
