package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/examples/arena/game"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/predict"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// state is the codes of entities by number and component.
type state map[uint64]map[string][]uint64

// observer returns the codes of a server's world, as it records them.
type observer struct {
	world     *ecs.World
	server    *replication.Server
	schema    *replication.Schema
	types     map[string]reflect.Type
	resources map[string]reflect.Type
	targets   map[string][]int // which codes refer to entities
	last      state
}

func (o *observer) codes(name string, value any, number uint64) []uint64 {
	if last, ok := o.last[number][name]; ok {
		return o.schema.CodesAfter(value, last, []uint64{})
	}
	return o.schema.Codes(value, []uint64{})
}

func (o *observer) observe() state {
	now := state{}
	filter := ecs.All(ecs.ComponentID[replication.Replicated](o.world))
	query := o.world.Query(&filter)
	for query.Next() {
		id, ok := o.server.NetID(query.Entity())
		if !ok {
			continue
		}
		number, has := uint64(id.Slot)<<16|uint64(id.Generation), map[string][]uint64{}
		for name, typ := range o.types {
			if at := ecs.TypeID(o.world, typ); o.world.Has(query.Entity(), at) {
				has[name] = o.codes(name, reflect.NewAt(typ, o.world.Get(query.Entity(), at)).Interface(), number)
			}
		}
		if len(has) > 0 {
			now[number] = has
		}
	}
	for name, typ := range o.resources {
		if at := ecs.ResourceTypeID(o.world, typ); o.world.Resources().Has(at) {
			if now[resourceEntity] == nil {
				now[resourceEntity] = map[string][]uint64{}
			}
			now[resourceEntity][name] = o.codes(name, o.world.Resources().Get(at), resourceEntity)
		}
	}
	o.last = now
	return o.translated(now)
}

// translated returns a state with numbers in place of references.
func (o *observer) translated(s state) state {
	numbers := map[uint64]uint64{}
	filter := ecs.All(ecs.ComponentID[replication.Replicated](o.world))
	query := o.world.Query(&filter)
	for query.Next() {
		if id, ok := o.server.NetID(query.Entity()); ok {
			numbers[uint64(query.Entity().ID())|uint64(query.Entity().Generation())<<32] = numberOf(id)
		}
	}
	all := state{}
	for number, has := range s {
		all[number] = maps.Clone(has)
		for name, codes := range has {
			codes = slices.Clone(codes)
			for _, i := range o.targets[name] {
				codes[i] = numbers[codes[i]]
			}
			all[number][name] = codes
		}
	}
	return all
}

// requireCodes requires that -codes prints the truth of every tick, of those components that it knows, and each row only
// if it differs from the one before.
func requireCodes(t *testing.T, path string, truth []state) {
	t.Helper()
	code, stdout, stderr := invoke(t, "", "-codes", path)
	require.Equal(t, exitOK, code, stderr)
	rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
	require.NoError(t, err)
	known := map[string]bool{}
	for _, s := range truth {
		for _, has := range s {
			for name := range has {
				known[name] = true
			}
		}
	}
	require.Greater(t, len(known), 7)
	head, rows := rows[0], rows[1:]
	last, now := map[string]string{}, state{}
	for tick, want := range truth {
		for ; len(rows) > 0 && rows[0][0] == strconv.Itoa(tick); rows = rows[1:] {
			row := strings.Join(rows[0][headColumns:], ",")
			if tags := strings.Trim(row, ",") == ""; !tags {
				require.NotEqual(t, last[rows[0][1]], row, "tick %d: a row without a change", tick)
			}
			last[rows[0][1]] = row
			number, err := strconv.ParseUint(rows[0][1], 10, 64)
			require.NoError(t, err)
			delete(now, number)
			for i, cell := range rows[0] {
				dot := strings.LastIndex(head[i], ".")
				if i < headColumns || cell == "" || !known[head[i][:dot]] {
					continue
				}
				if now[number] == nil {
					now[number] = map[string][]uint64{}
				}
				code, err := strconv.ParseUint(cell, 10, 64)
				require.NoError(t, err)
				now[number][head[i][:dot]] = append(now[number][head[i][:dot]], code)
			}
		}
		for number := range want {
			if !reflect.DeepEqual(want[number], now[number]) { // complete worlds are too much to print
				require.Equal(t, want[number], now[number], "tick %d, entity %d", tick, number)
			}
		}
		require.Len(t, now, len(want), "tick %d", tick)
	}
	require.Empty(t, rows)
}

