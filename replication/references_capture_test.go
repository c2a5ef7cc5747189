package replication

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// The cost of capturing references.

// TestIdleReferencesAreNotRead: unchanged bytes prove that nothing changed, unless an entity was
// spawned or despawned.
func TestIdleReferencesAreNotRead(t *testing.T) {
	x := newReferring(t)
	child := ecs.ComponentID[rChildOf](x.world)
	var e []ecs.Entity
	for i := range 100 {
		e = append(e, x.spawn(x.target, child))
		x.point(e[i], e[0])
	}
	x.rounds(20)
	block := func(component int) *snapshot.MemberBlock {
		for _, table := range x.server.snap.Capture.Order {
			for i := range table.Members {
				if m := &table.Members[i]; m.Component == component && len(m.Blocks) == 2 {
					return &m.Blocks[1]
				}
			}
		}
		require.FailNow(t, "no such table")
		return nil
	}
	rested := func() [2]int { return [2]int{block(1).Rested, block(3).Rested} }
	before := rested()
	x.rounds(10)
	require.Equal(t, [2]int{before[0] + 10, before[1] + 10}, rested())
	stranger := x.spawn()
	x.round()
	require.Equal(t, [2]int{before[0] + 11, before[1] + 11}, rested(), "somebody nobody knows")
	x.point(e[99], stranger)
	x.rounds(6)
	require.Equal(t, [2]int{5, before[1] + 17}, rested())
	x.world.RemoveEntity(stranger)
	x.round()
	require.Equal(t, [2]int{0, before[1] + 18}, rested(), "somebody who is referred to")
}

// BenchmarkCaptureReferences compares the capture of a component with a reference with that of a
// component of two plain numbers, in a world in which one entity spawns and one despawns in every
// tick.
func BenchmarkCaptureReferences(b *testing.B) {
	const n = 10_000
	type numbers struct{ A, B uint32 }
	type game struct {
		world  ecs.World
		server *Server
		step   func()
	}
	build := func(schema *Schema, id func(w *ecs.World) ecs.ID, parents int, churn bool, set func(w *ecs.World, e, to ecs.Entity, id ecs.ID)) *game {
		g := &game{world: ecs.NewWorld(1024)}
		w := &g.world
		g.server = NewServer(w, schema)
		rng := rand.New(rand.NewPCG(1, 2))
		var e, targets []ecs.Entity
		for range n {
			e = append(e, w.NewEntity(ReplicatedID(w), id(w)))
		}
		for range parents {
			targets = append(targets, w.NewEntity(ReplicatedID(w)))
		}
		for i := range e {
			set(w, e[i], targets[rng.IntN(parents)], id(w))
		}
		g.step = func() {
			if churn {
				w.RemoveEntity(targets[parents-1])
				targets[parents-1] = w.NewEntity(ReplicatedID(w))
			}
			g.server.snap.Tick++
			g.server.snap.CaptureWorld(g.server.refreshPeers)
			g.server.snap.Slots.List()
			g.server.snap.Slots.Settle(g.server.snap.Tick)
		}
		return g
	}
	target := func(w *ecs.World, e, to ecs.Entity, id ecs.ID) { (*rTarget)(w.Get(e, id)).Entity = to }
	relation := func(w *ecs.World, e, to ecs.Entity, id ecs.ID) { w.Relations().Set(e, id, to) }
	plain := func(w *ecs.World, e, to ecs.Entity, id ecs.ID) {
		*(*numbers)(w.Get(e, id)) = numbers{to.ID(), to.Generation()}
	}
	own := NewSchema()
	Register[numbers](own)
	for _, churn := range []bool{false, true} {
		for _, c := range []struct {
			name string
			game *game
		}{
			{"numbers", build(own, ecs.ComponentID[numbers], 100, churn, plain)},
			{"references", build(referenceSchema(), ecs.ComponentID[rTarget], 100, churn, target)},
			{"relations/10", build(referenceSchema(), ecs.ComponentID[rOrbits], 10, churn, relation)},
			{"relations/5000", build(referenceSchema(), ecs.ComponentID[rOrbits], 5000, churn, relation)},
		} {
			b.Run(fmt.Sprintf("%s/churn=%v", c.name, churn), func(b *testing.B) {
				for b.Loop() {
					c.game.step()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/entity")
			})
		}
	}
}
