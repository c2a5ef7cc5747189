package quantize_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/quantize"
)

func randomDirection(rng *rand.Rand) [3]float64 {
	v := [3]float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
	switch rng.IntN(8) {
	case 0: // near an edge of the octahedron, or on it
		v[rng.IntN(3)] *= math.Ldexp(rng.Float64(), -rng.IntN(60))
	case 1:
		v[rng.IntN(3)] = math.Copysign(0, v[0])
	case 2: // near an axis
		v[rng.IntN(3)] *= math.Ldexp(1, rng.IntN(30))
	}
	length := math.Sqrt(v[0]*v[0] + v[1]*v[1] + v[2]*v[2])
	return [3]float64{v[0] / length, v[1] / length, v[2] / length}
}

func distance(a, b [3]float64) float64 {
	return math.Sqrt((a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1]) + (a[2]-b[2])*(a[2]-b[2]))
}

// checkDirectionCode checks all that is promised of one pair of codes.
func checkDirectionCode(t *testing.T, q quantize.UnitVector, u, v uint64) (valid bool) {
	vector, valid := q.Decode(u, v)
	narrow, valid32 := q.Decode32(u, v)
	if valid != valid32 {
		t.Fatalf("%d bits: Decode(%d, %d) returns %v, Decode32 %v", q.Bits(), u, v, valid, valid32)
	}
	if !valid {
		if vector != [3]float64{} || narrow != [3]float32{} {
			t.Fatalf("%d bits: Decode(%d, %d) refuses but gives %v", q.Bits(), u, v, vector)
		}
		return false
	}
	if length := distance(vector, [3]float64{}); math.Abs(length-1) > 1e-15 {
		t.Fatalf("%d bits: Decode(%d, %d) has length %v", q.Bits(), u, v, length)
	}
	if a, b, ok := q.Encode(vector); !ok || a != u || b != v {
		t.Fatalf("%d bits: codes %d, %d decode to %v, which encodes to %d, %d", q.Bits(), u, v, vector, a, b)
	}
	if a, b, ok := q.Encode32(narrow); !ok || a != u || b != v {
		t.Fatalf("%d bits: codes %d, %d decode to float32 %v, which encodes to %d, %d", q.Bits(), u, v, narrow, a, b)
	}
	return true
}

// checkDirection checks all that is promised of one input and returns the error.
func checkDirection(t *testing.T, q quantize.UnitVector, in [3]float64) (got float64) {
	u, v, ok := q.Encode(in)
	if !ok || !checkDirectionCode(t, q, u, v) {
		t.Fatalf("%d bits: %v encodes to %d, %d %v", q.Bits(), in, u, v, ok)
	}
	out, _ := q.Decode(u, v)
	narrow, _ := q.Decode32(u, v)
	got = distance(in, out)
	if worst := max(got, distance(in, [3]float64{float64(narrow[0]), float64(narrow[1]), float64(narrow[2])})); worst > q.MaxError() {
		t.Fatalf("%d bits: %v comes back as %v, %v off, more than %v", q.Bits(), in, out, worst, q.MaxError())
	}
	return got
}

func TestUnitVectorKeepsItsContract(t *testing.T) {
	rng := newRand(t)
	for bits := uint(2); bits <= 20; bits++ {
		q, err := quantize.NewUnitVector(bits)
		require.NoError(t, err)
		require.Equal(t, bits, q.Bits())
		for range tries(60_000) {
			checkDirection(t, q, randomDirection(rng))
			checkDirectionCode(t, q, rng.Uint64N(q.Max()+1), rng.Uint64N(q.Max()+1))
		}
	}
}

// betweenFour returns the directions in the middle of four codes around the centres of the octahedron's faces, where the
// grid is coarsest, each moved a little towards the two codes that are farther away.
func betweenFour(q quantize.UnitVector) [][3]float64 {
	const neighbours = 3 // in grid steps to either side
	half := float64(q.Max() / 2)
	in := [][3]float64{}
	for i := -neighbours; i <= neighbours; i++ {
		for j := -neighbours; j <= neighbours; j++ {
			for _, moved := range []float64{-1e-6, 1e-6} {
				x, y := math.Floor(half/3)+float64(i)+0.5+moved, math.Floor(half/3)+float64(j)+0.5+moved
				z := half - x - y
				if min(x, y, z) < 0 {
					continue
				}
				length := math.Sqrt(x*x + y*y + z*z)
				v := [3]float64{x / length, y / length, z / length}
				for face := range 8 {
					w := v
					for n := range w {
						if face>>n&1 == 1 {
							w[n] = -w[n]
						}
					}
					in = append(in, w)
				}
			}
		}
	}
	return in
}

