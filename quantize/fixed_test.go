package quantize_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/quantize"
)

// fixedCases are ranges and steps of every kind: a whole number of steps or a fraction more, decimal, binary and odd steps, zero on
// the grid, off it and out of range.
var fixedCases = [][3]float64{
	{-1000, 1000, 0.01},
	{-32, 32, 0x1p-9},
	{0, 16, 0x1p-9},
	{0, 1, 0.3},
	{0, 1, 1e-4},
	{-1, 1, 1e-4},
	{-10, 10, 0.5},
	{0, 1e6, 1},
	{-math.Pi, math.Pi, math.Pi / 1000},
	{-math.Pi, math.Pi, 0.001},
	{0.1, 0.7, 0.1},
	{5, 6, 1},
	{5, 5.5, 0.3},
	{-50, 50, 0.05},
	{-8192, 8192, 1},
	{0, 1 << 24, 1},
	{-1 << 24, 1 << 24, 1},
	{-0.1, 0.1, 0.07},
	{-3, -1, 0.25},
	{100, 100.1, 0.01},
	{1e-30, 2e-30, 1e-33},
	{-1, 0.001, 0.0003},
	{0.05, 1, 0.1},
	{-1e30, 1e30, 1e25},
	{-7, 0, 0.7},
	{0, 0.9, 0.9},
	{-0.3, 0, 0.1},
	{-1e-3, 1e3, 1e-3},
	{16777215, 16777216, 1},
}

// fixedCases64 are too fine for a float32.
var fixedCases64 = [][3]float64{
	{-1e9, 1e9, 1e-3},
	{0, 1 << 47, 1},
	{-1 << 47, 1 << 47, 1},
	{-1e9, 1e9, math.Pi / 1e5},
	{1e9, 1e9 + 1, 1e-4},
	{1e300, 2e300, 1e290},
	{0, 1e-290, 1e-299},
	{-4 * math.Pi, 1e3, math.Pi / 4e10},
	{0.1, 1e5, 1e-9},
}

func newFixed(t testing.TB, c [3]float64, float32s bool) *contract {
	t.Helper()
	construct := quantize.NewFixed
	low, high := c[0], c[1]
	if float32s {
		construct = quantize.NewFixed32
		low, high = min(low, float64(float32(low))), max(high, float64(float32(high)))
	}
	q, err := construct(c[0], c[1], c[2])
	require.NoError(t, err)
	return &contract{t: t, name: fmt.Sprintf("Fixed(%v, 32=%v)", c, float32s), q: &q, min: low, max: high, float32s: float32s, nanLow: true}
}

func TestFixedKeepsItsContract(t *testing.T) {
	rng := newRand(t)
	for i, c := range append(append([][3]float64{}, fixedCases...), fixedCases64...) {
		for _, float32s := range []bool{false, true} {
			if float32s && i >= len(fixedCases) {
				_, err := quantize.NewFixed32(c[0], c[1], c[2])
				require.Error(t, err)
				continue
			}
			q := newFixed(t, c, float32s)
			q.edges()
			q.random(rng, 50_000)
			q.sorted(rng, 2_000)
			if q.q.Max() <= exhaustive() {
				for code := range q.q.Max() + 1 {
					q.near(code)
				}
			}
			if !float32s {
				require.Greater(t, q.worst, 0.4*q.q.MaxError(), "%s: MaxError is too generous", q.name)
			}
		}
	}
}

func TestFixedKeepsItsContractForRandomRanges(t *testing.T) {
	rng := newRand(t)
	for accepted := 0; accepted < tries(6_000); {
		scale := math.Pow(10, rng.Float64()*16-8)
		low, high := (rng.Float64()*2-1)*scale, (rng.Float64()*2-1)*scale
		low, high = min(low, high), max(low, high)
		step := (high - low) * math.Pow(2, -rng.Float64()*40)
		switch rng.IntN(3) {
		case 0: // a whole number of steps
			high = low + step*math.Round((high-low)/step)
		case 1: // decimal
			unit := math.Pow(10, float64(rng.IntN(12)-8))
			low, high, step = math.Round(low/unit)*unit, math.Round(high/unit)*unit, math.Round(step/unit)*unit
		}
		for _, float32s := range []bool{false, true} {
			construct := quantize.NewFixed
			if float32s {
				construct = quantize.NewFixed32
			}
			if _, err := construct(low, high, step); err != nil {
				continue
			}
			accepted++
			q := newFixed(t, [3]float64{low, high, step}, float32s)
			q.edges()
			q.random(rng, 200)
			q.sorted(rng, 100)
		}
	}
}

