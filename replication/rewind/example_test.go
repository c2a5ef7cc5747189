package rewind_test

import (
	"fmt"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
	"github.com/arche-replicate/arche-replicate/replication/rewind"
)

type Position struct {
	X float32 `repl:"range=-1000:1000,step=0.01,place"`
}

type Shot struct{ Fire bool }

// A target runs. The player shoots at where the screen shows it, and the server finds it there, not where it is by then.
func Example() {
	schema := replication.NewSchema()
	replication.Register[Position](schema)
	replication.RegisterInput[Shot](schema)
	world, clientWorld := ecs.NewWorld(), ecs.NewWorld()
	server := replication.NewServer(&world, schema, replication.WithTickRate(20))
	history := rewind.New(server)
	var client *replication.Client
	peer := server.Connect(func(packet []byte) error { return client.Receive(packet) })
	client = replication.NewClient(&clientWorld, schema)
	client.SetSend(peer.Receive)
	interpolation.Attach(client)

	replication.OnInput(client, func(replication.Tick) Shot { return Shot{Fire: true} })
	position, drawn := ecs.ComponentID[Position](&world), ecs.ComponentID[Position](&clientWorld)
	target := world.NewEntity(position, ecs.ComponentID[replication.Replicated](&world))
	var screen []float32 // where each frame drew the target
	for tick := range 100 {
		if shot, ok := replication.Input[Shot](peer, server.Tick()+1); ok && shot.Fire && tick == 99 {
			view, err := history.View(peer, server.Tick()+1)
			var at Position
			if err == nil && rewind.Get(view, target, &at) {
				fmt.Printf("the target is at %.2f and was shown at %.2f\n",
					(*Position)(world.Get(target, position)).X, at.X)
			}
		}
		(*Position)(world.Get(target, position)).X++
		server.Replicate()
		if err := client.Frame(time.Second / 20); err != nil {
			fmt.Println(err)
			return
		}
		for _, e := range client.Entities() {
			screen = append(screen, (*Position)(clientWorld.Get(e, drawn)).X)
		}
	}
	fmt.Printf("the latest frames drew it at %.2f\n", screen[len(screen)-6:])
	// Output:
	// the target is at 99.00 and was shown at 94.69
	// the latest frames drew it at [93.67 94.69 95.70 96.72 97.73 98.75]
}
