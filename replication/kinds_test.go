package replication

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// A kind is something that a world can hold and a client should see. The list is that of the table
// in docs/registering-components.md; each kind is played over a bad network.
type kind struct {
	name     string // as in the table
	register func(s *Schema)
	play     func(x *kindGame)
}

func kinds() []kind {
	type (
		flag     struct{ V bool }
		integers struct {
			A int8
			B int16
			C int32
			D int64
			E int
			F uint8
			G uint16
			H uint32
			I uint64
			J uint
		}
		ranged struct {
			V int16  `repl:"range=-3:100"`
			W uint64 `repl:"range=5:18446744073709551615"`
		}
		stepped struct {
			V int32 `repl:"range=0:1000,step=10"`
		}
		round struct {
			Degrees int16 `repl:"range=0:359,wrap"`
			Serial  uint8 `repl:"wrap"`
		}
		moving struct {
			Tile int32 `repl:"range=0:9999,linear"`
		}
		counter struct {
			Kills uint32  `repl:"counter"`
			Dealt float64 `repl:"range=0:1e6,step=0.5,counter"`
		}
		fancy float32
		named struct{ V fancy }
		team  uint8
		enum  struct {
			Team team `repl:"enum=5"`
			Mood int  `repl:"enum=3"`
		}
		flags struct {
			Keys uint8  `repl:"flags=5"`
			Wide uint64 `repl:"flags=64"`
		}
		lasting struct{ V time.Duration }
		timed   struct {
			Left time.Duration `repl:"range=0s:1h,step=1ms"`
		}
		exact struct {
			V float32
			W float64 `repl:"raw"`
		}
		fixed struct {
			V float32 `repl:"range=-100:100,step=0.01"`
		}
		small struct {
			V float64 `repl:"range=0:1e6,precision=1"`
		}
		half struct {
			V float32 `repl:"half"`
		}
		angle struct {
			V float32 `repl:"angle,bits=12"`
		}
		jumping struct {
			V float32 `repl:"range=-100:100,step=0.01,jump"`
		}
		direction struct {
			V [3]float64 `repl:"unit,bits=14"`
		}
		rotation struct {
			V [4]float32 `repl:"quat,bits=12"`
		}
		name struct {
			V string `repl:"max=16"`
		}
		blob struct {
			V [16]byte `repl:"max=16"`
		}
		array struct {
			V [3]uint16
			W [2][2]float32 `repl:"range=0:10,step=0.5"`
		}
		nested struct {
			Gun struct {
				Heat  float32 `repl:"range=0:1,step=0.25"`
				Mount struct{ Slot int8 }
			}
			Guns [2]struct{ Ammo uint8 }
		}
		Base     struct{ Level uint8 }
		embedded struct {
			Base
			V bool
		}
		private struct {
			V     uint8
			cache map[string]int
		}
		skipped struct {
			V     uint8
			Trail []float32 `repl:"-"`
		}
		pointing struct {
			Name string `repl:"max=8"` // in addition, because its bytes are retained
			At   ecs.Entity
		}
		pointingAll struct{ Of [2][2]ecs.Entity }
		childOf     struct {
			ecs.Relation
			Seat uint8
		}
		frozen struct{}
		plain  struct{ X, Y float64 }
	)
	near := func(off float64) func(a, b float64) bool {
		return func(a, b float64) bool { return math.Abs(a-b) <= off }
	}
	seen, known := time.Unix(1_700_000_000, 0).UTC(), time.Unix(1_700_000_060, 0).UTC()
	return append([]kind{
		values("bool", flag{false}, flag{true}),
		values("integer",
			integers{}, integers{-128, -32768, math.MinInt32, math.MinInt64, math.MinInt32, 255, 65535, math.MaxUint32, math.MaxUint64, math.MaxUint32},
			integers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, integers{127, 32767, math.MaxInt32, math.MaxInt64, math.MaxInt32, 1, 1, 1, 1, 1}),
		values("integer of a range", ranged{-3, 5}, ranged{100, math.MaxUint64}, ranged{0, 1 << 33}),
		values("integer in steps", stepped{0}, stepped{10}, stepped{990}, stepped{1000}),
		values("integer that wraps", round{0, 255}, round{359, 0}, round{1, 1}, round{180, 128}, round{340, 250}),
		values("integer that moves", moving{10}, moving{20}, moving{30}, moving{40}, moving{5000}),
		values("counter", counter{0, 0}, counter{1, 0.5}, counter{2, 100}, counter{1000, 1e6}, counter{math.MaxUint32, 3}),
		values("named type", named{1.5}, named{-2.25}),
		values("enum", enum{0, 0}, enum{4, 2}, enum{1, 1}),
		values("flags", flags{0, 0}, flags{31, math.MaxUint64}, flags{30, 1 << 63}, flags{16, 5}),
		values("duration", lasting{0}, lasting{time.Hour + 1}, lasting{-time.Nanosecond}),
		values("duration in steps", timed{0}, timed{time.Millisecond}, timed{time.Hour}, timed{90 * time.Second}),
		values("exact float", exact{0, 0}, exact{0.1, 0.1}, exact{math.MaxFloat32, math.Inf(-1)}, exact{-1e-40, 5e-324}),
		within("float in steps", func(a, b fixed) bool { return near(0.00501)(float64(a.V), float64(b.V)) },
			fixed{-100}, fixed{1.234}, fixed{100}, fixed{1.3}, fixed{1.4}),
		within("small float", func(a, b small) bool { return near(1)(a.V, b.V) }, small{0}, small{0.3}, small{999_999.5}, small{12_345.6}),
		within("half", func(a, b half) bool { return near(0.01)(float64(a.V), float64(b.V)) }, half{0}, half{3.14159}, half{-20.02}),
		within("angle", func(a, b angle) bool {
			return math.Abs(math.Remainder(float64(a.V-b.V), 2*math.Pi)) <= math.Pi/4096+1e-6
		},
			angle{0}, angle{3.1}, angle{-3.1}, angle{100}),
		within("value that jumps", func(a, b jumping) bool { return near(0.00501)(float64(a.V), float64(b.V)) },
			jumping{-100}, jumping{77.7}, jumping{0}),
		within("direction", func(a, b direction) bool {
			return near(0.001)(a.V[0], b.V[0]) && near(0.001)(a.V[1], b.V[1]) && near(0.001)(a.V[2], b.V[2])
		}, direction{[3]float64{0, 0, 1}}, direction{[3]float64{0.6, -0.8, 0}}, direction{[3]float64{-1 / math.Sqrt(3), 1 / math.Sqrt(3), -1 / math.Sqrt(3)}}),
		within("rotation", func(a, b rotation) bool { // q and -q are the same rotation
			dot := float64(a.V[0]*b.V[0] + a.V[1]*b.V[1] + a.V[2]*b.V[2] + a.V[3]*b.V[3])
			return math.Abs(dot) > 0.99999
		}, rotation{[4]float32{0, 0, 0, 1}}, rotation{[4]float32{0.5, -0.5, 0.5, 0.5}}, rotation{[4]float32{0.6, 0, -0.8, 0}}),
		values("string", name{""}, name{"Ann"}, name{"Anna"}, name{"Äne \x00 €"}, name{"sixteen letters!"}, name{"\xff\xfe"}),
		values("byte array", blob{}, blob{[16]byte{1, 2, 0, 4}}, blob{[16]byte{1, 2, 3, 4}}, blob{[16]byte{15: 255}}),
		values("array", array{}, array{[3]uint16{1, 2, 65535}, [2][2]float32{{0.5, 1}, {9.5, 10}}}),
		values("nested struct", nested{}, func() (v nested) {
			v.Gun.Heat, v.Gun.Mount.Slot, v.Guns[1].Ammo = 0.75, -3, 60
			return v
		}()),
		values("embedded struct", embedded{}, embedded{Base{7}, true}, embedded{Base{8}, false}),
		local("unexported field", private{V: 1}, private{V: 2}, func(v *private) { v.cache = map[string]int{"a": 1} },
			func(v *private) bool { return v.cache["a"] == 1 }),
		local("skipped field", skipped{V: 1}, skipped{V: 2}, func(v *skipped) { v.Trail = []float32{1, 2} },
			func(v *skipped) bool { return len(v.Trail) == 2 }),
		{"entity", func(s *Schema) { Register[pointing](s) }, func(x *kindGame) {
			playTargets(x, func(v *pointing) []*ecs.Entity { return []*ecs.Entity{&v.At} })
		}},
		{"array of entities", func(s *Schema) { Register[pointingAll](s) }, func(x *kindGame) {
			playTargets(x, func(v *pointingAll) []*ecs.Entity {
				return []*ecs.Entity{&v.Of[0][0], &v.Of[0][1], &v.Of[1][0], &v.Of[1][1]}
			})
		}},
		{"relation", func(s *Schema) { Register[childOf](s) }, playRelation[childOf]},
		{"tag component", func(s *Schema) { Register[frozen](s); Register[flag](s) }, playTag[frozen, flag]},
		{
			"type of others",
			func(s *Schema) {
				Register[plain](s, Field("X", "range=-1:1,step=0.5"), Field("Y", "half"))
			},
			func(x *kindGame) { playValues(x, equals[plain], plain{0.5, 2}, plain{-1, 0}) },
		},
		{
			"codec",
			func(s *Schema) { Register[cvShip](s, With(cvTime{})) },
			func(x *kindGame) {
				playValues(x, equals[cvShip], cvShip{}, cvShip{Built: seen, Level: 3}, cvShip{Built: known, Visits: [2]time.Time{{}, seen}})
			},
		},
		{
			"twin",
			func(s *Schema) { Register[cvPlan](s, As(cvToGoal, cvFromGoal)) },
			func(x *kindGame) {
				same := func(a, b cvPlan) bool { return fmt.Sprint(a.steps) == fmt.Sprint(b.steps) }
				playValues(x, same, cvPlan{}, cvPlan{steps: []cvStep{{1, 2, "there"}}}, cvPlan{steps: []cvStep{{}, {}, {50, -50, "far away"}}})
			},
		},
	}, furtherKinds()...)
}

