package replication

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/quantize"
	"github.com/arche-replicate/arche-replicate/replication/internal/field"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/stretchr/testify/require"
)

type (
	schemaVec  struct{ X, Y, Z float32 }
	schemaRot  struct{ X, Y, Z, W float64 }
	schemaTeam uint8
	schemaBase struct {
		Level int16 `repl:"range=-5:5"`
	}
	schemaGun struct {
		Heat  float32 `repl:"range=0:1,precision=0.01"`
		Ammo  [2]uint16
		Owner *int `repl:"-"`
	}
	schemaShip struct {
		schemaBase
		Alive   bool
		_       [3]byte
		Hull    int
		Team    schemaTeam    `repl:"range=0:3"`
		Pos     [3]float32    `repl:"range=-1000:1000,step=0.01"`
		Aim     schemaVec     `repl:"unit,bits=10"`
		Rot     schemaRot     `repl:"quat,bits=9"`
		Spins   [2][4]float32 `repl:"quat,bits=11"`
		Heading float64       `repl:"angle,bits=12,period=360"`
		Turn    float32       `repl:"angle,bits=8"`
		Glow    float32       `repl:"half"`
		Bits    float64       `repl:"raw"`
		Guns    [2]schemaGun
		cache   []int
		Name    string `repl:"-"`
		Grid    [2][3]uint8
	}
	schemaFrozen struct{}
)

const schemaGolden = `arche-replicate schema 1
component schemaShip
schemaShip.schemaBase.Level int16 range=-5:5
schemaShip.Alive bool
schemaShip.Hull int64
schemaShip.Team uint8 range=0:3
schemaShip.Pos [3]float32 range=-1000:1000,step=0.01
schemaShip.Aim [3]float32 unit,bits=10
schemaShip.Rot [4]float64 quat,bits=9
schemaShip.Spins [2][4]float32 quat,bits=11
schemaShip.Heading float64 angle,bits=12,period=360
schemaShip.Turn float32 angle,bits=8,period=6.283185307179586
schemaShip.Glow float32 half
schemaShip.Bits float64
schemaShip.Guns[0].Heat float32 range=0:1,precision=0.01
schemaShip.Guns[0].Ammo [2]uint16
schemaShip.Guns[1].Heat float32 range=0:1,precision=0.01
schemaShip.Guns[1].Ammo [2]uint16
schemaShip.Grid [2][3]uint8
component schemaFrozen
component Team
Team uint8
`

func schemaOfShips() *Schema {
	s := NewSchema()
	Register[schemaShip](s)
	Register[schemaFrozen](s)
	Register[schemaTeam](s, Name("Team"))
	return s
}

func TestSchemaTextGolden(t *testing.T) {
	s := schemaOfShips()
	require.Equal(t, schemaGolden, s.Text())
	require.Equal(t, uint64(0x81c675c969b39781), s.Fingerprint())
	s.raw.Freeze()
	require.Equal(t, schemaGolden, s.Text(), "freezing must not change the text")
}

func TestFrozenLayoutAgreesWithTheColumns(t *testing.T) {
	s := schemaOfShips()
	s.raw.Freeze()
	layout := s.raw.Layout
	s.raw.Freeze()
	require.Same(t, layout, s.raw.Layout, "freezing twice must build nothing")

	for i := range s.raw.Components {
		c := &s.raw.Components[i]
		require.Equal(t, c.Name, c.Layout.Name)
		require.Equal(t, c.Words, c.Layout.Words())
		next := 0
		for j := range c.Columns {
			require.Equal(t, c.Columns[j].Word, c.Layout.Fields[next].Word(), c.Columns[j].Path)
			next++
			if c.Columns[j].Codec.Op == field.OpUnit {
				next++
			}
		}
		require.Len(t, c.Layout.Fields, next)
	}

	kinds := map[string]string{}
	for _, f := range s.raw.Components[0].Layout.Fields {
		kinds[f.Name] = fmt.Sprintf("%v %d %d", f.Kind, f.Bits, f.Max)
	}
	for name, want := range map[string]string{
		"schemaBase.Level": "plain 4 10",
		"Alive":            "plain 1 1",
		"Hull":             fmt.Sprintf("plain 64 %d", uint64(math.MaxUint64)),
		"Team":             "plain 2 3",
		"Pos[2]":           "linear 18 200000",
		"Aim.u":            "linear 10 1020",
		"Aim.v":            "linear 10 1020",
		"Rot":              "quat 9 510",
		"Spins[1]":         "quat 11 2046",
		"Heading":          "wrap 12 4095",
		"Turn":             "wrap 8 255",
		"Glow":             "plain 16 64511",
		"Bits":             fmt.Sprintf("plain 64 %d", uint64(math.MaxUint64)),
		"Guns[1].Ammo[0]":  "plain 16 65535",
		"Grid[1][2]":       "plain 8 255",
	} {
		require.Equal(t, want, kinds[name], name)
	}
	require.Contains(t, kinds["Guns[1].Heat"], delta.Plain.String())
}

