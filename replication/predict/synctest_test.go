package predict

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

var _ TB = testing.TB(nil)

// syncShips fills a world with four ships, three of which have players.
func syncShips(w *ecs.World) (players []ecs.Entity) {
	for i := range 4 {
		e := w.NewEntity(ecs.ComponentID[Position](w), ecs.ComponentID[Velocity](w), ecs.ComponentID[replication.Replicated](w))
		*get[Position](w, e) = Position{float32(i), 0.5}
		if i < 3 {
			players = append(players, e)
		}
	}
	return players
}

// syncInputs returns inputs at random, with shots.
func syncInputs(seed uint64) func(player int, tick replication.Tick) Move {
	rng := rand.New(rand.NewPCG(seed, 9))
	now := [3]Move{}
	return func(player int, _ replication.Tick) Move {
		in := &now[player]
		if rng.IntN(20) == 0 {
			in.X, in.Y = float32(rng.IntN(3)-1), float32(rng.IntN(3)-1)
		}
		in.Fire = 0
		if rng.IntN(100) == 0 {
			in.Fire = uint8(1 + rng.IntN(2))
		}
		return *in
	}
}

func TestSyncTestOfACleanGame(t *testing.T) {
	replicationtest.OneGoroutine(t)
	for _, depth := range []int{1, 7, 24, 63} {
		ticks := 10_000
		if testing.Short() || depth > 24 {
			ticks = 1000
		}
		spawned, random := 0, 0.
		r := &rules{damping: 0.97, wall: 20, seen: func(t *Tick, e ecs.Entity, in Move) {
			spawned += int(in.Fire)
			random += t.Rand(e).Float64() - 0.5
		}}
		switch depth {
		case 7:
			r.states = []StateOption{Exact()}
		case 24:
			engine, saved := float32(0), [64]float32{}
			r.extra = func(_ *replication.Schema, m *Model[Move]) {
				External(m, func(tick replication.Tick) { saved[tick%64] = engine },
					func(tick replication.Tick) { engine = saved[tick%64] })
			}
			r.step = func(t *Tick) {
				eachShip(t, func(e ecs.Entity, v *Velocity) {
					if e.ID() == 1 {
						engine += v.X
						v.Y += engine / 1000
					}
				})
			}
		}
		_, m := newGame(r)
		SyncTest(t, m, depth, ticks, syncShips, syncInputs(uint64(depth)))
		require.Greater(t, spawned, ticks/50*depth, "there were shots, in all runs")
	}
}

// syncTB is a TB that keeps the message.
type syncTB struct{ message string }

func (r *syncTB) Helper() {}

