package blend

import (
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/mlange-42/arche/ecs"
)

// difference returns what takes b to a.
func difference[T any](k *Kernel, a, b T) []float64 {
	d := make([]float64, k.Fades())
	k.Difference(d, unsafe.Pointer(&a), unsafe.Pointer(&b))
	return d
}

// displaced returns v displaced by a share of a difference.
func displaced[T any](k *Kernel, v T, d []float64, share float64) T {
	part := make([]float64, len(d))
	for i := range d {
		part[i] = d[i] * share
	}
	k.Displace(unsafe.Pointer(&v), part)
	return v
}

// randomMixed returns a value as a game may have it.
func randomMixed(r *rand.Rand) (v mixed) {
	number := func(most float64) float64 { return most * (2*r.Float64() - 1) }
	v = mixed{
		Fixed: float32(number(100)), Fixed64: number(100), Raw: number(math.Pow(10, number(9))),
		Half: float32(number(100)), Small: float32(number(100)), Jumps: 1, Counted: 50,
		Angle: float32(number(math.Pi)), Degrees: number(180), Bool: r.IntN(2) == 0, Int: int16(r.IntN(100)),
		Moving: uint8(r.Uint32()), Steps: int32(r.IntN(2001) - 1000), Hour: int8(r.IntN(24) + 1),
		Brad: uint16(r.Uint32()), Wide: r.Uint64(), Flags: uint16(r.Uint32()), Name: "name", Tag: [6]byte{1},
		Cells: [2]float32{r.Float32(), r.Float32()}, private: r.Int(),
	}
	for i := range v.Quat {
		v.Quat64[i] = r.NormFloat64()
	}
	for i := range v.Unit {
		v.Unit64[i] = r.NormFloat64()
	}
	for _, o := range [][]float64{v.Quat64[:], v.Unit64[:]} {
		square := 0.
		for _, x := range o {
			square += x * x
		}
		for i := range o {
			o[i] /= math.Sqrt(square)
		}
	}
	for i := range v.Quat {
		v.Quat[i] = float32(v.Quat64[3-i])
	}
	for i := range v.Unit {
		v.Unit[i] = float32(v.Unit64[2-i])
	}
	return v
}

// floats returns the numbers of an array as float64.
func floats[T float32 | float64](v ...T) (all []float64) {
	for _, x := range v {
		all = append(all, float64(x))
	}
	return all
}

// turnBetween returns the angle between two rotations, of which q and -q are the same one.
func turnBetween(a, b []float64) float64 {
	angle := angleBetween(a, b)
	return 2 * min(angle, math.Pi-angle)
}

// requireNear requires that two values are the same but for rounding, and equal in what steps.
func requireNear(t *testing.T, want, got mixed) {
	t.Helper()
	near := func(want, got, epsilon float64) { // Mix computes with float32
		t.Helper()
		require.InDelta(t, want, got, epsilon*max(1, math.Abs(want)))
	}
	near(float64(want.Fixed), float64(got.Fixed), 3e-5)
	near(want.Fixed64, got.Fixed64, 1e-12)
	near(float64(want.Half), float64(got.Half), 3e-5)
	near(float64(want.Small), float64(got.Small), 3e-5)
	near(float64(want.Cells[0]), float64(got.Cells[0]), 1e-6)
	near(float64(want.Cells[1]), float64(got.Cells[1]), 1e-6)
	near(0, math.Remainder(float64(want.Angle-got.Angle), 2*math.Pi), 1e-6)
	near(0, math.Remainder(want.Degrees-got.Degrees, 360), 1e-10)
	require.InDelta(t, 0, turnBetween(floats(want.Quat[:]...), floats(got.Quat[:]...)), 1e-6)
	require.InDelta(t, 0, turnBetween(want.Quat64[:], got.Quat64[:]), 1e-7)
	require.InDelta(t, 0, angleBetween(floats(want.Unit[:]...), floats(got.Unit[:]...)), 1e-6)
	require.InDelta(t, 0, angleBetween(want.Unit64[:], got.Unit64[:]), 1e-7)
	require.InDelta(t, want.Moving, got.Moving, 1)
	require.InDelta(t, want.Steps, got.Steps, 1)
	require.InDelta(t, 0, mod(int(want.Hour)-int(got.Hour)+1, 24)-1, 1)
	require.InDelta(t, 0, int16(want.Brad-got.Brad), 1)
	require.InDelta(t, 0, float64(int64(want.Wide-got.Wide)), 1e12, "a float32 has 24 bits of 63")
	want.Wide, want.Moving, want.Steps, want.Hour, want.Brad = got.Wide, got.Moving, got.Steps, got.Hour, got.Brad
	want.Fixed, want.Fixed64, want.Raw, want.Half, want.Small = got.Fixed, got.Fixed64, got.Raw, got.Half, got.Small
	want.Angle, want.Degrees, want.Cells = got.Angle, got.Degrees, got.Cells
	want.Quat, want.Quat64, want.Unit, want.Unit64 = got.Quat, got.Quat64, got.Unit, got.Unit64
	require.Equal(t, want, got, "what steps")
}