func TestSchemaCodes(t *testing.T) {
	type named struct {
		A string  `repl:"max=5"`
		B [6]byte `repl:"max=4"`
		C int16   `repl:"flags=3"`
	}
	texts := NewSchema()
	Register[named](texts)
	require.Equal(t, []uint64{3, 'a' | 'b'<<8 | 'c'<<16, 0, 1, 1, 5}, texts.Codes(named{"abc", [6]byte{1}, -3}, nil))

	type mixed struct {
		A bool
		B int8
		C uint64
		D float32    `repl:"range=-32:32,step=0.001953125"`
		E [4]float32 `repl:"quat,bits=9"`
		F schemaVec  `repl:"unit,bits=8"`
	}
	s := NewSchema()
	Register[mixed](s)
	v := mixed{A: true, B: -1, C: 1<<63 + 5, D: -32 + 3*0.001953125, E: [4]float32{0, 0, 0, 1}, F: schemaVec{Z: 2}}
	codes := s.Codes(&v, []uint64{42})
	require.Equal(t, []uint64{42, 1, 127, 1<<63 + 5, 3, 3}, codes[:6])
	require.Equal(t, []uint64{126, 126}, codes[9:], "+Z is the middle of the square")
	require.Len(t, codes, 11)
	require.Equal(t, codes, s.Codes(v, []uint64{42}), "a value does as well as a pointer")

	// A number keeps its code while it is within the margin of that.
	v.D += 0.6 * 0.001953125
	require.EqualValues(t, 4, s.Codes(&v, nil)[3])
	require.Equal(t, codes[1:], s.CodesAfter(&v, codes[1:], nil))
	v.D += 0.1 * 0.001953125
	require.EqualValues(t, 4, s.CodesAfter(&v, codes[1:], nil)[3])
	for _, wrong := range [][]uint64{nil, codes, codes[2:], {2, 0, 0, 0, 3, 255, 255, 255, 126, 126}} {
		require.PanicsWithValue(t, "replication: these are no codes of replication.mixed: give CodesAfter what it or Codes returned for the value before",
			func() { s.CodesAfter(&v, wrong, nil) })
	}

	type tag struct{}
	tags := NewSchema()
	Register[tag](tags)
	require.Empty(t, tags.CodesAfter(tag{}, tags.Codes(tag{}, nil), nil), "no codes are those of a tag")

	require.PanicsWithValue(t, "replication: Codes needs a component, not nil", func() { s.Codes(nil, nil) })
	require.PanicsWithValue(t, "replication: Codes needs a component, not a nil *replication.mixed", func() { s.Codes((*mixed)(nil), nil) })
	require.PanicsWithValue(t, "replication: replication.schemaVec is not registered: register it before asking for its codes",
		func() { s.Codes(schemaVec{}, nil) })
}

// oneFieldType returns a struct type with one field X.
func oneFieldType(t reflect.Type, tag string) reflect.Type {
	return reflect.StructOf([]reflect.StructField{{Name: "X", Type: t, Tag: reflect.StructTag(`repl:"` + tag + `"`)}})
}

