package blend

import (
	"math"
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

type raw struct {
	X float32
	Y float64
}

// TestNumbersWithoutADifferenceStep: infinities and numbers that lie too far apart have no way between them.
func TestNumbersWithoutADifferenceStep(t *testing.T) {
	k := New(componentOf[raw](t))
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range [][2]float64{
		{inf, inf},
		{-inf, -inf},
		{inf, 1},
		{1, inf},
		{1, -inf},
		{inf, -inf},
		{1, nan},
		{-math.MaxFloat64, math.MaxFloat64},
		{math.MaxFloat64, -math.MaxFloat64},
	} {
		for _, f := range []float32{0, 1. / 64, 0.5, 63. / 64, 2} {
			v := blended(t, k, raw{single(c[0]), c[0]}, raw{single(c[1]), c[1]}, f)
			require.Equal(t, raw{single(c[0]), c[0]}, v, "%v to %v at %v", c[0], c[1], f)
		}
	}
	v := blendedNaN(t, k, raw{single(nan), nan}, raw{1, 1})
	require.True(t, math.IsNaN(v.Y) && v.X != v.X)
}

// single returns a float32, and the largest one for the largest float64.
func single(v float64) float32 {
	if math.Abs(v) == math.MaxFloat64 {
		return float32(math.Copysign(math.MaxFloat32, v))
	}
	return float32(v)
}

// blendedNaN returns what blended does, which can't compare NaN.
func blendedNaN(t *testing.T, k *Kernel, a, b raw) (v raw) {
	t.Helper()
	k.Blend(unsafe.Pointer(&v), rowOf(k.comp, a), rowOf(k.comp, b), 0.5)
	return v
}

type counts struct {
	Small  uint8  `repl:"linear"`
	Signed int8   `repl:"linear"`
	Range  int16  `repl:"range=10:20,linear"`
	Steps  int32  `repl:"range=-1000:1000,step=5,linear"`
	Wide   int64  `repl:"linear"`
	Huge   uint64 `repl:"linear"`
}

// TestIntegersDoNotLeaveTheirTypes: beyond the second value, they stop at the end of what they can be.
func TestIntegersDoNotLeaveTheirTypes(t *testing.T) {
	k := New(componentOf[counts](t))
	low := counts{0, -128, 10, -1000, math.MinInt64, 0}
	high := counts{255, 127, 20, 1000, math.MaxInt64, math.MaxUint64}
	at := func(a, b counts, f float32) counts { return blended(t, k, a, b, f) }
	mid := counts{100, 0, 15, 0, 0, math.MaxInt64}
	for _, f := range []float32{1.5, 3, 60, 1000} {
		down, up := at(mid, low, f), at(mid, high, f)
		require.Equal(t, low, down, "%v", f)
		require.Equal(t, high, up, "%v", f)
	}
	last := low
	for i := range 64 { // over all that there is
		v := at(low, high, float32(i)/64)
		require.GreaterOrEqual(t, v.Wide, last.Wide)
		require.GreaterOrEqual(t, v.Huge, last.Huge)
		require.InDelta(t, float64(i)/64, float64(v.Huge)/math.MaxUint64, 1e-9)
		require.InDelta(t, float64(i)/64, float64(v.Wide)/math.MaxUint64+0.5, 1e-9)
		last = v
		v = at(high, low, float32(i)/64)
		require.InDelta(t, float64(i)/64, 1-float64(v.Huge)/math.MaxUint64, 1e-9)
		require.InDelta(t, float64(i)/64, 0.5-float64(v.Wide)/math.MaxUint64, 1e-9)
	}
}

type circles struct {
	Hour    int8   `repl:"range=1:24,wrap"`
	Heading uint16 `repl:"range=0:359,wrap"`
}

// TestIntegersGoRoundAsOftenAsTheyMust, and stay in their ranges.
func TestIntegersGoRoundAsOftenAsTheyMust(t *testing.T) {
	k := New(componentOf[circles](t))
	for way := -11; way <= 11; way++ {
		for f := range 40 {
			a := circles{Hour: 20, Heading: 350}
			b := circles{Hour: int8((19+way+24)%24 + 1), Heading: uint16((350 + 10*way + 360) % 360)}
			v := blended(t, k, a, b, float32(f))
			require.EqualValues(t, mod(19+way*f, 24)+1, v.Hour, "%d, %d times", way, f)
			require.EqualValues(t, mod(350+10*way*f, 360), v.Heading, "%d, %d times", way, f)
		}
	}
}

func mod(a, n int) int { return (a%n + n) % n }

// TestVelocitiesThatAreNoNumbersBendNothing, nor do those whose way overflows.
func TestVelocitiesThatAreNoNumbersBendNothing(t *testing.T) {
	type place raw
	var s schema.Schema
	require.NoError(t, s.Register(reflect.TypeFor[raw](), &schema.Options{}))
	require.NoError(t, s.Register(reflect.TypeFor[place](), &schema.Options{Velocity: reflect.TypeFor[raw](), PerTick: 1}))
	s.Freeze()
	k := New(&s.Components[1])
	c := NewCurve(&s, k)
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64} {
		a, b := raw{1, 2}, raw{3, 4}
		first, second := raw{float32(v), v}, raw{1, 1}
		k.Prepare(unsafe.Pointer(&a), unsafe.Pointer(&b))
		c.Prepare(unsafe.Pointer(&b), unsafe.Pointer(&first), unsafe.Pointer(&second), 1000)
		p := raw{2, 3}
		c.Bend(unsafe.Pointer(&p), unsafe.Pointer(&first), unsafe.Pointer(&second), 0.5)
		require.False(t, math.IsNaN(p.Y) || math.IsInf(p.Y, 0) || p.X-p.X != 0, "%v: %v", v, p)
	}
}
