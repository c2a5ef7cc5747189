package replication

import (
	"math/rand/v2"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

func TestCopiedMarkerIsDetected(t *testing.T) {
	x, e, move := crowd(t, 2)
	marker := ReplicatedID(x.world)
	twin := x.spawn(ecs.ComponentID[tPosition](x.world))
	*(*Replicated)(x.world.Get(twin, marker)) = *(*Replicated)(x.world.Get(e[0], marker))
	move(twin, 9)
	move(e[0], 3)
	x.rounds(3)
	x.requireEqual()
	require.EqualValues(t, 1, x.server.Stats().CopiedMarkers)
	require.EqualValues(t, 3, x.server.Stats().Entities)
	require.InDelta(t, 3, x.position(e[0]).X, 0.01)
	require.InDelta(t, 9, x.position(twin).X, 0.01)

	// An invalid marker counts as a copy as well.
	*(*Replicated)(x.world.Get(twin, marker)) = Replicated{slot: 1 << 31, owner: x.server.snap.Capture.Owner}
	x.rounds(3)
	x.requireEqual()
	require.EqualValues(t, 2, x.server.Stats().CopiedMarkers)
}

func TestMarkerLostAndGained(t *testing.T) {
	x, e, move := crowd(t, 2)
	marker := ReplicatedID(x.world)
	before, _ := x.server.NetID(e[0])
	x.world.Remove(e[0], marker)
	_, ok := x.server.NetID(e[0])
	require.False(t, ok)
	x.rounds(3)
	x.requireEqual()
	require.EqualValues(t, 1, x.client.Stats().Despawns)
	move(e[0], 5)
	x.world.Add(e[0], marker)
	x.rounds(3)
	x.requireEqual()
	require.InDelta(t, 5, x.position(e[0]).X, 0.01)
	after, _ := x.server.NetID(e[0])
	require.NotEqual(t, before, after, "another incarnation")

	// Between two ticks.
	x.world.Remove(e[0], marker)
	x.world.Add(e[0], marker)
	x.rounds(5)
	x.requireEqual()

	// An entity with nothing but the marker, and one with everything but the marker.
	x.world.Remove(e[1], ecs.ComponentID[tPosition](x.world))
	plain := x.world.NewEntity(ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tLocal](x.world))
	x.rounds(3)
	x.requireEqual()
	x.world.Add(plain, marker)
	x.rounds(3)
	x.requireEqual()
	require.EqualValues(t, 3, x.server.Stats().Entities)
}

// TestMarkerFlickersUnderLoss adds and removes the marker as an entity that enters and leaves
// replication.
func TestMarkerFlickersUnderLoss(t *testing.T) {
	oneGoroutine(t)
	seed := seedOf(t)
	x, entities, move := crowd(t, 6, WithSeed(seed))
	rng := rand.New(rand.NewPCG(seed, 4))
	marker := ReplicatedID(x.world)
	o := newTruth()
	o.record(x.server)
	for _, versions := range o.versions {
		versions[0].tick = 0 // as if it had always been so
	}
	watcher := &end{world: x.mirror, client: x.client, last: map[NetID]uint32{}}
	var held [][]byte // late packets
	for range 3000 {
		for _, e := range entities {
			move(e, rng.Float32()-0.5)
			if rng.IntN(6) == 0 {
				if x.world.Has(e, marker) {
					x.world.Remove(e, marker)
				} else {
					x.world.Add(e, marker)
				}
			}
		}
		packets := x.replicate()
		o.record(x.server)
		for _, p := range packets {
			switch rng.IntN(4) {
			case 0:
			case 1:
				held = append(held, p)
			default:
				x.deliver(p)
			}
		}
		for len(held) > rng.IntN(8) {
			i := rng.IntN(len(held))
			x.deliver(held[i])
			held[i] = held[len(held)-1]
			held = held[:len(held)-1]
		}
		up := x.apply()
		watcher.check(t, x.server, o)
		if rng.IntN(3) > 0 {
			x.answer(up...)
		}
	}
	x.rounds(60)
	x.requireEqual()
}
