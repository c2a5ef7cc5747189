package blend

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/mlange-42/arche/ecs"
)

// mixed has a field of every codec.
type mixed struct {
	Fixed   float32 `repl:"range=-100:100,step=0.01"`
	Fixed64 float64 `repl:"range=-100:100,step=0.01"`
	Raw     float64
	Half    float32    `repl:"half"`
	Small   float32    `repl:"range=-100:100,precision=0.01"`
	Jumps   float32    `repl:"raw,jump"`
	Counted float32    `repl:"range=0:100,step=0.5,counter"`
	Angle   float32    `repl:"angle,bits=16"`
	Degrees float64    `repl:"angle,bits=20,period=360"`
	Quat    [4]float32 `repl:"quat,bits=15"`
	Quat64  [4]float64 `repl:"quat,bits=15"`
	Unit    [3]float32 `repl:"unit,bits=15"`
	Unit64  [3]float64 `repl:"unit,bits=15"`
	Bool    bool
	Int     int16      `repl:"range=-1000:1000"`
	Moving  uint8      `repl:"linear"`
	Steps   int32      `repl:"range=-1000:1000,step=5,linear"`
	Hour    int8       `repl:"range=1:24,wrap"`
	Brad    uint16     `repl:"wrap"`
	Wide    uint64     `repl:"wrap"`
	Flags   uint16     `repl:"flags=4"`
	Name    string     `repl:"max=10"`
	Tag     [6]byte    `repl:"max=6"`
	Cells   [2]float32 `repl:"range=0:10,step=0.1"`
	Target  ecs.Entity
	private int
}

func componentOf[T any](t testing.TB) *schema.Component {
	t.Helper()
	var s schema.Schema
	require.NoError(t, s.Register(reflect.TypeFor[T](), &schema.Options{}))
	s.Freeze()
	return &s.Components[0]
}

// rowOf returns the codes of a value.
func rowOf[T any](c *schema.Component, v T) []uint32 {
	row := make([]uint32, c.Words)
	c.ReadColumn(row, unsafe.Pointer(&v), 1)
	return row
}

// blended returns the value between two others as both ends compute it: from rows, and from prepared values.
func blended[T any](t testing.TB, k *Kernel, a, b T, f float32) (v T) {
	t.Helper()
	c := k.comp
	var from, second, other T
	rowA, rowB := rowOf(c, a), rowOf(c, b)
	k.Blend(unsafe.Pointer(&v), rowA, rowB, f)
	c.Write(unsafe.Pointer(&from), rowA)
	c.Write(unsafe.Pointer(&second), rowB)
	k.Prepare(unsafe.Pointer(&from), unsafe.Pointer(&second))
	k.Mix(unsafe.Pointer(&other), unsafe.Pointer(&from), unsafe.Pointer(&second), f)
	require.Equal(t, v, other, "the ends compute different values at %v", f)
	return v
}

func between(t *testing.T) (k *Kernel, a, b, middle mixed) {
	k = New(componentOf[mixed](t))
	a = mixed{
		Fixed: -10, Fixed64: 20, Raw: 1, Half: 2, Small: 4, Jumps: 1, Counted: 1, Angle: 3, Degrees: -170,
		Quat: [4]float32{3: 1}, Quat64: [4]float64{3: 1}, Unit: [3]float32{1}, Unit64: [3]float64{1}, Bool: true,
		Int: 4, Moving: 250, Steps: -10, Hour: 23, Brad: 65530, Wide: math.MaxUint64 - 1, Flags: 5, Name: "first",
		Tag: [6]byte{1, 2}, Cells: [2]float32{1, 2},
	}
	h := math.Sqrt(0.5)
	b = mixed{
		Fixed: 10, Fixed64: 40, Raw: 3, Half: 4, Small: 8, Jumps: 2, Counted: 3, Angle: -3, Degrees: 150,
		Quat: [4]float32{2: float32(h), 3: float32(h)}, Quat64: [4]float64{2: -h, 3: -h},
		Unit: [3]float32{1: 1}, Unit64: [3]float64{-1}, Bool: false,
		Int: 8, Moving: 50, Steps: 10, Hour: 3, Brad: 10, Wide: 4, Flags: 10, Name: "second",
		Tag: [6]byte{3, 4}, Cells: [2]float32{3, 4},
	}
	return k, a, b, blended(t, k, a, b, 0.5)
}