// arenaRecording records bots that fight. live is how many bytes a tick the entities took for a live client, 6 ticks
// away.
func arenaRecording(t *testing.T, ticks, bots int) (path string, truth []state, live float64) {
	g := game.New(1, bots, 60)
	schema, model := game.NewSchema()
	server := replication.NewServer(&g.World, schema, replication.WithSeed(1), replication.WithTickRate(60))
	host := game.NewHost(g, server, model, 60)
	o := &observer{world: &g.World, server: server, schema: schema, types: map[string]reflect.Type{}}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[game.Position](), reflect.TypeFor[game.Heading](), reflect.TypeFor[game.Ship](),
		reflect.TypeFor[game.Hull](), reflect.TypeFor[game.Ammo](), reflect.TypeFor[game.Score](),
		reflect.TypeFor[game.Shield](), reflect.TypeFor[game.Protection](), reflect.TypeFor[game.Bullet](),
		reflect.TypeFor[game.PowerUp](), reflect.TypeFor[game.Match](), reflect.TypeFor[game.Callsign](),
	} {
		o.types[typ.Name()] = typ
	}
	o.types["predict.Born"] = reflect.TypeFor[predict.Born]()
	o.targets = map[string][]int{"predict.Born": {0}}
	var file bytes.Buffer
	recorder := recording.NewRecorder(server, &file)
	link, w := netsim.NewLink(1, netsim.Config{Latency: 3}), ecs.NewWorld()
	peer := server.Connect(link.Down.Send)
	client := replication.NewClient(&w, schema, replication.WithSeed(1))
	client.SetSend(link.Up.Send)
	const settled = 8 // as the replay measures
	before := uint64(0)
	for n := range ticks {
		if n == settled {
			before = peer.Stats().EntityBits
		}
		host.Step()
		link.Up.Receive(func(packet []byte) { _ = peer.Receive(packet) })
		server.Replicate()
		link.Down.Receive(func(packet []byte) { _ = client.Receive(packet) })
		require.NoError(t, client.Frame(time.Second/60))
		link.Step()
		truth = append(truth, o.observe())
	}
	require.NoError(t, recorder.Close())
	live = float64(peer.Stats().EntityBits-before) / 8 / float64(ticks-settled)
	return writeRecording(t, file.Bytes()), truth, live
}