// TestDifferencesTakeOneValueToTheOther, and shares of them along the way that interpolation goes, of all codecs.
func TestDifferencesTakeOneValueToTheOther(t *testing.T) {
	k := New(componentOf[mixed](t))
	require.Equal(t, 5+2+2+4*3+5, k.Fades())
	r := rand.New(rand.NewPCG(replicationtest.Seed(t), 1))
	for range 3000 {
		a, b := randomMixed(r), randomMixed(r)
		if r.IntN(3) == 0 { // nearly the same, as most corrections are
			a = displaced(k, b, difference(k, a, b), math.Pow(10, -8*r.Float64()))
		}
		d := difference(k, a, b)
		got := displaced(k, b, d, 1)
		require.InDelta(t, a.Raw, got.Raw, 1e-15*(math.Abs(a.Raw)+math.Abs(b.Raw)))
		require.Equal(t, [4]any{a.Moving, a.Steps, a.Hour, a.Brad}, [4]any{got.Moving, got.Steps, got.Hour, got.Brad})
		require.Equal(t, [4]float32{a.Fixed, a.Half, a.Small, a.Cells[1]},
			[4]float32{got.Fixed, got.Half, got.Small, got.Cells[1]}, "a float64 has all bits of a float32's difference")
		require.InDelta(t, 0, float64(int64(a.Wide-got.Wide)), 1<<10, "a float64 has 53 bits of 63")
		want := b
		k.Mix(unsafe.Pointer(&want), unsafe.Pointer(&b), unsafe.Pointer(prepared(k, b, a)), 1)
		step(&want, &b)
		requireNear(t, want, got)
		for _, f := range []float32{0.125, 0.5, 0.75} {
			k.Mix(unsafe.Pointer(&want), unsafe.Pointer(&b), unsafe.Pointer(prepared(k, b, a)), f)
			requireNear(t, want, displaced(k, b, d, float64(f)))
		}
		require.Equal(t, b, displaced(k, b, d, 0), "to the bit")
	}
}

// prepared returns a second value for Mix.
func prepared(k *Kernel, from, second mixed) *mixed {
	k.Prepare(unsafe.Pointer(&from), unsafe.Pointer(&second))
	return &second
}

// step gives a value the fields that step of another one.
func step(v, of *mixed) {
	v.Jumps, v.Counted, v.Bool, v.Int, v.Flags, v.Name, v.Tag = of.Jumps, of.Counted, of.Bool, of.Int, of.Flags, of.Name, of.Tag
}

// TestDifferencesOfAnglesCrossTheSeam: the short way, and never more than half a turn.
func TestDifferencesOfAnglesCrossTheSeam(t *testing.T) {
	type angles struct {
		Angle   float32 `repl:"angle,bits=16"`
		Degrees float64 `repl:"angle,bits=20,period=360"`
	}
	k := New(componentOf[angles](t))
	d := difference(k, angles{3.1, 179}, angles{-3.1, -179})
	require.InDeltaSlice(t, []float64{6.2 - 2*math.Pi, -2}, d, 1e-6)
	v := displaced(k, angles{-3.1, -179}, d, 1)
	require.InDelta(t, 3.1, v.Angle, 1e-6)
	require.InDelta(t, 179, v.Degrees, 1e-12)
	d = difference(k, angles{100, 3600 + 30}, angles{-100, -20}) // angles of a game that does not reduce them
	require.InDeltaSlice(t, []float64{math.Remainder(200, 2*math.Pi), 50}, d, 1e-5)
	v = displaced(k, angles{-100, -720}, d, 1)
	require.InDelta(t, math.Remainder(100, 2*math.Pi), v.Angle, 1e-4)
	require.InDelta(t, 50, v.Degrees, 1e-9)
}

