package recording_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

type position struct {
	X, Y float32 `repl:"range=-1000:1000,step=0.01"`
}

type purse struct {
	Gold uint16
}

type secret struct {
	Code uint8
}

type hit struct{ N uint32 }

func newSchema() *replication.Schema {
	s := replication.NewSchema()
	replication.Register[position](s)
	replication.Register[purse](s, replication.OwnerOnly())
	replication.Register[secret](s, replication.OnlyFor(func(p *replication.Peer) bool {
		return p.Data().(string) == "referee" // which panics for a peer that the game does not know
	}))
	replication.RegisterMessage[hit](s)
	return s
}

const rate = 60

// A play is a server with a world in which something happens in every tick.
type play struct {
	world  ecs.World
	server *replication.Server
	ids    []ecs.ID
	ships  []ecs.Entity
	n      int
	hits   uint32
	owner  *replication.Peer // of some ships, or nil
	owned  map[ecs.Entity]bool
}

func newPlay(seed uint64, schema *replication.Schema) *play {
	p := &play{world: ecs.NewWorld(), owned: map[ecs.Entity]bool{}}
	p.server = replication.NewServer(&p.world, schema, replication.WithSeed(seed), replication.WithTickRate(rate),
		replication.WithTimeout(0), replicationtest.FirstTick(1<<32-150)) // the number of the tick wraps around
	p.ids = []ecs.ID{
		ecs.ComponentID[position](&p.world), ecs.ComponentID[purse](&p.world),
		ecs.ComponentID[secret](&p.world), ecs.ComponentID[replication.Replicated](&p.world),
	}
	return p
}

// step plays a tick, and replicates it.
func (p *play) step(t *testing.T) {
	if p.n%7 == 0 && len(p.ships) < 40 {
		p.ships = append(p.ships, p.world.NewEntity(p.ids...))
	}
	if p.n%20 == 0 && len(p.ships) > 20 {
		p.world.RemoveEntity(p.ships[0])
		p.ships = p.ships[1:]
	}
	for i, e := range p.ships {
		if p.owner != nil && (p.n+i*7)%60 == 0 { // owners come and go
			p.owned[e] = !p.owned[e]
			p.server.SetOwner(e, map[bool]*replication.Peer{true: p.owner}[p.owned[e]])
		}
		if i%3 > 0 || p.n%50 == 0 {
			(*position)(p.world.Get(e, p.ids[0])).X += float32(i%5) - 2.1
		}
		if (p.n+i)%30 == 0 {
			(*purse)(p.world.Get(e, p.ids[1])).Gold++
			(*secret)(p.world.Get(e, p.ids[2])).Code++
		}
	}
	if p.n%5 == 0 {
		p.hits++
		require.NoError(t, replication.SendToAll(p.server, hit{p.hits}))
	}
	p.server.Replicate()
	p.n++
}

// A state is what a world shows of an entity.
type state struct {
	position
	purse
	secret
}

// truth returns the server's world, as it is replicated.
func (p *play) truth(schema *replication.Schema) map[replication.NetID]state {
	all := map[replication.NetID]state{}
	for _, e := range p.ships {
		id, ok := p.server.NetID(e)
		if !ok {
			continue
		}
		now := state{
			position: quantised(*(*position)(p.world.Get(e, p.ids[0])), schema),
			secret:   *(*secret)(p.world.Get(e, p.ids[2])),
		}
		if p.owned[e] {
			now.purse = *(*purse)(p.world.Get(e, p.ids[1]))
		}
		all[id] = now
	}
	return all
}

// codes returns a position as codes in place of values.
func quantised(v position, schema *replication.Schema) position {
	codes := schema.Codes(&v, nil)
	return position{float32(codes[0]), float32(codes[1])}
}

// shown returns what a client's world shows.
func shown(w *ecs.World, c *replication.Client, schema *replication.Schema) map[replication.NetID]state {
	all := map[replication.NetID]state{}
	for id, e := range c.Entities() {
		s := state{position: quantised(*(*position)(w.Get(e, ecs.ComponentID[position](w))), schema)}
		if v := (*purse)(w.Get(e, ecs.ComponentID[purse](w))); v != nil {
			s.purse = *v
		}
		if v := (*secret)(w.Get(e, ecs.ComponentID[secret](w))); v != nil {
			s.secret = *v
		}
		all[id] = s
	}
	return all
}

// record records some ticks, and returns the truth of each.
func record(t *testing.T, ticks int, opts ...recording.Option) (file []byte, truth []map[replication.NetID]state) {
	schema := newSchema()
	p := newPlay(replicationtest.Seed(t), schema)
	p.owner = p.server.Connect(func([]byte) error { return nil })
	var b bytes.Buffer
	r := recording.NewRecorder(p.server, &b, opts...)
	for i := range ticks {
		p.step(t)
		truth = append(truth, p.truth(schema))
		if i == ticks/2 {
			require.True(t, r.Mark("half time"))
		}
	}
	require.NoError(t, r.Close())
	require.Zero(t, r.Stats().Dropped)
	require.EqualValues(t, b.Len(), r.Stats().Bytes)
	return b.Bytes(), truth
}