func writeRecording(t *testing.T, data []byte) (path string) {
	path = filepath.Join(t.TempDir(), "match.rec")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// TestARecordingOfTheArena: each tick's rows are the truth, code for code; and the replay ends with equal worlds.
func TestARecordingOfTheArena(t *testing.T) {
	path, truth, live := arenaRecording(t, 600, 40)
	requireCodes(t, path, truth)
	_, stdout, _ := invoke(t, "", "-json", "-rtt", "6", path)
	var r report
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	t.Logf("entities took %.1f bytes a tick for a live client, and take %.1f", live, r.EntityBytesPerTick)
	require.InEpsilon(t, live, r.EntityBytesPerTick, 0.05)
	for _, args := range [][]string{{}, {"-coding", "compact"}, {"-peers", "3"}} {
		code, stdout, stderr := invoke(t, "", append(args, "-loss", "0.05", "-rtt", "6", "-in", path)...)
		require.Equal(t, exitOK, code, stdout+stderr)
		require.Contains(t, stdout, "worlds equal in the end: yes; mismatches: 0; values clamped: 0;")
		require.Contains(t, stdout, "Position.X")
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		require.Contains(t, stderr, "left out: messages and inputs (Join, Leave, ")
		require.Contains(t, stderr, "; conditions such as OwnerOnly (")
	}
}

// The types of a game that has every kind of field.
type (
	recVec struct{ X, Y, Z float32 }
	recGun struct {
		Heat  uint8 `repl:"range=0:100,step=5"`
		Ammo  int16
		Since time.Duration `repl:"range=0s:1h,step=1ms,counter"`
	}
	recTank struct {
		Where   recVec
		Heading float32 `repl:"angle,bits=10,cut"`
		Guns    [2]recGun
		Main    recGun
		Turret  struct{ Aim [3]float32 } `repl:""`
		Look    recLook                  `repl:"unit,bits=8"`
		Turn    [4]float64               `repl:"quat,bits=9"`
		Cells   [2][3]uint8              `repl:"range=0:7"`
		Mode    int8                     `repl:"enum=5"`
		Lamps   uint16                   `repl:"flags=9"`
		Name    string                   `repl:"max=12"`
		Tag     [9]byte                  `repl:"max=6"`
		Texts   [2]string                `repl:"max=3"`
		Fuel    float64                  `repl:"range=-10:10,precision=0.01"`
		Half    float32                  `repl:"half,hold"`
		Phase   uint16                   `repl:"range=0:99,wrap"`
		Lap     int32                    `repl:"linear"`
		Target  ecs.Entity
		Crew    [2]ecs.Entity
		Mass    recMass
		Hidden  int `repl:"-"`
		On      bool
		Big     uint64
	}
	recLook   struct{ X, Y, Z float32 }
	recMass   struct{ Kilos, Grams int }
	recSpeed  struct{ V recVec }
	recPlace  struct{ At recVec }
	recFrozen struct{}
	recLevel  uint8
	recTeam   uint8
	recGrid   [3]int16
	recSquad  [2]struct{ HP uint8 }
	recTurn   [4]float32
	recOrders struct {
		ecs.Relation
		Rank uint8
	}
	recBound struct{ ecs.Relation }
	recScore struct{ Blue, Red uint16 }
	recChat  struct {
		Text string `repl:"max=100"`
	}
	recSparks struct{ N uint8 }
	recMove   struct {
		X int8 `repl:"range=-1:1"`
	}
)

// recEmbedding can't be made by package reflect.
type recEmbedding struct{ recMove }

// massCodec replicates masses as two codes.
type massCodec struct{}

func (massCodec) Fields() []replication.CodecField {
	return []replication.CodecField{{Name: "kg", Bits: 12, Max: 999, Kind: delta.Linear}, {Name: "g", Bits: 10}}
}

func (massCodec) Encode(v *recMass, codes []uint64) {
	codes[0], codes[1] = uint64(v.Kilos), uint64(v.Grams)
}

func (massCodec) Decode(codes []uint64, v *recMass) { v.Kilos, v.Grams = int(codes[0]), int(codes[1]) }

// allKinds is a schema with every kind of type, field and option.
func allKinds(conditions bool) *replication.Schema {
	s := replication.NewSchema()
	grid := "range=-100:100,step=0.01"
	replication.Register[recSpeed](s, replication.Field("V.X", grid), replication.Field("V.Y", grid), replication.Field("V.Z", grid))
	replication.Register[recPlace](s, replication.Field("At.X", grid+",place"), replication.Field("At.Y", grid+",place"),
		replication.Field("At.Z", grid+",place"), replication.Snap(5), replication.Hermite[recSpeed](1./60))
	replication.Register[recTank](s, replication.Field("Turret.Aim", "range=-1:1,step=0.001,jump"),
		replication.With[recMass](massCodec{}), replication.Newest(), replication.Priority(2))
	replication.Register[recFrozen](s)
	replication.Register[recLevel](s, replication.Field("", "range=0:50,counter"))
	replication.Register[recTeam](s, replication.Once())
	replication.Register[recGrid](s, replication.Name("game.Grid"))
	replication.Register[recSquad](s)
	replication.Register[recTurn](s, replication.Field("", "quat,bits=8,cut"))
	replication.Register[recMass](s, replication.With[recMass](massCodec{}))
	replication.Register[recOrders](s)
	replication.Register[recBound](s)
	if conditions {
		replication.Register[recLook](s, replication.OwnerOnly())
	}
	replication.RegisterResource[recScore](s)
	replication.RegisterMessage[recChat](s, replication.Immediate())
	replication.RegisterMessage[recSparks](s, replication.Unreliable())
	replication.RegisterInput[recMove](s)
	s.Tune("recSpeed.V.X=0012 recSpeed.V.Y=10 recTank.Turn=021")
	return s
}

// TestASchemaIsMadeFromItsText, whatever is in it.
func TestASchemaIsMadeFromItsText(t *testing.T) {
	arena, _ := game.NewSchema()
	for _, s := range []*replication.Schema{allKinds(false), allKinds(true), arena, replication.NewSchema()} {
		made, err := schemaOf(s.Text())
		require.NoError(t, err)
		require.Equal(t, s.Text(), made.schema.Text())
		require.Equal(t, s.Fingerprint(), made.schema.Fingerprint())
	}
}

// allKindsRecording records a game with every kind of type and field, in which everything changes.
func allKindsRecording(t *testing.T, ticks int, conditions bool) (file []byte, truth []state) {
	w, schema := ecs.NewWorld(), allKinds(conditions)
	server := replication.NewServer(&w, schema, replication.WithSeed(1), replication.WithTickRate(30))
	o := &observer{world: &w, server: server, schema: schema}
	o.resources = map[string]reflect.Type{"recScore": reflect.TypeFor[recScore]()}
	o.types = map[string]reflect.Type{"game.Grid": reflect.TypeFor[recGrid]()}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[recTank](), reflect.TypeFor[recSpeed](), reflect.TypeFor[recPlace](), reflect.TypeFor[recLevel](),
		reflect.TypeFor[recTeam](), reflect.TypeFor[recSquad](), reflect.TypeFor[recTurn](), reflect.TypeFor[recMass](),
	} {
		o.types[typ.Name()] = typ
	}
	o.targets = map[string][]int{"recTank": {45, 46, 47}}
	var b bytes.Buffer
	recorder := recording.NewRecorder(server, &b)
	marker, tank := ecs.ComponentID[replication.Replicated](&w), ecs.ComponentID[recTank](&w)
	place, speed := ecs.ComponentID[recPlace](&w), ecs.ComponentID[recSpeed](&w)
	frozen, level, team := ecs.ComponentID[recFrozen](&w), ecs.ComponentID[recLevel](&w), ecs.ComponentID[recTeam](&w)
	rest := []ecs.ID{ecs.ComponentID[recGrid](&w), ecs.ComponentID[recSquad](&w), ecs.ComponentID[recTurn](&w), ecs.ComponentID[recMass](&w)}
	var all []ecs.Entity
	ecs.AddResource(&w, &recScore{})
	for n := range ticks {
		if n%6 == 0 && len(all) < 12 {
			all = append(all, w.NewEntity(append(rest, marker, tank, place, speed)...))
		}
		if n%25 == 24 {
			w.RemoveEntity(all[0])
			all = all[1:]
		}
		for i, e := range all {
			if (n+i)%40 == 0 && !w.Has(e, frozen) {
				w.Add(e, frozen, team)
				*(*recTeam)(w.Get(e, team)) = recTeam(i)
			} else if (n+i)%40 == 20 && w.Has(e, frozen) {
				w.Remove(e, frozen, team)
			}
			if (n+i)%15 == 0 && !w.Has(e, level) {
				w.Add(e, level)
			}
			k := float32(n + 3*i)
			sin, cos := float32(math.Sin(float64(k)/10)), float32(math.Cos(float64(k)/10))
			*(*recPlace)(w.Get(e, place)) = recPlace{recVec{10 * sin, 10 * cos, k / 50}}
			*(*recSpeed)(w.Get(e, speed)) = recSpeed{recVec{cos, -sin, 0.02}}
			if (n+i)%3 == 0 {
				continue
			}
			v := (*recTank)(w.Get(e, tank))
			v.Where, v.Heading = recVec{sin, cos, k}, k/9
			v.Guns[i%2].Heat, v.Guns[(i+1)%2].Ammo, v.Main.Since = uint8(n%100), int16(-n), time.Duration(n)*time.Second
			v.Turret.Aim, v.Look, v.Turn = [3]float32{sin, 0, 1}, recLook{sin, cos, 0}, [4]float64{0, 0, float64(sin), float64(cos)}
			v.Cells[1][i%3], v.Mode, v.Lamps = uint8(n%8), int8(n%5), uint16(n)
			v.Name, v.Texts[i%2] = strings.Repeat("é", n%7), strconv.Itoa(n%1000)
			copy(v.Tag[:], strconv.Itoa(n))
			v.Fuel, v.Half, v.Phase, v.Lap, v.On, v.Big = float64(sin), cos, uint16(n), int32(n*i), n%2 == 0, math.MaxUint64-uint64(n)
			v.Target, v.Crew[0], v.Mass = all[(i+1)%len(all)], all[0], recMass{n, i}
			if w.Has(e, level) {
				*(*recLevel)(w.Get(e, level)) = recLevel(n % 50)
			}
			(*(*recGrid)(w.Get(e, rest[0])))[i%3]++
			(*(*recSquad)(w.Get(e, rest[1])))[i%2].HP++
			*(*recTurn)(w.Get(e, rest[2])) = recTurn{0, 0, sin, cos}
			(*recMass)(w.Get(e, rest[3])).Grams = n
		}
		ecs.GetResource[recScore](&w).Blue = uint16(n / 4)
		if n%5 == 0 {
			require.NoError(t, replication.SendToAll(server, recSparks{1}))
		}
		server.Replicate()
		truth = append(truth, o.observe())
	}
	require.NoError(t, recorder.Close())
	return b.Bytes(), truth
}

