package quantize_test

import (
	"fmt"
	"math"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/quantize"
)

var floatCases = [][3]float64{
	{-10, 10, 0.5},
	{0, 1e6, 1},
	{0, 1, 1e-4},
	{-1, 1, 1e-4},
	{-1, 1000, 0.25},
	{1, 1000, 0.1},
	{100, 101, 0.1},
	{-1000, -1, 0.1},
	{-1000, 0, 0.1},
	{-0.1, 0.3, 0.01},
	{0, 65504, 16},
	{-math.Pi, math.Pi, 1e-3},
	{0, 1, 1},
	{-8, 8, 8},
	{0, 1e-20, 1e-23},
	{1e-10, 1, 1e-4},
	{0, 3e38, 1e36},
	{0.1, 0.7, 1e-7},
	{-1, 0x1p-10, 0x1p-12},
	{-15.9, 15.9, 0.5},
	{5, 5.001, 1},
	{-3, -3 + 1e-4, 1e-5},
	{0, 1 << 24, 1},
}

var floatCases64 = [][3]float64{{-1e9, 1e9, 1e-6}, {0, 1e300, 1e288}, {0, 1, 0x1p-52}, {0, 1.7e308, 1e300}, {1e-200, 1e200, 1e195}}

func newFloat(t testing.TB, c [3]float64, float32s bool) (*contract, quantize.Float) {
	t.Helper()
	construct := quantize.NewFloat
	low, high := c[0], c[1]
	if float32s {
		construct = quantize.NewFloat32
		low, high = min(low, float64(float32(low))), max(high, float64(float32(high)))
	}
	q, err := construct(c[0], c[1], c[2])
	require.NoError(t, err)
	require.LessOrEqual(t, q.MaxError(), c[2])
	require.LessOrEqual(t, q.Bits(), q.SignBits()+q.ExponentBits()+q.MantissaBits())
	return &contract{t: t, name: fmt.Sprintf("Float(%v, 32=%v)", c, float32s), q: &q, min: low, max: high, float32s: float32s}, q
}

func TestFourSmallFloats(t *testing.T) {
	rng := newRand(t)
	for _, c := range []struct {
		min, max, precision            float64
		sign, exponent, mantissa, bits uint
		bias                           int
		fixed, fixedFine               uint // the table in the documentation
	}{
		{-10, 10, 0.5, 1, 3, 3, 7, 2, 5, 9},
		{0, 1e6, 1, 0, 5, 18, 23, 1, 19, 38},
		{0, 1, 1e-4, 0, 4, 12, 16, 15, 13, 27},
		{-1, 1, 1e-4, 1, 4, 12, 17, 15, 14, 28},
	} {
		for _, float32s := range []bool{false, true} {
			check, q := newFloat(t, [3]float64{c.min, c.max, c.precision}, float32s)
			require.Equal(t, []uint{c.sign, c.exponent, c.mantissa, c.bits}, []uint{q.SignBits(), q.ExponentBits(), q.MantissaBits(), q.Bits()}, check.name)
			require.Equal(t, c.bias, q.Bias())
			check.edges()
			check.random(rng, 300_000)
			require.LessOrEqual(t, check.worst, c.precision)
			zero, ok := q.Encode(0)
			require.True(t, ok)
			v, _ := q.Decode(zero)
			require.Zero(t, math.Float64bits(v))
		}
		fixed, err := quantize.NewFixed(c.min, c.max, 2*c.precision)
		require.NoError(t, err)
		require.Equal(t, c.fixed, fixed.Bits())
		fine, err := quantize.NewFixed(c.min, c.max, math.Ldexp(1, 1-c.bias-int(c.mantissa)))
		require.NoError(t, err)
		require.Equal(t, c.fixedFine, fine.Bits())
	}
}

func TestFloatKeepsItsContract(t *testing.T) {
	rng := newRand(t)
	for i, c := range append(append([][3]float64{}, floatCases...), floatCases64...) {
		for _, float32s := range []bool{false, true} {
			if float32s && i >= len(floatCases) {
				_, err := quantize.NewFloat32(c[0], c[1], c[2])
				require.Error(t, err)
				continue
			}
			q, _ := newFloat(t, c, float32s)
			q.edges()
			q.random(rng, 50_000)
			q.sorted(rng, 2_000)
			if q.q.Max() <= exhaustive() {
				for code := range q.q.Max() + 1 {
					q.near(code)
				}
			}
		}
	}
}

