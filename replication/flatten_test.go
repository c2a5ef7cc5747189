package replication

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/quantize"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// quantizeReason returns the reason for which a quantiser refused, as the panic message quotes it.
func quantizeReason[T any](_ T, err error) string {
	return strings.TrimPrefix(err.Error(), "quantize: ")
}

func TestRegisterRefusesFields(t *testing.T) {
	type (
		hidden   struct{ x float32 }
		halfQuat struct{ X, Y, Z, w float32 }
		mixQuat  struct {
			X, Y, Z float32
			W       float64
		}
		deep struct {
			Bag struct{ Items []int }
		}
		ownedBy struct{ ecs.Relation }
		handle  ecs.Entity
	)
	for _, r := range []struct {
		typ       reflect.Type
		tag, want string
	}{
		{reflect.TypeFor[[]int](), "", `P.X: slices can't be replicated; use a fixed array or skip the field with repl:"-"`},
		{reflect.TypeFor[deep](), "", `P.X.Bag.Items: slices can't be replicated; use a fixed array or skip the field with repl:"-"`},
		{reflect.TypeFor[[2]deep](), "", `P.X[0].Bag.Items: slices can't be replicated; use a fixed array or skip the field with repl:"-"`},
		{reflect.TypeFor[string](), "", `P.X: strings without a bound can't be replicated; give them one by the tag max=N or skip the field with repl:"-"`},
		{reflect.TypeFor[[3]string](), "", `P.X: strings without a bound can't be replicated; give them one by the tag max=N or skip the field with repl:"-"`},
		{reflect.TypeFor[map[int]int](), "", `P.X: maps can't be replicated; skip the field with repl:"-"`},
		{reflect.TypeFor[*int](), "", `P.X: pointers can't be replicated; skip the field with repl:"-"`},
		{reflect.TypeFor[unsafe.Pointer](), "", `P.X: pointers can't be replicated; skip the field with repl:"-"`},
		{reflect.TypeFor[any](), "", `P.X: interfaces can't be replicated; skip the field with repl:"-"`},
		{reflect.TypeFor[func()](), "", `P.X: functions can't be replicated; skip the field with repl:"-"`},
		{reflect.TypeFor[chan int](), "", `P.X: channels can't be replicated; skip the field with repl:"-"`},
		{reflect.TypeFor[complex64](), "", `P.X: complex numbers can't be replicated; use two floats or skip the field with repl:"-"`},
		{reflect.TypeFor[uintptr](), "", `P.X: uintptrs can't be replicated; use uint64 or skip the field with repl:"-"`},
		{reflect.TypeFor[ecs.Entity](), "range=0:9", "P.X: an entity takes no tag but cut and -"},
		{reflect.TypeFor[[2]ecs.Entity](), "half", "P.X: an entity takes no tag but cut and -"},
		{reflect.TypeFor[ecs.Entity](), "unit,bits=9", "P.X: an entity takes no tag but cut and -"},
		{reflect.TypeFor[[5000]ecs.Entity](), "", "P.X: a component has at most 4096 fields, array elements included; split it or skip the field"},
		{reflect.TypeFor[ecs.Relation](), "", `P.X: ecs.Relation must be embedded as the component's first field, the only place where Arche looks for it; skip the field with repl:"-"`},
		{reflect.TypeFor[ownedBy](), "", `P.X.Relation: ecs.Relation must be embedded as the component's first field, the only place where Arche looks for it; skip the field with repl:"-"`},
		{reflect.TypeFor[handle](), "", `P.X: all fields of replication.handle are unexported; export some or skip the field with repl:"-"`},
		{reflect.TypeFor[time.Time](), "", `P.X: all fields of time.Time are unexported; export some or skip the field with repl:"-"`},
		{reflect.TypeFor[hidden](), "", `P.X: all fields of replication.hidden are unexported; export some or skip the field with repl:"-"`},
		{reflect.TypeFor[[5000]bool](), "", "P.X: a component has at most 4096 fields, array elements included; split it or skip the field"},
		{reflect.TypeFor[[1 << (strconv.IntSize - 18)]bool](), "", "P.X: a component has at most 4096 fields, array elements included; split it or skip the field"},
		{reflect.TypeFor[[1 << 20]schemaVec](), "", "P.X[1365].Y: a component has at most 4096 fields, array elements included; split it or skip the field"},

		{reflect.TypeFor[schemaVec](), "half", "P.X: a struct takes no tag but quat, unit and -; put tags on its fields"},
		{reflect.TypeFor[[2]schemaVec](), "range=0:1,step=1", "P.X: a struct takes no tag but quat, unit and -; put tags on its fields"},
		{reflect.TypeFor[schemaVec](), "quat,bits=9", "P.X: quat needs four floats of one type, x, y, z and w: [4]float32, [4]float64 or a struct of exported fields, not replication.schemaVec"},
		{reflect.TypeFor[halfQuat](), "quat,bits=9", "P.X: quat needs four floats of one type, x, y, z and w: [4]float32, [4]float64 or a struct of exported fields, not replication.halfQuat"},
		{reflect.TypeFor[mixQuat](), "quat,bits=9", "P.X: quat needs four floats of one type, x, y, z and w: [4]float32, [4]float64 or a struct of exported fields, not replication.mixQuat"},
		{reflect.TypeFor[[4]int32](), "quat,bits=9", "P.X: quat needs four floats of one type, x, y, z and w: [4]float32, [4]float64 or a struct of exported fields, not int32"},
		{reflect.TypeFor[float32](), "unit,bits=9", "P.X: unit needs three floats of one type, x, y and z: [3]float32, [3]float64 or a struct of exported fields, not float32"},
		{reflect.TypeFor[[4]float32](), "quat", "P.X: quat needs bits=N"},
		{reflect.TypeFor[[4]float32](), "quat,bits=1", "P.X: " + quantizeReason(quantize.NewQuat(1))},
		{reflect.TypeFor[[3]float32](), "unit,bits=21", "P.X: " + quantizeReason(quantize.NewUnitVector(21))},
		{reflect.TypeFor[float32](), "angle", "P.X: angle needs bits=N"},
		{reflect.TypeFor[float32](), "angle,bits=24", "P.X: " + quantizeReason(quantize.NewAngle32(2*math.Pi, 24))},
		{reflect.TypeFor[float32](), "angle,bits=8,range=0:1", "P.X: angle goes without range, step and precision"},
		{reflect.TypeFor[float32](), "-,step=1", "P.X: - goes without range, step and precision"},
		{reflect.TypeFor[float32](), "angle,bits=8,period=0", "P.X: " + quantizeReason(quantize.NewAngle32(0, 8))},
		{reflect.TypeFor[float32](), "period=360", "P.X: period is for angle only"},
		{reflect.TypeFor[float32](), "bits=9", "P.X: bits is for quat, unit and angle only"},
		{reflect.TypeFor[float32](), "half,bits=9", "P.X: bits is for quat, unit and angle only"},

		{reflect.TypeFor[float32](), "range=0:1", "P.X: the range of a float needs step=S or precision=P beside it"},
		{reflect.TypeFor[float32](), "step=1", "P.X: step needs a range: range=MIN:MAX,step=S"},
		{reflect.TypeFor[float32](), "precision=1", "P.X: precision needs a range: range=MIN:MAX,precision=P"},
		{reflect.TypeFor[float32](), "range=0:1,step=1,precision=1", "P.X: step and precision exclude each other: choose one"},
		{reflect.TypeFor[float32](), "range=1:0,step=1", "P.X: " + quantizeReason(quantize.NewFixed32(1, 0, 1))},
		{reflect.TypeFor[float32](), "range=1:1,step=1", "P.X: " + quantizeReason(quantize.NewFixed32(1, 1, 1))},
		{reflect.TypeFor[float32](), "range=0:1e39,step=1", "P.X: " + quantizeReason(quantize.NewFixed32(0, 1e39, 1))},
		{reflect.TypeFor[float32](), "range=a:1,step=1", `P.X: "a" is not a number`},
		{reflect.TypeFor[float32](), "range=0:,step=1", `P.X: "" is not a number`},

		{reflect.TypeFor[uint8](), "range=0:256", `P.X: "256" is not a whole number that uint8 can hold`},
		{reflect.TypeFor[uint8](), "range=-1:1", `P.X: "-1" is not a whole number that uint8 can hold`},
		{reflect.TypeFor[int8](), "range=-129:0", `P.X: "-129" is not a whole number that int8 can hold`},
		{reflect.TypeFor[int8](), "range=0:1.5", `P.X: "1.5" is not a whole number that int8 can hold`},
		{reflect.TypeFor[int64](), "range=0:9223372036854775808", `P.X: "9223372036854775808" is not a whole number that int64 can hold`},
		{reflect.TypeFor[int8](), "range=5:5", "P.X: range=5:5 is empty: the low bound must be less than the high one"},
		{reflect.TypeFor[uint8](), "range=5:4", "P.X: range=5:4 is empty: the low bound must be less than the high one"},
		{reflect.TypeFor[int32](), "range=0:10,precision=2", "P.X: precision is for floats: a range of int32 has steps of 1, or of S with step=S"},
		{reflect.TypeFor[int32](), "range=0:10,step=0", "P.X: a step of 0 is not a whole number of 1 or more"},
		{reflect.TypeFor[int32](), "range=0:10,step=2.5", "P.X: a step of 2.5 is not a whole number of 1 or more"},
		{reflect.TypeFor[int32](), "range=0:10,step=NaN", "P.X: a step of NaN is not a whole number of 1 or more"},
		{reflect.TypeFor[int32](), "range=0:10,step=2,wrap", "P.X: step and wrap exclude each other: choose one"},
		{reflect.TypeFor[int32](), "step=2", "P.X: step needs a range: range=MIN:MAX,step=S"},
		{reflect.TypeFor[uint64](), "range=0:9223372036854775808,wrap", "P.X: the range of step and wrap ends at 9223372036854775807"},
		{reflect.TypeFor[int32](), "range=0s:1h", `P.X: "0s" is not a whole number that int32 can hold`},
		{reflect.TypeFor[time.Duration](), "range=0s:1x,step=1ms", `P.X: "1x" is not a whole number that int64 can hold`},
		{reflect.TypeFor[time.Duration](), "range=1h:1m,step=1ms", "P.X: range=1h:1m is empty: the low bound must be less than the high one"},
		{reflect.TypeFor[float64](), "range=0:3600,step=1ms", "P.X: a step of a duration is for integers: the field is a float64"},
		{reflect.TypeFor[float64](), "range=0s:1h,step=1", `P.X: "0s" is not a number`},

		{reflect.TypeFor[uint8](), "enum=1", "P.X: enum=1 leaves no choice: use 2 or more"},
		{reflect.TypeFor[uint8](), "enum=257", "P.X: enum=257 has values that uint8 can't hold"},
		{reflect.TypeFor[int8](), "enum=129", "P.X: enum=129 has values that int8 can't hold"},
		{reflect.TypeFor[float32](), "enum=5", "P.X: enum is for integers, not for float32"},
		{reflect.TypeFor[bool](), "flags=1", "P.X: flags is for integers, not for bool"},
		{reflect.TypeFor[uint8](), "enum=5,range=0:4", "P.X: enum goes without range, step and precision"},
		{reflect.TypeFor[uint8](), "flags=5,bits=5", "P.X: bits is for quat, unit and angle only"},
		{reflect.TypeFor[uint8](), "flags=0", "P.X: flags=0: use 1 to 8 for uint8"},
		{reflect.TypeFor[uint8](), "flags=9", "P.X: flags=9: use 1 to 8 for uint8"},
		{reflect.TypeFor[uint](), "flags=33", "P.X: flags=33: use 1 to 32 for uint"},
		{reflect.TypeFor[[2]int64](), "flags=65", "P.X: flags=65: use 1 to 64 for int64"},

		{reflect.TypeFor[string](), "max=0", "P.X: max=0: use 1 to 4096 bytes"},
		{reflect.TypeFor[string](), "max=4097", "P.X: max=4097: use 1 to 4096 bytes"},
		{reflect.TypeFor[string](), "max=8,jump", "P.X: jump is for numbers"},
		{reflect.TypeFor[string](), "max=8,range=0:1", "P.X: max goes without range, step and precision"},
		{reflect.TypeFor[string](), "half", `P.X: strings without a bound can't be replicated; give them one by the tag max=N or skip the field with repl:"-"`},
		{reflect.TypeFor[[8]byte](), "max=9", "P.X: max=9 is more than the 8 bytes of [8]uint8"},
		{reflect.TypeFor[[8]int8](), "max=8", "P.X: max is for strings and arrays of bytes, not for int8"},
		{reflect.TypeFor[uint8](), "max=1", "P.X: max is for strings and arrays of bytes, not for uint8"},
		{reflect.TypeFor[[]byte](), "max=8", "P.X: max is for strings and arrays of bytes, not for []uint8"},
		{reflect.TypeFor[schemaVec](), "max=8", "P.X: a struct takes no tag but quat, unit and -; put tags on its fields"},
		{reflect.TypeFor[[9]string](), "max=4000", "P.X: a component takes at most 32 KiB; shorten it, split it or skip the field"},
		{reflect.TypeFor[uint8](), "enum=5,counter", "P.X: enum goes without counter"},
		{reflect.TypeFor[bool](), "wrap", "P.X: a bool has no range and but one way to change: remove the tag"},
		{reflect.TypeFor[uint8](), "flags=5,jump", "P.X: jump is for numbers"},
		{reflect.TypeFor[float32](), "wrap", "P.X: wrap needs equal steps: range=MIN:MAX,step=S"},
		{reflect.TypeFor[float32](), "range=0:1,step=0.1,wrap", "P.X: wrap is for integers: use angle for a float"},
		{reflect.TypeFor[float32](), "range=0:1,precision=0.1,linear", "P.X: linear needs equal steps: range=MIN:MAX,step=S"},
		{reflect.TypeFor[float32](), "angle,bits=8,counter", "P.X: angle goes without counter"},
		{reflect.TypeFor[[4]float32](), "quat,bits=9,jump", "P.X: jump is for numbers"},
		{reflect.TypeFor[[3]float32](), "unit,bits=9,linear", "P.X: linear is for numbers"},
		{reflect.TypeFor[schemaVec](), "linear", "P.X: a struct takes no tag but quat, unit and -; put tags on its fields"},
		{reflect.TypeFor[int32](), "half", "P.X: half is for floats, not for int32"},
		{reflect.TypeFor[int32](), "raw", "P.X: raw is for floats, not for int32"},
		{reflect.TypeFor[bool](), "angle,bits=8", "P.X: angle is for floats, not for bool"},
		{reflect.TypeFor[bool](), "range=0:1", "P.X: a bool has no range and but one way to change: remove the tag"},
		{reflect.TypeFor[bool](), "nonsense", "P.X: unknown key \"nonsense\" in the tag: known are range, step, precision, enum, flags, max, angle, period, unit, quat, bits, half, raw, margin, jump, linear, wrap, counter, hold, cut, place and -"},
	} {
		t.Run(r.typ.String()+" "+r.tag, func(t *testing.T) {
			require.PanicsWithValue(t, "replication: "+r.want, func() { RegisterType(NewSchema(), oneFieldType(r.typ, r.tag), Name("P")) })
		})
	}

	type (
		tagged struct {
			ecs.Relation `repl:"raw"`
		}
		second struct {
			Share uint8
			ecs.Relation
		}
	)
	require.PanicsWithValue(t, "replication: tagged.Relation: a relation takes no tag but cut and -", func() { Register[tagged](NewSchema()) })
	require.PanicsWithValue(t, `replication: second.Relation: ecs.Relation must be embedded as the component's first field, the only place where Arche looks for it; skip the field with repl:"-"`,
		func() { Register[second](NewSchema()) })

	type lost struct {
		X float32
		y float32 `repl:"half"`
	}
	require.PanicsWithValue(t, "replication: lost.y: the tag of an unexported field has no effect; export the field or remove the tag",
		func() { Register[lost](NewSchema()) })
}

