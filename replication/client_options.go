package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/mlange-42/arche/ecs"
)

// WithMaxEntities sets how large a server's world the client has room for: n is the largest number of entities that the
// server replicates at a time, whether this client may see them or not. The default is 1,048,576. Don't count
// resources, the components of entities under conditions, or entities that despawn in the tick in which others spawn.
//
// It bounds the client's memory: there are 2n slots, as many again for each condition in the client's schema, and up to
// 241 states of each are kept. A world of at most n entities is replicated completely. The client sends the bound to
// the server, which withholds entities that have no slot below it and still replicates all others: [PeerStats.Withheld]
// counts them. When the world has at most n entities again, they get slots below it and are replicated. A packet that
// names a slot beyond the bound is refused as malformed.
//
// Panics on less than 1 or more than 2^30.
func WithMaxEntities(n int) ClientOption {
	if n < 1 || n > 1<<30 {
		panic(fmt.Sprintf("replication: WithMaxEntities(%d): use 1 to 2^30", n))
	}
	return config.ClientFunc(func(o *config.ClientOptions) { o.MaxEntities = n })
}

// WithoutCompact makes the client announce to servers that it does not accept [Compact], for which it would need up to
// 4 MB.
func WithoutCompact() ClientOption {
	return config.ClientFunc(func(o *config.ClientOptions) { o.NoCompact = true })
}

// WithSpawnComponents makes the client add components to every entity that it spawns, besides those of the server's
// entity. They are zero; the client never touches them again.
//
// With a server's marker among them, the client's world is the source of that server, and this process is a relay: it
// costs the first server one peer, however many clients follow the relay.
//
//	client := replication.NewClient(&world, schema, send,
//		replication.WithSpawnComponents(ecs.ComponentID[replication.Replicated](&world)))
//	server := replication.NewServer(&world, schema)
//	for { // every tick
//		_ = client.Receive(packet) // for each packet that has arrived
//		err := client.Apply()
//		server.Replicate()
//	}
//
// NewClient panics if one of them is a component of the schema, a relation or [Replica], if one is named twice, or if
// the world has no such component.
func WithSpawnComponents(ids ...ecs.ID) ClientOption {
	return config.ClientFunc(func(o *config.ClientOptions) { o.SpawnWith = append(o.SpawnWith, ids...) })
}

// WithJoinData sets data that the client shows when it asks the server for a session, such as a name and a ticket: see
// [Server.OnJoin]. Every hello carries it, unencrypted; there are several if packets get lost. NewClient copies it, and
// panics if it has more than 512 bytes, or more than the [WithMTU] less 41.
func WithJoinData(data []byte) ClientOption {
	return config.ClientFunc(func(o *config.ClientOptions) { o.JoinData = data })
}
