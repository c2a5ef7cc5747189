package interpolation_test

import (
	"fmt"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
)

type Position struct {
	X float32 `repl:"range=-1000:1000,step=0.01"`
}

// A server moves a ball by 1 in each of its 20 ticks per second. A client at 60 frames per second shows it in between.
func Example() {
	schema := replication.NewSchema()
	replication.Register[Position](schema)
	world, clientWorld := ecs.NewWorld(), ecs.NewWorld()
	server := replication.NewServer(&world, schema, replication.WithTickRate(20))
	var client *replication.Client
	peer := server.Connect(func(packet []byte) error { return client.Receive(packet) })
	client = replication.NewClient(&clientWorld, schema)
	client.SetSend(peer.Receive)
	shown := interpolation.Attach(client)

	position := ecs.ComponentID[Position](&world)
	ball := world.NewEntity(position, ecs.ComponentID[replication.Replicated](&world))
	for frame := range 300 {
		if frame%3 == 0 {
			(*Position)(world.Get(ball, position)).X++
			server.Replicate()
		}
		if err := client.Frame(time.Second / 60); err != nil {
			fmt.Println(err)
			return
		}
		if frame < 294 {
			continue
		}
		at, _ := shown.Time()
		for _, e := range client.Entities() {
			x := (*Position)(clientWorld.Get(e, ecs.ComponentID[Position](&clientWorld))).X
			fmt.Printf("tick %d and %2.0f/64: %.2f\n", at.Tick, 64*at.Fraction, x)
		}
	}
	// Output:
	// tick 96 and 45/64: 97.70
	// tick 97 and  3/64: 98.05
	// tick 97 and 24/64: 98.38
	// tick 97 and 46/64: 98.72
	// tick 98 and  3/64: 99.05
	// tick 98 and 25/64: 99.39
}