func (r *syncTB) Fatalf(format string, args ...any) {
	r.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// A syncFault is a change of the game that can't be simulated again. It begins in tick 100.
type syncFault struct {
	name    string
	step    func(t *Tick)
	extra   func(s *replication.Schema, m *Model[Move])
	setup   func(w *ecs.World)
	want    []string // in the message
	anyTick bool     // the tick is not defined
}

type (
	syncHeat  struct{ Value float32 }    // in the schema, and no State
	syncLocal struct{ Notes []syncNote } // not in the schema
	syncNote  struct{ text string }
)

type syncScore struct{ points [2]int }

type syncBehind struct{ ecs.Relation }

type syncWall struct{ Hits int32 }

// eachShip calls fn for all ships in the order of rows.
func eachShip(t *Tick, fn func(e ecs.Entity, v *Velocity)) {
	var list []ecs.Entity
	for q := t.Query(ecs.ComponentID[Velocity](t.World)); q.Next(); {
		if !q.Has(ecs.ComponentID[Shot](t.World)) {
			list = append(list, q.Entity())
		}
	}
	for _, e := range list {
		fn(e, get[Velocity](t.World, e))
	}
}

// inTick100 calls fn for one ship, in tick 100.
func inTick100(fn func(t *Tick, e ecs.Entity, v *Velocity)) func(t *Tick) {
	return func(t *Tick) {
		eachShip(t, func(e ecs.Entity, v *Velocity) {
			if t.Number == 100 && e.ID() == 2 {
				fn(t, e, v)
			}
		})
	}
}

func toShips[T any](w *ecs.World) {
	var list []ecs.Entity
	for q := w.Query(ecs.All(ecs.ComponentID[Velocity](w))); q.Next(); {
		list = append(list, q.Entity())
	}
	for _, e := range list {
		w.Add(e, ecs.ComponentID[T](w))
	}
}

func plantedFaults() []syncFault {
	var counter int
	seen := map[ecs.Entity]bool{}
	source := rand.New(rand.NewPCG(3, 4))
	var body struct{ at [2 * depth]float32 } // of a physics engine
	const second = "entity {2 0} (player 1): "
	return []syncFault{
		{
			name: "map order", anyTick: true,
			step: func(t *Tick) {
				eachShip(t, func(e ecs.Entity, _ *Velocity) { seen[e] = true })
				n := float32(0)
				for e := range seen {
					n++
					get[Velocity](t.World, e).Y += n / 8
				}
			},
			want: []string{": predict.Velocity.Y was ", "the order of a map"},
		},
		{
			name: "clock", step: inTick100(func(_ *Tick, _ ecs.Entity, v *Velocity) { v.X += float32(time.Now().UnixNano()%1e6 + 1) }),
			want: []string{second + "predict.Velocity.X was ", "the clock"},
		},
		{
			name: "global variable", step: inTick100(func(_ *Tick, _ ecs.Entity, v *Velocity) { counter++; v.Y += float32(counter) }),
			want: []string{second + "predict.Velocity.Y was ", "global variables"},
		},
		{
			name: "random numbers", step: inTick100(func(_ *Tick, _ ecs.Entity, v *Velocity) { v.X = source.Float32() }),
			want: []string{second + "predict.Velocity.X was 0.", " at first, and 0.", "Tick.Rand"},
		},
		{
			name: "component that is no State", extra: func(s *replication.Schema, _ *Model[Move]) { replication.Register[syncHeat](s) },
			setup: toShips[syncHeat],
			step: inTick100(func(t *Tick, e ecs.Entity, v *Velocity) {
				h := get[syncHeat](t.World, e)
				h.Value += 0.1
				v.X += h.Value
			}),
			want: []string{second + "predict.syncHeat.Value was changed by the step from 0 to 0.1.", "no State"},
		},
		{
			name: "component that is not registered", setup: toShips[syncLocal],
			step: inTick100(func(t *Tick, e ecs.Entity, _ *Velocity) {
				l := get[syncLocal](t.World, e)
				l.Notes = append(l.Notes, syncNote{"hit"})
			}),
			want: []string{second + "predict.syncLocal.Notes was changed by the step from 0 elements to 1 elements.", "no State"},
		},
		{
			name: "entity made past Tick.Spawn",
			step: inTick100(func(t *Tick, _ ecs.Entity, _ *Velocity) { t.World.NewEntity(ecs.ComponentID[Position](t.World)) }),
			want: []string{"was added by the step past Tick.Spawn"},
		},
		{
			name: "entity removed past Tick.Despawn",
			step: inTick100(func(t *Tick, e ecs.Entity, _ *Velocity) { t.World.RemoveEntity(e) }),
			want: []string{"entity {2 0} (player 1) was removed by the step past Tick.Despawn"},
		},
		{
			name: "component added", step: inTick100(func(t *Tick, e ecs.Entity, _ *Velocity) { t.World.Add(e, ecs.ComponentID[syncHeat](t.World)) }),
			want: []string{second + "predict.syncHeat was added by the step"},
		},
		{
			name: "sum in the order of rows", anyTick: true,
			step: func(t *Tick) {
				var sum float32
				var list []*Velocity
				eachShip(t, func(e ecs.Entity, v *Velocity) { sum += get[Position](t.World, e).X / 3; list = append(list, v) })
				for _, v := range list {
					v.X += sum
				}
			},
			want: []string{": predict.Velocity.X was ", "the order of rows"},
		},
		{
			name: "resource", setup: func(w *ecs.World) { ecs.AddResource(w, &syncScore{}) },
			step: inTick100(func(t *Tick, _ ecs.Entity, _ *Velocity) { ecs.GetResource[syncScore](t.World).points[1]++ }),
			want: []string{"resource predict.syncScore.points[1] was changed by the step from 0 to 1.", "Resources are not restored"},
		},
		{
			name: "physics engine without restore", anyTick: true,
			extra: func(_ *replication.Schema, m *Model[Move]) {
				External(m, func(replication.Tick) {}, func(replication.Tick) {})
			},
			step: func(t *Tick) {
				eachShip(t, func(e ecs.Entity, v *Velocity) { body.at[e.ID()] += v.X + 1; v.Y += body.at[e.ID()] / 1e3 })
			},
			want: []string{": predict.Velocity.Y was ", "outside of the world"},
		},
	}
}

func moreSyncFaults() []syncFault {
	return []syncFault{
		{
			name: "first in the order of rows", anyTick: true,
			step: func(t *Tick) {
				first := true
				eachShip(t, func(_ ecs.Entity, v *Velocity) {
					if first {
						v.X++
					}
					first = false
				})
			},
			want: []string{": predict.Velocity.X was ", "the order of rows"},
		},
		{
			name: "keys in the order of rows", anyTick: true,
			step: func(t *Tick) {
				key := uint8(100)
				eachShip(t, func(e ecs.Entity, _ *Velocity) {
					key++
					if t.Number%50 == 0 {
						*get[Shot](t.World, t.Spawn(e, key, ecs.ComponentID[Position](t.World), ecs.ComponentID[Velocity](t.World),
							ecs.ComponentID[Shot](t.World))) = Shot{9}
					}
				})
			},
			want: []string{" is there only after the ", " (spawned by {"},
		},
		{
			name:  "entity that is not simulated",
			setup: func(w *ecs.World) { w.NewEntity(ecs.ComponentID[syncWall](w)) },
			step: func(t *Tick) {
				for q := t.World.Query(ecs.All(ecs.ComponentID[syncWall](t.World))); q.Next(); {
					if w := (*syncWall)(q.Get(ecs.ComponentID[syncWall](t.World))); t.Number >= 100 {
						w.Hits++
					}
				}
			},
			want: []string{"predict.syncWall.Hits was changed by the step from 0 to 1.", "This entity is not simulated"},
		},
		{
			name: "relation", setup: toShips[syncBehind],
			step: inTick100(func(t *Tick, e ecs.Entity, _ *Velocity) {
				relations, id, target := t.World.Relations(), ecs.ComponentID[syncBehind](t.World), e
				if relations.Get(e, id) == e {
					target = ecs.Entity{}
				}
				relations.Set(e, id, target)
			}),
			want: []string{"entity {2 0} (player 1): predict.syncBehind's target was changed by the step from one value to another.", "Relations are not restored"},
		},
		{
			name: "component removed", setup: toShips[syncHeat],
			step: inTick100(func(t *Tick, e ecs.Entity, _ *Velocity) { t.World.Remove(e, ecs.ComponentID[syncHeat](t.World)) }),
			want: []string{"predict.syncHeat was removed by the step"},
		},
		{
			name: "resource added",
			step: inTick100(func(t *Tick, _ ecs.Entity, _ *Velocity) { ecs.AddResource(t.World, &syncScore{}) }),
			want: []string{"resource predict.syncScore was added by the step"},
		},
		{
			name: "resource with a map and pointers",
			setup: func(w *ecs.World) {
				ecs.AddResource(w, &syncGrid{cells: map[int]*syncCell{1: {}, 2: {}, 3: {}}, self: &syncGrid{}, world: w})
				g := ecs.GetResource[syncGrid](w)
				g.self = g
			},
			step: inTick100(func(t *Tick, _ ecs.Entity, _ *Velocity) { ecs.GetResource[syncGrid](t.World).cells[2].n++ }),
			want: []string{"resource predict.syncGrid.cells was changed by the step from one value to another.", "Resources are not restored"},
		},
	}
}

type syncGrid struct {
	cells map[int]*syncCell
	self  *syncGrid
	world *ecs.World
	any   any
	call  func()
}

type syncCell struct{ n int }

// find returns what SyncTest reports of a fault.
func (f *syncFault) find(depth int) string {
	_, m := newGame(&rules{damping: 0.97, wall: 20, extra: f.extra})
	clean := m.step
	m.step = func(t *Tick) {
		if clean(t); t.Number >= 100 {
			f.step(t)
		}
	}
	setup := func(w *ecs.World) []ecs.Entity {
		players := syncShips(w)
		if f.setup != nil {
			f.setup(w)
		}
		return players
	}
	var r syncTB
	done := make(chan struct{})
	go func() {
		defer close(done)
		SyncTest(&r, m, depth, 300, setup, syncInputs(7))
	}()
	<-done
	return r.message
}

func (f *syncFault) check(t *testing.T) {
	for _, depth := range []int{1, 7, 24} {
		message := f.find(depth)
		require.NotEmpty(t, message, "%s at depth %d", f.name, depth)
		for _, want := range f.want {
			require.Contains(t, message, want, "%s at depth %d", f.name, depth)
		}
		if !f.anyTick {
			require.True(t, strings.HasPrefix(message, "predict: SyncTest: tick 100, "), message)
		}
		if depth == 7 {
			t.Log(message)
		}
	}
}

// findPlantedFaults is a part of TestFigures.
func findPlantedFaults(t *testing.T) {
	faults := plantedFaults()
	for i := range faults {
		faults[i].check(t)
	}
	figure(t, "planted_faults_found", float64(len(faults)))
}

func TestSyncTestFindsMoreFaults(t *testing.T) {
	for _, f := range moreSyncFaults() {
		f.check(t)
	}
}

// TestSyncTestAllows what is changed the same again, though it is no State.
func TestSyncTestAllows(t *testing.T) {
	_, m := newGame(&rules{damping: 0.97, wall: 20, step: func(t *Tick) {
		eachShip(t, func(e ecs.Entity, v *Velocity) { get[syncHeat](t.World, e).Value = v.X })
		*ecs.GetResource[syncScore](t.World) = syncScore{[2]int{int(t.Number)}}
	}})
	SyncTest(t, m, 5, 300, func(w *ecs.World) []ecs.Entity {
		players := syncShips(w)
		toShips[syncHeat](w)
		ecs.AddResource(w, &syncScore{})
		return players
	}, syncInputs(1))
}

func TestSyncTestOfDespawnedPlayers(t *testing.T) {
	runs := 0
	_, m := newGame(&rules{damping: 0.97, wall: 20, step: func(t *Tick) {
		eachShip(t, func(e ecs.Entity, _ *Velocity) {
			if t.Number == replication.Tick(50*e.ID()) {
				t.Despawn(e)
				runs++
			}
		})
	}})
	var world *ecs.World
	SyncTest(t, m, 9, 300, func(w *ecs.World) []ecs.Entity { world = w; return syncShips(w) }, syncInputs(1))
	require.Equal(t, 4*10, runs)
	for q := world.Query(ecs.All(ecs.ComponentID[Position](world))); q.Next(); {
		require.Failf(t, "an entity is left", "%v", q.Entity())
	}
}

func TestSyncTestMisuse(t *testing.T) {
	_, m := newGame(&rules{})
	input := syncInputs(1)
	require.PanicsWithValue(t, "predict: SyncTest with depth 64: use 1 to 63 ticks", func() { SyncTest(t, m, 64, 1, syncShips, input) })
	require.PanicsWithValue(t, "predict: SyncTest with depth 0: use 1 to 63 ticks", func() { SyncTest(t, m, 0, 1, syncShips, input) })
	require.PanicsWithValue(t, "predict: SyncTest of 0 ticks: use at least 1", func() { SyncTest(t, m, 1, 0, syncShips, input) })
	require.Panics(t, func() { SyncTest(t, m, 1, 1, nil, input) })
	require.Panics(t, func() { SyncTest[Move](t, nil, 1, 1, syncShips, input) })
}

// TestProgramsDoNotContainTesting though SyncTest is in the package.
func TestProgramsDoNotContainTesting(t *testing.T) {
	if runtime.GOOS == "js" || runtime.GOOS == "wasip1" {
		t.Skip("there is no go command to run")
	}
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	require.NotContains(t, strings.Fields(string(out)), "testing")
}
