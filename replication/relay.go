package replication

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/mlange-42/arche/ecs"
)

// WithSpawnComponents makes the client add components to every entity that it spawns,
// beside those that the server's has. They are zero; the client never touches them again.
//
// With a server's marker among them, the client's world is the source of that server, and
// this process a relay: it costs the first server one peer, however many follow it here.
//
//	client := replication.NewClient(&world, schema, send, replication.WithSpawnComponents(replication.ReplicatedID(&world)))
//	server := replication.NewServer(&world, schema)
//	for { // every tick
//		_ = client.Receive(packet) // what came
//		err := client.Apply()
//		server.Replicate()
//	}
//
// NewClient panics if one of them is a component of the schema, a relation or [Mirrored],
// or is named twice,
// or if the world has no such component.
func WithSpawnComponents(ids ...ecs.ID) ClientOption {
	return func(o *config.ClientOptions) { o.SpawnWith = append(o.SpawnWith, ids...) }
}
