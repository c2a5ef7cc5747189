package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/mlange-42/arche/ecs"
)

// WithMaxEntities bounds the client's memory: n is the largest number of entities that the server replicates at a time,
// whether this client may see them or not. The default is 1,048,576. Don't count resources, the components of entities
// under conditions, or entities that despawn in the tick in which others spawn.
//
// In a larger world, the server withholds the entities that have no slot at the client, which [PeerStats.Withheld]
// counts, and replicates all others.
//
// Panics on less than 1 or more than 2^30.
func WithMaxEntities(n int) ClientOption {
	if n < 1 || n > 1<<30 {
		panic(fmt.Sprintf("replication: WithMaxEntities(%d): use 1 to 2^30", n))
	}
	return config.ClientFunc(func(o *config.ClientOptions) { o.MaxEntities = n })
}

// WithoutCompact makes the client refuse the coding [Compact], which takes it up to 4 MB.
func WithoutCompact() ClientOption {
	return config.ClientFunc(func(o *config.ClientOptions) { o.NoCompact = true })
}

// WithSpawnComponents makes the client add components to every entity that it spawns, besides those of the server's
// entity. They are zero; the client never touches them again. With the marker of another server among them, that server
// can replicate the client's world: this process is a relay.
//
// NewClient panics if one of them is a component of the schema, a relation or [Replica], if one is named twice, or if
// the world has no such component.
func WithSpawnComponents(ids ...ecs.ID) ClientOption {
	return config.ClientFunc(func(o *config.ClientOptions) { o.SpawnWith = append(o.SpawnWith, ids...) })
}

// WithJoinData sets data that the client sends, unencrypted, whenever it asks the server for a session, such as a name
// and a ticket: see [Server.OnJoin]. NewClient copies it, and panics if it has more than 512 bytes, or more than the
// [WithMTU] less 41.
func WithJoinData(data []byte) ClientOption {
	return config.ClientFunc(func(o *config.ClientOptions) { o.JoinData = data })
}
