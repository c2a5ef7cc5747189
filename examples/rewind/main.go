// Command rewind compares ways to judge shots. A player with 150 milliseconds of round trip shoots at the edge of a target
// that strafes, as he sees it, and the server finds out whether he hit: by what his client showed (package rewind), by
// the target's nearest recorded place, and by where the target is now. The table shows how often each agrees with the
// player's screen.
//
//	go run ./examples/rewind
package main

import (
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/playout"
	"github.com/arche-replicate/arche-replicate/replication/rewind"
	"github.com/mlange-42/arche/ecs"
)

type Position struct {
	X, Y float32 `repl:"range=-1000:1000,step=0.01"`
}
type Shot struct {
	Fire bool
	Aim  float32
}

const (
	ticks = 20   // of the server, per second
	fps   = 144  // of the client
	steps = 1440 // of the network, per second
	half  = 0.4  // width of the target, in metres
)

func hits(aim, x float32) bool { return math.Abs(float64(aim-x)) <= half }

func main() {
	seconds := flag.Int("seconds", 120, "to play for each line of the table")
	flag.Parse()
	fmt.Printf("%6s %8s %10s %14s %10s %8s\n", "loss", "shots", "rewind", "nearest tick", "now", "refused")
	for _, loss := range []float64{0, 0.05, 0.2} {
		play(loss, *seconds)
	}
}

// play plays a game and prints a line of the table.
func play(loss float64, seconds int) {
	schema := replication.NewSchema()
	replication.Register[Position](schema)
	replication.RegisterInput[Shot](schema)
	link := netsim.NewLink(2, netsim.Config{Loss: loss, Latency: netsim.Ticks(75*time.Millisecond, steps), Jitter: 3})
	world, clientWorld := ecs.NewWorld(), ecs.NewWorld()
	server := replication.NewServer(&world, schema, replication.WithTickRate(ticks))
	history := rewind.New(server)
	rewind.Keep[Position](history)
	peer := server.Connect(link.Down.Send)
	client := replication.NewClient(&clientWorld, schema, link.Up.Send)
	view := playout.New(client)
	playout.Interpolate[Position](view)
	id, mirrored := ecs.ComponentID[Position](&world), ecs.ComponentID[Position](&clientWorld)
	target := world.NewEntity(id, replication.ReplicatedID(&world))
	random, speed := rand.New(rand.NewPCG(1, 1)), 6.0 // metres per second
	screen := map[uint32]bool{}                       // by tick of the input: what the player saw
	var past []float32                                // places of the target, by tick
	var shots, refused int
	var right [3]int // rewind, nearest tick, now
	for step, frame, given := 0, 0, uint32(0); step < seconds*steps; step++ {
		link.Step()
		link.Up.Receive(func(packet []byte) { _ = peer.Receive(packet) })
		if step%(steps/ticks) == 0 {
			next, place := server.Tick()+1, (*Position)(world.Get(target, id))
			if shot, ok := replication.Input[Shot](peer, next); ok && shot.Fire {
				var at Position
				shots++
				if seen, err := history.View(peer, next); err != nil {
					refused++
				} else if rewind.Get(seen, target, &at) {
					tick, part := seen.Time()
					for i, x := range []float32{at.X, past[tick+uint32(part+0.5)], place.X} {
						if hits(shot.Aim, x) == screen[next] {
							right[i]++
						}
					}
				}
			}
			if random.IntN(8) == 0 || math.Abs(float64(place.X)) > 50 {
				speed = math.Copysign(speed, -float64(place.X)*random.Float64()+20*(random.Float64()-0.5))
			}
			place.X += float32(speed / ticks)
			server.Replicate()
			past = append(past, place.X)
		}
		if step*fps/steps < frame {
			continue
		}
		frame++
		link.Down.Receive(func(packet []byte) { _ = client.Receive(packet) })
		client.Advance(time.Second / fps)
		if err := client.Apply(); err != nil {
			log.Fatal(err)
		}
		view.Advance(time.Second / fps)
		if tick := client.InputTick(); tick > given {
			given = tick
			var shot Shot
			for _, e := range client.Entities() {
				x := (*Position)(clientWorld.Get(e, mirrored)).X
				shot = Shot{Fire: frame > 5*fps && random.IntN(4) == 0, Aim: x + float32(half+0.6*random.Float64()-0.3)}
				screen[tick] = hits(shot.Aim, x)
			}
			_ = replication.SetInput(client, tick, shot)
		}
	}
	share := func(n int) float64 { return 100 * float64(n) / float64(max(shots, 1)) }
	fmt.Printf("%5.0f%% %8d %9.2f%% %13.2f%% %9.2f%% %8d\n",
		100*loss, shots, share(right[0]), share(right[1]), share(right[2]), refused)
}
