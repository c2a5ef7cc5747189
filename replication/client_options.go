package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/mlange-42/arche/ecs"
)

// WithMaxEntities sets how large a server's world the client has room for: n is the most
// entities that the server replicates at a time, whether this client may see them or not.
// The default is 1,048,576. What comes on top need not be counted: resources, what entities
// have under conditions, and the slots of those that end in the tick in which others begin.
//
// It bounds the client's memory: there are 2n slots, as many again for each condition in the
// client's schema, and up to 241 states of each are kept. A world of at most n entities is
// mirrored completely. The client sends the bound to the server, which withholds entities that have no slot
// below it, so that all others are mirrored still: [PeerStats.Withheld] counts them. A packet
// that names a slot beyond the bound is refused as malformed.
//
// Panics on less than 1 or more than 2^30.
func WithMaxEntities(n int) ClientOption {
	if n < 1 || n > 1<<30 {
		panic(fmt.Sprintf("replication: WithMaxEntities(%d): use 1 to 2^30", n))
	}
	return config.ClientFunc(func(o *config.ClientOptions) { o.MaxEntities = n })
}

// WithoutCompact makes the client announce to servers that it does not take [Compact], for which it
// would need up to 4 MB.
func WithoutCompact() ClientOption {
	return config.ClientFunc(func(o *config.ClientOptions) { o.NoCompact = true })
}

// WithSpawnComponents makes the client add components to every entity that it spawns,
// beside those that the server's has. They are zero; the client never touches them again.
//
// With a server's marker among them, the client's world is the source of that server, and
// this process a relay: it costs the first server one peer, however many follow it here.
//
//	client := replication.NewClient(&world, schema, send,
//		replication.WithSpawnComponents(replication.ReplicatedID(&world)))
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
	return config.ClientFunc(func(o *config.ClientOptions) { o.SpawnWith = append(o.SpawnWith, ids...) })
}

// WithJoinData gives the client something to show when it asks the server for a session, such as a
// name and a ticket: see [Server.OnJoin]. It is sent with each introduction, unencrypted, of which
// there are several if packets get lost. NewClient takes a copy and panics if there are more than
// 512 bytes, or more than 41 less than its [WithMTU].
func WithJoinData(data []byte) ClientOption {
	return config.ClientFunc(func(o *config.ClientOptions) { o.JoinData = data })
}
