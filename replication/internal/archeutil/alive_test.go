package archeutil

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

type spot struct{ X, Y, Z float32 }

// TestAliveAnswersForEveryHandle: for every possible ID and generation, alive agrees with a query
// and never panics.
func TestAliveAnswersForEveryHandle(t *testing.T) {
	w := ecs.NewWorld(4)
	id := ecs.ComponentID[spot](&w)
	var before []ecs.Entity
	check := func() {
		t.Helper()
		found := map[ecs.Entity]bool{}
		filter := ecs.All()
		for q := w.Query(&filter); q.Next(); {
			found[q.Entity()] = true
		}
		asked := append([]ecs.Entity{}, before...)
		for _, generation := range []uint32{0, 1, 2, 3, 4, 1<<32 - 1} {
			for _, number := range []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 100, 1<<31 - 1, 1<<32 - 1} {
				asked = append(asked, replicationtest.Entity(t, number, generation))
			}
		}
		for _, e := range asked {
			require.Equal(t, found[e], Alive(&w, e), "%v", e)
			require.Equal(t, found[e] && w.Has(e, id), LookUp(&w, e, id) != nil, "%v", e)
		}
	}
	spawn := func(n int) (spawned []ecs.Entity) {
		for i := range n {
			if i%2 == 0 {
				spawned = append(spawned, w.NewEntity())
			} else {
				spawned = append(spawned, w.NewEntity(id))
			}
		}
		before = append(before, spawned...)
		return spawned
	}
	check()
	for range 3 {
		for round := range 3 {
			spawned := spawn(5)
			check()
			for _, e := range spawned[round:] {
				w.RemoveEntity(e)
				check()
			}
		}
		w.Reset()
		check()
		spawned := spawn(4)
		w.RemoveEntity(spawned[3])
		w.RemoveEntity(spawned[1])
		check()
		dump := w.DumpEntities()
		w.Reset()
		w.LoadEntities(&dump)
		check()
		w.Reset()
		ecs.NewBuilder(&w, id).NewBatch(3)
		check()
		w.Batch().RemoveEntities(ecs.All(id))
		check()
		w.Reset()
	}
}

// TestAliveAllocatesNothing: not even for handles at which Arche panics.
func TestAliveAllocatesNothing(t *testing.T) {
	w := ecs.NewWorld()
	e := w.NewEntity()
	gone := w.NewEntity()
	w.RemoveEntity(gone)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if !Alive(&w, e) || Alive(&w, gone) {
			t.Fail()
		}
	}))
}

func BenchmarkAlive(b *testing.B) {
	w := ecs.NewWorld()
	e, gone := w.NewEntity(), w.NewEntity()
	w.RemoveEntity(gone)
	for _, c := range []struct {
		name   string
		entity ecs.Entity
		alive  bool
	}{
		{"alive", e, true},
		{"dead", gone, false},
		{"zero", ecs.Entity{}, false},
		{"the next of a dead one", replicationtest.Entity(b, gone.ID(), gone.Generation()+1), false},
		{"beyond the pool", replicationtest.Entity(b, 1<<20, 0), false},
	} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				if Alive(&w, c.entity) != c.alive {
					b.Fatal()
				}
			}
		})
	}
}
