//go:build !js

package web_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/transport/web"
)

// Server and client in one loop; in a game the client runs in a page, with the same Dial.
func Example() {
	world, clientWorld := ecs.NewWorld(), ecs.NewWorld()
	server := replication.NewServer(&world, replication.NewSchema())
	handler := web.NewHandler(server)
	defer handler.Close()

	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/play", handler)
	site := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = site.Serve(socket) }()
	defer func() { _ = site.Close() }()

	client := replication.NewClient(&clientWorld, replication.NewSchema())
	conn, err := web.Dial("http://"+socket.Addr().String()+"/play", client)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	for dt := range web.Frames(context.Background()) {
		handler.Poll()
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
