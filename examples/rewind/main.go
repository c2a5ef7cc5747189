// Command rewind compares ways to judge shots. A player with 150 milliseconds of round trip shoots at the edge of a
// target that strafes. The server judges by what his client showed (package rewind), and by the target's nearest
// recorded place. The table shows how often each agrees with the player's screen.
//
//	go run ./examples/rewind
package main

import (
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/rewind"
	"github.com/mlange-42/arche/ecs"
)

type (
	Position struct {
		X float32 `repl:"range=-1000:1000,step=0.01"`
	}
	Shot struct{ Aim float32 }
)

const (
	ticks, fps, steps = 20, 144, 1440 // per second: of the server, of the client, of the network
	half              = 0.4           // width of the target, in metres
)

func hits(aim, x float32) bool { return math.Abs(float64(aim-x)) <= half }
func position(w *ecs.World, e ecs.Entity) *Position {
	return (*Position)(w.Get(e, ecs.ComponentID[Position](w)))
}

// A game has a server with a target, and a client that shoots at it.
type game struct {
	world, mirror ecs.World
	server        *replication.Server
	past          *rewind.History
	peer          *replication.Peer
	client        *replication.Client
	view          *interpolation.Interpolation
	target        ecs.Entity
	speed         float64         // of the target, in metres per second
	places        []float32       // of the target, by tick
	screen        map[uint32]bool // by tick of the input: whether the player saw a hit
	shots         int
	right         [2]int // by rewind, by the nearest tick
}

func main() {
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "rewind compares two ways to judge shots at the edge of a strafing target, over\n"+
			"lines with 75 ms one way that lose 0, 5 and 20 % of the packets. It simulates two\n"+
			"minutes of each and has no flags.")
	}
	if flag.Parse(); flag.NArg() > 0 {
		log.Fatalf("rewind: unexpected argument %q: it takes none", flag.Arg(0))
	}
	fmt.Println("Shots that the server judges as the player's screen showed them:")
	fmt.Printf("%6s %8s %10s %14s\n", "loss", "shots", "rewind", "nearest tick")
	for _, loss := range []float64{0, 0.05, 0.2} {
		schema := replication.NewSchema()
		replication.Register[Position](schema)
		replication.RegisterInput[Shot](schema)
		link := netsim.NewLink(2, netsim.Config{Loss: loss, Latency: 75 * steps / 1000, Jitter: 3})
		g := &game{world: ecs.NewWorld(), mirror: ecs.NewWorld(), speed: 6, screen: map[uint32]bool{}}
		g.server = replication.NewServer(&g.world, schema, replication.WithTickRate(ticks))
		g.past, g.peer = rewind.New(g.server), g.server.Connect(link.Down.Send)
		g.client = replication.NewClient(&g.mirror, schema)
		g.client.SetSend(link.Up.Send)
		g.view = interpolation.Attach(g.client)
		marker := ecs.ComponentID[replication.Replicated](&g.world)
		g.target = g.world.NewEntity(ecs.ComponentID[Position](&g.world), marker)
		for step := range 120 * steps {
			link.Step()
			link.Up.Receive(func(packet []byte) { _ = g.peer.Receive(packet) })
			if step%(steps/ticks) == 0 {
				g.tick()
			}
			if step%(steps/fps) == 0 {
				link.Down.Receive(func(packet []byte) { _ = g.client.Receive(packet) })
				g.draw(time.Second / fps)
			}
		}
		share := func(n int) float64 { return 100 * float64(n) / float64(g.shots) }
		fmt.Printf("%5.0f%% %8d %9.2f%% %13.2f%%\n", 100*loss, g.shots, share(g.right[0]), share(g.right[1]))
	}
}

// tick judges the shot of a tick of the server, and moves the target.
func (g *game) tick() {
	next, place, at := g.server.Tick()+1, position(&g.world, g.target), Position{}
	if shot, ok := replication.Input[Shot](g.peer, next); ok && next > 5*ticks {
		g.shots++
		if view, err := g.past.View(g.peer, next); err == nil && rewind.Get(view, g.target, &at) {
			for i, x := range []float32{at.X, g.places[view.Time().Add(0.5).Tick]} {
				if hits(shot.Aim, x) == g.screen[uint32(next)] {
					g.right[i]++
				}
			}
		}
	}
	if rand.IntN(8) == 0 || math.Abs(float64(place.X)) > 50 {
		g.speed = math.Copysign(g.speed, 20*(rand.Float64()-0.5)-float64(place.X)*rand.Float64())
	}
	place.X += float32(g.speed / ticks)
	g.server.Replicate()
	g.places = append(g.places, place.X)
}

// draw is a frame of the client, in which the player shoots if there is a new tick.
func (g *game) draw(dt time.Duration) {
	_ = g.client.Frame(dt) // does not fail here: the ends have one schema
	tick := g.client.InputTick()
	if _, given := g.screen[uint32(tick)]; !given {
		for _, e := range g.client.Entities() {
			x := position(&g.mirror, e).X
			shot := Shot{Aim: x + float32(half+0.6*rand.Float64()-0.3)}
			g.screen[uint32(tick)] = hits(shot.Aim, x)
			_ = replication.SetInput(g.client, tick, shot)
		}
	}
}