func TestNumbersMoveLinearly(t *testing.T) {
	_, a, _, v := between(t)
	require.InDelta(t, 0, v.Fixed, 1e-5)
	require.InDelta(t, 30, v.Fixed64, 1e-12)
	require.InDelta(t, 2, v.Raw, 0)
	require.InDelta(t, 3, v.Half, 0)
	require.InDelta(t, 6, v.Small, 0.02)
	require.InDelta(t, 2, v.Cells[0], 1e-6)
	require.InDelta(t, 3, v.Cells[1], 1e-6)
	require.EqualValues(t, 150, v.Moving, "250 to 50: linear, not the shorter way round")
	require.EqualValues(t, 0, v.Steps)

	require.Equal(t, a.Jumps, v.Jumps)
	require.Equal(t, a.Counted, v.Counted)
	require.Equal(t, a.Bool, v.Bool)
	require.Equal(t, a.Int, v.Int)
	require.Equal(t, a.Flags, v.Flags)
	require.Equal(t, a.Name, v.Name)
	require.Equal(t, a.Tag, v.Tag)
}

// TestFixedFieldsAloneMoveAlike: the way of Blend for components of nothing else computes what Mix does.
func TestFixedFieldsAloneMoveAlike(t *testing.T) {
	type place struct {
		X float32 `repl:"range=-1000:1000,step=0.01"`
		Y float32 `repl:"range=0:1,step=0.1"`
		Z float32 `repl:"range=-1e9:1e9,step=100"`
	}
	k := New(componentOf[place](t))
	require.Len(t, k.fixed, 3)
	rng := rand.New(rand.NewPCG(1, 2))
	random := func() place {
		return place{2000*rng.Float32() - 1000, rng.Float32(), 2e9*rng.Float32() - 1e9}
	}
	for range 2000 {
		blended(t, k, random(), random(), 1.5*rng.Float32())
	}
	require.Empty(t, New(componentOf[mixed](t)).fixed)
}

func TestAnglesAndWrapsGoTheShorterWay(t *testing.T) {
	k, a, b, v := between(t)
	require.InDelta(t, math.Pi, math.Abs(float64(v.Angle)), 1e-3)
	require.InDelta(t, 170, v.Degrees, 1e-3, "-170 to 150, which is -210")
	require.EqualValues(t, 1, v.Hour, "23, 24, 1, 2, 3")
	require.EqualValues(t, 2, v.Brad)
	require.EqualValues(t, 1, v.Wide, "-2 to 4")
	v = blended(t, k, b, a, 0.5)
	require.InDelta(t, math.Pi, math.Abs(float64(v.Angle)), 1e-3)
	require.InDelta(t, 170, v.Degrees, 1e-3)
	require.EqualValues(t, 1, v.Hour)
	require.EqualValues(t, 2, v.Brad)
	require.EqualValues(t, 1, v.Wide)
}

func TestRotationsTurnAtConstantSpeed(t *testing.T) {
	_, _, _, v := between(t)
	require.InDelta(t, math.Sin(math.Pi/8), v.Quat[2], 1e-4)
	require.InDelta(t, math.Cos(math.Pi/8), v.Quat[3], 1e-4)
	require.InDelta(t, math.Sin(math.Pi/8), math.Abs(v.Quat64[2]), 1e-4, "q and -q are the same rotation")
	require.InDelta(t, math.Cos(math.Pi/8), math.Abs(v.Quat64[3]), 1e-4)
	require.InDelta(t, math.Sqrt(0.5), v.Unit[0], 1e-4)
	require.InDelta(t, math.Sqrt(0.5), v.Unit[1], 1e-4)
	require.InDelta(t, 0, v.Unit64[0], 1e-4, "to the opposite direction")
	require.InDelta(t, 1, math.Hypot(v.Unit64[1], v.Unit64[2]), 1e-4)
}

// angleBetween returns the angle between two quaternions or unit vectors of length one.
func angleBetween(a, b []float64) float64 {
	sum, difference := 0.0, 0.0
	for i := range a {
		sum += (a[i] + b[i]) * (a[i] + b[i])
		difference += (a[i] - b[i]) * (a[i] - b[i])
	}
	return 2 * math.Atan2(math.Sqrt(difference), math.Sqrt(sum))
}