func newPlayer(t *testing.T, file []byte, opts ...recording.Option) (*recording.Player, *ecs.World, *replication.Schema) {
	schema, w := newSchema(), ecs.NewWorld()
	p, err := recording.NewPlayer(&w, schema, bytes.NewReader(file), int64(len(file)), opts...)
	require.NoError(t, err)
	return p, &w, schema
}

// at returns the position of a tick.
func at(tick int) time.Duration { return time.Duration(tick) * time.Second / rate }

// TestEveryTickIsAsItWas: all components of all entities, for whomever they are (but what is for an owner only and has none), and each message once, in its tick.
// Where segments meet, no hook is called for what has not changed.
func TestEveryTickIsAsItWas(t *testing.T) {
	t.Parallel()
	file, truth := record(t, 1000)
	p, w, schema := newPlayer(t, file)
	require.NoError(t, p.Damage())
	require.Equal(t, at(999), p.Duration())
	var hits []uint32
	var marks []recording.Mark
	spawns, changes := 0, 0
	replication.OnServerMessage(p.Client(), func(h hit) { hits = append(hits, h.N) })
	replication.OnSpawn(p.Client(), func(ecs.Entity) { spawns++ })
	replication.OnChange(p.Client(), func(_ ecs.Entity, before, now *purse) {
		require.NotEqual(t, *before, *now)
		changes++
	})
	p.OnMark(func(m recording.Mark) { marks = append(marks, m) })
	for n := range truth {
		require.NoError(t, p.Step())
		require.Equal(t, at(n), p.Position())
		require.Equal(t, truth[n], shown(w, p.Client(), schema), "tick %d", n)
		require.Len(t, hits, n/5+1, "tick %d", n)
		require.Nil(t, p.Client().Verify())
	}
	require.NoError(t, p.Step())
	require.True(t, p.Ended())
	for i, n := range hits {
		require.EqualValues(t, i+1, n)
	}
	require.Equal(t, []recording.Mark{{At: at(500), Text: "half time"}}, marks)
	require.Equal(t, marks, p.Marks())
	require.Greater(t, changes, 300)
	ids := map[replication.NetID]bool{}
	for _, all := range truth {
		for id := range all {
			ids[id] = true
		}
	}
	require.Equal(t, len(ids), spawns)
	require.NoError(t, p.Damage())
}

// TestSeeking forth and back shows the right tick, with the same handles, and delivers no message of the past.
func TestSeeking(t *testing.T) {
	t.Parallel()
	file, truth := record(t, 1000)
	p, w, schema := newPlayer(t, file)
	handles := map[replication.NetID]ecs.Entity{}
	hits, marks := 0, 0
	replication.OnServerMessage(p.Client(), func(hit) { hits++ })
	random := rand.New(rand.NewPCG(1, 2))
	kept := 0
	p.OnMark(func(recording.Mark) { marks++ })
	for range 100 {
		n := random.IntN(len(truth) - 10)
		if n < 501 {
			n = min(n, 494) // the steps don't pass the mark
		}
		require.NoError(t, p.Seek(at(n)))
		require.Equal(t, at(n), p.Position())
		require.Equal(t, truth[n], shown(w, p.Client(), schema), "tick %d", n)
		require.Zero(t, hits)
		for id, e := range p.Client().Entities() {
			if old, ok := handles[id]; ok {
				require.Equal(t, old, e)
				kept++
			}
		}
		for i := range 5 { // each fifth tick has one
			require.NoError(t, p.Step())
			require.Equal(t, truth[n+i+1], shown(w, p.Client(), schema), "tick %d", n+i+1)
		}
		require.Equal(t, 1, hits)
		hits = 0
		clear(handles)
		for id, e := range p.Client().Entities() {
			handles[id] = e
		}
	}
	require.Greater(t, kept, 300)
	require.Zero(t, marks)
	require.NoError(t, p.Seek(at(500)))
	require.NoError(t, p.Back())
	require.Equal(t, at(420), p.Position())
}

// TestSpeeds: time passes as fast as it should.
func TestSpeeds(t *testing.T) {
	t.Parallel()
	file, truth := record(t, 600)
	for _, speed := range []float64{0, 0.1, 0.5, 1, 1.7, 4, 16} {
		p, w, schema := newPlayer(t, file)
		p.SetSpeed(speed)
		at := 0.
		for range 500 {
			require.NoError(t, p.Frame(time.Second/144))
			at += (time.Second / 144).Seconds() * speed
			tick := min(int(at*rate), len(truth)-1)
			if at*rate-math.Floor(at*rate+0.5) > -1e-4 && at*rate-math.Floor(at*rate+0.5) < 1e-4 {
				continue // too close to decide
			}
			require.InDelta(t, min(at, p.Duration().Seconds()), p.Position().Seconds(), 1e-4)
			require.Equal(t, truth[tick], shown(w, p.Client(), schema), "speed %v, tick %d", speed, tick)
		}
		require.Equal(t, at > p.Duration().Seconds(), p.Ended())
	}
}

