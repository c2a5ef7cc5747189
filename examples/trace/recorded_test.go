package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
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

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/predict"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

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