// rotated returns the vector that a rotation makes of another one: the real part of q * v * conj(q).
func rotated(q []float64, v [3]float64) [3]float64 {
	u, w := [3]float64{q[0], q[1], q[2]}, q[3]
	t := cross(u, v)
	s := cross(u, t)
	for i := range v {
		v[i] += 2 * (w*t[i] + s[i])
	}
	return v
}

// TestDifferencesOfRotationsTurnOtherRotationsAlike: about the same axis by the same angle, whatever their signs.
func TestDifferencesOfRotationsTurnOtherRotationsAlike(t *testing.T) {
	k := New(componentOf[mixed](t))
	r := rand.New(rand.NewPCG(replicationtest.Seed(t), 1))
	sign := func(q *[4]float64) {
		if r.IntN(2) == 0 {
			for i := range q {
				q[i] = -q[i]
			}
		}
	}
	for range 1000 {
		a, b, c := randomMixed(r), randomMixed(r), randomMixed(r)
		sign(&a.Quat64)
		sign(&b.Quat64)
		sign(&c.Quat64)
		d := difference(k, a, b)
		turn := d[len(k.singles)+len(k.doubles)+2+3:][:3] // of Quat64: behind the numbers, two angles and Quat
		angle := math.Sqrt(turn[0]*turn[0] + turn[1]*turn[1] + turn[2]*turn[2])
		require.LessOrEqual(t, angle, math.Pi+1e-9)
		require.InDelta(t, turnBetween(a.Quat64[:], b.Quat64[:]), angle, 1e-6)
		// Rodrigues' formula, of each axis as c rotates it.
		got := displaced(k, c, d, 1)
		for i := range 3 {
			var axis [3]float64
			axis[i] = 1
			v, n := rotated(c.Quat64[:], axis), [3]float64{turn[0] / angle, turn[1] / angle, turn[2] / angle}
			x := cross(n, v)
			for j := range v {
				want := v[j]*math.Cos(angle) + x[j]*math.Sin(angle) + n[j]*dot(n, v)*(1-math.Cos(angle))
				require.InDelta(t, want, rotated(got.Quat64[:], axis)[j], 1e-7)
			}
		}
		require.LessOrEqual(t, angleBetween(got.Unit64[:], c.Unit64[:]), angleBetween(a.Unit64[:], b.Unit64[:])+1e-7)
	}
}

// TestDifferencesOfOppositeDirections turn by half a turn; no rotation and no direction have no difference.
func TestDifferencesOfOppositeDirections(t *testing.T) {
	type directions struct {
		Quat [4]float64 `repl:"quat,bits=20"`
		Unit [3]float64 `repl:"unit,bits=20"`
	}
	k := New(componentOf[directions](t))
	for axis := range 3 {
		for _, off := range []float64{0, 1e-12, 1e-9, 1e-7, 1e-4} {
			var a, b directions
			b.Quat[3], b.Unit[axis] = 1, 1
			a.Quat[axis], a.Quat[3] = 1, off
			a.Unit[axis], a.Unit[(axis+1)%3] = -1, off
			v := displaced(k, b, difference(k, a, b), 1)
			require.InDelta(t, 0, turnBetween(a.Quat[:], v.Quat[:]), 1e-7)
			require.InDelta(t, 0, angleBetween(a.Unit[:], v.Unit[:]), 2e-8)
		}
	}
	inf, nan := math.Inf(1), math.NaN()
	sound := directions{[4]float64{3: 1}, [3]float64{1}}
	for _, bad := range []directions{
		{},
		{[4]float64{nan, 0, 0, 1}, [3]float64{nan}},
		{[4]float64{inf, 0, 0, 1}, [3]float64{inf}},
		{[4]float64{1e200, 1e200, 1e200, -1e200}, [3]float64{1e200, 1e200, 1e200}},
	} {
		for _, d := range [][]float64{difference(k, bad, sound), difference(k, sound, bad)} {
			for _, n := range d {
				require.False(t, math.IsNaN(n) || math.IsInf(n, 0), "%v", bad)
			}
		}
		v := displaced(k, sound, []float64{nan, 0, 0, inf, 0, 0}, 1)
		require.Equal(t, sound, v)
	}
	long := directions{[4]float64{0, 0, 0, 5}, [3]float64{5}}
	v := displaced(k, long, []float64{1e-3, 0, 0, 0, 0, 1e-3}, 1)
	require.InDelta(t, 1, math.Hypot(v.Quat[0], v.Quat[3]), 1e-12)
	require.InDelta(t, 1, math.Hypot(v.Unit[0], v.Unit[1]), 1e-12)
}

