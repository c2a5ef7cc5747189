package udp_test

import (
	"context"
	"fmt"

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
		fmt.Println(err)
		return
	}
	defer listener.Close()

	client := replication.NewClient(&clientWorld, replication.NewSchema())
	conn, err := udp.Dial(listener.Addr().String(), client)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	for dt := range loop.Frames(context.Background(), 100) {
		listener.Poll()
		server.Replicate()
		conn.Poll()
		if err := client.Frame(dt); err != nil {
			fmt.Println(err)
			return
		}
		if client.Status() == replication.StatusConnected {
			break
		}
	}
	fmt.Println(client.Status())
	// Output: connected
}
