package quantize_test

import (
	"math"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/quantize"
)

func TestRange25To100Takes7Bits(t *testing.T) {
	signed, err := quantize.NewInt(25, 100, 1)
	require.NoError(t, err)
	require.EqualValues(t, 7, signed.Bits())
	unsigned, err := quantize.NewInt[uint64](25, 100, 1)
	require.NoError(t, err)
	require.EqualValues(t, 7, unsigned.Bits())
}

func TestEntityOfHealthAmmunitionAndTwoFlagsTakes18Bits(t *testing.T) {
	total := uint(0)
	for _, limit := range []uint64{100, 500, 1, 1} {
		q, err := quantize.NewInt(0, limit, 1)
		require.NoError(t, err)
		total += q.Bits()
	}
	require.EqualValues(t, 18, total)
}

func TestIntKeepsEveryNumberInRangeAndClampsTheRest(t *testing.T) {
	rng := newRand(t)
	ranges := [][2]int64{
		{25, 100},
		{0, 0},
		{-1, 0},
		{0, 1},
		{-7, 8},
		{5, 5},
		{math.MinInt64, math.MaxInt64},
		{math.MinInt64, math.MinInt64},
		{math.MaxInt64, math.MaxInt64},
		{math.MinInt64, 0},
		{0, math.MaxInt64},
		{-1, math.MaxInt64},
		{math.MinInt32, math.MaxInt32},
	}
	for range 1000 {
		a, b := int64(rng.Uint64())>>rng.IntN(64), int64(rng.Uint64())>>rng.IntN(64)
		ranges = append(ranges, [2]int64{min(a, b), max(a, b)})
	}
	for _, r := range ranges {
		q, err := quantize.NewInt(r[0], r[1], 1)
		require.NoError(t, err)
		low, high := q.Range()
		require.Equal(t, r, [2]int64{low, high})
		require.EqualValues(t, bits.Len64(q.Max()), q.Bits())
		require.Zero(t, q.MaxError())
		check := func(v int64) {
			code, ok := q.Encode(v)
			decoded, valid := q.Decode(code)
			if want := min(max(v, r[0]), r[1]); !valid || code > q.Max() || decoded != want || ok != (v == want) {
				t.Fatalf("range %v: %d encodes to %d %v, decodes to %d %v", r, v, code, ok, decoded, valid)
			}
		}
		for k := range int64(20) {
			for _, v := range []int64{0, r[0], r[1], math.MinInt64, math.MaxInt64} {
				check(v + k) // wraps at the ends of int64, which is fine
				check(v - k)
			}
		}
		for range tries(1000) {
			check(int64(rng.Uint64()) >> rng.IntN(64))
		}
		if beyond := q.Max() + 1; beyond != 0 {
			v, ok := q.Decode(beyond + rng.Uint64N(-beyond))
			require.False(t, ok)
			require.Zero(t, v)
		}
	}
}

func TestUintKeepsEveryNumberInRangeAndClampsTheRest(t *testing.T) {
	rng := newRand(t)
	ranges := [][2]uint64{{0, 0}, {0, 1}, {25, 100}, {0, math.MaxUint64}, {math.MaxUint64, math.MaxUint64}, {1, math.MaxUint64}, {0, math.MaxUint32}}
	for range 1000 {
		a, b := rng.Uint64()>>rng.IntN(64), rng.Uint64()>>rng.IntN(64)
		ranges = append(ranges, [2]uint64{min(a, b), max(a, b)})
	}
	for _, r := range ranges {
		q, err := quantize.NewInt(r[0], r[1], 1)
		require.NoError(t, err)
		low, high := q.Range()
		require.Equal(t, r, [2]uint64{low, high})
		require.EqualValues(t, bits.Len64(q.Max()), q.Bits())
		require.Zero(t, q.MaxError())
		check := func(v uint64) {
			code, ok := q.Encode(v)
			decoded, valid := q.Decode(code)
			if want := min(max(v, r[0]), r[1]); !valid || code > q.Max() || decoded != want || ok != (v == want) {
				t.Fatalf("range %v: %d encodes to %d %v, decodes to %d %v", r, v, code, ok, decoded, valid)
			}
		}
		for k := range uint64(20) {
			for _, v := range []uint64{0, r[0], r[1]} {
				check(v + k)
				check(v - k)
			}
		}
		for range tries(1000) {
			check(rng.Uint64() >> rng.IntN(64))
		}
		if beyond := q.Max() + 1; beyond != 0 {
			v, ok := q.Decode(beyond + rng.Uint64N(-beyond))
			require.False(t, ok)
			require.Zero(t, v)
		}
	}
}

func TestEmptyIntegerRangesAreRefused(t *testing.T) {
	_, err := quantize.NewInt[int64](1, 0, 1)
	require.ErrorContains(t, err, "1..0 is empty")
	_, err = quantize.NewInt[uint64](1, 0, 1)
	require.ErrorContains(t, err, "1..0 is empty")
}