func TestFingerprintCoversEveryDetail(t *testing.T) {
	f32, f64 := reflect.TypeFor[float32](), reflect.TypeFor[float64]()
	seen := map[uint64]string{}
	add := func(what string, register func(s *Schema)) {
		t.Helper()
		s := NewSchema()
		register(s)
		if other, ok := seen[s.Fingerprint()]; ok {
			t.Fatalf("%s and %s have the same fingerprint", what, other)
		}
		seen[s.Fingerprint()] = what
	}
	add("nothing", func(*Schema) {})
	add("other name", func(s *Schema) { RegisterType(s, oneFieldType(f32, "range=0:1,step=0.5"), Name("Q")) })
	add("other field", func(s *Schema) { Register[struct{ Y float32 }](s, Name("P")) })
	add("tag component", func(s *Schema) { Register[schemaFrozen](s, Name("P")) })
	add("two tags", func(s *Schema) { Register[schemaFrozen](s, Name("P")); Register[struct{}](s, Name("Q")) })
	add("two tags, other order", func(s *Schema) { Register[schemaFrozen](s, Name("Q")); Register[struct{}](s, Name("P")) })
	for _, c := range []struct {
		typ reflect.Type
		tag string
	}{
		{f32, ""},
		{f64, ""},
		{f32, "range=0:1,step=0.5"},
		{f64, "range=0:1,step=0.5"},
		{f32, "range=0:1,step=0.25"},
		{f32, "range=0:2,step=0.5"},
		{f32, "range=-1:1,step=0.5"},
		{f32, "range=0:1,precision=0.5"},
		{f32, "range=0:1,precision=0.25"},
		{f32, "half"},
		{f32, "angle,bits=8"},
		{f32, "angle,bits=9"},
		{f32, "angle,bits=8,period=360"},
		{reflect.TypeFor[[4]float32](), "quat,bits=9"},
		{reflect.TypeFor[[4]float32](), "quat,bits=10"},
		{reflect.TypeFor[[4]float64](), "quat,bits=9"},
		{reflect.TypeFor[[4]float32](), ""},
		{reflect.TypeFor[[3]float32](), "unit,bits=9"},
		{reflect.TypeFor[[3]float32](), ""},
		{reflect.TypeFor[[2]float32](), ""},
		{reflect.TypeFor[int8](), ""},
		{reflect.TypeFor[uint8](), ""},
		{reflect.TypeFor[uint8](), "range=0:10"},
		{reflect.TypeFor[uint8](), "range=1:10"},
		{reflect.TypeFor[bool](), ""},
		{reflect.TypeFor[int](), ""},
		{reflect.TypeFor[uint](), ""},
		{reflect.TypeFor[uint8](), "range=0:4"},
		{reflect.TypeFor[uint8](), "enum=5"},
		{reflect.TypeFor[uint8](), "enum=6"},
		{reflect.TypeFor[int8](), "enum=5"},
		{reflect.TypeFor[uint8](), "flags=5"},
		{reflect.TypeFor[uint8](), "flags=6"},
		{reflect.TypeFor[uint8](), "linear"},
		{reflect.TypeFor[uint8](), "wrap"},
		{reflect.TypeFor[uint8](), "counter"},
		{reflect.TypeFor[uint8](), "range=0:10,wrap"},
		{reflect.TypeFor[uint8](), "range=0:10,counter"},
		{reflect.TypeFor[uint8](), "range=0:10,step=2"},
		{reflect.TypeFor[uint8](), "range=0:10,step=3"},
		{reflect.TypeFor[uint8](), "range=0:10,step=3,linear"},
		{f32, "range=0:1,step=0.5,jump"},
		{f32, "range=0:1,step=0.5,counter"},
		{f32, "angle,bits=8,jump"},
		{reflect.TypeFor[string](), "max=8"},
		{reflect.TypeFor[string](), "max=9"},
		{reflect.TypeFor[[8]byte](), "max=8"},
		{reflect.TypeFor[[8]byte](), ""},
		{reflect.TypeFor[[2]string](), "max=8"},
	} {
		add(fmt.Sprint(c.typ, " ", c.tag), func(s *Schema) { RegisterType(s, oneFieldType(c.typ, c.tag), Name("P")) })
	}
}

