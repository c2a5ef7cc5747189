package delta

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/quantize"
)

func TestSquareRootsAreThoseOfMathBig(t *testing.T) {
	check := func(n int64) {
		if want := new(big.Int).Sqrt(big.NewInt(n)).Int64(); isqrt(n) != want {
			t.Fatalf("isqrt(%d) is %d, want %d", n, isqrt(n), want)
		}
	}
	const most = 3037000499 // the root of the largest square below 2^63
	for i := range 32 {
		for d := int64(-3); d <= 3; d++ {
			for _, k := range []int64{1<<i + d, most - 1<<i/2 + d} {
				if k >= 0 && k <= most {
					check(max(k*k-1, 0))
					check(k * k)
					check(k*k + 1)
				}
			}
		}
	}
	check(math.MaxInt64)
	rng := randomOf(t)
	for range 100_000 {
		check(int64(rng.Uint64() >> 1 >> rng.IntN(63)))
		k := rng.Int64N(most)
		check(k*k + 2*k) // the last one with the root k
	}
	require.Zero(t, isqrt(-1))
	require.Zero(t, isqrt(math.MinInt64))
}

func TestDivisionRoundsDown(t *testing.T) {
	for a := int64(-20); a <= 20; a++ {
		for b := int64(1); b < 8; b++ {
			require.Equal(t, int64(math.Floor(float64(a)/float64(b))), floorDiv(a, b), "%d/%d", a, b)
		}
	}
}

// float returns the rotation as a unit quaternion.
func (q *rotation) float() (v [4]float64) {
	length := 0.0
	for _, x := range q {
		length += float64(x) * float64(x)
	}
	for i, x := range q {
		v[i] = float64(x) / math.Sqrt(length)
	}
	return v
}

// A row of a quaternion, taken to a rotation and back, is the same: residuals against a
// baseline are zero exactly if nothing changed. That holds for codes that no quantiser
// makes, too.
func TestRotationsInTheirOwnChartKeepTheirCodes(t *testing.T) {
	check := func(row []uint32, bits uint) {
		var q rotation
		q.set(row, bits)
		if got := q.chart(row[0], bits); got != [3]uint32(row[1:]) {
			t.Fatalf("%v of %d bits came back as %v", row, bits, got)
		}
	}
	for bits := uint(2); bits <= 4; bits++ {
		for i := range uint32(4) << (3 * bits) {
			m := uint32(lowBits(bits))
			check([]uint32{i >> (3 * bits), i & m, i >> bits & m, i >> (2 * bits) & m}, bits)
		}
	}
	rng := randomOf(t)
	for bits := uint(2); bits <= maxQuatBits; bits++ {
		n := uint32(1) << bits
		for range 2000 {
			check([]uint32{rng.Uint32N(4), rng.Uint32N(n), rng.Uint32N(n), rng.Uint32N(n)}, bits)
		}
	}
}

// Rotations are those of package quantize, and in any chart their codes are the nearest.
func TestRotationsAreThoseOfTheQuantiser(t *testing.T) {
	rng := randomOf(t)
	for bits := uint(2); bits <= maxQuatBits; bits++ {
		quantiser, err := quantize.NewQuat(bits)
		require.NoError(t, err)
		top := quantiser.Max() / 2
		identity, _ := quantiser.Decode(quantize.QuatCode{Largest: 3, A: uint32(top) + 1, B: uint32(top), C: uint32(top)})
		step := identity[0]
		for range 1000 {
			code, _ := quantiser.Encode([4]float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()})
			want, ok := quantiser.Decode(code)
			require.True(t, ok)
			var q rotation
			q.set([]uint32{code.Largest, code.A, code.B, code.C}, bits)
			got, near := q.float(), 1e-7
			if last := uint32(quantiser.Max()); min(code.A, code.B, code.C) == 0 || max(code.A, code.B, code.C) == last {
				near = 3 * step // the largest code stands for a number between two steps
			}
			for i := range got {
				require.InDelta(t, want[i], got[i], near, "%v of %d bits", code, bits)
			}
			for largest := range uint32(4) {
				codes, j := q.chart(largest, bits), 0
				for i, x := range got {
					if i != int(largest) {
						exact := math.Copysign(x, x*got[largest])/step + float64(top)
						exact = min(max(exact, 0), float64(lowBits(bits)))
						require.InDelta(t, exact, codes[j], 0.5+1e-7/step, "%v of %d bits in chart %d", code, bits, largest)
						j++
					}
				}
			}
		}
	}
}

// onwards is extrapolate in floating point.
func onwards(q1, q2 [4]float64, t float64) (q [4]float64) {
	dot := q1[0]*q2[0] + q1[1]*q2[1] + q1[2]*q2[2] + q1[3]*q2[3]
	sign := math.Copysign(1, dot)
	a := math.Acos(min(math.Abs(dot), 1))
	f1, f2 := 1+t, t
	if a > 1e-9 {
		f1, f2 = math.Sin((1+t)*a)/math.Sin(a), math.Sin(t*a)/math.Sin(a)
	}
	for i := range q {
		q[i] = f1*q1[i] - f2*sign*q2[i]
	}
	return q
}