// values is a kind whose values arrive exactly as they are.
func values[T comparable](name string, list ...T) kind { return within(name, equals[T], list...) }

func equals[T comparable](a, b T) bool { return a == b }

// within is a kind whose values arrive the same by a comparison.
func within[T any](name string, same func(a, b T) bool, list ...T) kind {
	return kind{name, func(s *Schema) { Register[T](s, Name("V")) }, func(x *kindGame) { playValues(x, same, list...) }}
}

// local is a kind with a part that is the client's own: it is set once, and must stay.
func local[T any](name string, a, b T, set func(*T), isSet func(*T) bool) kind {
	return kind{name, func(s *Schema) { Register[T](s, Name("V")) }, func(x *kindGame) {
		id, mirrorID := ecs.ComponentID[T](x.world), ecs.ComponentID[T](x.end.world)
		code := func(v *T) []uint64 { return x.server.schema.Codes(v, nil) }
		e := x.spawn(id)
		mirrored := func() *T {
			m, ok := x.mirrored(e)
			if !ok {
				return new(T)
			}
			return (*T)(x.end.world.Get(m, mirrorID))
		}
		for i, v := range []T{a, b, a} {
			*(*T)(x.world.Get(e, id)) = v
			x.until(func() bool { return fmt.Sprint(code(mirrored())) == fmt.Sprint(code(&v)) })
			require.Equal(x.t, i > 0, isSet(mirrored()))
			set(mirrored())
		}
	}}
}