// TestARecordingOfEveryKind: components that hold no references are the truth in every tick, code for code; all of the
// trace replays, in every mode.
func TestARecordingOfEveryKind(t *testing.T) {
	for _, conditions := range []bool{false, true} {
		file, truth := allKindsRecording(t, 200, conditions)
		path := writeRecording(t, file)
		_, stdout, _ := invoke(t, "", "-codes", path)
		hidden := 0
		for _, name := range strings.Split(strings.SplitN(stdout, "\n", 2)[0], ",") {
			if strings.HasPrefix(name, "recTank.") {
				hidden++
			}
		}
		require.Equal(t, 3+1+2*3+3+3+2+4+6+1+1+(1+3)+(1+2)+2*(1+1)+1+1+1+1+1+2+2+1+1, hidden, "codes of a tank")
		requireCodes(t, path, truth)

		code, stdout, stderr := invoke(t, "", "-loss", "0.05", "-rtt", "6", path)
		require.Equal(t, exitOK, code, stdout+stderr)
		require.Contains(t, stderr, "left out: targets of relations (recOrders, recBound); "+
			"messages and inputs (recChat, recSparks, recMove)")
		require.Equal(t, conditions, strings.Contains(stderr, "; conditions such as OwnerOnly"))
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	}
}

// TestARecordingFromAnywhere: a pipe and a compressed file have the same replay.
func TestARecordingFromAnywhere(t *testing.T) {
	file, _ := allKindsRecording(t, 100, false)
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed)
	require.NoError(t, err)
	_, err = z.Write(file)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	_, want, _ := invoke(t, "", "-codes", "-in", writeRecording(t, file))
	require.Greater(t, len(want), 10000)
	for _, data := range []string{string(file), packed.String()} {
		code, stdout, stderr := invoke(t, data, "-codes", "-in", "-")
		require.Equal(t, exitOK, code, stderr)
		require.Equal(t, want, stdout)
	}
	_, stdout, _ := invoke(t, "", "-codes", writeRecording(t, packed.Bytes()))
	require.Equal(t, want, stdout)
}