func TestTextDoesNotDependOnHowATagIsWritten(t *testing.T) {
	text := func(typ reflect.Type, tag string, opts ...ComponentOption) string {
		s := NewSchema()
		RegisterType(s, oneFieldType(typ, tag), append(opts, Name("P"))...)
		return s.Text()
	}
	f32 := reflect.TypeFor[float32]()
	for _, same := range []struct {
		typ  reflect.Type
		a, b string
	}{
		{f32, "range=-1000:1000,step=0.01", "step=1e-2,range=-1e3:1000.0"},
		{f32, "range=0:1,precision=0.01", "precision=.01,range=-0:1"},
		{f32, "", "raw"},
		{f32, "half", "half"},
		{f32, "angle,bits=8", "bits=8,angle,period=6.283185307179586"},
		{f32, "angle,bits=8,period=360", "period=3.6e2,bits=08,angle"},
		{reflect.TypeFor[int32](), "range=-1000:1000000", "range=-1e3:1e6"},
		{reflect.TypeFor[uint64](), "range=0:18446744073709549568", "range=00:18446744073709549568"},
		{reflect.TypeFor[schemaRot](), "quat,bits=9", "bits=9,quat"},
		{reflect.TypeFor[schemaVec](), "unit,bits=9", "bits=9,unit"},
		{reflect.TypeFor[string](), "-", "-"},
		{reflect.TypeFor[schemaTeam](), "enum=5", "enum=05"},
		{reflect.TypeFor[int16](), "flags=5", "flags=5"},
		{reflect.TypeFor[string](), "max=32", "max=0032"},
		{reflect.TypeFor[int64](), "range=0:9,step=2,linear", "linear,step=2,range=0:9"},
		{reflect.TypeFor[int64](), "range=0:9", "range=0:9,step=1"},
		{reflect.TypeFor[uint16](), "", "jump"},
		{reflect.TypeFor[uint16](), "wrap", "wrap"},
		{reflect.TypeFor[uint16](), "counter", "counter"},
		{f32, "range=0:1,step=0.1", "range=0:1,step=0.1,linear"},
		{f32, "angle,bits=8", "wrap,angle,bits=8"},
		{f32, "half,hold", "half,jump"},
		{
			reflect.TypeFor[time.Duration](), "range=0s:1h30m,step=1ms", "range=0:5400000000000,step=1e6",
		},
	} {
		want := text(same.typ, same.a)
		require.Equal(t, want, text(same.typ, same.b))
		require.Equal(t, want, text(same.typ, "", Field("X", same.b)), "the option")
		require.Equal(t, want, text(same.typ, "nonsense", Field("X", same.b)), "it replaces the tag, right or wrong")
	}
	require.Equal(t, text(reflect.TypeFor[schemaRot](), "quat,bits=9"), text(reflect.TypeFor[[4]float64](), "quat,bits=9"))
	require.Equal(t, text(reflect.TypeFor[int](), ""), text(reflect.TypeFor[int64](), ""))
	require.Equal(t, text(reflect.TypeFor[time.Duration](), ""), text(reflect.TypeFor[int64](), ""))
	require.Equal(t, text(reflect.TypeFor[[8]byte](), "max=8"), text(reflect.TypeFor[[9]schemaTeam](), "max=8"))
}

const schemaMoreGolden = `arche-replicate schema 1
component more
more.Team uint8 enum=5
more.Keys [2]int32 flags=5
more.Name string max=32
more.Tags [3]bytes max=4
more.Left int64 range=0:3600000000000,step=1000000
more.Age int64
more.Kills uint32 counter
more.Hour int8 range=0:23,wrap
more.Cell int16 range=0:999,linear
more.Aim float32 range=0:1,step=0.5,jump
`