// playTag adds and removes a tag on an entity that has another component.
func playTag[Tag, Other any](x *kindGame) {
	id, mirrorID := ecs.ComponentID[Tag](x.world), ecs.ComponentID[Tag](x.end.world)
	e := x.spawn(ecs.ComponentID[Other](x.world))
	for i := range 6 {
		has := i%2 == 1
		if has {
			x.world.Add(e, id)
		} else if i > 0 {
			x.world.Remove(e, id)
		}
		x.until(func() bool {
			m, ok := x.mirrored(e)
			return ok && x.end.world.Has(m, mirrorID) == has
		})
	}
}

// playTargets makes the entities that a component references spawn, change and despawn.
func playTargets[T any](x *kindGame, references func(v *T) []*ecs.Entity) {
	id, mirrorID := ecs.ComponentID[T](x.world), ecs.ComponentID[T](x.end.world)
	e := x.spawn(id)
	playReferences(x, e, len(references(new(T))),
		func(i int, target ecs.Entity) { *references((*T)(x.world.Get(e, id)))[i] = target },
		func(m ecs.Entity, i int) ecs.Entity { return *references((*T)(x.end.world.Get(m, mirrorID)))[i] })
}

// playRelation makes the targets of a relation spawn, change and despawn.
func playRelation[T any](x *kindGame) {
	id, mirrorID := ecs.ComponentID[T](x.world), ecs.ComponentID[T](x.end.world)
	e := x.spawn(id)
	playReferences(x, e, 1,
		func(_ int, target ecs.Entity) { x.world.Relations().Set(e, id, target) },
		func(m ecs.Entity, _ int) ecs.Entity { return x.end.world.Relations().Get(m, mirrorID) })
}

