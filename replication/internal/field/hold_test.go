package field

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/history"
)

// A heldField is a field of some floats with a tag.
type heldField struct {
	count   int // of numbers
	single  bool
	tag     string
	step    float64 // the largest between two values
	most    float64 // error without a margin
	numbers func(rng *rand.Rand) []float64
	period  float64
}

func heldFields() (all []heldField) {
	within := func(low, high float64) func(rng *rand.Rand) []float64 {
		return func(rng *rand.Rand) []float64 { return []float64{low + rng.Float64()*(high-low)} }
	}
	direction := func(n int) func(rng *rand.Rand) []float64 {
		return func(rng *rand.Rand) []float64 {
			v, length := make([]float64, n), 0.0
			for i := range v {
				v[i] = rng.NormFloat64()
				if i < n-1 && rng.IntN(4) == 0 {
					v[i] = 0
				}
				if i > 0 && rng.IntN(4) == 0 {
					v[i] = max(v[0], 0.1) + 0.01*rng.NormFloat64()
				}
				length += v[i] * v[i]
			}
			for i := range v {
				v[i] /= math.Sqrt(length)
			}
			return v
		}
	}
	for _, single := range []bool{false, true} {
		all = append(all,
			heldField{count: 1, single: single, tag: "range=-100:100,step=0.01", step: 0.01, numbers: within(-100, 100)},
			heldField{count: 1, single: single, tag: "range=0:1,step=0.3", step: 0.3, numbers: within(0.1, 0.85)},
			heldField{count: 1, single: single, tag: "range=-100:100,precision=0.1", step: 0.125, numbers: within(-99, -65)},
			heldField{count: 1, single: single, tag: "range=0:1,precision=0.01", step: 1. / 64, numbers: within(0.55, 0.95)},
			heldField{count: 1, single: single, tag: "half", step: 0.0625, numbers: within(65, 120)},
			heldField{count: 1, single: single, tag: "angle,bits=8,period=360", step: 360. / 256, period: 360, numbers: within(-400, 400)},
			heldField{count: 1, single: single, tag: "angle,bits=1,period=1", step: 0.5, period: 1, numbers: within(-2, 2)},
		)
		for _, bits := range []int{5, 8, 9, 12} {
			tag := ",bits=" + string("0123456789"[bits/10]) + string("0123456789"[bits%10])
			unit, quat := codecOf(heldField{count: 3, tag: "unit" + tag}), codecOf(heldField{count: 4, tag: "quat" + tag})
			all = append(all,
				heldField{count: 3, single: single, tag: "unit" + tag, step: 1 / float64(unit.Unit.Max()), most: unit.Unit.MaxError(), numbers: direction(3)},
				heldField{count: 4, single: single, tag: "quat" + tag, step: 1 / float64(quat.Quat.Max()), most: quat.Quat.MaxError(), numbers: direction(4)})
		}
	}
	return all
}

func codecOf(f heldField) *Codec {
	typ := reflect.TypeFor[float64]()
	if f.single {
		typ = reflect.TypeFor[float32]()
	}
	if f.count > 1 {
		typ = reflect.ArrayOf(f.count, typ)
	}
	tag, err := ParseTag(f.tag)
	if err != nil {
		panic(err)
	}
	q, err := NewCodec(typ, &tag)
	if err != nil {
		panic(err)
	}
	return q
}

// memory returns the numbers as the field holds them.
func (f *heldField) memory(v []float64) unsafe.Pointer {
	if !f.single {
		return unsafe.Pointer(unsafe.SliceData(append([]float64(nil), v...)))
	}
	narrow := make([]float32, len(v))
	for i, x := range v {
		narrow[i] = float32(x)
	}
	return unsafe.Pointer(unsafe.SliceData(narrow))
}

func (f *heldField) codes(q *Codec, p unsafe.Pointer) []uint32 {
	words := make([]uint32, q.Words())
	q.Read(words, q.Words(), p, 0)
	return words
}

// values returns the numbers that codes stand for.
func (f *heldField) values(q *Codec, words []uint32) []float64 {
	v := make([]float64, f.count)
	if !f.single {
		q.Write(unsafe.Pointer(unsafe.SliceData(v)), words)
		return v
	}
	narrow := make([]float32, f.count)
	q.Write(unsafe.Pointer(unsafe.SliceData(narrow)), words)
	for i, x := range narrow {
		v[i] = float64(x)
	}
	return v
}

// apart returns the distance of two values.
func (f *heldField) apart(a, b []float64) float64 {
	if f.period > 0 {
		return math.Abs(math.Remainder(a[0]-b[0], f.period))
	}
	plus, minus := 0.0, 0.0
	for i := range a {
		plus, minus = max(plus, math.Abs(a[i]-b[i])), max(minus, math.Abs(a[i]+b[i]))
	}
	if f.count == 4 { // q and -q are the same rotation
		return min(plus, minus)
	}
	if f.count == 3 {
		sum := 0.0
		for i := range a {
			sum += (a[i] - b[i]) * (a[i] - b[i])
		}
		return math.Sqrt(sum)
	}
	return plus
}