func TestSchemaTextOfMoreKinds(t *testing.T) {
	type more struct {
		Team  schemaTeam    `repl:"enum=5"`
		Keys  [2]int32      `repl:"flags=5"`
		Name  string        `repl:"max=32"`
		Tags  [3][8]byte    `repl:"max=4"`
		Left  time.Duration `repl:"range=0s:1h,step=1ms"`
		Age   time.Duration
		Kills uint32  `repl:"counter"`
		Hour  int8    `repl:"range=0:23,wrap"`
		Cell  int16   `repl:"range=0:999,linear"`
		Aim   float32 `repl:"range=0:1,step=0.5,jump"`
	}
	s := NewSchema()
	Register[more](s)
	require.Equal(t, schemaMoreGolden, s.Text())
	s.raw.Freeze()
	kinds := map[string]string{}
	for _, f := range s.raw.Components[0].Layout.Fields {
		kinds[f.Name] = fmt.Sprintf("%v %d %d", f.Kind, f.Bits, f.Max)
	}
	require.Equal(t, map[string]string{
		"Team":    "plain 3 4",
		"Keys[0]": "flags 5 31",
		"Keys[1]": "flags 5 31",
		"Name":    "bytes 6 32",
		"Tags[0]": "bytes 3 4",
		"Tags[1]": "bytes 3 4",
		"Tags[2]": "bytes 3 4",
		"Left":    "plain 22 3600000",
		"Age":     fmt.Sprintf("plain 64 %d", uint64(math.MaxUint64)),
		"Kills":   "counter 32 4294967295",
		"Hour":    "wrap 5 23",
		"Cell":    "linear 10 999",
		"Aim":     "plain 2 2",
	}, kinds)
}

func TestFieldOptionsReachNestedFields(t *testing.T) {
	s := NewSchema()
	Register[schemaShip](s, Name("Ship"), Field("Guns.Heat", "half"), Field("Grid", "range=0:7"), Field("schemaBase.Level", ""))
	require.Contains(t, s.Text(), "\nShip.Guns[0].Heat float32 half\n")
	require.Contains(t, s.Text(), "\nShip.Guns[1].Heat float32 half\n")
	require.Contains(t, s.Text(), "\nShip.Grid [2][3]uint8 range=0:7\n")
	require.Contains(t, s.Text(), "\nShip.schemaBase.Level int16\n")

	s = NewSchema()
	Register[schemaTeam](s, Field("", "range=0:3"))
	Register[schemaRot](s, Field("", "quat,bits=9"))
	Register[[3]int8](s, Name("Cells"))
	require.Equal(t, schema.TextHeader+"\ncomponent schemaTeam\nschemaTeam uint8 range=0:3\ncomponent schemaRot\nschemaRot [4]float64 quat,bits=9\ncomponent Cells\nCells [3]int8\n", s.Text())
}

// Types known at run time are registered as those known at compile time.
func TestTypesKnownAtRunTime(t *testing.T) {
	static, dynamic := NewSchema(), NewSchema()
	Register[schemaVec](static)
	type schemaBody struct{ X, Y, Z float32 }
	Register[schemaBody](static, Hermite[schemaVec](0.5))
	RegisterMessage[schemaTeam](static, Unreliable())
	RegisterInput[schemaRot](static, Field("", "quat,bits=9"))
	RegisterType(dynamic, reflect.TypeFor[schemaVec]())
	RegisterType(dynamic, reflect.TypeFor[schemaBody](), HermiteType(reflect.TypeFor[schemaVec](), 0.5))
	RegisterMessageType(dynamic, reflect.TypeFor[schemaTeam](), Unreliable())
	RegisterInputType(dynamic, reflect.TypeFor[schemaRot](), Field("", "quat,bits=9"))
	require.Equal(t, static.Text(), dynamic.Text())
	require.Contains(t, dynamic.Text(), "\ncomponent schemaBody hermite=0.5,schemaVec\n")
	for _, register := range []func(){
		func() { RegisterMessageType(dynamic, nil) },
		func() { RegisterInputType(dynamic, nil) },
	} {
		require.PanicsWithValue(t, "replication: RegisterMessageType and RegisterInputType need a type, not nil", register)
	}
	require.PanicsWithValue(t, "replication: schemaBody: the option Hermite needs the component <nil>: register it before schemaBody",
		func() { RegisterType(NewSchema(), reflect.TypeFor[schemaBody](), HermiteType(nil, 1)) })
}

