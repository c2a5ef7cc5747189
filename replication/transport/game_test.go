package transport_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

type ship struct {
	X, Y    float32 `repl:"range=-1000:1000,step=0.01"`
	Heading float32 `repl:"range=0:7,step=0.01"`
}

// note is a message of the server, in order; bulk is a large one.
type (
	note struct{ N uint32 }
	bulk struct {
		Bytes string `repl:"max=4000"`
	}
)

// wish is a message of a client, in order.
type wish struct{ N uint32 }

// command is an input, which has the tick that it is for.
type command struct{ Tick uint32 }

func schema() *replication.Schema {
	s := replication.NewSchema()
	replication.Register[ship](s)
	replication.RegisterMessage[note](s)
	replication.RegisterMessage[bulk](s, replication.Immediate())
	replication.RegisterMessage[wish](s)
	replication.RegisterInput[command](s)
	return s
}

const tickTime = time.Second / 60

// A game has a server with ships that move about, its listeners, and players. All run on the goroutine of the test.
type game struct {
	t         *testing.T
	schema    *replication.Schema
	server    *replication.Server
	world     *ecs.World
	ships     []ecs.Entity
	rng       *rand.Rand
	listeners []*listener
	players   []*player
	pause     time.Duration // between two ticks; by default the game runs four times as fast as the clock
	still     bool          // nothing changes
	noted     uint32
	inputs    int // that arrived in time
	wishes    map[*replication.Peer]uint32
	then      map[replication.Tick]map[replication.NetID][3]uint64 // what the ships were in each tick
}

const ships = 60

func newGame(t *testing.T, opts ...replication.ServerOption) *game {
	world := ecs.NewWorld()
	g := &game{
		t: t, schema: schema(), world: &world, rng: rand.New(rand.NewPCG(1, 2)), pause: 4 * time.Millisecond,
		wishes: map[*replication.Peer]uint32{}, then: map[replication.Tick]map[replication.NetID][3]uint64{},
	}
	g.server = replication.NewServer(&world, schema(), opts...)
	replication.OnClientMessage(g.server, func(from *replication.Peer, w wish) {
		require.Greater(t, w.N, g.wishes[from], "in order")
		g.wishes[from] = w.N
	})
	for range ships {
		g.spawn()
	}
	t.Cleanup(func() {
		for _, l := range g.listeners {
			require.NoError(t, l.close())
		}
		g.server.Close()
	})
	return g
}

func (g *game) listen(c carrier, address string, n *netsim.Network) *listener {
	l := c.listen(g.t, address, g.server, n)
	g.listeners = append(g.listeners, l)
	return l
}

func (g *game) spawn() {
	e := g.world.NewEntity(ecs.ComponentID[ship](g.world), ecs.ComponentID[replication.Replicated](g.world))
	g.ships = append(g.ships, e)
	g.ship(e).X = float32(g.rng.IntN(1800) - 900)
}

func (g *game) ship(e ecs.Entity) *ship {
	return (*ship)(g.world.Get(e, ecs.ComponentID[ship](g.world)))
}

// tick runs one tick of the server.
func (g *game) tick() {
	for _, l := range g.listeners {
		l.poll()
	}
	next := g.server.Tick() + 1
	for p := range g.server.Peers() {
		if in, ok := replication.Input[command](p, next); ok {
			if in.Tick != uint32(next) {
				g.t.Fatalf("the input for tick %d is that for tick %d", next, in.Tick)
			}
			g.inputs++
		}
	}
	if !g.still {
		g.change()
	}
	g.server.Replicate()
	now := make(map[replication.NetID][3]uint64, len(g.ships))
	for _, e := range g.ships {
		id, _ := g.server.NetID(e)
		now[id] = codes(g.schema, g.ship(e))
	}
	g.then[g.server.Tick()] = now
}

func codes(s *replication.Schema, v *ship) (c [3]uint64) {
	s.Codes(v, c[:0])
	return c
}

func (g *game) change() {
	for _, e := range g.ships {
		v := g.ship(e)
		v.X += g.rng.Float32()*2 - 1
		v.Y = max(-900, min(900, v.Y+g.rng.Float32()*2-1))
		v.Heading = g.rng.Float32() * 6
	}
	if g.server.Tick()%20 == 0 { // one leaves, and one comes
		i := g.rng.IntN(len(g.ships))
		g.world.RemoveEntity(g.ships[i])
		g.ships = slices.Delete(g.ships, i, i+1)
		g.spawn()
	}
	if g.server.Tick()%7 == 0 {
		g.noted++
		require.NoError(g.t, replication.SendToAll(g.server, note{g.noted}))
	}
}

// A player is a client. It goes through a relay.
type player struct {
	g      *game // whose server it shows
	client *replication.Client
	world  *ecs.World
	conn   conn
	relay  relay
	away   bool // it does nothing
	err    error

	frames   int
	notes    uint32
	skipped  int // notes that never came
	wished   uint32
	sessions uint64           // those of servers that are gone
	from     replication.Tick // newest tick seen
	gap      int              // frames since it has changed
	worst    int              // the longest gap since watch
}

