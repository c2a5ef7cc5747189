package predict_test

import (
	"fmt"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/predict"
)

type Position struct {
	X float32 `repl:"range=-1000:1000,step=0.01"`
}

type Drive struct{ X int8 } // the input

// newGame is for both ends.
func newGame() (*replication.Schema, *predict.Model[Drive]) {
	schema := replication.NewSchema()
	replication.Register[Position](schema)
	replication.RegisterInput[Drive](schema)
	model := predict.NewModel[Drive](schema, func(t *predict.Tick) {
		position, drive := ecs.ComponentID[Position](t.World), ecs.ComponentID[Drive](t.World)
		for q := t.Query(position, drive); q.Next(); {
			(*Position)(q.Get(position)).X += float32((*Drive)(q.Get(drive)).X)
		}
	})
	predict.State[Position](model)
	return schema, model
}

// A player holds a key. The client shows it in the same frame; the server has it a few ticks later.
func Example() {
	world, clientWorld := ecs.NewWorld(), ecs.NewWorld()
	link := netsim.NewLink(1, netsim.Config{Latency: 4}) // ticks, one way

	schema, model := newGame()
	server := replication.NewServer(&world, schema)
	host := predict.Serve(server, model)
	peer := server.Connect(link.Down.Send)
	position := ecs.ComponentID[Position](&world)
	ship := world.NewEntity(position, ecs.ComponentID[replication.Replicated](&world))
	host.Own(ship, peer)

	schema, model = newGame()
	client := replication.NewClient(&clientWorld, schema)
	client.SetSend(link.Up.Send)
	var keys Drive
	predict.Attach(client, model, func() Drive { return keys })

	for frame := range 210 {
		link.Step()
		link.Up.Receive(func(packet []byte) { _ = peer.Receive(packet) })
		host.Step()
		server.Replicate()

		if frame >= 200 {
			keys.X = 1
		}
		link.Down.Receive(func(packet []byte) { _ = client.Receive(packet) })
		if err := client.Frame(time.Second / 60); err != nil {
			fmt.Println(err)
			return
		}
		for _, e := range client.Entities() {
			if x := (*Position)(clientWorld.Get(e, ecs.ComponentID[Position](&clientWorld))).X; frame >= 199 {
				fmt.Printf("client %2.0f  server %2.0f\n", x, (*Position)(world.Get(ship, position)).X)
			}
		}
	}
	// Output:
	// client  0  server  0
	// client  1  server  0
	// client  2  server  0
	// client  3  server  0
	// client  4  server  0
	// client  5  server  0
	// client  6  server  1
	// client  7  server  2
	// client  8  server  3
	// client  9  server  4
	// client 10  server  5
}
