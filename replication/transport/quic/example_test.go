package quic_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/loop"
	"github.com/arche-replicate/arche-replicate/replication/transport/quic"
)

// Server and client in one loop; in a game they are two processes.
func Example() {
	world, clientWorld := ecs.NewWorld(), ecs.NewWorld()
	server := replication.NewServer(&world, replication.NewSchema())
	server.OnJoin(func(_ *replication.Peer, token []byte) error {
		if string(token) != "the login's token" { // ask the login server
			return errors.New("log in first")
		}
		return nil
	})
	listener, err := quic.Listen("127.0.0.1:0", server) // in a game with a certificate, or WithSelfSigned
	if err != nil {
		fmt.Println(err)
		return
	}
	defer listener.Close()
	address, hash := listener.Addr().String(), listener.Fingerprint() // clients have to know them

	client := replication.NewClient(&clientWorld, replication.NewSchema(),
		replication.WithJoinData([]byte("the login's token")))
	conn, err := quic.Dial(address, client, quic.WithFingerprint(hash))
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