func TestRegisterRefusesComponents(t *testing.T) {
	type many struct{ A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T, U bool }
	full := func(s *Schema) {
		for i := range delta.MaxComponents {
			RegisterType(s, reflect.ArrayOf(i+1, reflect.TypeFor[bool]()), Name(fmt.Sprintf("C%d", i)))
		}
	}
	refusals := []struct {
		why  string
		do   func(s *Schema)
		want string
	}{
		{"nil type", func(s *Schema) { RegisterType(s, nil) }, "RegisterType needs a component type, not nil"},
		{"pointer", func(s *Schema) { Register[*schemaVec](s) }, "*replication.schemaVec is a pointer: register the component type itself"},
		{"no name", func(s *Schema) { Register[struct{ X float32 }](s) }, "struct { X float32 } has no name: register it with the option Name"},
		{"empty name", func(s *Schema) { Register[schemaVec](s, Name("")) }, `the component name "" has 0 bytes: use 1 to 256`},
		{"long name", func(s *Schema) { Register[schemaVec](s, Name(strings.Repeat("a", 257))) }, `the component name "` + strings.Repeat("a", 40) + `" has 257 bytes: use 1 to 256`},
		{"name of two lines", func(s *Schema) { Register[schemaVec](s, Name("a\nb")) }, `the component name "a\nb" contains '\n': use letters, digits and punctuation`},
		{"name of two words", func(s *Schema) { Register[schemaVec](s, Name("a b")) }, `the component name "a b" contains ' ': use letters, digits and punctuation`},
		{"name that is no text", func(s *Schema) { Register[schemaVec](s, Name("a\xff")) }, `the component name "a\xff" contains '�': use letters, digits and punctuation`},
		{"other reserved name", func(s *Schema) { Register[schemaTeam](s, Name("resource")) }, `the component name "resource" has a meaning in the schema text: choose another with the option Name`},
		{"resource without a name", func(s *Schema) { RegisterResource[struct{ X float32 }](s) }, "struct { X float32 } has no name: register it with the option Name"},
		{"resource twice", func(s *Schema) { RegisterResource[schemaTeam](s); RegisterResource[schemaTeam](s, Name("Other")) }, "Other: replication.schemaTeam is registered already: register every type once"},
		{"component that is a resource", func(s *Schema) { RegisterResource[schemaTeam](s); Register[schemaTeam](s, Name("Other")) }, "Other: replication.schemaTeam is registered as a resource already: a type is either a component or a resource, so make another type of it"},
		{"resource that is a component", func(s *Schema) { Register[schemaTeam](s); RegisterResource[schemaTeam](s) }, "schemaTeam: replication.schemaTeam is registered as a component already: a type is either a component or a resource, so make another type of it"},
		{"resource of the name of a component", func(s *Schema) { Register[schemaVec](s); RegisterResource[schemaRot](s, Name("schemaVec")) }, "schemaVec: replication.schemaVec and replication.schemaRot have the same name: give one another with the option Name"},
		{"resource with a relation", func(s *Schema) { RegisterResource[rOrbits](s) }, "rOrbits: a resource has no relation: use a field of type ecs.Entity"},
		{"resource with a slice", func(s *Schema) { RegisterResource[struct{ P []int }](s, Name("P")) }, "P.P: slices can't be replicated; use a fixed array or skip the field with repl:\"-\""},
		{"resource once", func(s *Schema) { RegisterResource[schemaTeam](s, Once()) }, "schemaTeam: the option Once is for components: a resource is sent whenever it changes"},
		{"reserved name", func(s *Schema) { Register[schemaTeam](s, Name("component")) }, `the component name "component" has a meaning in the schema text: choose another with the option Name`},
		{"twice", func(s *Schema) { Register[schemaVec](s); Register[schemaVec](s, Name("Other")) }, "Other: replication.schemaVec is registered already: register every type once"},
		{"same name", func(s *Schema) { Register[schemaVec](s); Register[schemaRot](s, Name("schemaVec")) }, "schemaVec: replication.schemaVec and replication.schemaRot have the same name: give one another with the option Name"},
		{"too many", func(s *Schema) { full(s); Register[schemaVec](s) }, "schemaVec: the schema is full: it holds at most 256 components"},
		{"frozen", func(s *Schema) { s.raw.Freeze(); Register[schemaVec](s) }, "schemaVec: the schema is in use: register all components before making a server or client of it"},
		{"unexported", func(s *Schema) { Register[struct{ x, y int }](s, Name("P")) }, "P: all fields of struct { x int; y int } are unexported; export some"},
		{"blank", func(s *Schema) { Register[struct{ _ [4]byte }](s, Name("P")) }, "P: all fields of struct { _ [4]uint8 } are unexported; export some"},
		{"slice", func(s *Schema) { Register[[]int](s, Name("P")) }, "P: slices can't be replicated; use a fixed array"},
		{"map", func(s *Schema) { Register[map[int]int](s, Name("P")) }, "P: maps can't be replicated; don't register the component"},
		{"skip all", func(s *Schema) { Register[schemaVec](s, Field("", "-")) }, "schemaVec: a component can't be skipped: don't register it"},
		{"option twice", func(s *Schema) { Register[schemaVec](s, Field("X", ""), Field("X", "")) }, `schemaVec: the option Field("X") is given twice`},
		{"option without field", func(s *Schema) { Register[schemaVec](s, Field("W", "")) }, `schemaVec: the option Field("W") names no exported field: there are X, Y, Z`},
		{"option for a tag", func(s *Schema) { Register[schemaFrozen](s, Field("X", "")) }, `schemaFrozen: the option Field("X") names no exported field: there are none`},
		{"option of many fields", func(s *Schema) { Register[many](s, Field("Z", "")) }, `many: the option Field("Z") names no exported field: there are A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T and more`},
		{"option below a quaternion", func(s *Schema) {
			Register[struct{ R schemaRot }](s, Name("P"), Field("R", "quat,bits=9"), Field("R.X", ""))
		}, `P: the option Field("R.X") names no exported field: there are R`},
		{"options that exclude each other", func(s *Schema) { Register[schemaVec](s, Field("X", "half,raw")) }, "schemaVec.X: half and raw exclude each other: choose one"},
		{"option twice inside", func(s *Schema) { Register[schemaVec](s, Field("X", "range=0:1,range=0:2,step=1")) }, "schemaVec.X: range is given twice"},
		{"negative count", func(s *Schema) { Register[schemaVec](s, Field("X", "enum=-1")) }, "schemaVec.X: enum=-1 is not a small whole number"},
		{"wrong tag key", func(s *Schema) {
			Register[struct {
				X float32 `json:"x" replicate:"range=0:1,step=0.1"`
			}](s, Name("P"))
		}, `P.X: the tag key "replicate" is not known: write repl:"range=0:1,step=0.1"; if the key belongs to something else, add repl:""`},
		{"wrong tag key in a message", func(s *Schema) {
			RegisterMessage[struct {
				In [2]struct {
					X float32 `Repl:"half"`
				}
			}](s, Name("M"))
		}, `M.In.X: the tag key "Repl" is not known: write repl:"half"; if the key belongs to something else, add repl:""`},
		{"NaN", func(s *Schema) { Register[schemaVec](s, Field("X", "range=NaN:1,step=1")) }, "schemaVec.X: " + quantizeReason(quantize.NewFixed32(math.NaN(), 1, 1))},
	}
	for _, r := range refusals {
		t.Run(r.why, func(t *testing.T) {
			require.PanicsWithValue(t, "replication: "+r.want, func() { r.do(NewSchema()) })
		})
	}

	s := NewSchema()
	require.Panics(t, func() { Register[struct{ P *int }](s, Name("P")) })
	require.Equal(t, schema.TextHeader+"\n", s.Text(), "a refused component must leave nothing behind")
	require.PanicsWithValue(t, "replication: there is no schema: make one with NewSchema", func() { Register[schemaVec](nil) })
}

// TestForeignTagKeysArePermitted: also one that resembles repl, if the field has options or a repl tag.
func TestForeignTagKeysArePermitted(t *testing.T) {
	s := NewSchema()
	Register[struct {
		X float32 `json:"x" yaml:"x"`
		Y float32 `replica:"of y" repl:""`
		Z float32 `replica:"of z"`
		W float32 `repl:"range = -1:1, step = 0.5"`
	}](s, Name("P"), Field("Z", "half"))
	require.Equal(t, schema.TextHeader+"\ncomponent P\nP.X float32\nP.Y float32\nP.Z float32 half\nP.W float32 range=-1:1,step=0.5\n", s.Text())
}
