package replication

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// Entities that enter and leave the view all the time.

// TestInterestFlips: a thousand entities enter and leave the view, hundreds in every tick, while
// they change and despawn and their slots are reused.
func TestInterestFlips(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	flips := ticksOf(50_000, 10_000)
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprintf("keep=%v", keep), func(t *testing.T) {
			g := newStage(t, 1000)
			bad := netsim.Config{Latency: 3, Jitter: 2, Loss: 0.25, Duplicate: 0.1, Reorder: 0.1, ReorderBy: 6}
			interests := g.interests(keep)
			for _, i := range interests {
				g.connect(i.Interest, bad)
			}
			for range 20 {
				g.tick(t)
			}
			for n := 0; n < flips; {
				for range g.rng.IntN(400) {
					g.flip(g.actors[g.rng.IntN(len(g.actors))])
					n++
				}
				for range g.rng.IntN(100) {
					g.act(g.actors[g.rng.IntN(len(g.actors))])
				}
				for range g.rng.IntN(8) {
					g.end(g.rng.IntN(len(g.actors)))
				}
				for len(g.actors) < 1000 && g.rng.IntN(8) > 0 {
					g.enter(g.rng)
				}
				g.tick(t)
			}
			settle := func() {
				for _, e := range g.ends {
					e.link.SetConfig(netsim.Config{Latency: 2})
				}
				for range 60 {
					g.tick(t)
				}
			}
			settle()
			for i, e := range g.ends {
				kept := g.requireView(t, e, keep, interests[i].name)
				require.Equal(t, keep, kept > 100, interests[i].name)
			}
			for _, a := range g.actors {
				if !a.visible {
					g.flip(a)
				}
			}
			settle()
			for i := range g.actors { // kept entities are updated again
				if i%2 == 0 {
					g.act(g.actors[i])
				}
			}
			settle()
			for i, e := range g.ends {
				g.requireView(t, e, keep, interests[i].name+", all visible")
			}
			for len(g.actors) > 10 {
				g.end(0)
			}
			settle()
			for i, e := range g.ends {
				g.requireView(t, e, keep, interests[i].name+", most ended")
			}
		})
	}
}

// TestLargeEntitiesFlip: entities of several packets enter and leave the view while their parts are
// in flight.
func TestLargeEntitiesFlip(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	ticks := ticksOf(400, 300)
	for _, keep := range []bool{false, true} {
		seed := seedOf(t)
		rng := rand.New(rand.NewPCG(seed, 1))
		w := ecs.NewWorld()
		s := NewServer(&w, hugeSchema(), WithSeed(seed), WithMTU(300))
		huge, marker := ecs.ComponentID[tHuge](&w), ReplicatedID(&w)
		set := s.NewEntitySet()
		e := connect(s, seed, netsim.Config{Latency: 2, Jitter: 1, Loss: 0.25, Duplicate: 0.1}, WithSeed(1))
		e.peer.SetInterest(Interest{Sets: []*EntitySet{set}, Keep: keep})
		var big []ecs.Entity
		in := map[ecs.Entity]bool{}
		o := newTruth()
		for tick := range ticks + 100 {
			if tick == ticks {
				e.link.SetConfig(netsim.Config{Latency: 1})
			}
			for len(big) < 6 {
				big = append(big, w.NewEntity(huge, marker))
			}
			if i := rng.IntN(len(big)); tick < ticks {
				b := big[i]
				switch rng.IntN(12) {
				case 0, 1, 2, 3:
					if in[b] = !in[b]; in[b] {
						set.Add(b)
					} else {
						set.Remove(b)
					}
				case 4:
					(*tHuge)(w.Get(b, huge)).Cells[rng.IntN(512)] = rng.Uint64()
				case 5:
					w.RemoveEntity(b)
					delete(in, b)
					big[i] = big[len(big)-1]
					big = big[:len(big)-1]
				}
			}
			tickAll(t, s, o, []*end{e})
		}
		shown := 0
		for id, m := range e.client.Entities() {
			entity := s.snap.Slots.Info[id.Slot].Entity
			require.Equal(t, s.snap.Slots.Info[id.Slot].Generation, id.Generation)
			if in[entity] {
				shown++
				require.Equal(t, o.at(id, uint32(s.Tick())), stateOf(faceOf(s.schema), e.world, m))
			} else {
				require.True(t, keep)
			}
		}
		n := 0
		for _, b := range big {
			if in[b] {
				n++
			}
		}
		require.Equal(t, n, shown, "keep %v", keep)
		require.NotZero(t, e.peer.Stats().Parts)
	}
}