// TestARecordingOfAClient: it has the server's ticks, and ends with what the client showed. The client has met two
// servers.
func TestARecordingOfAClient(t *testing.T) {
	schema, w := allKinds(false), ecs.NewWorld()
	client := replication.NewClient(&w, schema, replication.WithSeed(1))
	var b bytes.Buffer
	recorder := recording.NewClientRecorder(client, &b)
	ticks := 0
	for seed := range uint64(2) {
		world := ecs.NewWorld()
		server := replication.NewServer(&world, schema, replication.WithSeed(seed), replication.WithTickRate(20))
		link := netsim.NewLink(seed, netsim.Config{Latency: 2, Jitter: 2, Loss: 0.1})
		peer := server.Connect(link.Down.Send)
		client.SetSend(link.Up.Send)
		if seed > 0 {
			client.Reconnect()
		}
		place, team := ecs.ComponentID[recPlace](&world), ecs.ComponentID[recTeam](&world)
		var all []ecs.Entity
		for range 5 + seed {
			all = append(all, world.NewEntity(place, team, ecs.ComponentID[replication.Replicated](&world)))
		}
		for n := range 200 {
			if n == 100 {
				world.RemoveEntity(all[0])
				all = all[1:]
			}
			for i, e := range all {
				if n < 150 {
					(*recPlace)(world.Get(e, place)).At = recVec{float32(n+i) / 10, float32(i), 0}
				}
			}
			link.Up.Receive(func(packet []byte) { _ = peer.Receive(packet) })
			server.Replicate()
			link.Down.Receive(func(packet []byte) { _ = client.Receive(packet) })
			require.NoError(t, client.Frame(time.Second/40))
			require.NoError(t, client.Frame(time.Second/40))
			link.Step()
			ticks++
		}
	}
	require.NoError(t, recorder.Close())
	want := map[string]string{}
	for id, e := range client.Entities() {
		codes := fmt.Sprint(schema.Codes((*recPlace)(w.Get(e, ecs.ComponentID[recPlace](&w))), nil))
		want[fmt.Sprint(numberOf(id))] = strings.ReplaceAll(strings.Trim(codes, "[]"), " ", ",")
	}
	require.Len(t, want, 5)

	path := writeRecording(t, b.Bytes())
	code, stdout, stderr := invoke(t, "", "-codes", path)
	require.Equal(t, exitOK, code, stderr)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	head := strings.Split(lines[0], ",")
	first := slices.Index(head, "recPlace.0")
	got, last := map[string]string{}, 0
	for _, line := range lines[1:] {
		cells := strings.Split(line, ",")
		tick, err := strconv.Atoi(cells[0])
		require.NoError(t, err)
		require.GreaterOrEqual(t, tick, last)
		last = tick
		if got[cells[1]] = strings.Join(cells[first:first+3], ","); got[cells[1]] == ",," {
			delete(got, cells[1])
		}
	}
	require.Equal(t, want, got)
	require.InDelta(t, ticks, last, 70, "nothing changes in the last 50")

	code, stdout, stderr = invoke(t, "", "-json", "-loss", "0.05", path)
	require.Equal(t, exitOK, code, stdout+stderr)
	var r report
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	require.InEpsilon(t, 20*r.BytesPerTick*8/1000, r.KbitPerSecond, 1e-6, "the server's rate")
	require.Contains(t, stderr, "a client recorded it: ")
}

