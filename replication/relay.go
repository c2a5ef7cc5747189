package replication

import (
	"fmt"

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
	return func(o *clientOptions) { o.spawnWith = append(o.spawnWith, ids...) }
}

// checkSpawnComponents panics if the components can't be on all mirrored entities.
func (c *applier) checkSpawnComponents() {
	for i, id := range c.spawnWith {
		info, ok := ecs.ComponentInfo(c.world, id)
		if !ok {
			panic(fmt.Sprintf("replication: WithSpawnComponents: the client's world has no component %v: use IDs of this world", id))
		}
		var why string
		switch {
		case id == c.marker:
			why = "every mirrored entity has it anyway"
		case info.IsRelation:
			why = "an entity has room for one relation, which may be the server's"
		}
		for k, own := range c.components {
			if id == own && !c.resources.set.Has(k) {
				why = "it is in the schema, so the server says which entities have it"
			}
		}
		for _, other := range c.spawnWith[:i] {
			if id == other {
				why = "it is named twice"
			}
		}
		if why != "" {
			panic(fmt.Sprintf("replication: WithSpawnComponents: %v: %s", info.Type, why))
		}
	}
}
