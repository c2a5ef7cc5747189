package replication

import (
	"math"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// cvPlan is a component that can't be sent as it is; cvGoal is sent in its place.
type cvPlan struct {
	steps []cvStep
	cache map[string]int
}

type cvStep struct {
	X, Y float32
	Name string
}

type cvGoal struct {
	X, Y  float32 `repl:"range=-100:100,step=0.5"`
	Name  string  `repl:"max=8"`
	Steps uint8
	Local int `repl:"-"`
}

func cvToGoal(p *cvPlan, g *cvGoal) {
	if n := len(p.steps); n > 0 {
		last := p.steps[n-1]
		*g = cvGoal{X: last.X, Y: last.Y, Name: last.Name, Steps: uint8(n), Local: 5}
	}
}

func cvFromGoal(g *cvGoal, p *cvPlan) {
	p.steps = make([]cvStep, g.Steps)
	if g.Steps > 0 {
		p.steps[g.Steps-1] = cvStep{g.X, g.Y, g.Name}
	}
}

// cvTime codes a time, whose fields are unexported, in seconds.
type cvTime struct{}

func (cvTime) Fields() []CodecField {
	return []CodecField{{Name: "unix", Bits: 40, Kind: delta.Counter}, {Name: "known", Bits: 2, Max: 1}}
}

func (cvTime) Encode(v *time.Time, codes []uint64) {
	if !v.IsZero() {
		codes[0], codes[1] = uint64(v.Unix()), 1
	}
}

func (cvTime) Decode(codes []uint64, v *time.Time) {
	*v = time.Time{}
	if codes[1] != 0 {
		*v = time.Unix(int64(codes[0]), 0).UTC()
	}
}

type cvShip struct {
	Built  time.Time
	Level  uint8
	Visits [2]time.Time
	Inner  struct{ Seen time.Time }
	Own    time.Time `repl:"-"`
}

func TestConversionsInTheSchemaText(t *testing.T) {
	s := NewSchema()
	Register[cvPlan](s, As(cvToGoal, cvFromGoal), Name("Plan"))
	Register[cvShip](s, With(cvTime{}), Name("Ship"))
	require.Equal(t, `arche-replicate schema 1
component Plan
Plan.X float32 range=-100:100,step=0.5
Plan.Y float32 range=-100:100,step=0.5
Plan.Name string max=8
Plan.Steps uint8
component Ship
Ship.Built.unix code bits=40,counter
Ship.Built.known code bits=2,max=1
Ship.Level uint8
Ship.Visits[0].unix code bits=40,counter
Ship.Visits[0].known code bits=2,max=1
Ship.Visits[1].unix code bits=40,counter
Ship.Visits[1].known code bits=2,max=1
Ship.Inner.Seen.unix code bits=40,counter
Ship.Inner.Seen.known code bits=2,max=1
`, s.Text())
	twin := NewSchema()
	Register[cvGoal](twin, Name("Plan"))
	Register[cvShip](twin, With(cvTime{}), Name("Ship"))
	require.Equal(t, s.Fingerprint(), twin.Fingerprint(), "the other end may have the twin itself")

	require.Equal(t, []uint64{200, 201, 2, 'h' | 'i'<<8, 0, 2},
		s.Codes(cvPlan{steps: []cvStep{{}, {0, 0.4, "hi"}}}, nil))
	ship := cvShip{Built: time.Unix(1<<33+7, 0), Level: 3}
	require.Equal(t, []uint64{1<<33 + 7, 1, 3, 0, 0, 0, 0, 0, 0}, s.Codes(&ship, nil))

	s.raw.Freeze()
	kinds := ""
	for _, f := range s.raw.Components[1].Layout.Fields {
		kinds += " " + f.Kind.String()
	}
	require.Equal(t, " counter plain plain counter plain counter plain counter plain", kinds)
}

func TestConversionsOfNestedFieldsAndByPath(t *testing.T) {
	half := With(codecOf[schemaVec]{fields: []CodecField{{Name: "half", Bits: 8}}})
	third := With(codecOf[schemaVec]{fields: []CodecField{{Name: "third", Bits: 8}}}, "Vel", "Arm.Tip")
	type body struct {
		Pos, Vel schemaVec
		Arm      [2]struct{ Root, Tip schemaVec }
		Skipped  schemaVec `repl:"-"`
	}
	s := NewSchema()
	Register[body](s, half, third)
	require.Equal(t, `arche-replicate schema 1
component body
body.Pos.half code bits=8
body.Vel.third code bits=8
body.Arm[0].Root.half code bits=8
body.Arm[0].Tip.third code bits=8
body.Arm[1].Root.half code bits=8
body.Arm[1].Tip.third code bits=8
`, s.Text())

	// A twin that contains twins, and one whose tag is that of the field.
	type name struct{ p *string }
	type crew struct {
		Captain name `repl:"max=5"`
		Mates   [2]name
	}
	type ship struct{ c *crew }
	text := As(func(n *name, s *string) {
		if n.p != nil {
			*s = *n.p
		}
	}, func(s *string, n *name) { c := *s; n.p = &c })
	s = NewSchema()
	Register[ship](s, Name("Ship"), text, Field("Mates", "max=3"), As(func(s *ship, c *crew) {
		if s.c != nil {
			*c = *s.c
		}
	}, func(c *crew, s *ship) { copied := *c; s.c = &copied }))
	require.Equal(t, "arche-replicate schema 1\ncomponent Ship\nShip.Captain string max=5\nShip.Mates[0] string max=3\nShip.Mates[1] string max=3\n", s.Text())
	s.raw.Freeze()
	c := &s.raw.Components[0]
	of := func(s string) name { return name{&s} }
	v := ship{&crew{of("Ann"), [2]name{{}, of("Bob")}}}
	row := make([]uint32, c.Words)
	require.Zero(t, c.ReadColumn(row, unsafe.Pointer(&v), 1))
	var back ship
	c.Write(unsafe.Pointer(&back), row)
	require.Equal(t, "Ann", *back.c.Captain.p)
	require.Equal(t, "Bob", *back.c.Mates[1].p)
	require.Equal(t, "", *back.c.Mates[0].p)
	require.NoError(t, c.Fits(unsafe.Pointer(&v)))
	v.c.Mates[1] = of("Bobby")
	require.EqualError(t, c.Fits(unsafe.Pointer(&v)), "replication: Ship.Mates[1]: the string has 5 bytes, and max is 3: shorten it, or raise max in the tag")
}

// codecOf is a codec for any fields that discards every value.
type codecOf[T any] struct {
	fields []CodecField
	encode func(codes []uint64)
}

func (c codecOf[T]) Fields() []CodecField { return c.fields }

func (c codecOf[T]) Encode(_ *T, codes []uint64) {
	if c.encode != nil {
		c.encode(codes)
	}
}

func (c codecOf[T]) Decode([]uint64, *T) {}

func TestRefusedConversions(t *testing.T) {
	type box struct{ A, B schemaVec }
	type tagged struct {
		A schemaVec `repl:"unit,bits=9"`
	}
	type text struct{ T time.Time }
	with := func(fields ...CodecField) ComponentOption { return With(codecOf[schemaVec]{fields: fields}) }
	one := CodecField{Name: "x", Bits: 8}
	count := 0
	changing := With(codecOf[schemaVec]{[]CodecField{one}, func(codes []uint64) { count++; codes[0] = uint64(count) % 256 }})
	large := With(codecOf[schemaVec]{[]CodecField{one}, func(codes []uint64) { codes[0] = 256 }})
	asString := func(paths ...string) ComponentOption {
		return As(func(*schemaVec, *string) {}, func(*string, *schemaVec) {}, paths...)
	}
	asMap := As(func(*time.Time, *map[int]int) {}, func(*map[int]int, *time.Time) {})
	for _, r := range []struct {
		do   func(s *Schema)
		want string
	}{
		{func(*Schema) { With[schemaVec](nil) }, "With needs a codec that is not nil"},
		{func(*Schema) { As[schemaVec, string](nil, func(*string, *schemaVec) {}) }, "As needs two functions: the first one, which makes what is sent, is nil"},
		{func(*Schema) { As[schemaVec, string](func(*schemaVec, *string) {}, nil) }, "As needs two functions: the second one, which takes what was sent, is nil"},
		{func(s *Schema) { Register[box](s, with()) }, "box.A: the codec has 0 fields: use 1 to 256"},
		{func(s *Schema) { Register[box](s, with(make([]CodecField, 257)...)) }, "box.A: the codec has 257 fields: use 1 to 256"},
		{func(s *Schema) { Register[box](s, with(CodecField{Bits: 3})) }, `box.A: the codec's field name "" has 0 bytes: use 1 to 256`},
		{func(s *Schema) { Register[box](s, with(CodecField{Name: "a b", Bits: 3})) }, `box.A: the codec's field name "a b" contains ' ': use letters and digits`},
		{func(s *Schema) { Register[box](s, with(CodecField{Name: "a.b", Bits: 3})) }, `box.A: the codec's field name "a.b" contains '.': use letters and digits`},
		{func(s *Schema) { Register[box](s, with(CodecField{Name: "x"})) }, "box.A: the codec's field x has 0 bits: use 1 to 64"},
		{func(s *Schema) { Register[box](s, with(CodecField{Name: "x", Bits: 65})) }, "box.A: the codec's field x has 65 bits: use 1 to 64"},
		{func(s *Schema) { Register[box](s, with(CodecField{Name: "x", Bits: 3, Max: 8})) }, "box.A: the codec's field x has a largest code of 8, which takes more than its 3 bits"},
		{func(s *Schema) { Register[box](s, with(CodecField{Name: "x", Bits: 3, Kind: delta.Quat})) }, "box.A: the codec's field x is of the kind quat: use Plain, Linear, Wrap, Counter or Flags"},
		{func(s *Schema) { Register[box](s, with(one, one)) }, `box.A: the codec has two fields "x"`},
		{func(s *Schema) { Register[tagged](s, with(one)) }, "tagged.A: a field with a codec takes no tag but cut and -"},
		{func(s *Schema) { Register[box](s, changing) }, `box.A: the codec has other codes for the same value at every call: the codes of the zero value differ in "A.x"`},
		{func(s *Schema) { Register[box](s, large) }, `box.A: the codec has a code for the zero value that is too large: "A.x" has 256, and its largest is 255`},
		{func(s *Schema) { Register[box](s, With(cvForgetful{})) }, `box.A: the codec does not give back what it took: the codes of the zero value, decoded and encoded again, differ in "A.x"`},
		{func(s *Schema) { Register[box](s, with(one), with(one)) }, "box.A: two of the options With and As are for replication.schemaVec: give them the paths of their fields"},
		{func(s *Schema) { Register[box](s, with(one), asString("A"), asString("B", "A")) }, "box.A: two of the options With and As are for replication.schemaVec: give them the paths of their fields"},
		{func(s *Schema) { Register[box](s, With(cvTime{})) }, "box: the option With for time.Time meets no field of that type"},
		{func(s *Schema) { Register[box](s, asString("A", "C"), Field("A", "max=5")) }, `box: the option As for replication.schemaVec names "C": there is no such field of that type`},
		{func(s *Schema) { Register[box](s, asString("A")) }, "box.A: strings without a bound can't be replicated; give them one by the tag max=N"},
		{func(s *Schema) { Register[text](s, asMap) }, "text.T: maps can't be replicated; use another type in As"},
		{
			func(s *Schema) {
				Register[box](s, As(func(*schemaVec, *rTarget) {}, func(*rTarget, *schemaVec) {}, "A"))
			},
			`box.A.Entity: an entity can't be in a type that As puts in the place of another: send it in a field as it is, of this component or another, and skip it there with repl:"-"`,
		},
		{
			func(s *Schema) {
				Register[box](s, As(func(*schemaVec, *[2]ecs.Entity) {}, func(*[2]ecs.Entity, *schemaVec) {}, "A"))
			},
			`box.A: an entity can't be in a type that As puts in the place of another: send it in a field as it is, of this component or another, and skip it there with repl:"-"`,
		},
		{
			func(s *Schema) { Register[rSquad](s, As(func(*rSquad, *rOrbits) {}, func(*rOrbits, *rSquad) {})) },
			`rSquad.Relation: a relation can't be in a type that As puts in the place of another: send it in a field as it is, of this component or another, and skip it there with repl:"-"`,
		},
		{func(s *Schema) { Register[[4096]schemaVec](s, Name("P"), with(one, CodecField{Name: "y", Bits: 1})) }, "P[2048]: a component has at most 4096 fields, array elements included; split it or skip the field"},
	} {
		require.PanicsWithValue(t, "replication: "+r.want, func() { r.do(NewSchema()) })
	}
}

// cvForgetful codes 0 as 5 and 5 as 6.
type cvForgetful struct{}

func (cvForgetful) Fields() []CodecField                { return []CodecField{{Name: "x", Bits: 8}} }
func (cvForgetful) Encode(v *schemaVec, codes []uint64) { codes[0] = 5 + uint64(v.X) }
func (cvForgetful) Decode(codes []uint64, v *schemaVec) { v.X = float32(codes[0] - 4) }

type cvChildOf struct {
	ecs.Relation `repl:"-"`
}

// TestConversionsFollowPointers: the value behind a pointer may change while the pointer does not.
func TestConversionsFollowPointers(t *testing.T) {
	s := NewSchema()
	Register[cvPlan](s, As(cvToGoal, cvFromGoal))
	x := connectedWire(t, s)
	id, mirrorID := ecs.ComponentID[cvPlan](x.world), ecs.ComponentID[cvPlan](x.mirror)
	relation := ecs.ComponentID[cvChildOf](x.world)
	target := x.world.NewEntity()
	related := ecs.NewBuilder(x.world, id, relation, ReplicatedID(x.world)).WithRelation(relation)
	entities := []ecs.Entity{x.spawn(id), x.spawn(id), related.New(target), related.New()}
	for i, e := range entities {
		plan := (*cvPlan)(x.world.Get(e, id))
		plan.steps = []cvStep{{float32(i), 0, "start"}}
		plan.cache = map[string]int{"own": i}
	}
	for tick := range 30 {
		for i, e := range entities {
			if tick%(i+1) == 0 {
				plan := (*cvPlan)(x.world.Get(e, id))
				plan.steps[0].X += 0.5 // no byte of the component changes
				plan.steps[0].Name = strings.Repeat("n", tick%9)
			}
		}
		x.round()
		x.round()
		for _, e := range entities {
			m, ok := x.mirrored(e)
			require.True(t, ok)
			want := (*cvPlan)(x.world.Get(e, id)).steps
			require.Equal(t, want, (*cvPlan)(x.mirror.Get(m, mirrorID)).steps)
		}
	}
	require.Zero(t, x.server.Stats().Clamped)
	require.NotPanics(t, func() { x.server.NewGrid(10, "cvPlan.X", "cvPlan.Y") }, "a twin's fields are as good as others")
}

// cvPilot has references beside fields that are sent as twins.
type cvPilot struct {
	ecs.Relation
	Next cvPlan
	Call string `repl:"max=8"`
	Wing ecs.Entity
	Then cvPlan
	Men  [2]ecs.Entity
}

func TestReferencesBesideTwins(t *testing.T) {
	s := NewSchema()
	Register[cvPilot](s, As(cvToGoal, cvFromGoal))
	x := connectedWire(t, s)
	id, mirrorID := ecs.ComponentID[cvPilot](x.world), ecs.ComponentID[cvPilot](x.mirror)
	e, base, wing, man := x.spawn(id), x.spawn(), x.spawn(), x.spawn()
	v := (*cvPilot)(x.world.Get(e, id))
	v.Next.steps, v.Then.steps = []cvStep{{1, 2, "next"}}, []cvStep{{3, 4, "then"}}
	v.Call, v.Wing, v.Men[1] = "Ice", wing, man
	x.world.Relations().Set(e, id, base)
	x.rounds(3)
	check := func(wing, man, base ecs.Entity) {
		t.Helper()
		m, ok := x.mirrored(e)
		require.True(t, ok)
		got, want := (*cvPilot)(x.mirror.Get(m, mirrorID)), (*cvPilot)(x.world.Get(e, id))
		require.Equal(t, want.Next.steps, got.Next.steps)
		require.Equal(t, want.Then.steps, got.Then.steps)
		require.Equal(t, want.Call, got.Call)
		there := func(e ecs.Entity) ecs.Entity {
			m, ok := x.mirrored(e)
			require.NotEqual(t, e.IsZero(), ok)
			return m
		}
		require.Equal(t, there(wing), got.Wing)
		require.Equal(t, [2]ecs.Entity{1: there(man)}, got.Men)
		require.Equal(t, there(base), x.mirror.Relations().Get(m, mirrorID))
	}
	check(wing, man, base)
	x.world.RemoveEntity(wing)
	x.rounds(3)
	check(ecs.Entity{}, man, base)
	(*cvPilot)(x.world.Get(e, id)).Next.steps[0].X = 5 // no byte of the component changes
	x.world.RemoveEntity(base)
	x.rounds(3)
	check(ecs.Entity{}, man, ecs.Entity{})
}

func TestCodesBeyondTheirLargestAreClamped(t *testing.T) {
	s := NewSchema()
	Register[schemaVec](s, With(cvTiny{}))
	s.raw.Freeze()
	c := &s.raw.Components[0]
	require.False(t, c.Volatile, "nothing but its own bytes")
	values := []schemaVec{{X: 3}, {X: 100}, {X: 8}}
	dst := make([]uint32, 3*c.Words)
	require.Equal(t, 2, c.ReadColumn(dst, unsafe.Pointer(&values[0]), 3))
	require.Equal(t, []uint32{3, 7, 7}, []uint32{dst[0], dst[c.Words], dst[2*c.Words]})
	require.True(t, c.ValidRow(dst[:c.Words]))
	require.False(t, c.ValidRow([]uint32{8, 0, 0}))
	require.False(t, c.ValidRow([]uint32{0, 0, 1 << 8}))
	c.Write(unsafe.Pointer(&values[1]), []uint32{5, 1, 2})
	require.Equal(t, schemaVec{X: 5, Y: 2, Z: 1}, values[1])
}

// cvTiny has a code of two words.
type cvTiny struct{}

func (cvTiny) Fields() []CodecField {
	return []CodecField{{Name: "x", Bits: 3}, {Name: "yz", Bits: 40}}
}

func (cvTiny) Encode(v *schemaVec, codes []uint64) {
	codes[0], codes[1] = uint64(v.X), uint64(v.Y)<<32|uint64(v.Z)
}

func (cvTiny) Decode(codes []uint64, v *schemaVec) {
	*v = schemaVec{float32(codes[0]), float32(codes[1] >> 32), float32(codes[1] & math.MaxUint32)}
}

func TestConversionsDoNotAllocate(t *testing.T) {
	skipAllocationTest(t)
	s := NewSchema()
	Register[cvShip](s, With(cvTime{}))
	Register[schemaGun](s, As(func(g *schemaGun, s *schemaVec) { s.X = g.Heat }, func(s *schemaVec, g *schemaGun) { g.Heat = s.X }))
	s.raw.Freeze()
	for i := range s.raw.Components {
		c := &s.raw.Components[i]
		p := reflect.MakeSlice(reflect.SliceOf(c.Typ), 70, 70).UnsafePointer()
		dst := make([]uint32, 70*c.Words)
		c.ReadColumn(dst, p, 70)
		require.Zero(t, testing.AllocsPerRun(10, func() { c.ReadColumn(dst, p, 70) }))
		require.Zero(t, testing.AllocsPerRun(10, func() { c.Write(p, dst[:c.Words]) }))
		require.Zero(t, testing.AllocsPerRun(10, func() { c.ValidRow(dst[:c.Words]) }))
	}
}

// TestConversionsOnSeveralGoroutines: several servers share one schema, so the scratch memory of
// conversions belongs to none.
func TestConversionsOnSeveralGoroutines(t *testing.T) {
	s := NewSchema()
	Register[cvPlan](s, As(cvToGoal, cvFromGoal))
	Register[cvShip](s, With(cvTime{}))
	s.raw.Freeze()
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			plan, ship := &s.raw.Components[0], &s.raw.Components[1]
			planRow, shipRow := make([]uint32, plan.Words), make([]uint32, ship.Words)
			for i := range 500 {
				p := cvPlan{steps: []cvStep{{float32(g), float32(i % 100), "name"}}}
				v := cvShip{Built: time.Unix(int64(g), 0).UTC(), Level: uint8(i)}
				plan.ReadColumn(planRow, unsafe.Pointer(&p), 1)
				ship.ReadColumn(shipRow, unsafe.Pointer(&v), 1)
				var p2 cvPlan
				var v2 cvShip
				plan.Write(unsafe.Pointer(&p2), planRow)
				ship.Write(unsafe.Pointer(&v2), shipRow)
				if !reflect.DeepEqual(p, p2) || v != v2 {
					t.Errorf("%+v came back as %+v, %+v as %+v", p, p2, v, v2)
				}
			}
		})
	}
	group.Wait()
}