// TestEveryModeTakesARecording.
func TestEveryModeTakesARecording(t *testing.T) {
	file, _ := allKindsRecording(t, 90, false)
	path := writeRecording(t, file)
	code, stdout, stderr := invoke(t, "", "-advice", "-ticks", "60", path)
	require.Equal(t, exitOK, code, stdout+stderr)
	for _, name := range []string{"recTank.Guns.Heat", "recTank.Main.Heat", "recTank.Turn", "recPlace.At.X", "recLevel", "recTank.Mass"} {
		require.Regexp(t, "(?m)^"+name+" ", stdout)
	}
	require.Equal(t, 1, strings.Count(stderr, "\n"), "noted once: "+stderr)

	code, stdout, stderr = invoke(t, "", "-tune", "-ticks", "60", path)
	require.Equal(t, exitOK, code, stdout+stderr)
	require.Contains(t, stdout, "tables")
	require.Contains(t, stderr, "its own tables are not used")

	svg := filepath.Join(t.TempDir(), "path.svg")
	code, stdout, stderr = invoke(t, "", "-render", svg, "-span", "1s", path)
	require.Equal(t, exitOK, code, stdout+stderr)
	require.FileExists(t, svg)
}

// TestRecordingsThatCannotBeReplayed are refused in a sentence.
func TestRecordingsThatCannotBeReplayed(t *testing.T) {
	file, _ := allKindsRecording(t, 30, false)
	other := bytes.Clone(file)
	other[8]++ // the version
	empty := func() []byte {
		w := ecs.NewWorld()
		var b bytes.Buffer
		server := replication.NewServer(&w, allKinds(false))
		r := recording.NewRecorder(server, &b)
		for range 3 {
			server.Replicate()
		}
		require.NoError(t, r.Close())
		return b.Bytes()
	}()
	client := func() []byte {
		w := ecs.NewWorld()
		var b bytes.Buffer
		require.NoError(t, recording.NewClientRecorder(replication.NewClient(&w, allKinds(false)), &b).Close())
		return b.Bytes()
	}()
	embedded := func() []byte {
		w, schema := ecs.NewWorld(), replication.NewSchema()
		replication.Register[recEmbedding](schema)
		var b bytes.Buffer
		require.NoError(t, recording.NewRecorder(replication.NewServer(&w, schema), &b).Close())
		return b.Bytes()
	}()
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"embeds what is unexported", embedded, `types can't be made from the schema's text: line 3, "recEmbedding.recMove.X int8 range=-1:1": "recMove" is no exported name`},
		{"another version", other, "the file's format is version 2, and this release reads version 1"},
		{"cut", file[:100], "the file's header can't be read: the file is cut off in the middle of a record"},
		{"nothing", []byte("ARCHEREC"), "nothing was recorded"},
		{"no entity", empty, "no entity was recorded"},
		{"of a client that was never accepted", client, "no entity was recorded"},
		{"no recording", []byte("ARCHERY,entity"), "line 1: column 1 must be named tick"},
	} {
		path := writeRecording(t, c.data)
		for _, mode := range []string{"-json", "-codes", "-advice", "-tune", "-render=" + filepath.Join(t.TempDir(), "x.svg")} {
			code, stdout, stderr := invoke(t, "", mode, path)
			require.Equal(t, exitUsage, code, c.name)
			require.Contains(t, stderr, "trace: "+path+": ")
			require.Contains(t, stderr, c.want, c.name)
			require.NotContains(t, stderr, "recording: ")
			if mode != "-codes" { // which has printed the head
				require.Empty(t, stdout)
			}
		}
	}
}

