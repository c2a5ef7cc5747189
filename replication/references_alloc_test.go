package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestReferencesDoNotAllocate: once all buffers have grown, references that change in every tick,
// and entities that spawn and despawn under references and relations allocate nothing. Changing
// relation targets costs what Arche allocates: a byte for every call of Relations.Set.
func TestReferencesDoNotAllocate(t *testing.T) {
	skipAllocationTest(t)
	for _, retarget := range []bool{false, true} {
		x := newReusingLink(t, referenceSchema())
		world, client := x.world, x.client

		marker := ReplicatedID(world)
		target, squad, child := ecs.ComponentID[rTarget](world), ecs.ComponentID[rSquad](world), ecs.ComponentID[rChildOf](world)
		var holders, parents []ecs.Entity
		for range 6 {
			parents = append(parents, world.NewEntity(marker))
		}
		for i := range 200 {
			holders = append(holders, world.NewEntity(marker, target, squad, child))
			world.Relations().Set(holders[i], child, parents[i%4])
		}
		holders = append(holders, world.NewEntity(marker, target, squad)) // not a child, as it spawns and despawns
		shown := true                                                     // the last parent, and the last holder
		hides := func(e ecs.Entity) bool { return e == parents[5] || e == holders[200] }
		x.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return shown || !hides(e) }})
		tick := 0
		step := func() {
			tick++
			for i, e := range holders {
				(*rTarget)(world.Get(e, target)).Entity = holders[(i+tick)%len(holders)]
				(*rSquad)(world.Get(e, squad)).Men[tick%3] = parents[(i+tick)%len(parents)]
				if retarget && i < 200 {
					world.Relations().Set(e, child, parents[(i+tick)%len(parents)])
				}
			}
			shown = tick%4 > 1
		}
		for range 600 {
			step()
			x.round()
		}
		before := client.Stats()
		const runs = 100
		total := 0.0
		for range runs {
			step()
			total += allocsOf(x.round)
		}
		t.Logf("%v allocations per tick", total/runs)
		require.GreaterOrEqual(t, client.Stats().Spawns-before.Spawns, uint64(runs/4))
		if retarget {
			require.GreaterOrEqual(t, total/runs, 200.0, "or has Arche mended that?")
			total -= runs * 200
		}
		require.LessOrEqual(t, total/runs, 0.1)
	}
}