func TestFloatKeepsItsContractForRandomRanges(t *testing.T) {
	rng := newRand(t)
	for accepted := 0; accepted < tries(6_000); {
		low, high := math.Ldexp(rng.Float64()*2-1, rng.IntN(60)-30), math.Ldexp(rng.Float64()*2-1, rng.IntN(60)-30)
		low, high = min(low, high), max(low, high)
		precision := max(-low, high) * math.Ldexp(rng.Float64(), -rng.IntN(30))
		for _, float32s := range []bool{false, true} {
			construct := quantize.NewFloat
			if float32s {
				construct = quantize.NewFloat32
			}
			if _, err := construct(low, high, precision); err != nil {
				continue
			}
			accepted++
			q, _ := newFloat(t, [3]float64{low, high, precision}, float32s)
			q.edges()
			q.random(rng, 200)
			q.sorted(rng, 100)
		}
	}
}

// The slow twin knows the format only by the accessors: it lists every value and takes the nearest.
func TestFloatRoundsToTheNearestValueOfItsFormat(t *testing.T) {
	rng := newRand(t)
	for _, c := range floatCases {
		_, q := newFloat(t, c, false)
		if q.Max() > 1<<18 {
			continue
		}
		values := []float64{c[0], c[1]}
		for e := range 1 << q.ExponentBits() {
			for m := range 1 << q.MantissaBits() {
				v := float64(m) / float64(int(1)<<q.MantissaBits())
				if e == 0 {
					v = math.Ldexp(v, 1-q.Bias())
				} else {
					v = math.Ldexp(1+v, e-q.Bias())
				}
				for _, w := range []float64{v, -v} {
					if w > c[0] && w < c[1] && !(w == 0 && math.Signbit(w)) {
						values = append(values, w)
					}
				}
			}
		}
		sort.Float64s(values)
		require.EqualValues(t, q.Max()+1, len(values), "%v", c)
		for code, want := range values {
			v, ok := q.Decode(uint64(code))
			if !ok || v != want {
				t.Fatalf("%v: code %d is %v, want %v", c, code, v, want)
			}
		}
		for range tries(5_000) {
			v := c[0] + rng.Float64()*(c[1]-c[0])
			code, _ := q.Encode(v)
			// The two outermost cells are cut off by the bounds, which may take less than half of them.
			if code <= 1 || code >= q.Max()-1 {
				continue
			}
			below, above := v-values[code-1], values[code+1]-v
			if err := math.Abs(values[code] - v); err > below || err > above {
				t.Fatalf("%v: %v gets code %d, %v, but a neighbour is nearer", c, v, code, values[code])
			}
		}
	}
}

func TestFloatKeepsItsRelativePrecisionDownToPrecision(t *testing.T) {
	rng := newRand(t)
	for _, c := range floatCases {
		_, q := newFloat(t, c, false)
		relative := math.Ldexp(1, -int(q.MantissaBits())-1)
		for range tries(20_000) {
			v := math.Ldexp(max(-c[0], c[1]), -rng.IntN(20)) * rng.Float64()
			if c[0] < 0 && (c[1] <= 0 || rng.IntN(2) == 0) {
				v = -v
			}
			if v < c[0] || v > c[1] || math.Abs(v) < c[2] {
				continue
			}
			code, _ := q.Encode(v)
			w, _ := q.Decode(code)
			if math.Abs(w-v) > relative*math.Abs(v) {
				t.Fatalf("%v: %v comes back as %v: relative error %v > %v", c, v, w, math.Abs(w-v)/math.Abs(v), relative)
			}
		}
	}
}

func TestUnusableFloatRangesAreRefused(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		min, max, precision float64
		want                string
	}{
		{1, 1, 0.1, "must be less than the high one"},
		{nan, 1, 0.1, "must be less than the high one"},
		{0, inf, 0.1, "finite"},
		{-1.7e308, 1.7e308, 1e300, "too wide"},
		{0, 1, 0, "precision 0 does not suit"},
		{0, 1, -1, "precision -1 does not suit"},
		{0, 1, nan, "precision NaN does not suit"},
		{0, 1, 2, "at most 1"},
		{0, 1e10, 1e-9, "finer than a float64 can hold"},
		{0, 1e-305, 1e-309, "scale the values up"},
	} {
		_, err := quantize.NewFloat(c.min, c.max, c.precision)
		require.ErrorContains(t, err, c.want)
		_, err = quantize.NewFloat32(c.min, c.max, c.precision)
		require.Error(t, err)
	}
	_, err := quantize.NewFloat32(0, 1000, 1e-5)
	require.ErrorContains(t, err, "finer than a float32 can hold")
	_, err = quantize.NewFloat32(1, 1+1e-9, 1e-3)
	require.ErrorContains(t, err, "same float32 number")
}