// TestADamagedRecordingIsReplayedUpToTheDamage.
func TestADamagedRecordingIsReplayedUpToTheDamage(t *testing.T) {
	file, truth := allKindsRecording(t, 200, false)
	_, complete, _ := invoke(t, "", "-codes", writeRecording(t, file))
	path := writeRecording(t, file[:len(file)*2/3])
	code, stdout, stderr := invoke(t, "", "-codes", path)
	require.Equal(t, exitOK, code, stderr)
	require.True(t, strings.HasPrefix(complete, stdout))
	require.Greater(t, len(stdout), len(complete)/2)
	require.Contains(t, stderr, "trace: "+path+": the file can be played up to ")

	code, stdout, stderr = invoke(t, "", path)
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stderr, "the file can be played up to ")
	middle := bytes.Clone(file)
	middle[len(middle)/2] ^= 1
	code, _, stderr = invoke(t, "", writeRecording(t, middle))
	require.Equal(t, exitOK, code, stderr)
	require.Regexp(t, `trace: .*: what is from \S+ to \S+ is missing: `, stderr)

	require.NotContains(t, stdout, fmt.Sprintf(": %d ticks", len(truth)))
}

// TestHostileSchemaTexts are refused, and nothing panics.
func TestHostileSchemaTexts(t *testing.T) {
	text := allKinds(true).Text()
	for _, s := range []string{
		"", "x", "arche-replicate schema 1\nA.X uint8\n", "arche-replicate schema 1\ncomponent A\nA.X [1000000000]uint8\n",
		"arche-replicate schema 1\ncomponent A\nA.X[4095][4095].Y uint8\n", "arche-replicate schema 1\ncomponent A\nA.X[0 uint8\n",
		"arche-replicate schema 1\ncomponent A\nA.X[-1].Y uint8\n", "arche-replicate schema 1\ncomponent A\nA.x.Y uint8\n",
		"arche-replicate schema 1\ncomponent A\nA.X what\n", "arche-replicate schema 1\ncomponent A hermite=1,B\nA.X float32\n",
		"arche-replicate schema 1\ncomponent A\nA.X uint8\nA.X.Y uint8\n", "arche-replicate schema 1\ncomponent A\nA code bits=3\n",
		"arche-replicate schema 1\ncomponent A\nA.X.Y uint8\nA.X uint8\n", "arche-replicate schema 1\ncomponent A\nA.X[1].Y uint8\nA.X.Y uint8\n",
		"arche-replicate schema 1\ncomponent A\nA.X bytes max=99999999\n", strings.Repeat("\n", maxSchemaText+1),
	} {
		_, err := schemaOf(s)
		require.Error(t, err, s)
	}
	for i := range text {
		for _, c := range []byte("[.0 \nAa") {
			changed := []byte(text)
			changed[i] = c
			if s, err := schemaOf(string(changed)); err == nil {
				require.Equal(t, string(changed), s.schema.Text())
			}
		}
	}
}
