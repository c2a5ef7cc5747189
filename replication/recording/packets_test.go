package recording_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// A reading is what the packets of a recording were explained as.
type reading struct {
	t        *testing.T
	world    *ecs.World
	schema   *replication.Schema
	client   *replication.Client
	kinds    map[string]int                 // packets by kind, and parts by "kind what"
	newest   map[int]replication.Tick       // of the states of this session, by slot
	latest   map[int][]recording.PacketPart // fields of the newest state, by slot
	compared int
}

// readAll plays a recording tick by tick. The bits of the parts of each packet are those of the packet, and the fields of
// an entity are those in the world.
func readAll(t *testing.T, file []byte, schema *replication.Schema) *reading {
	w := ecs.NewWorld()
	player, err := recording.NewPlayer(&w, schema, bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	r := &reading{t: t, world: &w, schema: schema, client: player.Client(), kinds: map[string]int{}}
	player.OnPacket(r.take)
	for !player.Ended() {
		r.latest = map[int][]recording.PacketPart{}
		require.NoError(t, player.Step())
		for _, fields := range r.latest {
			for i := range fields {
				r.compare(&fields[i])
			}
		}
	}
	t.Log(r.compared, r.kinds)
	require.Zero(t, r.kinds["state rows"], "the bits of all fields are known")
	require.Zero(t, r.kinds["unknown"])
	return r
}

func (r *reading) take(p *recording.Packet) {
	sum := 0.
	r.kinds[p.Kind]++
	if p.Err != nil {
		r.kinds[p.Kind+" refused"]++
	}
	if p.Kind == "welcome" {
		r.newest = map[int]replication.Tick{}
	}
	slot := -1 // of the entry that is newer than what is known
	for _, part := range p.Parts {
		r.kinds[p.Kind+" "+part.What]++
		if part.What != "end" {
			require.GreaterOrEqual(r.t, part.Bits, 0., "%+v", part)
		}
		if !p.Compact {
			require.Equal(r.t, math.Trunc(part.Bits), part.Bits, "%+v", part)
		}
		sum += part.Bits
		switch {
		case p.Err != nil || p.Kind != "state":
		case part.What == "field" && part.Slot == slot:
			r.latest[slot] = append(r.latest[slot], part)
		case part.What == "field" || part.What == "mask":
		default:
			slot = -1
			if before, ok := r.newest[part.Slot]; part.Slot >= 0 && !(ok && part.Tick.Before(before)) {
				slot, r.newest[part.Slot] = part.Slot, part.Tick
				delete(r.latest, slot)
			}
		}
	}
	require.InDelta(r.t, float64(8*p.Bytes), sum, 1e-6, "%+v", p)
}

// compare compares a field of a state with the world.
func (r *reading) compare(part *recording.PacketPart) {
	e, ok := r.client.Entity(part.Entity)
	if !ok || r.client.Verify() != nil {
		return
	}
	if tick, _ := r.client.StateTick(e); tick != part.Tick {
		return // the world shows another state of it
	}
	for _, id := range r.world.Ids(e) {
		info, _ := ecs.ComponentInfo(r.world, id)
		if info.Type.Name() != part.Component {
			continue
		}
		v := reflect.NewAt(info.Type, r.world.Get(e, id))
		want := v.Elem()
		for _, step := range regexp.MustCompile(`\w+`).FindAllString(part.Field, -1) {
			if i, err := strconv.Atoi(step); err == nil {
				want = want.Index(i)
			} else {
				want = want.FieldByName(step)
			}
		}
		got := part.Value
		if ref, ok := got.(replication.NetID); ok {
			got, _ = r.client.Entity(ref)
		} else if want.Kind() <= reflect.Float64 {
			// A value has one code, and the code has the value.
			one := reflect.New(info.Type)
			one.Elem().Set(v.Elem())
			codes := fmt.Sprint(r.schema.Codes(one.Interface(), nil))
			require.Contains(r.t, codes, part.Code, "%+v", part)
		}
		require.Equal(r.t, want.Interface(), got, "%+v", part)
		r.compared++
	}
}

// TestPacketsOfAServerAreExplained, which are in Compact.
func TestPacketsOfAServerAreExplained(t *testing.T) {
	t.Parallel()
	schema := newSchema()
	p := newPlay(replicationtest.Seed(t), schema)
	var file bytes.Buffer
	rec := recording.NewRecorder(p.server, &file)
	for range 300 {
		p.step(t)
	}
	require.NoError(t, rec.Close())
	r := readAll(t, file.Bytes(), schema)
	require.Greater(t, r.compared, 5000)
	require.Equal(t, 5, r.kinds["welcome"], "a segment each second")
	for _, kind := range []string{"state new", "state full", "state despawn", "state model", "messages message"} {
		require.NotZero(t, r.kinds[kind], kind)
	}
}

// TestPacketsOfAClientAreExplained, with its losses, in both codings.
func TestPacketsOfAClientAreExplained(t *testing.T) {
	replicationtest.OneGoroutine(t)
	t.Parallel()
	for _, coding := range []replication.Coding{replication.Packed, replication.Compact} {
		seed, schema := replicationtest.Seed(t), newSchema()
		p := newPlay(seed, schema)
		link := netsim.NewLink(seed, netsim.Config{Latency: 4, Jitter: 2, Loss: 0.1, Duplicate: 0.05})
		peer := p.server.Connect(link.Down.Send, replication.WithCoding(coding))
		peer.SetData("referee")
		w := ecs.NewWorld()
		client := replication.NewClient(&w, schema)
		client.SetSend(link.Up.Send)
		var file bytes.Buffer
		rec := recording.NewClientRecorder(client, &file)
		for n := range 1000 {
			p.step(t)
			link.Step()
			link.Up.Receive(func(packet []byte) { _ = peer.Receive(packet) })
			link.Down.Receive(func(packet []byte) { _ = client.Receive(packet) })
			if n == 900 {
				client.Reconnect()
			}
			require.NoError(t, client.Frame(time.Second/60))
		}
		require.NoError(t, rec.Close())
		r := readAll(t, file.Bytes(), schema)
		require.Greater(t, r.compared, 10000)
		require.Equal(t, 2, r.kinds["welcome"])
		for _, kind := range []string{"state new", "state full", "state despawn", "state mask", "messages message"} {
			require.NotZero(t, r.kinds[kind], kind)
		}
	}
}

type story struct {
	Text string `repl:"max=2000"`
}

type idle struct{}

// TestLargeStatesAreExplained: the parts of a state larger than a packet, and the state when they are all there.
func TestLargeStatesAreExplained(t *testing.T) {
	t.Parallel()
	for _, coding := range []replication.Coding{replication.Packed, replication.Compact} {
		schema, w := replication.NewSchema(), ecs.NewWorld()
		replication.Register[story](schema)
		replication.Register[idle](schema)
		server := replication.NewServer(&w, schema, replication.WithSeed(1), replication.WithMTU(300),
			replication.WithTuning(replication.Tuning{StateHash: 3}))
		id := ecs.ComponentID[story](&w)
		e := w.NewEntity(id, ecs.ComponentID[idle](&w), ecs.ComponentID[replication.Replicated](&w))
		text := strings.Repeat("It was a dark and stormy night. ", 50)
		(*story)(w.Get(e, id)).Text = text
		link := netsim.NewLink(1, netsim.Config{Latency: 2})
		peer := server.Connect(link.Down.Send, replication.WithCoding(coding))
		mirror := ecs.NewWorld()
		client := replication.NewClient(&mirror, schema)
		client.SetSend(link.Up.Send)
		var file bytes.Buffer
		rec := recording.NewClientRecorder(client, &file)
		for range 60 {
			server.Replicate()
			link.Step()
			link.Up.Receive(func(packet []byte) { _ = peer.Receive(packet) })
			link.Down.Receive(func(packet []byte) { _ = client.Receive(packet) })
			require.NoError(t, client.Frame(time.Second/60))
		}
		peer.Disconnect(replication.Reason{Code: replication.ReasonKicked})
		link.Step()
		link.Step()
		link.Step()
		link.Down.Receive(func(packet []byte) { _ = client.Receive(packet) })
		require.Error(t, client.Frame(time.Second/60))
		require.NoError(t, rec.Close())

		player, _, err := openAs(schema, file.Bytes())
		require.NoError(t, err)
		kinds, bytes := map[string]int{}, 0
		var assembled []recording.PacketPart
		player.OnPacket(func(p *recording.Packet) {
			for i, part := range p.Parts {
				kinds[p.Kind+" "+part.What]++
				switch part.What {
				case "part":
					bytes += int(part.Bits) / 8
				case "assembled":
					assembled = append(assembled, p.Parts[i:]...)
				case "checks":
					require.NotContains(t, part.Detail, "DIFFER")
				}
			}
		})
		for !player.Ended() {
			_ = player.Step()
		}
		t.Log(kinds)
		require.GreaterOrEqual(t, kinds["state part"], 6)
		require.GreaterOrEqual(t, bytes, 1400)
		require.Equal(t, 1, kinds["state assembled"])
		require.NotZero(t, kinds["hashes checks"])
		require.Equal(t, 1, kinds["disconnect header"])
		require.Equal(t, "with idle", assembled[0].Detail)
		require.Equal(t, recording.PacketPart{
			What: "field", Slot: assembled[0].Slot, Entity: assembled[0].Entity, Tick: assembled[0].Tick, Component: "story", Field: "Text",
			Code: "1600 bytes", Value: text,
		}, assembled[1])
	}
}

func openAs(schema *replication.Schema, file []byte) (*recording.Player, *ecs.World, error) {
	w := ecs.NewWorld()
	p, err := recording.NewPlayer(&w, schema, bytes.NewReader(file), int64(len(file)))
	return p, &w, err
}

// TestForgedPacketsAreExplained: whatever is in a recording of a server, which has no checksums in its packets, the parts
// are those of the packets, and there are not more of them than the client may read.
func TestForgedPacketsAreExplained(t *testing.T) {
	t.Parallel()
	good, _ := record(t, 100)
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 3))
	refused, kinds := 0, map[string]int{}
	for range replicationtest.TicksOf(400, 100) {
		file := bytes.Clone(good)
		for range 1 + rng.IntN(20) {
			file[300+rng.IntN(len(file)-300)] ^= 1 << rng.IntN(8)
		}
		player, _, err := open(recording.Repair(file))
		if err != nil {
			continue
		}
		player.OnPacket(func(p *recording.Packet) {
			sum := 0.
			kinds[p.Kind]++
			for i := range p.Parts {
				sum += p.Parts[i].Bits
			}
			require.InDelta(t, float64(8*p.Bytes), sum, 1e-6, "%+v", p)
			require.Less(t, len(p.Parts), 10000)
			if p.Err != nil {
				refused++
			}
		})
		for n := 0; n < 200 && !player.Ended(); n++ {
			_ = player.Step() // the packets may end the connection
		}
	}
	t.Log(refused, kinds)
	require.Greater(t, refused, 100)
}
