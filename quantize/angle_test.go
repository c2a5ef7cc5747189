package quantize_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/quantize"
)

func TestAngleKeepsItsContract(t *testing.T) {
	rng := newRand(t)
	for _, period := range []float64{360, 2 * math.Pi, 1, 24, 1e-30, 1e30, 0.1, 1 << 20} {
		for bits := uint(1); bits <= 49; bits++ {
			for _, float32s := range []bool{false, true} {
				construct, limit := quantize.NewAngle, uint(48)
				if float32s {
					construct, limit = quantize.NewAngle32, 23
				}
				q, err := construct(period, bits)
				if bits > limit {
					require.ErrorContains(t, err, fmt.Sprintf("use 1..%d bits", limit))
					continue
				}
				require.NoError(t, err)
				require.Equal(t, bits, q.Bits())
				require.Equal(t, period, q.Period())
				c := &contract{t: t, name: fmt.Sprintf("Angle(%v, %d, 32=%v)", period, bits, float32s), q: q, period: period, float32s: float32s}
				c.edges()
				c.random(rng, 4_000)
				if q.Max() <= exhaustive()/8 {
					for code := range q.Max() + 1 {
						c.near(code)
					}
				}
				require.Greater(t, c.worst, 0.3*q.MaxError(), "%s: MaxError is too generous", c.name)
			}
		}
	}
}

func TestAngleWraps(t *testing.T) {
	q, err := quantize.NewAngle(360, 8)
	require.NoError(t, err)
	for _, c := range []struct {
		v    float64
		code uint64
	}{
		{0, 0},
		{90, 64},
		{180, 128},
		{-180, 128},
		{270, 192},
		{-90, 192},
		{360, 0},
		{359.9, 0},
		{-0.1, 0},
		{-1.5, 255},
		{3690, 64},
		{-3690, 192},
		{-360, 0},
		{-359, 1},
		{1e15, uint64(math.Round(math.Mod(1e15, 360)/360*256)) % 256},
	} {
		code, ok := q.Encode(c.v)
		require.True(t, ok)
		require.Equal(t, c.code, code, "%v", c.v)
	}
	for code := range uint64(256) {
		v, ok := q.Decode(code)
		require.True(t, ok)
		require.GreaterOrEqual(t, v, -180.0)
		require.Less(t, v, 180.0)
	}
}

// The slow twin reduces first, by a function that is exact.
func TestAngleAgreesWithExactReduction(t *testing.T) {
	rng := newRand(t)
	q, err := quantize.NewAngle(2*math.Pi, 16)
	require.NoError(t, err)
	for range tries(100_000) {
		v := (rng.Float64()*2 - 1) * math.Pow(10, rng.Float64()*30-10)
		units := math.Remainder(v, q.Period()) / q.Period() * 65536
		code, _ := q.Encode(v)
		distance := math.Abs(math.Remainder(float64(code)-units, 65536))
		if distance > 0.5+1e-9 {
			t.Fatalf("%v is %v units but gets code %d", v, units, code)
		}
	}
}

func TestUnusableAnglesAreRefused(t *testing.T) {
	_, err := quantize.NewAngle(360, 0)
	require.ErrorContains(t, err, "use 1..48 bits")
	for _, period := range []float64{0, -360, math.NaN(), math.Inf(1), 1e31, 1e-31} {
		_, err = quantize.NewAngle(period, 8)
		require.ErrorContains(t, err, "out of bounds")
		_, err = quantize.NewAngle32(period, 8)
		require.ErrorContains(t, err, "out of bounds")
	}
}