// TestDifferencesOfNumbersThatHaveNone: infinities and what lies too far apart displace nothing.
func TestDifferencesOfNumbersThatHaveNone(t *testing.T) {
	k := New(componentOf[raw](t))
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range [][2]float64{{inf, inf}, {inf, 1}, {1, -inf}, {1, nan}, {nan, 1}} {
		d := difference(k, raw{float32(c[0]), c[0]}, raw{float32(c[1]), c[1]})
		require.Equal(t, []float64{0, 0}, d, "%v", c)
	}
	require.Zero(t, difference(k, raw{0, math.MaxFloat64}, raw{0, -math.MaxFloat64})[1])
	for _, d := range []float64{nan, inf, -inf} {
		require.Equal(t, raw{1, 2}, displaced(k, raw{1, 2}, []float64{d, d}, 1))
	}
	require.Equal(t, raw{1, math.MaxFloat64}, displaced(k, raw{1, math.MaxFloat64}, []float64{1e300, math.MaxFloat64}, 1))
	require.Equal(t, raw{float32(inf), -inf}, displaced(k, raw{float32(inf), -inf}, []float64{1, 1}, 1))
}

// TestDisplacedIntegersStayInTheirRanges, against exact arithmetic.
func TestDisplacedIntegersStayInTheirRanges(t *testing.T) {
	k := New(componentOf[counts](t))
	require.Equal(t, 6, k.Fades())
	r := rand.New(rand.NewPCG(replicationtest.Seed(t), 1))
	ranges := [6][2]int64{{0, 255}, {-128, 127}, {10, 20}, {-1000, 1000}, {math.MinInt64, math.MaxInt64}, {0, -1}}
	pick := func() (v counts) {
		edge := func(low, high int64) int64 {
			switch r.IntN(4) {
			case 0:
				return low
			case 1:
				return high
			}
			if low > high || high-low < 0 { // all that 64 bits have
				return int64(r.Uint64())
			}
			return low + r.Int64N(high-low+1)
		}
		return counts{
			uint8(edge(0, 255)), int8(edge(-128, 127)), int16(edge(10, 20)), int32(edge(-1000, 1000)),
			edge(math.MinInt64, math.MaxInt64), uint64(edge(0, -1)),
		}
	}
	numbers := func(v counts) (all [6]*big.Int) {
		for i := range 5 {
			all[i] = big.NewInt([]int64{int64(v.Small), int64(v.Signed), int64(v.Range), int64(v.Steps), v.Wide}[i])
		}
		all[5] = new(big.Int).SetUint64(v.Huge)
		return all
	}
	for range 3000 {
		a, b := pick(), pick()
		d := difference(k, a, b)
		from, to := numbers(b), numbers(a)
		for i := range d {
			want, _ := new(big.Float).SetInt(new(big.Int).Sub(to[i], from[i])).Float64()
			require.InEpsilon(t, 1+math.Abs(want), 1+math.Abs(d[i]), 1e-15)
			require.False(t, want*d[i] < 0)
		}
		share := []float64{1, 0.5, 0.1, -1, 2, 1e30, -1e30}[r.IntN(7)]
		got := numbers(displaced(k, b, d, share))
		for i := range d {
			way, _ := new(big.Float).SetFloat64(math.RoundToEven(d[i] * share)).Int(nil)
			want := way.Add(way, from[i])
			low, high := big.NewInt(ranges[i][0]), big.NewInt(ranges[i][1])
			if i == 5 {
				high.SetUint64(math.MaxUint64)
			}
			if want.Cmp(low) < 0 {
				want = low
			}
			if want.Cmp(high) > 0 {
				want = high
			}
			require.Zero(t, want.Cmp(got[i]), "field %d: %v and %v by %v", i, b, a, share)
		}
	}
	beyond := counts{Range: 25, Steps: -2000}
	require.Equal(t, beyond, displaced(k, beyond, make([]float64, 6), 1))
	v := displaced(k, beyond, []float64{0, 0, -1, 3, 0, 0}, 1)
	require.EqualValues(t, 19, v.Range)
	require.EqualValues(t, -997, v.Steps)
	v = displaced(k, beyond, []float64{math.NaN(), 0, 1, -1, math.Inf(1), 0}, 1)
	require.Equal(t, counts{Range: 20, Steps: -1000, Wide: math.MaxInt64}, v)
}

