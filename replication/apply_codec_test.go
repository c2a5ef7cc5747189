package replication

import (
	"fmt"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestFunctionsThatChangeTheWorldAreStopped: a conversion that adds or removes entities or components while Apply writes
// would move the values that Apply writes. Arche stops it, nothing is written elsewhere, and the client goes on.
func TestFunctionsThatChangeTheWorldAreStopped(t *testing.T) {
	type local struct{ N int64 }
	type note struct{ Text string }
	var meddle func()
	s := testSchema()
	Register[cvPlan](s, As(cvToGoal, func(g *cvGoal, p *cvPlan) {
		if meddle != nil {
			meddle()
		}
		cvFromGoal(g, p)
	}))
	for name, change := range map[string]func(w *ecs.World, own, other ecs.Entity){
		"removes its entity":       func(w *ecs.World, own, _ ecs.Entity) { w.RemoveEntity(own) },
		"removes another entity":   func(w *ecs.World, _, other ecs.Entity) { w.RemoveEntity(other) },
		"removes its component":    func(w *ecs.World, own, _ ecs.Entity) { w.Remove(own, ecs.ComponentID[cvPlan](w)) },
		"removes a later one":      func(w *ecs.World, own, _ ecs.Entity) { w.Remove(own, ecs.ComponentID[tPosition](w)) },
		"adds a component":         func(w *ecs.World, own, _ ecs.Entity) { w.Add(own, ecs.ComponentID[local](w)) },
		"adds one with a pointer":  func(w *ecs.World, own, _ ecs.Entity) { w.Add(own, ecs.ComponentID[note](w)) },
		"resets the world":         func(w *ecs.World, _, _ ecs.Entity) { w.Reset() },
		"puts another in its slot": func(w *ecs.World, own, _ ecs.Entity) { w.RemoveEntity(own); w.NewEntity() },
	} {
		for _, when := range []string{"as it changes", "as a component comes", "as it spawns"} {
			t.Run(fmt.Sprint(name, " ", when), func(t *testing.T) {
				x := connectedWire(t, s)
				position, plan := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[cvPlan](x.world)
				var all []ecs.Entity
				for range 5 {
					all = append(all, x.spawn(position, plan))
				}
				x.rounds(8)
				own, ok := x.mirrored(all[2])
				require.True(t, ok)
				other, _ := x.mirrored(all[0])
				ecs.ComponentID[local](x.mirror)
				ecs.ComponentID[note](x.mirror)
				for i, e := range all {
					(*tPosition)(x.world.Get(e, position)).X = float32(10 + i)
				}
				(*cvPlan)(x.world.Get(all[2], plan)).steps = []cvStep{{X: 7}}
				switch when {
				case "as a component comes":
					x.world.Add(all[2], ecs.ComponentID[tHealth](x.world))
				case "as it spawns":
					x.spawn(position, plan)
				}
				x.deliver(x.replicate()...)
				tried := 0
				meddle = func() {
					tried++
					change(x.mirror, own, other)
				}
				require.PanicsWithValue(t, "attempt to modify a locked world", func() { _ = x.client.Apply() })
				meddle = nil
				require.Equal(t, 1, tried)
				require.False(t, x.mirror.IsLocked())
				x.rounds(8)
				for i, e := range all {
					at, ok := x.mirrored(e)
					require.True(t, ok)
					require.InDelta(t, 10+i, (*tPosition)(x.mirror.Get(at, ecs.ComponentID[tPosition](x.mirror))).X, 0.01)
				}
			})
		}
	}
}