// playReferences sets each of n references of an entity to no entity, to others in turn, to one
// that is replicated only later, and to one that despawns; set and shown write and read them.
func playReferences(x *kindGame, e ecs.Entity, n int, set func(i int, target ecs.Entity), shown func(m ecs.Entity, i int) ecs.Entity) {
	var nobody ecs.Entity
	others := []ecs.Entity{nobody, x.spawn(), x.spawn(), e}
	if n == 1 {
		others = others[:3] // Arche does not support an entity that is its own target
	}
	refersTo := func(i int, target ecs.Entity) bool {
		m, ok := x.mirrored(e)
		if !ok {
			return false
		}
		want, ok := x.mirrored(target)
		return shown(m, i) == want && ok != target.IsZero()
	}
	for turn := range 2 * len(others) {
		for i := range n {
			set(i, others[(turn+i)%len(others)])
		}
		x.until(func() bool {
			for i := range n {
				if !refersTo(i, others[(turn+i)%len(others)]) {
					return false
				}
			}
			return true
		})
	}
	isNobody := func() bool {
		m, ok := x.mirrored(e)
		return ok && shown(m, 0) == nobody
	}
	late := x.world.NewEntity()
	set(0, late)
	x.until(isNobody)
	x.world.Add(late, ReplicatedID(x.world))
	x.until(func() bool { return refersTo(0, late) })
	x.world.RemoveEntity(late)
	x.until(isNobody)
	x.spawn() // in its place on the server, and perhaps in its slot
	for range 20 {
		x.tick()
		require.True(x.t, isNobody())
	}
}

// A kindGame is a server and a client with 20 % loss and much reordering between them.
type kindGame struct {
	t      *testing.T
	world  *ecs.World
	server *Server
	end    *end
	truth  *truth // nil if the client may not see everything
}

