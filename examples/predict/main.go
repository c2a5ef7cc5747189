// Command predict draws one ship where the server has it, where its player sees it, who predicts it, and where a
// spectator sees it, who interpolates. Each row is a moment. The player turns once a second; at times nothing gets to
// the server. At the end it prints how soon turns were seen, and what corrected the predictions.
//
//	go run ./examples/predict
package main

import (
	"flag"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/predict"
	"github.com/mlange-42/arche/ecs"
)

type Position struct {
	X float32 `repl:"range=-100:100,step=0.01"`
}

type Drive struct{ X int8 } // the input: -1 to the left, 1 to the right

const ticks, fps, steps, turn, width = 60, 100, 1200, 0.9 * 1200, 90 // three rates, when a second's turn is, columns

// newGame returns what both ends have.
func newGame() (*replication.Schema, *predict.Model[Drive]) {
	schema := replication.NewSchema()
	replication.Register[Position](schema)
	replication.RegisterInput[Drive](schema)
	model := predict.NewModel[Drive](schema, step)
	predict.State[Position](model)
	return schema, model
}

// step simulates a tick, at the server and at the player's client.
func step(t *predict.Tick) {
	position, drive := ecs.ComponentID[Position](t.World), ecs.ComponentID[Drive](t.World)
	for q := t.Query(position, drive); q.Next(); {
		p := (*Position)(q.Get(position))
		p.X = max(-25, min(p.X+float32((*Drive)(q.Get(drive)).X)*40/ticks, 25))
	}
}

// A viewer is a client, and what its screen shows of the ship.
type viewer struct {
	*replication.Client
	world ecs.World
	link  *netsim.Link
	peer  *replication.Peer
	x     float32
	key   int8          // whose effect was seen last
	delay time.Duration // until its turn was seen
}

// frame runs a frame, in which the key was held for some time.
func (v *viewer) frame(key int8, held time.Duration) {
	if err := v.Frame(time.Second / fps); err != nil {
		log.Fatal(err)
	}
	for _, e := range v.Entities() {
		x := place(&v.world, e)
		if v.key != key && (x-v.x)*float32(key) > 0 {
			v.key, v.delay = key, held
		}
		v.x = x
	}
}

func place(w *ecs.World, e ecs.Entity) float32 {
	return (*Position)(w.Get(e, ecs.ComponentID[Position](w))).X
}

func main() {
	network, outage := flags()
	var player, spectator viewer
	viewers := []*viewer{&spectator, &player}
	world, now, key := ecs.NewWorld(), 0, int8(0) // now is in steps of the network
	schema, model := newGame()
	server := replication.NewServer(&world, schema, replication.WithTickRate(ticks))
	host := predict.Serve(server, model)
	for i, v := range viewers {
		v.world, v.link = ecs.NewWorld(), netsim.NewLink(uint64(i), network)
		v.peer = server.Connect(v.link.Down.Send)
		schema, model = newGame() // the player's, in the end
		v.Client = replication.NewClient(&v.world, schema)
		v.SetSend(v.link.Up.Send)
		interpolation.Attach(v.Client)
	}
	predictor := predict.Attach(player.Client, model, func() Drive { return Drive{key} })
	ship := world.NewEntity(ecs.ComponentID[Position](&world), ecs.ComponentID[replication.Replicated](&world))
	host.Own(ship, player.peer)
	fmt.Println("key  i: interpolated by a spectator   S: the server's   P: predicted by its player")
	for ; now < 30*steps-steps/5; now++ {
		key = int8(1 - 2*((now+steps-turn)/steps%2))
		up := network
		if since := now%(5*steps) - 4*steps - turn + steps/10; since >= 0 && since < int(outage.Seconds()*steps) {
			up.Loss = 1
		}
		player.link.Up.SetConfig(up)
		for _, v := range viewers {
			v.link.Step()
			v.link.Up.Receive(func(packet []byte) { _ = v.peer.Receive(packet) })
			v.link.Down.Receive(func(packet []byte) { _ = v.Receive(packet) })
			if now%(steps/fps) == 0 {
				v.frame(key, time.Duration((now+steps-turn)%steps)*time.Second/steps)
			}
		}
		if now%(steps/ticks) == 0 {
			host.Step()
			server.Replicate()
		}
		if since := now - 3*steps; since >= 0 && since%(steps/30) == 0 && since/(steps/30) < 90 {
			track := []byte(strings.Repeat(" ", width))
			for i, x := range []float32{spectator.x, place(&world, ship), player.x} {
				track[int((x+30)/60*width)] = "iSP"[i]
			}
			fmt.Printf("%s |%s|\n", map[int8]string{-1: "<- ", 1: " ->"}[key], track)
		}
	}
	s := predictor.Stats()
	fmt.Printf("\nthe last turn was seen after %v predicted, %v interpolated\n", player.delay, spectator.delay)
	fmt.Printf("%d ticks, %d without their input at the server; %d rollbacks, of %d ticks at most, %d in all\n",
		s.Ticks, s.Missed, s.Rollbacks, s.Deepest, s.Again)
	fmt.Printf("%d corrections drawn; causes: %+v\n", s.Corrections, s.Causes)
}

// flags returns the network, and for how long nothing gets to the server at times.
func flags() (network netsim.Config, outage time.Duration) {
	rtt := flag.Duration("rtt", 150*time.Millisecond, "round trip")
	flag.Float64Var(&network.Loss, "loss", 0.05, "share of packets that get lost")
	flag.DurationVar(&outage, "outage", time.Second/4, "for how long nothing gets to the server, every 5 s")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "predict draws a ship where its player predicts it, where the\n"+
			"server has it, and where others see it. Try -rtt 0, -rtt 400ms, -loss 0.3, -outage 0.")
		flag.PrintDefaults()
	}
	flag.Parse()
	network.Latency = netsim.Ticks(*rtt/2, steps)
	if err := network.Validate(); err != nil {
		log.Fatal("predict: ", err)
	}
	return network, outage
}
