package quantize_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/quantize"
)

func TestRawKeepsEveryBit(t *testing.T) {
	rng := newRand(t)
	patterns := []uint64{
		0, 1, 1 << 31, 1 << 63, 0x7f800000, 0x7f800001, 0xffc12345, math.MaxUint32, math.MaxUint64, 0x7ff0000000000000, 0x7ff0000000000001,
		0xfff8000000abcdef,
	}
	for range tries(1_000_000) {
		patterns = append(patterns, rng.Uint64())
	}
	var narrow quantize.Raw32
	var wide quantize.Raw64
	for _, p := range patterns {
		v, ok := wide.Decode(p)
		code, encoded := wide.Encode(v)
		if !ok || !encoded || code != p || math.Float64bits(v) != p {
			t.Fatalf("Raw64: %#x comes back as %#x", p, code)
		}
		p &= math.MaxUint32
		w, ok := narrow.Decode(p)
		code, encoded = narrow.Encode(w)
		if !ok || !encoded || code != p || uint64(math.Float32bits(w)) != p {
			t.Fatalf("Raw32: %#x comes back as %#x", p, code)
		}
	}
	v, ok := narrow.Decode(1 << 32)
	require.False(t, ok)
	require.Zero(t, v)
	require.EqualValues(t, 32, narrow.Bits())
	require.Equal(t, uint64(math.MaxUint32), narrow.Max())
	require.EqualValues(t, 64, wide.Bits())
	require.Equal(t, uint64(math.MaxUint64), wide.Max())
	require.Zero(t, narrow.MaxError()+wide.MaxError())
}