func (g *game) join(c carrier, address string, n *netsim.Network, opts ...replication.ClientOption) *player {
	world := ecs.NewWorld()
	p := &player{g: g, world: &world, client: replication.NewClient(&world, schema(), opts...)}
	replication.OnInput(p.client, func(tick replication.Tick) command { return command{uint32(tick)} })
	replication.OnServerMessage(p.client, func(m note) {
		require.NotEqual(g.t, m.N, p.notes, "once")
		if p.notes > 0 && m.N != p.notes+1 {
			p.skipped++
		}
		p.notes = m.N
	})
	p.relay = c.relay(g.t, address)
	p.conn = c.dial(g.t, p.relay.address(), p.client, n)
	g.t.Cleanup(func() { require.NoError(g.t, p.conn.Close()) })
	g.players = append(g.players, p)
	return p
}

// joins lets n players join, and waits until they have everything.
func (g *game) joins(n int, c carrier, address string) {
	for range n {
		g.join(c, address, nil)
	}
	g.until("all join", g.all((*player).plays))
}

func (p *player) plays() bool {
	return p.client.Status() == replication.StatusConnected && p.client.Complete() && p.err == nil &&
		p.client.Stats().Sessions > p.sessions
}

func (g *game) all(is func(*player) bool) func() bool {
	return func() bool {
		for _, p := range g.players {
			if !p.away && !is(p) {
				return false
			}
		}
		return true
	}
}

// frame runs a frame of a client, and in every fourth one checks everything that it shows.
func (p *player) frame(dt time.Duration) {
	p.conn.Poll()
	p.err = p.client.Frame(dt)
	if now := p.client.Tick(); now != p.from {
		p.from, p.gap = now, 0
	}
	if p.gap++; !p.g.still { // a still server sends something every second
		p.worst = max(p.worst, p.gap)
	}
	if !p.plays() {
		return
	}
	if p.client.Tick()%9 == 0 {
		p.wished++
		_ = replication.SendToServer(p.client, wish{p.wished}) // full: the next one is sent
	}
	if p.frames++; p.frames%4 != 0 {
		return
	}
	for id, e := range p.client.Entities() {
		tick, _ := p.client.StateTick(e)
		was, ok := p.g.then[tick][id]
		if now := codes(p.g.schema, p.ship(e)); !ok || now != was {
			p.g.t.Fatalf("%v is shown as of tick %d as %v; at the server: %v, %v", id, tick, now, was, ok)
		}
	}
}

func (p *player) ship(e ecs.Entity) *ship {
	return (*ship)(p.world.Get(e, ecs.ComponentID[ship](p.world)))
}

// step plays a tick of the server and a frame of each client.
func (g *game) step() {
	begin := time.Now()
	g.tick()
	for _, p := range g.players {
		if !p.away {
			p.frame(tickTime)
		}
	}
	time.Sleep(max(time.Millisecond, g.pause-time.Since(begin))) // sockets have goroutines, too
}

// until plays until something is so, for 40 seconds at most.
func (g *game) until(what string, is func() bool) {
	g.t.Helper()
	for end := time.Now().Add(40 * time.Second); time.Now().Before(end); {
		g.step()
		if is() {
			return
		}
	}
	for _, p := range g.players {
		g.t.Logf("%v, tick %v of %v, err %v, %+v", p.client.Status(), p.client.Tick(), g.server.Tick(), p.client.Err(), p.client.Stats())
	}
	g.t.Fatal("in 40 seconds it did not happen that ", what)
}

func (g *game) steps(n int) {
	for range n {
		g.step()
	}
}

// watch begins to look for gaps at players.
func watch(players ...*player) {
	for _, p := range players {
		p.gap, p.worst = 0, 0
	}
}

// mostGap is the number of frames for which others may see nothing new when something happens to a client: the machine
// may be busy.
const mostGap = 120

func (g *game) noticedNothing(players ...*player) {
	g.t.Helper()
	for _, p := range players {
		require.NoError(g.t, p.err)
		require.LessOrEqual(g.t, p.worst, mostGap, "frames without a new tick")
		require.EqualValues(g.t, 1, p.client.Stats().Sessions)
	}
}

// converges stops all changes, and compares what is there with what the clients have.
func (g *game) converges() {
	g.t.Helper()
	g.still = true
	last := g.server.Tick()
	g.until("all settle", g.all(func(p *player) bool {
		tick, ok := p.client.Settled()
		return ok && p.plays() && int32(tick-last) >= 0
	}))
	want := g.then[g.server.Tick()]
	for _, p := range g.players {
		if p.away {
			continue
		}
		got := map[replication.NetID][3]uint64{}
		for id, e := range p.client.Entities() {
			got[id] = codes(g.schema, p.ship(e))
		}
		require.True(g.t, maps.Equal(want, got), "%v\n%v", want, got)
		require.Nil(g.t, p.client.Verify())
	}
	g.still = false
}
