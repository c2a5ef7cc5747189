package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A ClientOption configures a [Client].
type ClientOption func(*config.ClientOptions)

// WithMaxEntities sets how large a server's world the client has room for: n is the most
// entities that the server replicates at a time, whether this client may see them or not.
// The default is 1,048,576. What comes on top need not be counted: resources, what entities
// have under conditions, and the slots of those that end in the tick in which others begin.
//
// It bounds the client's memory: there are 2n slots, as many again for each condition in the
// client's schema, and up to 257 states of each are kept. A world of at most n entities is
// mirrored whole. The server is told of the bound and withholds entities that have no slot
// below it, so that all others are mirrored still: [PeerStats.Withheld] counts them. A packet
// that names a slot beyond the bound is refused as malformed.
//
// Panics on less than 1 or more than 2^30.
func WithMaxEntities(n int) ClientOption {
	if n < 1 || n > 1<<30 {
		panic(fmt.Sprintf("replication: WithMaxEntities(%d): use 1 to 2^30", n))
	}
	return func(o *config.ClientOptions) { o.MaxEntities = n }
}

// WithNonce sets the number that tells this client's introduction from others, for
// tests and recordings; those of later introductions follow from it. They are random by
// default. Never use one twice on a connection: the server would take the second client
// for the first and go on where that one was.
func WithNonce(nonce uint64) ClientOption {
	return func(o *config.ClientOptions) { o.Seed, o.Seeded = nonce, true }
}

// WithClientMTU sets the largest packet that the client sends, in bytes. The default is
// 1200. Only messages and inputs make large packets: others take at most 219 bytes, which
// is why the least is 256.
//
// Panics on less than 256 or more than 65,507.
func WithClientMTU(bytes int) ClientOption {
	if bytes < minClientMTU || bytes > wire.MaxMTU {
		panic(fmt.Sprintf("replication: a client's MTU of %d bytes: use %d to %d", bytes, minClientMTU, wire.MaxMTU))
	}
	return func(o *config.ClientOptions) { o.MTU = bytes }
}

// minClientMTU has room for the largest ack packet.
const minClientMTU = 256

// WithoutCompact makes the client tell servers that it does not take [Compact], which it would
// need up to 2 MB for.
func WithoutCompact() ClientOption {
	return func(o *config.ClientOptions) { o.NoCompact = true }
}

// WithServerTimeout makes the client ask whether the server still knows it, when nothing
// came from it in so many calls of Apply. The default is 600, ten seconds at 60 per
// second; 0 is never. A server sends something every second (see [WithTickRate]), also
// when its world rests.
//
// If the server knows it, all goes on as if nothing had been. If not, because it was
// started anew or has dropped the client, a new session begins; see [Client.Reconnect].
//
// Panics if it is negative.
func WithServerTimeout(applies int) ClientOption {
	if applies < 0 {
		panic(fmt.Sprintf("replication: a server timeout of %d calls of Apply: use 1 or more, or 0 for none", applies))
	}
	return func(o *config.ClientOptions) { o.Timeout = applies }
}

const defaultServerTimeout = 600

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