func TestFlattenTakesWhatIsLeft(t *testing.T) {
	type scalar float32
	type number struct{ Value scalar }
	type embedded struct {
		number
		_     func()
		other []int
		y     float32 `repl:"-"`
	}
	type childOf struct {
		ecs.Relation `repl:"-"`
		Strength     uint8
	}
	type livesIn struct {
		ecs.Relation
		Since uint16
		Keys  [2][3]ecs.Entity
		Lease struct{ Owner, Guest ecs.Entity }
	}
	for _, c := range []struct {
		typ  reflect.Type
		want string
	}{
		{reflect.TypeFor[struct{}](), ""},
		{reflect.TypeFor[struct{ A [0]int }](), ""},
		{reflect.TypeFor[struct {
			A [1 << (strconv.IntSize - 14)]struct{}
		}](), ""},
		{reflect.TypeFor[struct {
			A [1 << 24]struct {
				B []int `repl:"-"`
			} `repl:"-"`
		}](), ""},
		{reflect.TypeFor[[1 << 24]struct {
			B []int `repl:"-"`
		}](), ""},
		{reflect.TypeFor[embedded](), "P.number.Value float32\n"},
		{reflect.TypeFor[childOf](), "P.Strength uint8\n"},
		{reflect.TypeFor[livesIn](), "P.Relation relation\nP.Since uint16\nP.Keys [2][3]entity\nP.Lease.Owner entity\nP.Lease.Guest entity\n"},
		{reflect.TypeFor[ecs.Entity](), "P entity\n"},
		{reflect.TypeFor[[2]ecs.Entity](), "P [2]entity\n"},
		{reflect.TypeFor[[4096]bool](), "P [4096]bool\n"},
		{reflect.TypeFor[[4]scalar](), "P [4]float32\n"},
	} {
		s := NewSchema()
		RegisterType(s, c.typ, Name("P"))
		require.Equal(t, schema.TextHeader+"\ncomponent P\n"+c.want, s.Text(), c.typ.String())
	}
	_ = embedded{other: nil, y: 0}
}
