package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// skipAllocationTest is [replicationtest.SkipAllocations].
func skipAllocationTest(t *testing.T) {
	t.Helper()
	replicationtest.SkipAllocations(t)
}

// allocsOf returns the number of allocations in a single call of fn. The warm-up run of
// testing.AllocsPerRun is an empty one.
func allocsOf(fn func()) float64 {
	first := true
	return testing.AllocsPerRun(1, func() {
		if !first {
			fn()
		}
		first = false
	})
}

// allocPlayer has a text that stays constant and a number that changes.
type allocPlayer struct {
	Name  string   `repl:"max=16"`
	Tag   [12]byte `repl:"max=12"`
	Score uint32   `repl:"counter"`
}

// TestSteadyStateDoesNotAllocate: once all buffers have grown to their size, a tick of a moving
// world allocates nothing, on the server or the client.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	skipAllocationTest(t)
	for _, coding := range []Coding{Packed, Compact} {
		t.Run(coding.String(), func(t *testing.T) { checkAllocations(t, coding) })
	}
}

func checkAllocations(t *testing.T, coding Coding) {
	schema := testSchema()
	Register[allocPlayer](schema)
	Register[cvShip](schema, With(cvTime{}))
	x := newReusingLink(t, schema, WithCoding(coding))
	world, peer := x.world, x.peer

	marker := ReplicatedID(world)
	position, rotation := ecs.ComponentID[tPosition](world), ecs.ComponentID[tRotation](world)
	health, frozen := ecs.ComponentID[tHealth](world), ecs.ComponentID[tFrozen](world)
	player, ship := ecs.ComponentID[allocPlayer](world), ecs.ComponentID[cvShip](world)
	var moving []ecs.Entity
	for i := range 300 {
		moving = append(moving, world.NewEntity(marker, position, rotation, player, ship))
		(*allocPlayer)(world.Get(moving[i], player)).Name = "somebody"
		if i%3 == 0 {
			world.NewEntity(marker, position, health, frozen) // idle
		}
	}
	tick := 0
	replicate := func() {
		tick++
		for i, e := range moving {
			p := (*tPosition)(world.Get(e, position))
			p.X += 0.05
			p.Y += float32(i%7) * 0.01
			if p.X > 90 {
				p.X = -90
			}
			(*tRotation)(world.Get(e, rotation)).Q = [4]float32{float32(tick) * 0.01, 0.1, 0.2, 1}
			(*allocPlayer)(world.Get(e, player)).Score++
			(*cvShip)(world.Get(e, ship)).Level++
		}
		x.server.Replicate()
	}
	round := func() { replicate(); x.receive(); x.apply(); x.acknowledge() }
	for range 600 { // the client's tables grow to all IDs that can be distinguished
		round()
	}
	require.True(t, peer.Connected())
	before := peer.Stats().Updates
	allocs := map[string]float64{}
	measure := func(name string, fn func()) {
		const runs = 50 // runs of the full sequence, because each step needs those before it
		total := 0.0
		for range runs {
			for _, part := range []struct {
				name string
				fn   func()
			}{{"replicate", replicate}, {"receive", x.receive}, {"apply", x.apply}, {"acknowledge", x.acknowledge}} {
				if part.name == name {
					total += allocsOf(fn)
				} else {
					part.fn()
				}
			}
		}
		allocs[name] = total / runs
	}
	measure("replicate", replicate)
	measure("receive", x.receive)
	measure("apply", x.apply)
	measure("acknowledge", x.acknowledge)
	t.Logf("allocations per tick: %v", allocs)
	require.Greater(t, peer.Stats().Updates-before, uint64(4*50*300-1), "all were sent as updates every tick")
	for name, n := range allocs {
		require.LessOrEqual(t, n, 0.1, name)
	}
}
