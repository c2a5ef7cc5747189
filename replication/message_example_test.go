package replication_test

import (
	"fmt"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

type Shoot struct{ Gun uint8 }

type Hit struct {
	Damage uint8 `repl:"range=0:100"`
}

type Move struct {
	Turn int8 `repl:"range=-1:1"`
}

// Messages both ways, and inputs. There is no network: packets arrive at once.
func Example_messages() {
	schema := replication.NewSchema()
	replication.Register[Health](schema)
	replication.RegisterMessage[Shoot](schema)
	replication.RegisterMessage[Hit](schema)
	replication.RegisterInput[Move](schema)

	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	var peer *replication.Peer
	var client *replication.Client
	server := replication.NewServer(&world, schema)
	peer = server.Connect(func(packet []byte) error { return client.Receive(packet) })
	client = replication.NewClient(&mirror, schema)
	client.SetSend(func(packet []byte) error { return peer.Receive(packet) })

	replication.OnClientMessage(server, func(_ *replication.Peer, m Shoot) {
		fmt.Println("the server receives a shot of gun", m.Gun)
		target := world.NewEntity(ecs.ComponentID[Health](&world), ecs.ComponentID[replication.Replicated](&world))
		if err := replication.SendToViewers(server, target, Hit{Damage: 7}); err != nil {
			fmt.Println(err)
		}
	})
	replication.OnServerMessage(client, func(m Hit) {
		targets := 0
		for range client.Entities() {
			targets++
		}
		fmt.Println("the client receives a hit of", m.Damage, "and has", targets, "target")
	})

	replication.OnInput(client, func(replication.Tick) Move { return Move{Turn: 1} })

	for tick := range 20 {
		if move, ok := replication.Input[Move](peer, server.Tick()+1); ok && tick == 19 {
			fmt.Println("the server has the input", move.Turn, "for its next tick")
		}
		server.Replicate()
		if tick == 5 {
			if err := replication.SendToServer(client, Shoot{Gun: 2}); err != nil {
				fmt.Println(err)
			}
		}
		if err := client.Frame(time.Second / 60); err != nil {
			fmt.Println(err)
		}
	}

	// Output:
	// the server receives a shot of gun 2
	// the client receives a hit of 7 and has 1 target
	// the server has the input 1 for its next tick
}
