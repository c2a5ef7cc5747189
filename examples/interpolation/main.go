// Command interpolation draws what a player sees of a ball that swings to and fro: 20 states per second, over a line
// that loses and delays packets, at 144 frames per second. Each row is a frame. On the left the ball is where the
// newest state has it, on the right where package interpolation shows it. At the end it prints how smooth both were.
//
//	go run ./examples/interpolation
package main

import (
	"flag"
	"fmt"
	"log"
	"math"
	"strings"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

type Position struct {
	X, Y float32 `repl:"range=-100:100,step=0.01"`
}

// Drawn has the interpolated position. Position itself stays that of the newest state, to compare both.
type Drawn Position

const (
	ticks = 20   // of the server, per second
	fps   = 144  // of the client
	steps = 1000 // of the network, per second
	width = 34
)

func main() {
	line, rows := flags()
	schema := replication.NewSchema()
	replication.Register[Position](schema)
	link := netsim.NewLink(1, line)
	world, clientWorld := ecs.NewWorld(), ecs.NewWorld()
	server := replication.NewServer(&world, schema, replication.WithTickRate(ticks))
	peer := server.Connect(link.Down.Send)
	client := replication.NewClient(&clientWorld, schema)
	client.SetSend(link.Up.Send)
	view := interpolation.Attach(client)
	interpolation.Into[Position, Drawn](view)

	positionID := ecs.ComponentID[Position](&world)
	ball := world.NewEntity(positionID, ecs.ComponentID[replication.Replicated](&world))
	shown, drawn := ecs.ComponentID[Position](&clientWorld), ecs.ComponentID[Drawn](&clientWorld)

	fmt.Printf(" %-*s   %s\n", width, "newest state", "interpolated")
	var raw, smooth motion
	for step, frame := 0, 0; step < 20*steps; step++ {
		link.Step()
		link.Up.Receive(func(packet []byte) { _ = peer.Receive(packet) })
		if step%(steps/ticks) == 0 {
			swing := math.Sin(2 * math.Pi * float64(step) / (2 * steps)) // one in two seconds
			(*Position)(world.Get(ball, positionID)).X = float32(90 * swing)
			server.Replicate()
		}
		if step*fps/steps < frame {
			continue
		}
		frame++
		link.Down.Receive(func(packet []byte) { _ = client.Receive(packet) })
		if err := client.Frame(time.Second / fps); err != nil {
			log.Fatal(err)
		}
		for _, e := range client.Entities() {
			p, d := (*Position)(clientWorld.Get(e, shown)), (*Drawn)(clientWorld.Get(e, drawn))
			if d == nil || frame < 5*fps { // let it settle
				continue
			}
			raw.add(p.X)
			smooth.add(d.X)
			if raw.frames <= rows {
				fmt.Printf("|%s|  |%s|\n", raw.row(), smooth.row())
			}
		}
	}
	stats := view.Stats()
	fmt.Printf("\n%28s %16s %16s\n", "", "newest state", "interpolated")
	fmt.Printf("%-28s %16.2f %16.2f\n", "largest step of a frame", raw.largest, smooth.largest)
	fmt.Printf("%-28s %16d %16d\n", "frames that stand still", raw.still, smooth.still)
	fmt.Println("The ball itself stands still for a frame or so at each end of its swing.")
	fmt.Printf("delay of %v besides the way of packets, %d of %d frames starved, speed %.3f\n",
		stats.Delay.Round(time.Millisecond), stats.Starved, stats.Frames, stats.Speed)
}

// flags returns the line of the flags, and how many frames to draw.
func flags() (line netsim.Config, rows int) {
	loss := flag.Float64("loss", 0.1, "share of packets that get lost")
	latency := flag.Duration("latency", 60*time.Millisecond, "one way")
	jitter := flag.Duration("jitter", 15*time.Millisecond, "by which packets are late or early")
	flag.IntVar(&rows, "rows", 44, "frames to draw")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(),
			"interpolation draws a swinging ball as a client gets it and as package interpolation shows it.")
		flag.PrintDefaults()
	}
	if flag.Parse(); flag.NArg() > 0 {
		log.Fatalf("interpolation: unexpected argument %q: flags come with a value, as in -loss 0.2", flag.Arg(0))
	}
	switch {
	case *latency < 0 || *jitter < 0:
		log.Fatal("interpolation: -latency and -jitter are not negative")
	case rows < 1:
		log.Fatalf("interpolation: -rows %d: draw one frame or more", rows)
	}
	line = netsim.Config{Loss: *loss, Latency: netsim.Ticks(*latency, steps), Jitter: netsim.Ticks(*jitter, steps)}
	if err := line.Validate(); err != nil {
		log.Fatal(err)
	}
	return line, rows
}

// A motion is what was seen of the ball.
type motion struct {
	frames, still int
	last, largest float64
}

func (m *motion) add(x float32) {
	if step := math.Abs(float64(x) - m.last); m.frames > 0 && step == 0 {
		m.still++
	} else if m.frames > 0 {
		m.largest = max(m.largest, step)
	}
	m.frames, m.last = m.frames+1, float64(x)
}

func (m *motion) row() string {
	at := int((m.last + 100) / 200 * width)
	return strings.Repeat(" ", at) + "o" + strings.Repeat(" ", width-1-at)
}