// The slow twin computes the code in exact fractions.
func TestFixedRoundsToTheNearestStep(t *testing.T) {
	rng := newRand(t)
	for _, c := range fixedCases {
		q, err := quantize.NewFixed(c[0], c[1], c[2])
		require.NoError(t, err)
		low, step := new(big.Rat).SetFloat64(c[0]), new(big.Rat).SetFloat64(c[2])
		for range tries(2_000) {
			v := c[0] + rng.Float64()*(c[1]-c[0])
			if v >= c[1] {
				continue
			}
			code, ok := q.Encode(v)
			require.True(t, ok)
			exact := new(big.Rat).SetFloat64(v)
			exact.Quo(exact.Sub(exact, low), step)
			distance, _ := exact.Sub(exact, new(big.Rat).SetInt(new(big.Int).SetUint64(code))).Float64()
			if math.Abs(distance) > 0.5+1e-6 {
				t.Fatalf("%v: %v is %v steps from its code %d", c, v, distance, code)
			}
		}
	}
}

func TestFixedEndsAreExact(t *testing.T) {
	for _, c := range append(append([][3]float64{}, fixedCases...), fixedCases64...) {
		q, err := quantize.NewFixed(c[0], c[1], c[2])
		require.NoError(t, err)
		low, _ := q.Decode(0)
		high, _ := q.Decode(q.Max())
		require.Equal(t, c, [3]float64{low, high, q.Step()})
		low, high = q.Range()
		require.Equal(t, [2]float64{c[0], c[1]}, [2]float64{low, high})
		code, ok := q.Encode(c[1])
		require.True(t, ok)
		require.Equal(t, q.Max(), code)
	}
}

func TestFixedZeroIsExactOnTheGrid(t *testing.T) {
	for _, c := range fixedCases {
		steps := -c[0] / c[2]
		if c[0] > 0 || c[1] < 0 || math.Abs(steps-math.Round(steps)) > 1e-9 {
			continue
		}
		q, err := quantize.NewFixed(c[0], c[1], c[2])
		require.NoError(t, err)
		code, ok := q.Encode(0)
		require.True(t, ok)
		require.EqualValues(t, math.Round(steps), code)
		v, ok := q.Decode(code)
		require.True(t, ok)
		require.Zero(t, math.Float64bits(v), "%v: 0 comes back as %v", c, v)
	}
}

func TestFixedDecodesToTheNearestDecimal(t *testing.T) {
	q, err := quantize.NewFixed(-1000, 1000, 0.01)
	require.NoError(t, err)
	for code := range q.Max() + 1 {
		v, _ := q.Decode(code)
		want, ok := new(big.Rat).SetFrac64(int64(code)-100_000, 100).Float64()
		_ = ok // most decimals are no floats
		if v != want {
			t.Fatalf("code %d is %v, want %v", code, v, want)
		}
	}
}

func TestFixedAddsAShortStepAtTheEndOfARange(t *testing.T) {
	q, err := quantize.NewFixed(0, 1, 0.3)
	require.NoError(t, err)
	require.EqualValues(t, 4, q.Max())
	for code, want := range []float64{0, 0.3, 0.6, 0.9, 1} {
		v, ok := q.Decode(uint64(code))
		require.True(t, ok)
		require.Equal(t, want, v)
	}
}

func TestFixedBitsOfCommonFields(t *testing.T) {
	for _, c := range []struct {
		min, max, step float64
		bits           uint
	}{
		{-1000, 1000, 0.01, 18}, {-32, 32, 0x1p-9, 16}, {0, 1, 1, 1}, {-50, 50, 0.05, 11}, {0, 3, 1, 2}, {0, 4, 1, 3}, {0, 0.7, 0.1, 3},
	} {
		q, err := quantize.NewFixed32(c.min, c.max, c.step)
		require.NoError(t, err)
		require.Equal(t, c.bits, q.Bits(), "%v", c)
	}
}

func TestUnusableFixedRangesAreRefused(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		min, max, step float64
		want           string
	}{
		{1, 1, 0.1, "must be less than the high one"},
		{2, 1, 0.1, "must be less than the high one"},
		{nan, 1, 0.1, "must be less than the high one"},
		{0, nan, 0.1, "must be less than the high one"},
		{-inf, 1, 0.1, "finite"},
		{0, inf, 0.1, "finite"},
		{-1.7e308, 1.7e308, 1e300, "too wide"},
		{0, 1, 0, "step 0 does not suit"},
		{0, 1, -1, "step -1 does not suit"},
		{0, 1, nan, "step NaN does not suit"},
		{0, 1, inf, "step +Inf does not suit"},
		{0, 1, 1.5, "at most 1"},
		{0, 1e10, 1e-9, "too fine"},
		{1e10, 1e10 + 1, 1e-7, "too fine"},
		{0, 1e-307, 1e-310, "too fine"},
	} {
		_, err := quantize.NewFixed(c.min, c.max, c.step)
		require.ErrorContains(t, err, c.want)
		_, err = quantize.NewFixed32(c.min, c.max, c.step)
		require.Error(t, err)
	}
	_, err := quantize.NewFixed32(0, 1e39, 1e38)
	require.ErrorContains(t, err, "float32")
	_, err = quantize.NewFixed32(-1000, 1000, 1e-5)
	require.ErrorContains(t, err, "finer than a float32 can hold")
	_, err = quantize.NewFixed32(1<<24, 1<<24+64, 1)
	require.ErrorContains(t, err, "use 2.1 or more")
}
