// Command ticks plays a match of the arena with one client, and prints how long that takes per tick, as JSON: natively,
// and in WebAssembly. All is in one process and goes by ticks, so both do exactly the same.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

func main() {
	ticks := flag.Int("ticks", 600, "`number` of ticks that count")
	flag.Parse()
	var all []Result
	for _, coding := range []replication.Coding{replication.Packed, replication.Compact} {
		r, err := play(coding, *ticks)
		if err != nil {
			fmt.Fprintln(os.Stderr, "ticks:", err)
			os.Exit(1)
		}
		all = append(all, r)
	}
	if err := json.NewEncoder(os.Stdout).Encode(all); err != nil {
		fmt.Fprintln(os.Stderr, "ticks:", err)
		os.Exit(1)
	}
}

// Result is what one coding takes.
type Result struct {
	Compact  bool
	Entities int     // at the end
	Bytes    float64 // received per tick, mean
	Receive  float64 // µs per tick, median
	Frame    float64 // with interpolation
}

const (
	seed     = 1
	bots     = 400
	rate     = 60
	oneWay   = 3 // ticks
	warmUp   = 300
	tickTime = time.Second / rate
)

// play plays a match with packets in every tick, at a round trip of 6 ticks.
func play(coding replication.Coding, ticks int) (r Result, err error) {
	g := game.New(seed, bots, rate)
	schema, model := game.NewSchema()
	server := replication.NewServer(&g.World, schema, replication.WithSeed(seed))
	host := game.NewHost(g, server, model, rate)
	world := ecs.NewWorld(1024)
	client := replication.NewClient(&world, schema, replication.WithSeed(seed))
	player := game.NewPlayer("Ada", &world, client)
	player.Interpolate()
	down, up := netsim.NewPipe(seed, netsim.Config{Latency: oneWay}), netsim.NewPipe(seed, netsim.Config{Latency: oneWay})
	peer := server.Connect(down.Send, replication.WithCoding(coding))
	client.SetSend(up.Send)

	var receive, frame []float64
	bytes := 0
	for tick := range warmUp + ticks {
		up.Step()
		up.Receive(func(p []byte) { _ = peer.Receive(p) }) // counted by the peer
		host.Step()
		server.Replicate()
		down.Step()
		var packets [][]byte
		down.Receive(func(p []byte) { packets = append(packets, slices.Clone(p)) })
		begin := time.Now()
		for _, p := range packets {
			_ = client.Receive(p) // counted
		}
		received := time.Now()
		if err := player.Frame(tickTime); err != nil {
			return r, err
		}
		shown := time.Now()
		if tick < warmUp {
			continue
		}
		for _, p := range packets {
			bytes += len(p)
		}
		receive = append(receive, micros(received.Sub(begin)))
		frame = append(frame, micros(shown.Sub(received)))
	}
	for range client.Entities() {
		r.Entities++
	}
	if r.Entities < bots {
		return r, fmt.Errorf("the client shows %d entities only", r.Entities)
	}
	if n := client.Stats().RefusedPackets; n > 0 {
		return r, fmt.Errorf("the client refused %d packets", n)
	}
	r.Compact, r.Bytes = client.Stats().Compact, float64(bytes)/float64(ticks)
	r.Receive, r.Frame = median(receive), median(frame)
	return r, nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
