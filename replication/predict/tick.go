package predict

import (
	"fmt"
	"math/rand/v2"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A Tick is one run of the step. A client simulates a tick again when it learns that it was wrong about one before, so
// the step must depend on nothing but the components of what it simulates and what does not change: not on the clock,
// counters, or the order of maps.
//
// An input is a component: before each step, the entities that a client controls have its input for the tick in their
// component I. A server's bots may write theirs.
type Tick struct {
	Number  replication.Tick // the tick that is simulated
	World   *ecs.World
	Seconds float64 // that a tick takes

	end  end
	mask ecs.Mask
	ids  []ecs.ID // scratch memory
	rng  *rand.Rand
	pcg  rand.PCG
	keys map[name]struct{} // spawned in this run
}

// end is one of the two ends of a connection.
type end interface {
	simulated() ecs.ID // the component of what is simulated here
	spawn(n name, ids []ecs.ID) ecs.Entity
	despawn(e ecs.Entity)
	identity(e ecs.Entity) uint64 // the same at both ends
	predictor() *Predictor        // or nil
}

// name is what both ends know an entity by that a step has spawned.
type name struct {
	by   ecs.Entity
	tick replication.Tick
	key  uint8
}

// Query returns a query for the entities that are simulated at this end and have the given components. A server
// simulates all replicated entities; a client only what it predicts.
func (t *Tick) Query(ids ...ecs.ID) ecs.Query {
	t.mask = ecs.All(ids...)
	t.mask.Set(t.end.simulated(), true)
	return t.World.Query(&t.mask)
}

// Spawn makes an entity with the given components, and [Born], which the server replicates. by is who spawns it, such
// as the shooter, and key distinguishes what it spawns in a tick. The client shows its own entity at once, and it
// becomes the replica of the server's when that arrives; one that the server has not spawned goes away. If by ends in
// the same tick, the client can't know the server's entity for its own: name what lives on, such as the shooter of what
// bursts. Set the components of what is returned.
//
// Panics if the same is spawned twice in a tick, if by is not simulated here, or within a query.
func (t *Tick) Spawn(by ecs.Entity, key uint8, ids ...ecs.ID) ecs.Entity {
	if !t.World.Alive(by) || !t.World.Has(by, t.end.simulated()) {
		panic("predict: Spawn by an entity that is not simulated: use one that Tick.Query returns")
	}
	if t.World.IsLocked() {
		panic("predict: Spawn within a query: note what is to be spawned, and do it behind the loop")
	}
	n := name{by, t.Number, key}
	if _, twice := t.keys[n]; twice {
		panic(fmt.Sprintf("predict: Spawn by the same entity with key %d twice in a tick: give each its own", key))
	}
	t.keys[n] = struct{}{}
	return t.end.spawn(n, ids)
}

// Despawn removes an entity that is simulated. At a client it stays in the world with the component [Parked], in case
// that the server disagrees, until the server has removed it.
//
// Panics if the entity is not simulated here, if it has spawned something in this tick, or within a query.
func (t *Tick) Despawn(e ecs.Entity) {
	if !t.World.Alive(e) || !t.World.Has(e, t.end.simulated()) {
		panic("predict: Despawn of an entity that is not simulated: use one that Tick.Query returns")
	}
	if t.World.IsLocked() {
		panic("predict: Despawn within a query: note what is to go, and do it behind the loop")
	}
	for n := range t.keys {
		if n.by == e {
			panic("predict: Despawn of an entity that has spawned something in this tick: despawn it in the next one")
		}
	}
	t.end.despawn(e)
}

// Rand returns random numbers for an entity in this tick: the same ones in every run of the tick and at both ends.
// Each call begins them anew, and what was returned before is no longer valid.
func (t *Tick) Rand(e ecs.Entity) *rand.Rand {
	t.pcg.Seed(wire.Mix64(uint64(t.Number)+wire.Golden64), wire.Mix64(t.end.identity(e)))
	if t.rng == nil {
		t.rng = rand.New(&t.pcg)
	}
	return t.rng
}

// simulate runs the step.
func (t *Tick) simulate(m *model, number replication.Tick) {
	t.Number = number
	if t.keys == nil {
		t.keys = map[name]struct{}{}
	}
	clear(t.keys)
	m.step(t)
	if t.World.IsLocked() {
		panic("predict: the step has left a query open: close it when the loop ends before its last entity")
	}
}