func newKindGame(t *testing.T, register func(s *Schema)) *kindGame {
	schema := NewSchema()
	register(schema)
	seed := seedOf(t)
	world := ecs.NewWorld()
	x := &kindGame{t: t, world: &world, truth: newTruth()}
	x.server = NewServer(x.world, schema, WithSeed(seed))
	x.end = connect(x.server, seed, netsim.Config{Latency: 2, Jitter: 2, Loss: 0.2, Duplicate: 0.05, Reorder: 0.3, ReorderBy: 6}, WithSeed(seed+1))
	return x
}

// spawn makes a replicated entity.
func (x *kindGame) spawn(ids ...ecs.ID) ecs.Entity {
	return x.world.NewEntity(append(ids, ReplicatedID(x.world))...)
}

// mirrored returns the client's entity for one of the server's.
func (x *kindGame) mirrored(e ecs.Entity) (ecs.Entity, bool) {
	id, ok := x.server.NetID(e)
	if !ok {
		return ecs.Entity{}, false
	}
	return x.end.client.Entity(id)
}

// tick plays a tick, and checks that the client shows codes that the server had, if it may see all
// of them.
func (x *kindGame) tick() {
	if x.truth != nil {
		tickAll(x.t, x.server, x.truth, []*end{x.end})
		return
	}
	x.server.Replicate()
	x.end.step(x.t)
}

// until plays ticks until done returns true. It fails after more ticks than anything may take to
// arrive.
func (x *kindGame) until(done func() bool) {
	x.t.Helper()
	for range 300 {
		x.tick()
		if done() {
			return
		}
	}
	require.FailNow(x.t, "does not come", "server %+v\nclient %+v", x.end.peer.Stats(), x.end.client.Stats())
}

// playValues gives entities all of the values: first each until it has arrived, then in quick
// succession, when not all will arrive but nothing else may.
func playValues[T any](x *kindGame, same func(a, b T) bool, list ...T) {
	id, mirrorID := ecs.ComponentID[T](x.world), ecs.ComponentID[T](x.end.world)
	var entities []ecs.Entity
	for range 3 {
		entities = append(entities, x.spawn(id))
	}
	set := func(e ecs.Entity, v T) {
		if p := (*T)(x.world.Get(e, id)); p != nil {
			*p = v
		}
	}
	shown := func(e ecs.Entity) (v T, ok bool) {
		m, ok := x.mirrored(e)
		if ok {
			v = *(*T)(x.end.world.Get(m, mirrorID))
		}
		return v, ok
	}
	all := func(i, n int) bool { // entity j shows value i + j*n
		for j, e := range entities {
			if v, ok := shown(e); !ok || !same(list[(i+j*n)%len(list)], v) {
				return false
			}
		}
		return true
	}
	for i := range list {
		for j, e := range entities {
			set(e, list[(i+j)%len(list)])
		}
		x.until(func() bool { return all(i, 1) })
	}
	for tick := range 150 {
		for j, e := range entities {
			if tick%(j+1) == 0 {
				set(e, list[(tick/(j+1))%len(list)])
			}
		}
		x.tick()
		for _, e := range entities {
			v, ok := shown(e)
			require.True(x.t, ok)
			one := false
			for i := range list {
				one = one || same(list[i], v)
			}
			require.True(x.t, one, "%+v is none of the values", v)
		}
	}
	for i, e := range entities {
		set(e, list[i%len(list)])
	}
	x.until(func() bool { return all(0, 1) })
	require.Zero(x.t, x.server.Stats().Clamped)
}

func TestEveryKindRoundTrips(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) { k.play(newKindGame(t, k.register)) })
	}
}

