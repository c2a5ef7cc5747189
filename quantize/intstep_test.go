package quantize_test

import (
	"math"
	"math/big"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/quantize"
)

// intEdges are numbers where integer arithmetic tends to go wrong.
var intEdges = []int64{0, 1, -1, 2, 7, -8, 10, 100, 359, 1000, math.MinInt32, math.MaxInt32, math.MinInt64, math.MinInt64 + 1, math.MaxInt64, math.MaxInt64 - 1}

// Every number against the obvious: of all that codes stand for, the nearest.
func TestIntStepTakesTheNearestOfTheGrid(t *testing.T) {
	for _, c := range [][3]int64{{0, 10, 3}, {0, 10, 4}, {-7, 8, 5}, {-7, 8, 1}, {5, 5, 3}, {0, 1, 100}, {-100, 100, 7}, {3, 12, 9}, {0, 1000, 10}} {
		q, err := quantize.NewInt(c[0], c[1], c[2])
		require.NoError(t, err)
		var grid []int64
		for v := c[0]; v < c[1]; v += c[2] {
			grid = append(grid, v)
		}
		grid = append(grid, c[1])
		require.EqualValues(t, len(grid)-1, q.Max(), c)
		for code, v := range grid {
			got, ok := q.Decode(uint64(code))
			require.True(t, ok)
			require.Equal(t, v, got, c)
		}
		for v := c[0] - 20; v <= c[1]+20; v++ {
			best := 0
			for i := range grid {
				d, least := max(v-grid[i], grid[i]-v), max(v-grid[best], grid[best]-v)
				if d < least || d == least && i&1 == 0 {
					best = i
				}
			}
			code, ok := q.Encode(v)
			require.EqualValues(t, best, code, "%d in %v", v, c)
			require.Equal(t, v >= c[0] && v <= c[1], ok)
			if ok {
				require.LessOrEqual(t, math.Abs(float64(grid[best]-v)), q.MaxError())
			}
		}
	}
}

func TestIntStepOfAnyRange(t *testing.T) {
	rng := newRand(t)
	number := func() int64 {
		if rng.IntN(3) == 0 {
			return intEdges[rng.IntN(len(intEdges))]
		}
		return int64(rng.Uint64()) >> rng.IntN(64)
	}
	for range tries(20_000) {
		a, b := number(), number()
		low, high, step := min(a, b), max(a, b), max(1, number())
		q, err := quantize.NewInt(low, high, step)
		require.NoError(t, err)
		require.EqualValues(t, bits.Len64(q.Max()), q.Bits())
		for range 10 {
			v := number()
			code, ok := q.Encode(v)
			if ok != (v >= low && v <= high) || code > q.Max() {
				t.Fatalf("%d..%d in %d: %d encodes to %d %v", low, high, step, v, code, ok)
			}
			back, valid := q.Decode(code)
			off := new(big.Int).Sub(big.NewInt(back), big.NewInt(min(max(v, low), high)))
			if !valid || off.CmpAbs(big.NewInt(step/2)) > 0 {
				t.Fatalf("%d..%d in %d: %d comes back as %d %v", low, high, step, v, back, valid)
			}
			again, ok := q.Encode(back)
			if again != code || !ok {
				t.Fatalf("%d..%d in %d: %d decodes to %d, which encodes to %d", low, high, step, code, back, again)
			}
		}
		if q.Max() < math.MaxUint64 {
			v, ok := q.Decode(q.Max() + 1)
			require.False(t, ok)
			require.Zero(t, v)
		}
	}
	_, err := quantize.NewInt(1, 0, 1)
	require.ErrorContains(t, err, "1..0 is empty")
	_, err = quantize.NewInt(0, 1, 0)
	require.EqualError(t, err, "quantize: an integer step of 0: use 1 or more")
}

// Going round is a division that rounds down, in numbers of any size.
func TestIntGoesRound(t *testing.T) {
	rng := newRand(t)
	number := func() int64 {
		if rng.IntN(3) == 0 {
			return intEdges[rng.IntN(len(intEdges))] + rng.Int64N(3) - 1
		}
		return int64(rng.Uint64()) >> rng.IntN(64)
	}
	for range tries(20_000) {
		a, b := number(), number()
		low, high := min(a, b), max(a, b)
		q, err := quantize.NewInt(low, high, 1)
		require.NoError(t, err)
		require.EqualValues(t, bits.Len64(q.Max()), q.Bits())
		turn := new(big.Int).Add(new(big.Int).Sub(big.NewInt(high), big.NewInt(low)), big.NewInt(1))
		for range 10 {
			v := number()
			want := new(big.Int).Sub(big.NewInt(v), big.NewInt(low))
			want.Mod(want, turn)
			code := q.EncodeWrap(v)
			if code != want.Uint64() {
				t.Fatalf("%d..%d: %d encodes to %d, want %v", low, high, v, code, want)
			}
			back, ok := q.Decode(code)
			if want.Add(want, big.NewInt(low)); !ok || back != want.Int64() {
				t.Fatalf("%d..%d: %d decodes to %d %v, want %v", low, high, code, back, ok, want)
			}
		}
		if q.Max() < math.MaxUint64 {
			v, ok := q.Decode(q.Max() + 1)
			require.False(t, ok)
			require.Zero(t, v)
		}
	}
	q, err := quantize.NewInt[int64](0, 359, 1)
	require.NoError(t, err)
	for v, want := range map[int64]uint64{0: 0, 359: 359, 360: 0, 725: 5, -1: 359, -360: 0} {
		require.Equal(t, want, q.EncodeWrap(v), "%d degrees", v)
	}
}