func TestRotationsOfEveryAngle(t *testing.T) {
	type directions struct {
		Quat [4]float64 `repl:"quat,bits=20"`
		Unit [3]float64 `repl:"unit,bits=20"`
	}
	k := New(componentOf[directions](t))
	r := rand.New(rand.NewPCG(replicationtest.Seed(t), 1))
	random := func(v []float64) {
		square := 0.0
		for i := range v {
			v[i] = r.NormFloat64()
			square += v[i] * v[i]
		}
		for i := range v {
			v[i] /= math.Sqrt(square)
		}
	}
	for range 2000 {
		var a, b, first, last directions
		random(a.Quat[:])
		random(a.Unit[:])
		b = a
		if r.IntN(2) == 0 { // near the first
			for i := range b.Quat {
				b.Quat[i] += r.NormFloat64() * math.Pow(10, -6*r.Float64())
			}
		} else {
			random(b.Quat[:])
			random(b.Unit[:])
		}
		k.comp.Write(unsafe.Pointer(&first), rowOf(k.comp, a))
		k.comp.Write(unsafe.Pointer(&last), rowOf(k.comp, b))
		quat, unit := angleBetween(first.Quat[:], last.Quat[:]), angleBetween(first.Unit[:], last.Unit[:])
		quat = min(quat, math.Pi-quat)
		for _, f := range []float32{0, 0.25, 0.5, 0.75, 1} {
			v := blended(t, k, a, b, f)
			require.InDelta(t, 1, math.Hypot(math.Hypot(v.Quat[0], v.Quat[1]), math.Hypot(v.Quat[2], v.Quat[3])), 1e-7)
			require.InDelta(t, 1, math.Hypot(math.Hypot(v.Unit[0], v.Unit[1]), v.Unit[2]), 1e-7)
			require.InDelta(t, quat*float64(f), angleBetween(first.Quat[:], v.Quat[:]), 1e-6)
			require.InDelta(t, unit*float64(f), angleBetween(first.Unit[:], v.Unit[:]), 1e-6)
			if f == 1 {
				same := angleBetween(last.Quat[:], v.Quat[:])
				require.InDelta(t, 0, min(same, math.Pi-same), 1e-6)
				require.InDelta(t, 0, angleBetween(last.Unit[:], v.Unit[:]), 1e-6)
			}
		}
	}
}

func TestTheFirstValueIsExactAndTheLastNearly(t *testing.T) {
	k, a, b, _ := between(t)
	var first, last mixed
	k.comp.Write(unsafe.Pointer(&first), rowOf(k.comp, a))
	k.comp.Write(unsafe.Pointer(&last), rowOf(k.comp, b))
	require.Equal(t, first, blended(t, k, a, b, 0))
	v := blended(t, k, a, b, 1)
	require.Equal(t, rowOf(k.comp, last)[0], rowOf(k.comp, v)[0])
	require.InDelta(t, last.Fixed, v.Fixed, 1e-5)
	require.InDelta(t, last.Angle, v.Angle, 1e-5)
	require.Equal(t, last.Hour, v.Hour)
	require.Equal(t, last.Brad, v.Brad)
	require.Equal(t, last.Wide, v.Wide)
}

func TestBlendingLeavesAloneWhatIsNotReplicated(t *testing.T) {
	w := ecs.NewWorld()
	e := w.NewEntity()
	k, a, b, _ := between(t)
	var from, second mixed
	k.comp.Write(unsafe.Pointer(&from), rowOf(k.comp, a))
	k.comp.Write(unsafe.Pointer(&second), rowOf(k.comp, b))
	k.Prepare(unsafe.Pointer(&from), unsafe.Pointer(&second))
	v := mixed{Target: e, private: 7, Flags: 0xF0F0}
	k.Mix(unsafe.Pointer(&v), unsafe.Pointer(&from), unsafe.Pointer(&second), 0.5)
	require.Equal(t, e, v.Target)
	require.Equal(t, 7, v.private)
	require.EqualValues(t, 0xF0F5, v.Flags)
}

// TestHeldFieldsStep: whatever their codec.
func TestHeldFieldsStep(t *testing.T) {
	type held struct {
		Fixed float32    `repl:"range=-100:100,step=0.01,hold"`
		Raw   float64    `repl:"hold"`
		Quat  [4]float32 `repl:"quat,bits=15,hold"`
		Angle float32    `repl:"angle,bits=12,hold"`
		Cells [2]float32 `repl:"range=0:10,step=0.1,hold"`
		Hour  int8       `repl:"range=1:24,wrap,hold"`
	}
	k := New(componentOf[held](t))
	require.False(t, k.Moves())
	a := held{Fixed: 1, Raw: 2, Quat: [4]float32{1}, Angle: 3, Hour: 4}
	v := blended(t, k, a, held{Fixed: 3, Raw: 5, Quat: [4]float32{1: 1}, Cells: [2]float32{5, 5}, Hour: 8}, 0.75)
	require.InDelta(t, 1, v.Fixed, 1e-6)
	require.EqualValues(t, 2, v.Raw)
	require.InDelta(t, 1, v.Quat[0], 1e-3)
	require.InDelta(t, 3, v.Angle, 1e-3)
	require.Zero(t, v.Cells)
	require.EqualValues(t, 4, v.Hour)
}