func TestUnitVectorMaxErrorIsReached(t *testing.T) {
	for bits := uint(2); bits <= 20; bits++ {
		q, err := quantize.NewUnitVector(bits)
		require.NoError(t, err)
		worst := 0.0
		for _, in := range betweenFour(q) {
			worst = max(worst, checkDirection(t, q, in))
		}
		// The formula takes a middle to be at the very centre.
		share := min(1-1/float64(q.Max()), 0.999)
		stated := q.MaxError() - 0x1p-22 // the rounding of float32 is not looked for
		require.Greater(t, worst, share*stated, "%d bits: MaxError is too generous", bits)
	}
}

// Every direction has one pair of codes: those refused decode, by the formula, to a vector whose code is another.
func TestUnitVectorHasOneCodePerDirection(t *testing.T) {
	widest := uint(8)
	if testing.Short() {
		widest = 6
	}
	for bits := uint(2); bits <= widest; bits++ {
		q, err := quantize.NewUnitVector(bits)
		require.NoError(t, err)
		seen := map[[3]float64]bool{}
		for u := range q.Max() + 3 {
			for v := range q.Max() + 3 {
				if checkDirectionCode(t, q, u, v) {
					vector, _ := q.Decode(u, v)
					require.False(t, seen[vector], "%d bits: %v has two codes", bits, vector)
					seen[vector] = true
				}
			}
		}
		// The inside of the square; half of each edge without its corners, the middle included; one of the corners.
		half := int(q.Max()) / 2
		require.Len(t, seen, (2*half-1)*(2*half-1)+4*half+1, "%d bits", bits)
	}
}

func TestUnitVectorKeepsTheAxes(t *testing.T) {
	for bits := uint(2); bits <= 20; bits++ {
		q, err := quantize.NewUnitVector(bits)
		require.NoError(t, err)
		for _, axis := range [][3]float64{{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}} {
			negativeZeros := axis
			for i := range axis {
				if axis[i] == 0 {
					negativeZeros[i] = math.Copysign(0, -1)
				}
			}
			u, v, ok := q.Encode(axis)
			require.True(t, ok)
			out, ok := q.Decode(u, v)
			require.True(t, ok)
			require.Equal(t, axis, out)
			a, b, ok := q.Encode(negativeZeros)
			require.True(t, ok)
			require.Equal(t, [2]uint64{u, v}, [2]uint64{a, b})
		}
	}
}

func TestUnitVectorNormalisesAndRefusesWhatHasNoDirection(t *testing.T) {
	rng := newRand(t)
	q, err := quantize.NewUnitVector(12)
	require.NoError(t, err)
	for range tries(10_000) {
		in := randomDirection(rng)
		u, v, _ := q.Encode(in)
		factor := math.Ldexp(1, rng.IntN(2000)-1000)
		a, b, ok := q.Encode([3]float64{in[0] * factor, in[1] * factor, in[2] * factor})
		if !ok || distanceOfCodes(u, a) > 1 || distanceOfCodes(v, b) > 1 {
			t.Fatalf("%v times %v encodes to %d, %d, not to %d, %d", in, factor, a, b, u, v)
		}
	}
	up, _, _ := q.Encode([3]float64{0, 0, 1})
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for i := range 3 {
			in := [3]float64{1, math.MaxFloat64, -1}
			in[i] = bad
			u, v, ok := q.Encode(in)
			require.False(t, ok)
			require.Equal(t, [2]uint64{up, up}, [2]uint64{u, v})
		}
	}
	_, _, ok := q.Encode([3]float64{})
	require.False(t, ok)
	u, v, ok := q.Encode([3]float64{math.MaxFloat64, math.MaxFloat64, 0})
	require.True(t, ok)
	out, _ := q.Decode(u, v)
	require.InDelta(t, math.Sqrt2/2, out[0], q.MaxError())
	u, v, ok = q.Encode([3]float64{0, -math.SmallestNonzeroFloat64, 0})
	require.True(t, ok)
	out, _ = q.Decode(u, v)
	require.Equal(t, [3]float64{0, -1, 0}, out)
}

func distanceOfCodes(a, b uint64) uint64 { return max(a, b) - min(a, b) }

func TestUnusableUnitVectorWidthsAreRefused(t *testing.T) {
	for _, bits := range []uint{0, 1, 21, 64} {
		_, err := quantize.NewUnitVector(bits)
		require.ErrorContains(t, err, "use 2..20 bits")
	}
}
