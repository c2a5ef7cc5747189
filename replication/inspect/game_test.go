package inspect

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

type Position struct {
	X, Y float32 `repl:"range=-500:500,step=0.01,linear"`
}

type Hull struct {
	Points uint8
	Shield uint16
}

type Chat struct {
	Text [8]uint8
}

// game is a server and clients on paths that lose packets. Its clock moves by a tick at a time.
type game struct {
	world     *ecs.World
	server    *replication.Server
	players   []*player
	entities  []ecs.Entity
	inspector *Inspector
	clock     time.Time
	ids       [2]ecs.ID
	loss      float64
}

type player struct {
	peer     *replication.Peer
	client   *replication.Client
	shows    *interpolation.Interpolation
	down, up *netsim.Pipe
}

const tick = time.Second / 60

func types() *replication.Schema {
	s := replication.NewSchema()
	replication.Register[Position](s)
	replication.Register[Hull](s)
	replication.RegisterMessage[Chat](s)
	return s
}

func newGame(t testing.TB, entities, players int, loss float64, opts ...Option) *game {
	t.Helper()
	world := ecs.NewWorld()
	g := &game{world: &world, loss: loss, clock: time.Unix(1e9, 0)}
	g.server = replication.NewServer(g.world, types(), replication.WithSeed(1), replication.WithTimeout(0))
	g.ids = [2]ecs.ID{ecs.ComponentID[Position](g.world), ecs.ComponentID[Hull](g.world)}
	for range entities {
		g.spawn()
	}
	g.inspector = g.timed(Server(g.server, opts...))
	for range players {
		g.join(t)
	}
	return g
}

// timed makes an inspector use the clock of the game.
func (g *game) timed(s *Inspector) *Inspector {
	s.now = func() time.Time { g.clock = g.clock.Add(time.Microsecond); return g.clock }
	s.started = g.clock
	s.from = s.started
	return s
}

func (g *game) spawn() {
	e := g.world.NewEntity(g.ids[0], g.ids[1], ecs.ComponentID[replication.Replicated](g.world))
	g.entities = append(g.entities, e)
}

func (g *game) join(t testing.TB, opts ...replication.PeerOption) *player {
	t.Helper()
	world := ecs.NewWorld()
	p := &player{client: replication.NewClient(&world, types(), replication.WithSeed(uint64(len(g.players))))}
	p.shows = interpolation.Attach(p.client)
	config := netsim.Config{Latency: 2, Loss: g.loss}
	number := uint64(len(g.players)) * 2
	p.down, p.up = netsim.NewPipe(number+1, config), netsim.NewPipe(number+2, config)
	p.peer = g.server.Connect(func(b []byte) error { return p.down.Send(b) }, append([]replication.PeerOption{replication.WithMTU(1100)}, opts...)...)
	p.peer.SetRemote(replication.Remote{Transport: "test", Address: "a \"quoted\\\" <pl\nace>"})
	p.client.SetSend(func(b []byte) error { return p.up.Send(b) })
	g.players = append(g.players, p)
	return p
}

func (g *game) step(t testing.TB) {
	g.clock = g.clock.Add(tick)
	for i, e := range g.entities {
		at := (*Position)(g.world.Get(e, g.ids[0]))
		at.X, at.Y = at.X+0.02*float32(i%7+1), at.Y-0.05
		if at.X > 400 {
			at.X, at.Y = -400, 400
		}
	}
	for _, p := range g.players {
		p.up.Step()
		p.up.Receive(func(b []byte) { _ = p.peer.Receive(b) })
	}
	g.server.Replicate()
	for _, p := range g.players {
		p.down.Step()
		p.down.Receive(func(b []byte) { _ = p.client.Receive(b) })
		require.NoError(t, p.client.Frame(tick))
	}
}

func (g *game) run(t testing.TB, ticks int) {
	for range ticks {
		g.step(t)
	}
}

// answer is the JSON of an inspector.
type answer struct {
	Kind, Name string
	From, Next int
	MTU        int
	Samples    map[string][]*float64
	Stack      [][]*float64
	Counters   map[string]any
	Components []struct {
		Name   string
		Fields []struct {
			Name, Codec string
			Fixed, Raw  int
			Bits        float64
		}
	}
	Peers []map[string]any
	Peer  *struct {
		MTU        int
		Number     int
		Samples    map[string][]*float64
		From, Next int
	}
	Sizes []uint64
}

func read(t testing.TB, s *Inspector, since int64, peer int) (a answer) {
	t.Helper()
	require.NoError(t, json.Unmarshal(s.AppendJSON(nil, since, peer), &a))
	return a
}
