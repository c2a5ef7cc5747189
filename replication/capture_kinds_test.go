package replication

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/mlange-42/arche/ecs"
)

type (
	captureLevel int16
	captureInts  struct {
		A   int8
		B   int16 `repl:"range=-300:300"`
		C   int32
		D   int64
		E   int `repl:"range=-5:100000"`
		F   bool
		U   uint8
		V   uint16
		W   uint32 `repl:"range=3:1000000"`
		X   uint64
		Y   uint `repl:"range=0:7"`
		Z   captureLevel
		Arr [2][3]uint16
		Stp int16  `repl:"range=-300:300,step=20"`
		Wrp uint8  `repl:"range=0:11,wrap"`
		Flg uint32 `repl:"flags=7"`
	}
	captureFloats struct {
		A float32 `repl:"range=-100:100,step=0.01"`
		B float64 `repl:"range=-100:100,step=0.001"`
		C float64 `repl:"range=-100:100,step=1e-10"`
		D float32
		E float64 `repl:"raw"`
		F float32 `repl:"range=-100:100,precision=0.01"`
		G float64 `repl:"range=0:100,precision=1e-6"`
		H float32 `repl:"half"`
		I float64 `repl:"half"`
		J float32 `repl:"angle,bits=12"`
		K float64 `repl:"angle,bits=20,period=360"`
	}
	captureVectors struct {
		_ [5]byte
		A [3]float32                   `repl:"unit,bits=10"`
		B struct{ X, Y, Z float64 }    `repl:"unit,bits=12"`
		C [4]float32                   `repl:"quat,bits=9"`
		D struct{ X, Y, Z, W float64 } `repl:"quat,bits=15"`
	}
	captureOrbit struct {
		ecs.Relation `repl:"-"`
		Cached       []int   `repl:"-"`
		Height       float32 `repl:"range=0:100,step=0.5"`
		In           struct {
			On   bool
			Heat [2]uint8
		}
	}
	captureText struct {
		Name string  `repl:"max=12"`
		Mark [9]byte `repl:"max=5"`
	}
	captureTag struct{}
)

// TestEveryKindIsCapturedAsItIs: in a random world with columns of every kind, the capture finds
// the same values as reading every entity.
func TestEveryKindIsCapturedAsItIs(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	seed := seedOf(t)
	for i := range uint64(ticksOf(3, 2)) {
		captureRandomWorld(t, rand.New(rand.NewPCG(seed, i)))
	}
}

func captureRandomWorld(t *testing.T, rng *rand.Rand) {
	schema := NewSchema()
	types := []reflect.Type{
		reflect.TypeFor[captureInts](), reflect.TypeFor[captureFloats](), reflect.TypeFor[captureVectors](),
		reflect.TypeFor[captureOrbit](), reflect.TypeFor[captureText](), reflect.TypeFor[captureTag](), reflect.TypeFor[schemaVec](),
	}
	for i, typ := range types {
		switch i {
		case 1:
			RegisterType(schema, typ, Every(3))
		case 6:
			RegisterType(schema, typ, With(cvTiny{}))
		default:
			RegisterType(schema, typ)
		}
	}
	w := ecs.NewWorld()
	x := &captureCheck{t: t, world: &w, server: NewServer(&w, schema), schema: schema}
	var ids []ecs.ID
	for _, typ := range types {
		ids = append(ids, ecs.TypeID(&w, typ))
	}
	var entities []ecs.Entity
	suns := []ecs.Entity{w.NewEntity(), w.NewEntity()}
	for range 60 {
		for range rng.IntN(30) {
			e := w.NewEntity(ReplicatedID(&w), ids[0])
			for _, id := range ids[1:] {
				if rng.IntN(3) > 0 {
					w.Add(e, id)
				}
			}
			entities = append(entities, e)
		}
		for range rng.IntN(1 + len(entities)/8) {
			i := rng.IntN(len(entities))
			w.RemoveEntity(entities[i])
			entities[i] = entities[len(entities)-1]
			entities = entities[:len(entities)-1]
		}
		for _, e := range entities {
			if w.Has(e, ids[3]) && rng.IntN(10) == 0 {
				w.Relations().Set(e, ids[3], suns[rng.IntN(len(suns))])
			}
			for i, id := range ids {
				if w.Has(e, id) && rng.IntN(3) == 0 {
					setCaptureValue(reflect.NewAt(types[i], w.Get(e, id)).Elem(), rng)
				}
			}
		}
		x.capture()
	}
}

var keptTexts []string

// keptText keeps a text alive: the garbage collector does not see how Arche moves components.
func keptText(text string) string {
	keptTexts = append(keptTexts, text)
	return text
}

// setCaptureValue sets some of the numbers in a value, mostly to values in range.
func setCaptureValue(v reflect.Value, rng *rand.Rand) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				setCaptureValue(v.Field(i), rng)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			setCaptureValue(v.Index(i), rng)
		}
	case reflect.String:
		v.SetString(keptText(randomText(rng, 16, false)))
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32:
		v.SetInt(int64(int32(rng.Uint32()) >> rng.IntN(32)))
	case reflect.Int64:
		v.SetInt(int64(rng.Uint64()) >> rng.IntN(64))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		v.SetUint(uint64(rng.Uint32() >> rng.IntN(32)))
	case reflect.Uint64:
		v.SetUint(rng.Uint64() >> rng.IntN(64))
	case reflect.Float32, reflect.Float64:
		x := rng.NormFloat64() * 50
		switch rng.IntN(40) {
		case 0:
			x = []float64{0, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, math.Copysign(0, -1)}[rng.IntN(6)]
		case 1:
			x *= 1e-9
		}
		v.SetFloat(x)
	}
}