func TestBlendingBeyondTheSecondValueGoesOn(t *testing.T) {
	k, a, b, _ := between(t)
	v := blended(t, k, a, b, 1.5)
	require.InDelta(t, 20, v.Fixed, 1e-4)
	require.InDelta(t, math.Sin(3*math.Pi/8), v.Quat[2], 1e-3)
	v = blended(t, k, a, b, 1000) // half a turn at most
	require.InDelta(t, 1, math.Hypot(float64(v.Quat[2]), float64(v.Quat[3])), 1e-3)
}

func TestFractionsOfSpans(t *testing.T) {
	const last = math.MaxUint32
	s := NewSpan(last-1, 2) // 4 ticks
	for _, c := range []struct {
		at   Time
		want float32
	}{
		{Time{last - 2, 63}, 0},
		{Time{last - 1, 0}, 0},
		{Time{last - 1, 32}, 0.125},
		{Time{0, 0}, 0.5},
		{Time{2, 0}, 1},
		{Time{4, 0}, 1.5},
	} {
		require.InDelta(t, c.want, s.Fraction(c.at), 1e-7, "%v", c.at)
	}
	require.Zero(t, NewSpan(5, 5).Fraction(Time{9, 1}))
}

func TestTimesWrap(t *testing.T) {
	at := Time{math.MaxUint32, 63}
	require.Equal(t, Time{0, 0}, at.Add(1))
	require.Equal(t, at, Time{0, 0}.Add(-1))
	require.Equal(t, Time{delta.Tick(math.MaxUint32), 0}, Time{1, 5}.Add(-2*Parts-5))
	require.EqualValues(t, 1, Time{0, 0}.since(math.MaxUint32)-Parts+1)
	require.EqualValues(t, -Parts+3, Time{math.MaxUint32, 3}.since(0))
}

func TestBlendingDoesNotAllocate(t *testing.T) {
	type numbers struct {
		X, Y, Z float32    `repl:"range=-100:100,step=0.01"`
		Quat    [4]float32 `repl:"quat,bits=11"`
		Heading uint16     `repl:"wrap"`
	}
	k := New(componentOf[numbers](t))
	v := new(numbers)
	a, b := rowOf(k.comp, numbers{X: 1}), rowOf(k.comp, numbers{X: 2, Heading: 5})
	require.Zero(t, testing.AllocsPerRun(100, func() { k.Blend(unsafe.Pointer(v), a, b, 0.3) }))
}

func TestCurvesMeetPlacesAndVelocities(t *testing.T) {
	type velocity struct {
		X float32
		Y float64
	}
	type position struct {
		X float32
		Y float64
	}
	var schemaOf schema.Schema
	require.NoError(t, schemaOf.Register(reflect.TypeFor[velocity](), &schema.Options{}))
	require.NoError(t, schemaOf.Register(reflect.TypeFor[position](), &schema.Options{
		Velocity: reflect.TypeFor[velocity](), PerTick: 0.5,
	}))
	schemaOf.Freeze()
	places := New(&schemaOf.Components[1])
	c := NewCurve(&schemaOf, places)
	require.Nil(t, NewCurve(&schemaOf, New(&schemaOf.Components[0])))
	// x = t^3, y = -t^3 from t = 1 to 3, with velocities per unit of time.
	at := func(f float32) (v position) {
		a, b := position{1, -1}, position{27, -27}
		va, vb := velocity{3, -3}, velocity{27, -27}
		places.Prepare(unsafe.Pointer(&a), unsafe.Pointer(&b))
		c.Prepare(unsafe.Pointer(&b), unsafe.Pointer(&va), unsafe.Pointer(&vb), 4)
		places.Mix(unsafe.Pointer(&v), unsafe.Pointer(&a), unsafe.Pointer(&b), f)
		c.Bend(unsafe.Pointer(&v), unsafe.Pointer(&va), unsafe.Pointer(&vb), f)
		return v
	}
	for f := float32(0); f <= 1; f += 0.125 {
		x := math.Pow(1+2*float64(f), 3)
		require.InDelta(t, x, at(f).X, 1e-4)
		require.InDelta(t, -x, at(f).Y, 1e-9)
	}
	aside := c.Aside(unsafe.Offsetof(position{}.Y), unsafe.Pointer(&velocity{Y: 27}), unsafe.Pointer(&velocity{Y: -54}))
	require.InDelta(t, 12, aside, 1e-9)
}
