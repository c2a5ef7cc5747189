package replication

import (
	"encoding/json"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// anyEntity returns the handle with an ID and a generation, whether or not a world ever returned
// it.
func anyEntity(t testing.TB, id, generation uint32) (e ecs.Entity) {
	text, err := json.Marshal([2]uint32{id, generation})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &e))
	return e
}

// TestAliveAnswersForEveryHandle: for every possible ID and generation, alive agrees with a query
// and never panics.
func TestAliveAnswersForEveryHandle(t *testing.T) {
	w := ecs.NewWorld(4)
	id := ecs.ComponentID[tPosition](&w)
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
				asked = append(asked, anyEntity(t, number, generation))
			}
		}
		for _, e := range asked {
			require.Equal(t, found[e], archeutil.Alive(&w, e), "%v", e)
			require.Equal(t, found[e] && w.Has(e, id), archeutil.LookUp(&w, e, id) != nil, "%v", e)
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
		if !archeutil.Alive(&w, e) || archeutil.Alive(&w, gone) {
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
		{"the next of a dead one", anyEntity(b, gone.ID(), gone.Generation()+1), false},
		{"beyond the pool", anyEntity(b, 1<<20, 0), false},
	} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				if archeutil.Alive(&w, c.entity) != c.alive {
					b.Fatal()
				}
			}
		})
	}
}