// kindsWire is a session whose schema has texts, enums, counters and conversions, in entities that
// change.
func kindsWire(t testing.TB, packets func(p []byte)) *fixture {
	s := NewSchema()
	Register[textBox](s)
	Register[fuzzKinds](s)
	Register[cvPlan](s, As(cvToGoal, cvFromGoal))
	Register[cvShip](s, With(cvTime{}))
	x := newWire(t, s)
	box, other := ecs.ComponentID[textBox](x.world), ecs.ComponentID[fuzzKinds](x.world)
	plan, ship := ecs.ComponentID[cvPlan](x.world), ecs.ComponentID[cvShip](x.world)
	e := x.spawn(box, other, plan, ship)
	x.spawn(box)
	for i := range 8 {
		b, k := (*textBox)(x.world.Get(e, box)), (*fuzzKinds)(x.world.Get(e, other))
		b.S, b.B[3], b.Names[1] = "name"[:i%5]+"x", byte(i), textName("é"[i%2*2:])
		*k = fuzzKinds{int8(i % 5), 1 << i, uint32(i * i), int16(i * 50), time.Duration(i) * time.Second}
		(*cvPlan)(x.world.Get(e, plan)).steps = []cvStep{{float32(i), 0, "goal"}}
		(*cvShip)(x.world.Get(e, ship)).Built = time.Unix(int64(i), 0)
		down := x.replicate()
		for _, p := range down {
			if packets != nil {
				packets(p)
			}
		}
		x.deliver(down...)
		x.answer(x.apply()...)
		x.deliver(x.takeDown()...)
	}
	return x
}

type fuzzKinds struct {
	Mood  int8          `repl:"enum=5"`
	Keys  uint16        `repl:"flags=13"`
	Kills uint32        `repl:"counter"`
	Turn  int16         `repl:"range=0:359,wrap"`
	Left  time.Duration `repl:"range=0s:1m,step=1ms,linear"`
}

// FuzzKinds puts any bits behind the header of a state packet with a correct checksum. The client
// then shows only values that a server could have sent: they encode to the rows that they were
// decoded from.
func FuzzKinds(f *testing.F) {
	kindsWire(f, func(p []byte) {
		if len(p) > 12 {
			f.Add(p[4]>>wire.PadShift&7, p[11:])
		}
	})
	f.Fuzz(func(t *testing.T, pad byte, body []byte) {
		x := kindsWire(t, nil)
		h := wire.StateHeader{Sequence: x.client.recv.Window.Newest + 1, Tick: x.client.recv.NearTick + 1, Interval: 1}
		packet := make([]byte, wire.ChecksumSize+h.Size(), wire.ChecksumSize+h.Size()+len(body))
		h.Put(packet[wire.ChecksumSize:])
		packet[wire.ChecksumSize] |= pad & 7 << wire.PadShift
		packet = append(packet, body...)
		x.client.session.Down.Write(packet, h.Sequence, h.Tick)
		_ = x.client.Receive(packet)
		x.apply()
		for id, e := range x.client.Entities() {
			m := x.client.apply.View.Replicas.At(id.Slot)
			state := m.Held.At(m.Newest)
			for k := range x.client.schema.Components {
				comp := &x.client.schema.Components[k]
				row := state.Row(k, comp.Words)
				if row == nil {
					continue
				}
				require.True(t, comp.ValidRow(row))
				shown := make([]uint32, comp.Words)
				p := x.mirror.Get(e, x.client.apply.View.Components[k])
				require.Zero(t, comp.ReadColumn(shown, p, 1))
				if comp.Name != "cvPlan" && comp.Name != "cvShip" { // several rows of these decode to the same value
					require.Equal(t, row, shown)
				}
			}
		}
		x.rounds(3)
	})
}

var kindRow = regexp.MustCompile(`(?m)^\| ([^|]+?) +\|`)

// TestGuideNamesEveryKind: the guide's table of kinds lists exactly the kinds tested here.
func TestGuideNamesEveryKind(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "registering-components.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## What can be replicated\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	var inGuide, tested []string
	for _, m := range kindRow.FindAllStringSubmatch(section, -1) {
		if m[1] != "kind" && m[1] != "---" {
			inGuide = append(inGuide, m[1])
		}
	}
	for _, k := range kinds() {
		tested = append(tested, k.name)
	}
	require.ElementsMatch(t, tested, inGuide)
}