func moved(rng *rand.Rand, v []float64, by float64) []float64 {
	w := append([]float64(nil), v...)
	for i := range w {
		w[i] += (2*rng.Float64() - 1) * by
	}
	return w
}

func TestCodesAreHeldWithinTheMargin(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 54))
	for _, f := range heldFields() {
		q := codecOf(f)
		require.True(t, q.Holds())
		if f.most == 0 {
			f.most = f.step / 2
		}
		held, near := 0, q.AppendNear(nil)
		require.Len(t, near, q.Words())
		for range 20_000 {
			v := f.numbers(rng)
			recorded := f.codes(q, f.memory(v))

			// Small noise is always held, and the history asks about it.
			few := moved(rng, v, f.step/16/float64(f.count*f.count))
			p := f.memory(few)
			own := f.codes(q, p)
			words := append([]uint32(nil), own...)
			if Keeps(q, words, recorded, p) {
				copy(words, recorded)
			}
			require.Equal(t, recorded, words, "%s: %v after %v", f.tag, few, v)
			if differ(own, recorded) {
				held++
				asked, h := false, history.New(len(own), 1)
				h.Keep(near, func(int, []uint32, []uint32) bool { asked = true; return false })
				h.Set(7, 1, 1, recorded)
				require.True(t, h.Set(7, 2, 1, own))
				require.True(t, asked, "%s: %v after %v: %v after %v", f.tag, few, v, own, recorded)
			}

			// Whatever is held is within the margin.
			far := moved(rng, v, f.step*rng.Float64()*3)
			p = f.memory(far)
			own = f.codes(q, p)
			words = append(words[:0], own...)
			if Keeps(q, words, recorded, p) {
				copy(words, recorded)
			}
			if differ(words, own) {
				require.Equal(t, recorded, words)
				if f.count == 1 {
					require.LessOrEqual(t, f.apart(f.values(q, recorded), far), 2*q.reach*f.most+1e-5, "%s: %v after %v", f.tag, far, v)
				} else {
					length := 0.0
					for _, x := range far {
						length += x * x
					}
					for i := range far {
						far[i] /= math.Sqrt(length)
					}
					require.LessOrEqual(t, f.apart(f.values(q, recorded), far), 2*q.reach*f.most+1e-5, "%s: %v after %v", f.tag, far, v)
				}
			}

			// A value of the grid is never held at another.
			p = f.memory(f.values(q, own))
			words = append(words[:0], own...)
			if Keeps(q, words, recorded, p) {
				copy(words, recorded)
			}
			require.Equal(t, own, words, "%s: %v after %v", f.tag, f.values(q, own), f.values(q, recorded))
		}
		require.Positive(t, held, f.tag)
	}
}

func TestIntegersInStepsAreHeld(t *testing.T) {
	for _, c := range []struct {
		typ           reflect.Type
		tag           string
		before, after int64
		want          bool
	}{
		{reflect.TypeFor[int32](), "range=-100:100,step=10", 4, 6, true},
		{reflect.TypeFor[int32](), "range=-100:100,step=10", 4, 7, false},
		{reflect.TypeFor[int32](), "range=-100:100,step=10", 6, 4, true},
		{reflect.TypeFor[int32](), "range=-100:100,step=10", 6, 3, false},
		{reflect.TypeFor[int32](), "range=-100:100,step=10", -4, 16, false},
		{reflect.TypeFor[int8](), "range=-100:100,step=10,margin=0", 4, 6, false},
		{reflect.TypeFor[int16](), "range=0:100,step=1", 4, 5, false},
		{reflect.TypeFor[int64](), "range=0:100,step=30", 90, 100, false}, // the bound is exact
		{reflect.TypeFor[int64](), "range=0:100,step=30", 90, 96, true},
		{reflect.TypeFor[int](), "range=0:100,step=10", 94, 96, true},
		{reflect.TypeFor[uint8](), "range=0:200,step=10", 194, 196, true},
		{reflect.TypeFor[uint16](), "range=0:200,step=10", 194, 196, true},
		{reflect.TypeFor[uint32](), "range=0:200,step=10", 194, 196, true},
		{reflect.TypeFor[uint64](), "range=0:200,step=10", 194, -1, false}, // far above
		{reflect.TypeFor[uint](), "range=0:200,step=10", 194, 196, true},
		{reflect.TypeFor[int32](), "range=0:359,wrap", 4, 5, false},
	} {
		tag, err := ParseTag(c.tag)
		require.NoError(t, err)
		q, err := NewCodec(c.typ, &tag)
		require.NoError(t, err)
		at := func(x int64) unsafe.Pointer {
			v := reflect.New(c.typ)
			if v.Elem().CanInt() {
				v.Elem().SetInt(x)
			} else {
				v.Elem().SetUint(uint64(x))
			}
			return v.UnsafePointer()
		}
		recorded, words := make([]uint32, q.Words()), make([]uint32, q.Words())
		q.Read(recorded, q.Words(), at(c.before), 0)
		q.Read(words, q.Words(), at(c.after), 0)
		require.NotEqual(t, recorded, words)
		require.Equal(t, c.want, Keeps(q, words, recorded, at(c.after)), "%v %s: %d after %d", c.typ, c.tag, c.after, c.before)
	}
}
