package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/mlange-42/arche/ecs"
)

// applier makes a world show what was received.
type applier struct {
	schema *schema.Schema
	stats  *ClientStats
	recv   *receiver

	world *ecs.World

	components []ecs.ID // none for resources
	marker     ecs.ID
	spawnWith  []ecs.ID // components of the user's for all that is spawned
	mark       worldWatch

	origin      uint64 // of the present session's NetIDs
	shownOrigin uint64 // of those that the world shows
	leftover    bool   // the world may show what the present session does not know

	resources resourceTypes

	names entityNames // of what was ever mirrored, if there are entities in messages or inputs

	replicas  replicaTable
	referrers referrers
	relations relations
	hooks     hooks
	expected  expectations

	divergence *Divergence // the first that was found

	scratch applyScratch
}

func newApplier(w *ecs.World, s *schema.Schema, recv *receiver, stats *ClientStats, slots uint32, spawnWith []ecs.ID) applier {
	c := applier{
		schema: s, stats: stats, recv: recv, world: w,
		marker:    MirroredID(w),
		mark:      watchWorld(w),
		spawnWith: spawnWith,
		referrers: referrers{limit: slots},
	}
	for i := range s.Components {
		id := ecs.ID{} // none for resources
		if !s.Components[i].Resource {
			id = ecs.TypeID(w, s.Components[i].Typ)
		}
		c.components = append(c.components, id)
	}
	c.resources.init(w, s)
	c.checkSpawnComponents()
	return c
}

// relationTypes returns which components are relations of Arche.
func (c *applier) relationTypes() (set delta.Set) {
	for k, id := range c.components {
		if info, ok := ecs.ComponentInfo(c.world, id); ok && info.IsRelation && !c.resources.set.Has(k) {
			set.Add(k)
		}
	}
	return set
}