// rotated returns q rotated by an angle about a random axis.
func rotated(rng *rand.Rand, q [4]float64, angle float64) [4]float64 {
	x, y, z := rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()
	s := math.Sin(angle/2) / math.Sqrt(x*x+y*y+z*z)
	a := [4]float64{x * s, y * s, z * s, math.Cos(angle / 2)}
	return [4]float64{
		a[3]*q[0] + a[0]*q[3] + a[1]*q[2] - a[2]*q[1],
		a[3]*q[1] - a[0]*q[2] + a[1]*q[3] + a[2]*q[0],
		a[3]*q[2] + a[0]*q[1] - a[1]*q[0] + a[2]*q[3],
		a[3]*q[3] - a[0]*q[0] - a[1]*q[1] - a[2]*q[2],
	}
}

func quatRow(c quantize.QuatCode) []uint32 { return []uint32{c.Largest, c.A, c.B, c.C} }

// extrapolationError returns the largest error against onwards, in steps of the codes, of
// rotations by the given angle.
func extrapolationError(t *testing.T, rng *rand.Rand, bits uint, angle float64, ratio int64) (worst float64) {
	quantiser, err := quantize.NewQuat(bits)
	require.NoError(t, err)
	for range 200 {
		v2 := [4]float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		c2, _ := quantiser.Encode(v2)
		c1, _ := quantiser.Encode(rotated(rng, v2, angle))
		var q1, q2 rotation
		q1.set(quatRow(c1), bits)
		q2.set(quatRow(c2), bits)
		var got rotation
		got.extrapolate(&q1, &q2, ratio, bits)
		want := onwards(q1.float(), q2.float(), float64(ratio)/(1<<16))
		g := &quatGrids[bits]
		length, step := math.Sqrt(float64(g.length2)), float64(g.scale)
		for i := range got {
			worst = max(worst, math.Abs(float64(got[i])-want[i]*length)/step)
		}
	}
	return worst
}

// What fixed-point arithmetic costs is below 2^(bits-18) steps of the codes: four at 20
// bits, where the rounding of the baselines costs up to t+1/2, and next to nothing at 14.
// That holds where six terms of the series are enough: for angles up to 0.5 (of the
// rotation, in radians) up to t = 4, and as below.
func TestExtrapolationFollowsTheGreatCircle(t *testing.T) {
	rng := randomOf(t)
	for bits := uint(6); bits <= maxQuatBits; bits++ { // fewer make larger angles of small ones
		for _, c := range []struct{ angle, ratio float64 }{
			{0.0001, 8}, {0.01, 8}, {0.1, 8}, {0.25, 8}, {0.5, 4}, {1, 3}, {1.5, 2}, {2, 1},
		} {
			for _, share := range []float64{1, 0.77, 0.31} {
				ratio := int64(c.ratio * share * (1 << 16))
				worst := extrapolationError(t, rng, bits, c.angle*share, ratio)
				require.LessOrEqual(t, worst, math.Ldexp(1, int(bits)-18), "%d bits, %v, %v", bits, c, share)
			}
		}
	}
}

// However wrong the series is, nothing overflows on the way.
func TestSineRatiosStayInRange(t *testing.T) {
	rng := randomOf(t)
	for i := range roundsOf(200_000, 50_000) {
		ratio, x := rng.Int64N((MaxExtrapolation+1)<<16+1), -rng.Int64N(1<<30+1)
		if i%4 == 0 {
			ratio = (MaxExtrapolation + 1) << 16
		}
		if i%3 == 0 {
			x = -1 << 30
		}
		want := 1.0
		t2, c := math.Pow(float64(ratio)/(1<<16), 2), float64(x)/(1<<30)
		for i := 6.0; i >= 1; i-- {
			want = 1 + (t2-i*i)/(i*(2*i+1))*c*want
		}
		want *= float64(ratio) / (1 << 16)
		require.Less(t, math.Abs(want), 2048.0)
		require.InDelta(t, want, float64(sineRatio(ratio, x))/(1<<20), 0.05, "%d %d", ratio, x)
	}
}

// Every machine must predict the same codes: the sums were taken on amd64, and if one
// changes, the wire format has changed.
func TestPredictionsAreTheSameOnEveryMachine(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	rotations, codes := fnv.New64a(), fnv.New64a()
	for bits := uint(2); bits <= maxQuatBits; bits++ {
		n := uint32(1) << bits
		for i := range 1000 {
			base2 := []uint32{rng.Uint32N(4), rng.Uint32N(n), rng.Uint32N(n), rng.Uint32N(n)}
			base := []uint32{base2[0], base2[1] ^ rng.Uint32N(n)>>(bits/2), base2[2] ^ 1, base2[3]}
			if i%4 == 0 {
				base = []uint32{rng.Uint32N(4), rng.Uint32N(n), rng.Uint32N(n), rng.Uint32N(n)}
			}
			var q1, q2 rotation
			q1.set(base, bits)
			q2.set(base2, bits)
			var q rotation
			q.extrapolate(&q1, &q2, rng.Int64N(MaxExtrapolation<<16+1), bits)
			for _, r := range []*rotation{&q1, &q2, &q} {
				_ = binary.Write(rotations, binary.LittleEndian, r) // a hash takes everything
				for largest := range uint32(4) {
					_ = binary.Write(codes, binary.LittleEndian, r.chart(largest, bits))
				}
				_ = binary.Write(codes, binary.LittleEndian, r.largest())
			}
		}
	}
	require.Equal(t, "a25ac11b7d054be9", fmt.Sprintf("%016x", rotations.Sum64()), "rotations")
	require.Equal(t, "301da2f773277c1d", fmt.Sprintf("%016x", codes.Sum64()), "codes")
}