// TestDisplacedIntegersGoRound: as often as they must, from whatever the game has.
func TestDisplacedIntegersGoRound(t *testing.T) {
	type around struct {
		Hour int8  `repl:"range=1:24,wrap"`
		Brad uint8 `repl:"wrap"`
		Turn int16 `repl:"wrap"`
	}
	k := New(componentOf[around](t))
	for hour := 1; hour <= 24; hour++ {
		for way := -600; way <= 600; way++ {
			v := displaced(k, around{int8(hour), uint8(hour), int16(hour)}, []float64{1, 1, 1000}, float64(way))
			require.EqualValues(t, mod(hour+way-1, 24)+1, v.Hour)
			require.Equal(t, uint8(hour+way), v.Brad)
			require.Equal(t, int16(hour+1000*way), v.Turn)
		}
		for other := 1; other <= 24; other++ {
			d := difference(k, around{int8(other), uint8(10 * other), 0}, around{int8(hour), uint8(10 * hour), 0})
			require.InDelta(t, 0, math.Abs(d[0]), 12)
			require.InDelta(t, 0, math.Abs(d[1]), 128)
			require.EqualValues(t, mod(other, 24), mod(hour+int(d[0]), 24))
			require.Equal(t, uint8(10*other), uint8(10*hour+int(d[1])))
		}
	}
	v := around{5, 6, 7}
	require.Equal(t, v, displaced(k, v, []float64{math.NaN(), math.Inf(1), math.Inf(-1)}, 1))
	require.EqualValues(t, 2, displaced(k, around{Hour: 25}, []float64{1, 0, 0}, 1).Hour)
}

// TestFarIsFartherThanSnap, measured by what moves linearly.
func TestFarIsFartherThanSnap(t *testing.T) {
	type place struct {
		X     float32
		Angle float32 `repl:"angle,bits=16"`
		Y     float64
		Quat  [4]float32 `repl:"quat,bits=10"`
		Z     int16      `repl:"linear"`
		Brad  uint8      `repl:"wrap"`
	}
	far := func(snap float64, d ...float64) bool {
		var s schema.Schema
		require.NoError(t, s.Register(reflect.TypeFor[place](), &schema.Options{Snap: snap}))
		s.Freeze()
		k := New(&s.Components[0])
		require.Equal(t, len(d), k.Fades())
		a, b := place{X: float32(d[0]), Y: d[1], Z: int16(d[6])}, place{}
		k.Prepare(unsafe.Pointer(&b), unsafe.Pointer(&a))
		require.Equal(t, k.Snaps(unsafe.Pointer(&b), unsafe.Pointer(&a), 1), k.Far(d))
		return k.Far(d)
	}
	require.False(t, far(7, 2, 3, 9, 9, 9, 9, 6, 9))
	require.True(t, far(6.99, 2, 3, 0, 0, 0, 0, 6, 0))
	require.False(t, far(0, 2000, 3000, 0, 0, 0, 0, 6, 0), "nothing snaps")
}

// TestComponentsThatStepHaveNoDifferences.
func TestComponentsThatStepHaveNoDifferences(t *testing.T) {
	type steps struct {
		X    float32 `repl:"raw,hold"`
		N    int16
		Name string `repl:"max=5"`
		Of   ecs.Entity
	}
	k := New(componentOf[steps](t))
	require.Zero(t, k.Fades())
	a, b := steps{X: 1, N: 2, Name: "a"}, steps{X: 3}
	require.Equal(t, b, displaced(k, b, difference(k, a, b), 1))
	require.False(t, k.Far(nil))
}

func TestFadingDoesNotAllocate(t *testing.T) {
	k := New(componentOf[mixed](t))
	r := rand.New(rand.NewPCG(1, 2))
	a, b, d := randomMixed(r), randomMixed(r), make([]float64, k.Fades())
	require.Zero(t, testing.AllocsPerRun(100, func() {
		k.Difference(d, unsafe.Pointer(&a), unsafe.Pointer(&b))
		k.Displace(unsafe.Pointer(&b), d)
		k.Far(d)
	}))
}