type cvBoat struct{ crew *[4]int }

type cvBoatSeen struct {
	Men uint8 `repl:"range=0:2"`
}

// TestClientRetainsConvertedValues: Arche moves components as plain bytes, so the garbage collector
// does not see values reachable only through a component. The client retains what its conversion
// made until the next state or the end of the component.
func TestClientRetainsConvertedValues(t *testing.T) {
	var freed [3]atomic.Bool // crews, by their size
	s := NewSchema()
	Register[cvBoat](s, As(
		func(from *cvBoat, to *cvBoatSeen) {
			if from.crew != nil {
				to.Men = uint8(from.crew[0])
			}
		},
		func(from *cvBoatSeen, to *cvBoat) {
			to.crew = &[4]int{int(from.Men)}
			runtime.SetFinalizer(to.crew, func(crew *[4]int) { freed[crew[0]].Store(true) })
		}))
	x := connectedWire(t, s)
	id, mirrorID := ecs.ComponentID[cvBoat](x.world), ecs.ComponentID[cvBoat](x.mirror)
	e := x.spawn(id)
	sail := func(men int) {
		(*cvBoat)(x.world.Get(e, id)).crew = &[4]int{men}
		x.rounds(3)
		m, _ := x.mirrored(e)
		p := (*cvBoat)(x.mirror.Get(m, mirrorID))
		require.Equal(t, men, p.crew[0])
		p.crew = nil // hidden from the garbage collector
	}
	collect := func(until func() bool) {
		for n := 0; n < 500 && !until(); n++ {
			runtime.GC()
			time.Sleep(time.Millisecond) // finalizers run on a goroutine of their own
		}
	}
	sail(1)
	n := 0
	collect(func() bool { n++; return n > 10 })
	require.False(t, freed[1].Load())
	sail(2)
	collect(freed[1].Load)
	require.True(t, freed[1].Load(), "it lets go of what was before")
	require.False(t, freed[2].Load())
	x.world.Remove(e, id)
	x.rounds(3)
	collect(freed[2].Load)
	require.True(t, freed[2].Load())
}
