//go:build !js && !wasip1

// Not where there are no files.

package replication_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

// The golden packets are those of a small game over a bad network, in files that decoders in other languages are tested
// with: docs/vectors. GOLDEN=update rewrites them, which is right after a change of the wire format only; then
// "python3 docs/decoder/check.py annotate" writes the bits of some packets beside them.
func TestGoldenPackets(t *testing.T) {
	for _, coding := range []replication.Coding{replication.Packed, replication.Compact} {
		name := strings.ToLower(coding.String())
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(docsRoot, "docs", "vectors", name+".txt")
			got := playGolden(t, coding)
			if os.Getenv("GOLDEN") == "update" {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, withoutAnnotations(string(data)), got)
		})
	}
}

// withoutAnnotations leaves out what the decoder in docs/decoder wrote into a golden file, and checks.
func withoutAnnotations(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "  | ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// ---- the components: most kinds that there are

type (
	goldenTransform struct {
		X, Y    float32 `repl:"range=-1000:1000,step=0.01"`
		Heading float32 `repl:"angle,bits=10"`
	}
	goldenSpin struct {
		Q [4]float32 `repl:"quat,bits=9"`
	}
	goldenHealth struct {
		HP    uint8 `repl:"range=0:100"`
		Alive bool
	}
	goldenScore struct {
		Kills uint32 `repl:"counter"`
		Keys  uint8  `repl:"flags=5"`
		Hour  uint8  `repl:"range=0:23,wrap"`
		Team  uint8  `repl:"enum=3"`
	}
	goldenName struct {
		Text string `repl:"max=12"`
	}
	goldenTarget struct {
		Of   ecs.Entity
		Seen [2]ecs.Entity
	}
	goldenFrozen struct{}
	goldenRider  struct {
		ecs.Relation
		Seat uint8 `repl:"range=0:3"`
	}
	goldenOdd struct {
		Look  [3]float32    `repl:"unit,bits=10"`
		Far   float32       `repl:"range=-500:1000000,precision=1"`
		Half  float32       `repl:"half"`
		Exact float64       // raw bits
		Wide  uint64        `repl:"linear"`
		Turn  int16         `repl:"range=-180:179,wrap"`
		Steps int32         `repl:"range=-10:1005,step=10"`
		Bag   [2][2]uint8   `repl:"range=0:9"`
		Legs  [2][4]float64 `repl:"quat,bits=15"`
		Blob  [8]byte       `repl:"max=8"`
	}
	goldenStory struct {
		Text string `repl:"max=400"`
	}
	goldenMeasures struct {
		Third  float32       `repl:"range=0:1,step=0.3"`
		Grid   float64       `repl:"range=0:9,step=0.3333333333333333"`
		Offset float64       `repl:"range=0.1:9,step=0.3333333333333333"`
		Near   float32       `repl:"range=2:1000,precision=0.5"`
		Cold   float64       `repl:"range=-300:-2,precision=0.001"`
		Power  float32       `repl:"range=-1:64,precision=0.25"`
		Aim    float32       `repl:"angle,bits=8,period=360,jump"`
		Age    time.Duration `repl:"range=0s:1h,step=7ms"`
		Money  int64         `repl:"linear"`
		Level  int16         `repl:"counter"`
		Doors  uint8         `repl:"flags=1"`
		Serial uint8         `repl:"wrap"`
		Pair   [2]struct{ A bool }
	}
	goldenMatch struct {
		Round uint8
		Clock float64 `repl:"range=0:3600,step=0.1"`
	}
	goldenWeather struct {
		Rain uint8 `repl:"range=0:9"`
	}
)

// A goldenType is a component or resource of the schema: its name, and its codes in the order of Schema.Codes: n a
// number, q a rotation, r a reference, and the longest length of a text.
type goldenType struct {
	name  string
	codes []any
}

var goldenTypes = map[reflect.Type]goldenType{
	reflect.TypeFor[goldenTransform](): {"Transform", []any{'n', 'n', 'n'}},
	reflect.TypeFor[goldenSpin]():      {"Spin", []any{'q'}},
	reflect.TypeFor[goldenHealth]():    {"Health", []any{'n', 'n'}},
	reflect.TypeFor[goldenScore]():     {"Score", []any{'n', 'n', 'n', 'n'}},
	reflect.TypeFor[goldenName]():      {"Name", []any{12}},
	reflect.TypeFor[goldenTarget]():    {"Target", []any{'r', 'r', 'r'}},
	reflect.TypeFor[goldenFrozen]():    {"Frozen", nil},
	reflect.TypeFor[goldenRider]():     {"Rider", []any{'r', 'n'}},
	reflect.TypeFor[goldenOdd]():       {"Odd", []any{'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'q', 'q', 8}},
	reflect.TypeFor[goldenMeasures]():  {"Measures", []any{'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n'}},
	reflect.TypeFor[goldenStory]():     {"Story", []any{400}},
	reflect.TypeFor[goldenMatch]():     {"Match", []any{'n', 'n'}},
	reflect.TypeFor[goldenWeather]():   {"Weather", []any{'n'}},
}

func goldenSchema() *replication.Schema {
	s := replication.NewSchema()
	replication.Register[goldenTransform](s, replication.Name("Transform"))
	replication.Register[goldenSpin](s, replication.Name("Spin"))
	replication.Register[goldenHealth](s, replication.Name("Health"))
	replication.RegisterResource[goldenMatch](s, replication.Name("Match"))
	replication.Register[goldenScore](s, replication.Name("Score"))
	replication.Register[goldenName](s, replication.Name("Name"))
	replication.Register[goldenTarget](s, replication.Name("Target"))
	replication.Register[goldenFrozen](s, replication.Name("Frozen"))
	replication.Register[goldenRider](s, replication.Name("Rider"))
	replication.Register[goldenOdd](s, replication.Name("Odd"))
	replication.Register[goldenMeasures](s, replication.Name("Measures"))
	replication.Register[goldenStory](s, replication.Name("Story"))
	replication.RegisterResource[goldenWeather](s, replication.Name("Weather"))
	return s
}

// ---- the game

// goldenGame is what happens at the server. All floats come from few bits, so that they are the same on all machines.
type goldenGame struct {
	world  *ecs.World
	random uint32

	hero, rival, tree, book ecs.Entity
	sparks, crowd           []ecs.Entity
	odd, probe              ecs.Entity
}

// next is a random number below n (a linear congruential generator: the figures of Numerical Recipes).
func (g *goldenGame) next(n uint32) uint32 {
	g.random = g.random*1664525 + 1013904223
	return (g.random >> 16) % n
}

func id[T any](g *goldenGame) ecs.ID { return ecs.ComponentID[T](g.world) }

func get[T any](g *goldenGame, e ecs.Entity) *T { return (*T)(g.world.Get(e, id[T](g))) }

func (g *goldenGame) spawn(ids ...ecs.ID) ecs.Entity {
	return g.world.NewEntity(append(ids, replication.ReplicatedID(g.world))...)
}

func (g *goldenGame) spark() {
	e := g.spawn(id[goldenTransform](g))
	*get[goldenTransform](g, e) = goldenTransform{X: float32(g.next(100)), Y: float32(g.next(100)), Heading: 1}
	g.sparks = append(g.sparks, e)
}

// The rest begins in goldenRest and ends in goldenStir. At its beginning a crowd comes, of which one goes on changing for
// a while; then nothing changes.
const (
	goldenRest = 44
	goldenStir = 350
	goldenEnd  = 362
)

func (g *goldenGame) step(n int) {
	g.structure(n)
	if n >= goldenRest && n < goldenStir {
		if n > goldenRest+4 && n < goldenRest+16 {
			get[goldenHealth](g, g.crowd[27]).HP--
		}
		return
	}
	hero := get[goldenTransform](g, g.hero)
	hero.X += 0.75
	hero.Heading += 0.125
	if n > 20 {
		hero.Y -= 0.5
	}
	q := get[goldenSpin](g, g.hero)
	q.Q = [4]float32{float32(n%40) - 10, 7 - float32(n%50)/2, 4, 12}
	score := get[goldenScore](g, g.hero)
	if n%5 == 0 {
		score.Kills += 1 + uint32(n)%3
	}
	if n%4 == 0 {
		score.Keys ^= 1 << (n / 4 % 5)
		score.Hour = (score.Hour + 9) % 24
		score.Team = uint8(n / 4 % 3)
	}
	if n%11 == 10 {
		score.Keys = ^score.Keys & 31
	}
	if n%6 == 1 {
		names := []string{"Anna", "Hanna", "Hänna", "", "Johanna", "Joanna"}
		get[goldenName](g, g.hero).Text = names[n/6%len(names)]
	}
	rival := get[goldenTransform](g, g.rival)
	rival.X += float32(g.next(9))/4 - 1
	rival.Heading -= 0.5
	for _, e := range g.sparks {
		p := get[goldenTransform](g, e)
		p.X += 1.5
		p.Y += float32(g.next(5)) - 2
	}
	if !g.odd.IsZero() {
		g.changeOdd(n)
	}
	if !g.probe.IsZero() {
		g.changeProbe(n)
	}
	if n%7 == 0 && n > 0 {
		g.match().Round++
	}
	g.match().Clock += 0.5
}

func (g *goldenGame) match() *goldenMatch { return ecs.GetResource[goldenMatch](g.world) }

// structure lets entities, components and resources come and go.
func (g *goldenGame) structure(n int) {
	transform, spin, health := id[goldenTransform](g), id[goldenSpin](g), id[goldenHealth](g)
	switch n {
	case 0:
		ecs.AddResource(g.world, &goldenMatch{Round: 1})
		g.hero = g.spawn(transform, spin, health, id[goldenScore](g), id[goldenName](g), id[goldenTarget](g))
		*get[goldenHealth](g, g.hero) = goldenHealth{100, true}
		g.rival = g.spawn(transform, spin, health, id[goldenTarget](g))
		get[goldenTarget](g, g.rival).Of = g.hero
		get[goldenSpin](g, g.rival).Q = [4]float32{0, 0.5, -0.5, 1}
		g.tree = g.spawn(transform, id[goldenFrozen](g))
		get[goldenTransform](g, g.tree).X = -12.5
	case 4, 17:
		for range 3 {
			g.spark()
		}
	case 6:
		g.odd = g.spawn(id[goldenOdd](g))
		*get[goldenOdd](g, g.odd) = goldenOdd{Look: [3]float32{0, 0, 1}, Exact: 1}
	case 7:
		g.probe = g.spawn(id[goldenMeasures](g))
	case 9:
		g.book = g.spawn(id[goldenName](g), id[goldenStory](g))
		get[goldenName](g, g.book).Text = "book"
		get[goldenStory](g, g.book).Text = strings.Repeat("once upon a time, and ", 15)
	case 12:
		g.world.Exchange(g.rival, []ecs.ID{id[goldenFrozen](g), id[goldenName](g)}, []ecs.ID{health})
		get[goldenName](g, g.rival).Text = "Ivan"
		get[goldenTarget](g, g.hero).Seen = [2]ecs.Entity{g.rival, g.hero}
	case 14:
		ecs.AddResource(g.world, &goldenWeather{Rain: 7})
	case 16, 25:
		g.world.RemoveEntity(g.sparks[1])
		g.sparks = slices.Delete(g.sparks, 1, 2)
	case 22:
		g.world.Exchange(g.rival, []ecs.ID{health}, []ecs.ID{id[goldenFrozen](g)})
		*get[goldenHealth](g, g.rival) = goldenHealth{55, true}
		get[goldenStory](g, g.book).Text = strings.Repeat("once upon a time, and ", 12) + "never again"
	case 26:
		g.world.Exchange(g.sparks[0], []ecs.ID{id[goldenRider](g)}, nil)
		g.world.Relations().Set(g.sparks[0], id[goldenRider](g), g.hero)
		get[goldenRider](g, g.sparks[0]).Seat = 2
	case 30:
		g.world.Resources().Remove(ecs.ResourceID[goldenWeather](g.world))
		*get[goldenHealth](g, g.rival) = goldenHealth{0, false}
	case 33:
		g.world.Relations().Set(g.sparks[0], id[goldenRider](g), g.rival)
		get[goldenTarget](g, g.hero).Of = g.tree
	case 36:
		g.world.RemoveEntity(g.tree)
	case goldenRest + 1:
		for i := range 30 {
			e := g.spawn(health)
			*get[goldenHealth](g, e) = goldenHealth{uint8(100 - i%3), true}
			g.crowd = append(g.crowd, e)
		}
	case goldenStir + 3:
		g.world.RemoveEntity(g.book)
	}
}

func (g *goldenGame) changeOdd(n int) {
	odd := get[goldenOdd](g, g.odd)
	odd.Look = [3]float32{float32(n%9) - 4, 3, 2 - float32(n%3)}
	odd.Far += float32(n * n)
	odd.Half = float32(n) / 4
	odd.Wide += 1 << 33
	odd.Turn = int16((n*25)%360 - 180)
	if n%3 == 0 {
		odd.Exact = float64(n) / 8
		odd.Steps += 7
		odd.Bag[n%2][n/2%2] = uint8(n % 10)
	}
	odd.Legs[0] = [4]float64{1, float64(n), 2, 3}
	if n%5 == 0 {
		odd.Legs[1] = [4]float64{0, 1, float64(n) - 20, 0}
		odd.Blob[n%8] = byte(n)
		odd.Blob[(n+3)%8] = 0
	}
}

func (g *goldenGame) changeProbe(n int) {
	m := get[goldenMeasures](g, g.probe)
	v := float64(n) / 4
	m.Third, m.Grid, m.Offset = float32(n%9)/8, v, v
	m.Near, m.Cold, m.Power = 2+float32(n*n), -2-v*v, 4-float32(n%20)/2
	m.Age += 3 * time.Second
	m.Money -= 1_000_000 * int64(n%2)
	switch n % 4 {
	case 0:
		m.Aim = float32(n * 77)
	case 1:
		m.Level++
		m.Pair[n/4%2].A = n%8 == 1
	case 2:
		m.Doors ^= 1
	case 3:
		m.Serial += 100
	}
}

// ---- the session

// A goldenSession plays the game and writes down what arrives.
type goldenSession struct {
	t      *testing.T
	out    strings.Builder
	game   *goldenGame
	schema *replication.Schema
	server *replication.Server
	peer   *replication.Peer
	mirror ecs.World
	client *replication.Client

	sequence uint32 // of the next state packet
	down, up []goldenPacket
	truth    map[string][]goldenLine // the states at the server, by NetID and tick
	ids      map[uint64]string       // how the entities that are there are named on the wire
	shown    map[uint32]string       // by slot
}

// A goldenPacket is on its way.
type goldenPacket struct {
	data           []byte
	tick, sequence uint32
	arrives        int
}

const (
	goldenNonce    = 2
	goldenWindow   = 32
	goldenTick     = 1<<32 - 20 // so that ticks go round
	goldenSequence = 1<<16 - 9
)

func playGolden(t *testing.T, coding replication.Coding) string {
	world := ecs.NewWorld()
	s := &goldenSession{
		t: t, schema: goldenSchema(), mirror: ecs.NewWorld(), game: &goldenGame{world: &world},
		truth: map[string][]goldenLine{}, ids: map[uint64]string{}, shown: map[uint32]string{},
	}
	s.server = replication.NewServer(&world, s.schema, replication.WithSeed(1), replication.WithMTU(200),
		replication.WithWindow(goldenWindow), replication.WithFirstTick(goldenTick), replication.WithFirstSequence(goldenSequence))
	s.peer = s.server.Connect(s.sendDown, replication.WithCoding(coding))
	s.client = replication.NewClient(&s.mirror, s.schema, s.sendUp, replication.WithNonce(goldenNonce))
	s.writeHead(strings.ToLower(coding.String()))
	for n := range goldenEnd {
		s.game.step(n)
		s.server.Replicate()
		s.record()
		s.arrive(n)
		require.NoError(t, s.client.Apply())
		s.answer(n)
	}
	require.True(t, s.client.Complete())
	require.Equal(t, coding, s.client.Coding())
	require.Len(t, s.shown, 39, "what is there in the end")
	return s.out.String()
}

func (s *goldenSession) writeHead(coding string) {
	fmt.Fprintf(&s.out, `# A session in the coding %s, as a client gets it. docs/decoder reads this file, and docs/decoder/README.md says how
# it is made up. Tests rewrite it; it is not meant to be edited.
coding %s
schema
`, coding, coding)
	for line := range strings.Lines(s.schema.Text()) {
		s.out.WriteString("  " + line)
	}
	fmt.Fprintf(&s.out, "fingerprint %#x\nnonce %d\n", s.schema.Fingerprint(), goldenNonce)
}

// writeWelcome writes the welcome, and what is in it.
func (s *goldenSession) writeWelcome(packet []byte) {
	at := packet[4:]
	u32, u64 := binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
	sealed := binary.LittleEndian.AppendUint64(nil, s.schema.Fingerprint())
	sealed = append(append(sealed, at[12:20]...), 0) // to the client
	fmt.Fprintf(&s.out, "welcome %x\n  window %d\n  session %#x\n  tick %d\n  sequence %d\n  origin %#x\n  seal %#x\n",
		packet, goldenWindow, u64(at[12:]), u32(at[20:]), u32(at[24:]), u64(at[28:]), crc32.Checksum(sealed, crc32.MakeTable(crc32.Castagnoli)))
	s.sequence = u32(at[24:])
}

// sendDown is the network to the client: from the fourth tick on it loses every sixth packet, delays some, and doubles some.
func (s *goldenSession) sendDown(packet []byte) error {
	packet = bytes.Clone(packet)
	switch kind := packet[4] & 7; kind {
	case 1:
		s.writeWelcome(packet)
		return s.client.Receive(packet)
	case 3:
	default:
		require.Failf(s.t, "unexpected", "packet of kind %d", kind)
	}
	n := int(s.server.Tick() - goldenTick)
	p := goldenPacket{packet, s.server.Tick(), s.sequence, n}
	s.sequence++
	if n > 3 {
		switch fate := s.game.next(12); {
		case fate < 2:
			s.writePacket(p, "lost")
			return nil
		case fate < 5:
			p.arrives += 1 + int(s.game.next(3))
		case fate == 5:
			s.down = append(s.down, p)
			p.arrives += 2
		}
	}
	s.down = append(s.down, p)
	return nil
}

// sendUp is the network to the server.
func (s *goldenSession) sendUp(packet []byte) error {
	n := int(s.server.Tick() - goldenTick)
	if n > 3 && s.game.next(5) == 0 {
		return nil
	}
	s.up = append(s.up, goldenPacket{data: bytes.Clone(packet), arrives: n + int(s.game.next(3))})
	return nil
}

// answer gives the server what arrives in tick n.
func (s *goldenSession) answer(n int) {
	var later []goldenPacket
	for _, p := range s.up {
		if p.arrives <= n || n <= 3 {
			_ = s.peer.Receive(p.data) // old acks are errors
		} else {
			later = append(later, p)
		}
	}
	s.up = later
}

// arrive gives the client what arrives in tick n, and writes down what it shows then.
func (s *goldenSession) arrive(n int) {
	var later []goldenPacket
	packets := s.down
	s.down = nil
	for _, p := range packets {
		if p.arrives > n {
			later = append(later, p)
			continue
		}
		if err := s.client.Receive(p.data); err != nil {
			s.writePacket(p, "refused") // it came before
			continue
		}
		require.NoError(s.t, s.client.Apply())
		s.writePacket(p, "taken")
		s.writeChanges()
	}
	s.down = append(later, s.down...)
}

func (s *goldenSession) writePacket(p goldenPacket, fate string) {
	fmt.Fprintf(&s.out, "packet sequence %d tick %d %s\n  %x\n", p.sequence, p.tick, fate, p.data)
}

// writeChanges writes the slots that are not as they were after the packet before.
func (s *goldenSession) writeChanges() {
	now := s.showing()
	for _, slot := range slices.Sorted(maps.Keys(now)) {
		if now[slot] != s.shown[slot] {
			s.out.WriteString(now[slot])
		}
	}
	for _, slot := range slices.Sorted(maps.Keys(s.shown)) {
		if now[slot] == "" {
			fmt.Fprintf(&s.out, "  slot %d empty\n", slot)
		}
	}
	s.shown = now
}

// showing returns what the client shows: by its world, and of references what the server had at that tick, as they
// need not name anybody who is here.
func (s *goldenSession) showing() map[uint32]string {
	now := map[uint32]string{}
	if text := s.resources(&s.mirror); text != "" {
		now[0] = "  slot 0\n" + text
	}
	s.client.Each(func(id replication.NetID, e ecs.Entity, tick uint32) {
		head := fmt.Sprintf("  slot %d generation %d tick %d\n", id.Slot, id.Generation, tick)
		truth, ok := s.truth[head]
		require.True(s.t, ok, "the server never had %s", head)
		lines := s.components(&s.mirror, e)
		require.Len(s.t, lines, len(truth), head)
		var text strings.Builder
		for i, line := range lines {
			require.Equal(s.t, goldenReference.ReplaceAllString(truth[i].codes, "@"), goldenReference.ReplaceAllString(line.codes, "@"), head)
			fmt.Fprintf(&text, "    %s = %s\n", strings.ReplaceAll(truth[i].codes, "@", ""), line.values)
		}
		now[id.Slot] = head + text.String()
	})
	return now
}

var goldenReference = regexp.MustCompile(`@\S+`)

// record notes the states of all entities at the server.
func (s *goldenSession) record() {
	filter := ecs.All(replication.ReplicatedID(s.game.world))
	var all []ecs.Entity
	for q := s.game.world.Query(&filter); q.Next(); {
		all = append(all, q.Entity())
	}
	for _, e := range all {
		id, ok := s.server.NetID(e)
		require.True(s.t, ok)
		s.ids[s.reference(e)] = fmt.Sprintf("@%d/%d", id.Slot, id.Generation)
	}
	for _, e := range all {
		id, _ := s.server.NetID(e)
		head := fmt.Sprintf("  slot %d generation %d tick %d\n", id.Slot, id.Generation, s.server.Tick())
		s.truth[head] = s.components(s.game.world, e)
	}
	clear(s.ids) // they may not live on
}

// reference returns how Schema.Codes names an entity.
func (s *goldenSession) reference(e ecs.Entity) uint64 {
	return s.schema.Codes(goldenTarget{Of: e}, nil)[0]
}

// A goldenLine has the codes of a component, with a "@" before each reference, and its values.
type goldenLine struct{ codes, values string }

// components returns the components of an entity of either world, in the order of their names.
func (s *goldenSession) components(w *ecs.World, e ecs.Entity) []goldenLine {
	var lines []goldenLine
	for _, id := range w.Ids(e) {
		info, _ := ecs.ComponentInfo(w, id)
		if _, ok := goldenTypes[info.Type]; ok {
			v := reflect.NewAt(info.Type, w.Get(e, id)).Elem()
			target := ecs.Entity{}
			if info.IsRelation {
				target = w.Relations().Get(e, id)
			}
			lines = append(lines, s.component(v, target))
		}
	}
	slices.SortFunc(lines, func(a, b goldenLine) int { return strings.Compare(a.codes, b.codes) })
	return lines
}

// resources returns the lines of the resources of a world.
func (s *goldenSession) resources(w *ecs.World) string {
	var text strings.Builder
	for _, id := range []ecs.ResID{ecs.ResourceID[goldenMatch](w), ecs.ResourceID[goldenWeather](w)} {
		if v := reflect.ValueOf(w.Resources().Get(id)); v.IsValid() {
			line := s.component(v.Elem(), ecs.Entity{})
			fmt.Fprintf(&text, "    %s = %s\n", line.codes, line.values)
		}
	}
	return text.String()
}

func (s *goldenSession) component(v reflect.Value, target ecs.Entity) goldenLine {
	kind := goldenTypes[v.Type()]
	words := []string{kind.name}
	codes := s.schema.Codes(v.Interface(), nil)
	for i, k := range kind.codes {
		switch k {
		case 'n':
			words = append(words, strconv.FormatUint(codes[0], 10))
			codes = codes[1:]
		case 'q':
			words = append(words, fmt.Sprintf("%d:%d:%d:%d", codes[0], codes[1], codes[2], codes[3]))
			codes = codes[4:]
		case 'r':
			key := codes[0]
			if i == 0 && !target.IsZero() {
				key = s.reference(target)
			}
			word := s.ids[key]
			if word == "" {
				word = "@-"
			}
			words = append(words, word)
			codes = codes[1:]
		default:
			n, most := codes[0], k.(int)
			var text []byte
			for _, c := range codes[1 : 1+(most+3)/4] {
				text = binary.LittleEndian.AppendUint32(text, uint32(c))
			}
			words = append(words, fmt.Sprintf(`"%x"`, text[:n]))
			codes = codes[1+(most+3)/4:]
		}
	}
	require.Empty(s.t, codes, kind.name)
	return goldenLine{strings.Join(words, " "), strings.Join(goldenValues(nil, v), " ")}
}

// goldenValues appends the numbers that a value is made of, texts in hex, and "*" for references.
func goldenValues(words []string, v reflect.Value) []string {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[ecs.Entity]() || v.Type() == reflect.TypeFor[ecs.Relation]() {
			return append(words, "*")
		}
		for i := range v.NumField() {
			words = goldenValues(words, v.Field(i))
		}
	case reflect.Array:
		if text, ok := v.Interface().([8]byte); ok {
			return append(words, fmt.Sprintf(`"%x"`, bytes.TrimRight(text[:], "\x00")))
		}
		for i := range v.Len() {
			words = goldenValues(words, v.Index(i))
		}
	case reflect.String:
		return append(words, fmt.Sprintf(`"%x"`, v.String()))
	case reflect.Float32, reflect.Float64:
		return append(words, strconv.FormatFloat(v.Float(), 'g', -1, 64))
	case reflect.Int64:
		return append(words, strconv.FormatInt(v.Int(), 10)) // of durations the nanoseconds
	default:
		return append(words, fmt.Sprint(v.Interface()))
	}
	return words
}
