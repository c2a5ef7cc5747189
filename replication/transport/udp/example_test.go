package udp_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/loop"
	"github.com/arche-replicate/arche-replicate/replication/transport/udp"
)

// Server and client in one loop; in a game they are two processes.
func Example() {
	world, clientWorld := ecs.NewWorld(), ecs.NewWorld()
	server := replication.NewServer(&world, replication.NewSchema())
	listener, err := udp.Listen("127.0.0.1:0", server)
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()

	client := replication.NewClient(&clientWorld, replication.NewSchema()) // Dial gives it its send function
	conn, err := udp.Dial(listener.Addr().String(), client)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	for dt := range loop.Frames(context.Background(), 100) {
		listener.Poll()
		server.Replicate()
		conn.Poll()
		if err := client.Frame(dt); err != nil {
			log.Fatal(err)
		}
		if client.Status() == replication.StatusConnected {
			break
		}
	}
	fmt.Println(client.Status())
	// Output: connected
}