// TestARecorderChangesNothingForOthers: a client is sent the same bytes with and without one.
func TestARecorderChangesNothingForOthers(t *testing.T) {
	sent := func(record bool) (all [][]byte) {
		p := newPlay(1, newSchema())
		link := netsim.NewLink(1, netsim.Config{Latency: 3})
		peer := p.server.Connect(func(packet []byte) error {
			all = append(all, bytes.Clone(packet))
			return link.Down.Send(packet)
		})
		peer.SetData("player")
		w := ecs.NewWorld()
		client := replication.NewClient(&w, newSchema(), replication.WithSeed(2))
		client.SetSend(link.Up.Send)
		var b bytes.Buffer
		if record {
			r := recording.NewRecorder(p.server, &b)
			defer func() {
				require.NoError(t, r.Close())
				require.Greater(t, b.Len(), 1000)
			}()
		}
		for range 400 {
			link.Step()
			link.Up.Receive(func(packet []byte) { _ = peer.Receive(packet) })
			link.Down.Receive(func(packet []byte) { _ = client.Receive(packet) })
			require.NoError(t, client.Frame(time.Second/rate))
			p.step(t)
		}
		return all
	}
	require.Equal(t, sent(false), sent(true))
}

// TestTheGameDoesNotSeeARecorder in its hooks, among its peers, or in packets that watchers note.
func TestTheGameDoesNotSeeARecorder(t *testing.T) {
	p := newPlay(1, newSchema())
	called := 0
	p.server.OnConnect(func(*replication.Peer) { called++ })
	p.server.OnDisconnect(func(*replication.Peer) { called++ })
	p.server.OnJoin(func(*replication.Peer, []byte) error { called++; return fmt.Errorf("full") })
	var b bytes.Buffer
	r, sent := recording.NewRecorder(p.server, &b), recording.Sent(p.server)
	for range 500 {
		p.step(t)
		for range p.server.Peers() {
			called++
		}
		require.Zero(t, p.server.Stats().Peers)
	}
	require.NoError(t, r.Close())
	require.Zero(t, called)
	require.Zero(t, *sent)
	require.Greater(t, r.Stats().Segments, uint64(3))
}

// TestRecordingTakesLittle of a tick: 500 entities move, and a client is sent them.
func TestRecordingTakesLittle(t *testing.T) {
	replicationtest.OneGoroutine(t)
	p := newPlay(1, newSchema())
	for range 500 {
		p.ships = append(p.ships, p.world.NewEntity(p.ids...))
	}
	link := netsim.NewLink(1, netsim.Config{Latency: 3})
	peer := p.server.Connect(link.Down.Send)
	peer.SetData("player")
	w := ecs.NewWorld()
	client := replication.NewClient(&w, newSchema())
	client.SetSend(link.Up.Send)
	var b bytes.Buffer
	r := recording.NewRecorder(p.server, &b)
	var ticks, parts []time.Duration
	recording.Timed(r, func(d time.Duration) { parts = append(parts, d) })
	for n := range 600 {
		for i, e := range p.ships {
			v := (*position)(p.world.Get(e, p.ids[0]))
			v.X += float32(i%5) - 2.1
			v.Y += float32((i+n)%7) - 3
		}
		link.Step()
		link.Up.Receive(func(packet []byte) { _ = peer.Receive(packet) })
		link.Down.Receive(func(packet []byte) { _ = client.Receive(packet) })
		require.NoError(t, client.Frame(time.Second/rate))
		from := time.Now()
		p.server.Replicate()
		ticks = append(ticks, time.Since(from))
	}
	require.NoError(t, r.Close())
	slices.Sort(ticks)
	slices.Sort(parts)
	t.Logf("Replicate takes %v, of that recording %v, 99 %% %v", ticks[300], parts[300], parts[594])
	require.Less(t, parts[300], ticks[300]/4)
}

// TestMarksOfAnIdleWorld have the time of the latest Replicate, also if nothing was sent since long before, and those
// before the first one are at the beginning.
func TestMarksOfAnIdleWorld(t *testing.T) {
	w := ecs.NewWorld()
	server := replication.NewServer(&w, newSchema(), replication.WithTickRate(rate))
	w.NewEntity(ecs.ComponentID[position](&w), ecs.ComponentID[replication.Replicated](&w))
	var file bytes.Buffer
	r := recording.NewRecorder(server, &file)
	require.True(t, r.Mark("kick-off"))
	for n := range 200 {
		server.Replicate()
		if n%19 == 5 {
			require.True(t, r.Mark(fmt.Sprint(n)))
		}
	}
	require.NoError(t, r.Close())
	check := func(p *recording.Player) {
		marks := p.Marks()
		require.Equal(t, recording.Mark{Text: "kick-off"}, marks[0])
		require.Len(t, marks, 12)
		for i, m := range marks[1:] {
			require.Equal(t, recording.Mark{At: at(5 + 19*i), Text: fmt.Sprint(5 + 19*i)}, m)
		}
	}
	p, _, _ := newPlayer(t, file.Bytes())
	check(p)
	p, _, _ = newPlayer(t, file.Bytes()[:file.Len()-20]) // without the index
	check(p)
}
