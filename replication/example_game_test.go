package replication_test

import (
	"fmt"
	"math"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/rewind"
)

// What both ends compile.

type Place struct {
	X, Y float32 `repl:"range=-1000:1000,step=0.01"` // linear between two states
}

type Tank struct {
	Angle float32 `repl:"angle,bits=10"`
	HP    uint8   `repl:"range=0:100,hold"`
}

type Drive struct { // the input
	Turn, Thrust float32 `repl:"range=-1:1,step=0.125"`
	Fire         bool
}

func newGameSchema() *replication.Schema {
	s := replication.NewSchema()
	replication.Register[Place](s)
	replication.Register[Tank](s)
	replication.RegisterInput[Drive](s)
	return s
}

// gameServer is the server of a game: receive, step, replicate.
type gameServer struct {
	world  ecs.World
	server *replication.Server
	past   *rewind.History
	place  ecs.ID
	tank   ecs.ID
}

func newGameServer() *gameServer {
	g := &gameServer{world: ecs.NewWorld()}
	g.server = replication.NewServer(&g.world, newGameSchema())
	g.past = rewind.New(g.server)
	g.place, g.tank = ecs.ComponentID[Place](&g.world), ecs.ComponentID[Tank](&g.world)
	g.server.OnConnect(func(p *replication.Peer) { g.server.SetOwner(g.spawn(), p); fmt.Println("a player joined") })
	g.server.OnDisconnect(func(p *replication.Peer) { fmt.Println("a player left:", p.Err()) })
	return g
}

func (g *gameServer) spawn() ecs.Entity {
	return g.world.NewEntity(g.place, g.tank, ecs.ComponentID[replication.Replicated](&g.world))
}

func (g *gameServer) step() {
	for p := range g.server.Peers() {
		drive, _ := replication.Input[Drive](p, g.server.Tick()+1)
		query := g.world.Query(ecs.All(g.place, g.tank))
		for query.Next() {
			if g.server.Owner(query.Entity()) == p {
				place, tank := (*Place)(query.Get(g.place)), (*Tank)(query.Get(g.tank))
				tank.Angle += drive.Turn / 60
				place.X += 10 * drive.Thrust / 60 * float32(math.Cos(float64(tank.Angle)))
				place.Y += 10 * drive.Thrust / 60 * float32(math.Sin(float64(tank.Angle)))
			}
		}
		if view, err := g.past.View(p, g.server.Tick()+1); err == nil && drive.Fire {
			fmt.Println("shot at what was shown", g.server.Tick().Sub(view.Time().Tick) > 0)
		}
	}
	g.server.Replicate()
}

// gameClient is the client: receive, frame, draw.
type gameClient struct {
	world  ecs.World
	client *replication.Client
}

func newGameClient(send func(packet []byte) error, keys func() Drive) *gameClient {
	c := &gameClient{world: ecs.NewWorld()}
	c.client = replication.NewClient(&c.world, newGameSchema())
	c.client.SetSend(send)
	interpolation.Attach(c.client) // everything moves smoothly
	replication.OnInput(c.client, func(replication.Tick) Drive { return keys() })
	return c
}

func (c *gameClient) frame(dt time.Duration) {
	if err := c.client.Frame(dt); err != nil {
		fmt.Println(err) // the schemas differ, refused, or disconnected for good
	}
}

func (c *gameClient) draw() {
	for _, e := range c.client.Entities() {
		fmt.Printf("a tank at %.0f\n", (*Place)(c.world.Get(e, ecs.ComponentID[Place](&c.world))).X)
	}
}

// A game of two processes, here in one, over a bad network: inputs, interpolation and lag compensation.
func Example_game() {
	link := netsim.NewLink(1, netsim.Config{Latency: 3, Jitter: 1, Loss: 0.05})
	game := newGameServer()
	peer := game.server.Connect(link.Down.Send)
	shots := 0
	client := newGameClient(link.Up.Send, func() Drive { shots++; return Drive{Thrust: 1, Fire: shots == 100} })
	for range 5 * 60 { // five seconds
		link.Up.Receive(func(packet []byte) { _ = peer.Receive(packet) })
		game.step()
		link.Step()
		link.Down.Receive(func(packet []byte) { _ = client.client.Receive(packet) })
		client.frame(time.Second / 60)
	}
	client.draw()
	client.client.Close()
	for range 8 {
		link.Step()
	}
	link.Up.Receive(func(packet []byte) { _ = peer.Receive(packet) })
	// Output:
	// a player joined
	// shot at what was shown true
	// a tank at 47
	// a player left: replication: disconnected by the other end: closed
}
