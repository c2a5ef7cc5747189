package replication

import (
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// aShot is a signature: the shooter and the number of the shot.
type aShot struct {
	Owner  ecs.Entity
	Number uint16
}

// aCrate is a signature with a position in a level.
type aCrate struct {
	X, Y float32 `repl:"range=-100:100,step=0.1"`
}

func adoptSchema() *Schema {
	s := NewSchema()
	Register[tPosition](s)
	Register[aShot](s)
	Register[aCrate](s)
	Register[tHealth](s)
	Register[rOrbits](s)
	return s
}

// localEntity makes an entity in the client's world with component T.
func localEntity[T any](x *fixture, v T, more ...ecs.ID) ecs.Entity {
	id := ecs.ComponentID[T](x.mirror)
	e := x.mirror.NewEntity(append(more, id)...)
	*(*T)(x.mirror.Get(e, id)) = v
	return e
}

// spawnWith makes a replicated entity with component T in the server's world.
func spawnWith[T any](x *fixture, v T, more ...ecs.ID) ecs.Entity {
	id := ecs.ComponentID[T](x.world)
	e := x.spawn(append(more, id)...)
	*(*T)(x.world.Get(e, id)) = v
	return e
}

// TestWhatAPauseConfirmsIsAdopted: an entity that the server sent in time is adopted after a pause of any length, and
// without one the expectation ends.
func TestWhatAPauseConfirmsIsAdopted(t *testing.T) {
	for _, confirmed := range []bool{true, false} {
		for _, ticks := range []int{1, 30, 60} {
			x := connectedWire(t, adoptSchema())
			owner := x.spawn()
			x.rounds(3)
			me, _ := x.mirrored(owner)
			mine := localEntity(x, aShot{me, 7})
			Expect[aShot](x.client, mine, ofTicks(ticks))
			shot := spawnWith(x, aShot{owner, 7})
			if packets := x.replicate(); confirmed {
				x.deliver(packets...)
			}
			x.client.Advance(10 * time.Second)
			require.NoError(t, x.client.Apply())
			adopted, shown := x.mirrored(shot)
			require.Equal(t, confirmed, shown)
			require.Equal(t, confirmed, adopted == mine, "%d ticks", ticks)
			require.Equal(t, !confirmed && ticks == 60, x.client.Expects(mine), "%d ticks", ticks)
			x.answer(x.apply()...)
			require.False(t, x.client.Expects(mine))
		}
	}
}

func TestAPredictedEntityIsAdopted(t *testing.T) {
	x := connectedWire(t, adoptSchema())
	position, health := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tHealth](x.world)
	mirrorPosition, mirrorHealth := ecs.ComponentID[tPosition](x.mirror), ecs.ComponentID[tHealth](x.mirror)
	local := ecs.ComponentID[tLocal](x.mirror)
	owner := x.spawn(position)
	x.rounds(3)
	me, _ := x.mirrored(owner)

	var hooked []ecs.Entity
	x.client.OnSpawn(func(e ecs.Entity) { hooked = append(hooked, e) })
	mine := localEntity(x, aShot{me, 7}, mirrorPosition, local)
	(*tPosition)(x.mirror.Get(mine, mirrorPosition)).X = 3
	used := x.mirror.Stats().Entities.Used
	Expect[aShot](x.client, mine, ofTicks(60))
	require.True(t, x.client.Expects(mine))
	_, ok := x.client.NetID(mine)
	require.False(t, ok)

	other := spawnWith(x, aShot{owner, 8}, position)
	shot := spawnWith(x, aShot{owner, 7}, position, health)
	(*tPosition)(x.world.Get(shot, position)).X = 5
	x.rounds(3)
	adopted, ok := x.mirrored(shot)
	require.True(t, ok)
	require.Equal(t, mine, adopted)
	require.False(t, x.client.Expects(mine))
	require.True(t, x.mirror.Has(mine, local) && x.mirror.Has(mine, mirrorHealth))
	require.EqualValues(t, 5, (*tPosition)(x.mirror.Get(mine, mirrorPosition)).X)
	require.Equal(t, used+1, x.mirror.Stats().Entities.Used, "of the two shots one was here")
	spawned, _ := x.mirrored(other)
	require.ElementsMatch(t, []ecs.Entity{mine, spawned}, hooked)
	require.Nil(t, x.client.Verify())
	require.EqualValues(t, 1, x.client.Stats().Adopted)

	// From now on it is a replica like any other.
	(*tPosition)(x.world.Get(shot, position)).X = 6
	x.rounds(2)
	require.EqualValues(t, 6, (*tPosition)(x.mirror.Get(mine, mirrorPosition)).X)
	x.world.RemoveEntity(shot)
	x.rounds(2)
	require.False(t, x.mirror.Alive(mine))
	require.Zero(t, x.client.Stats().Unconfirmed)
}

func TestTheFirstExpectedEntityIsAdoptedFirst(t *testing.T) {
	x := connectedWire(t, adoptSchema())
	var crates []ecs.Entity
	for i := range 5 {
		crates = append(crates, localEntity(x, aCrate{1, 2}))
		if i != 3 {
			Expect[aCrate](x.client, crates[i], 0)
		}
	}
	x.mirror.RemoveEntity(crates[1])
	Expect[aCrate](x.client, crates[0], 0) // again, so that it is the last
	Expect[aCrate](x.client, crates[3], 0)
	elsewhere := localEntity(x, aCrate{1, 2.5})
	Expect[aCrate](x.client, elsewhere, 0)
	for i, want := range []ecs.Entity{crates[2], crates[4], crates[0], crates[3]} {
		// Differences below the field's step do not count.
		e := spawnWith(x, aCrate{1.02, 1.99})
		x.rounds(2)
		m, _ := x.mirrored(e)
		require.Equal(t, want, m, "%d", i)
	}
	last := spawnWith(x, aCrate{1, 2})
	x.rounds(2)
	m, ok := x.mirrored(last)
	require.True(t, ok)
	require.NotContains(t, crates, m, "spawned")
	require.True(t, x.client.Expects(elsewhere))
	require.EqualValues(t, 4, x.client.Stats().Adopted)
	require.EqualValues(t, 5, x.client.Stats().Spawns)
}

func TestExpectationsEnd(t *testing.T) {
	x := connectedWire(t, adoptSchema())
	a, b, c := localEntity(x, aCrate{1, 1}), localEntity(x, aCrate{2, 2}), localEntity(x, aCrate{3, 3})
	Expect[aCrate](x.client, a, ofTicks(2))
	Expect[aCrate](x.client, b, ofTicks(5))
	Expect[aCrate](x.client, c, 0)
	x.mirror.RemoveEntity(localEntity(x, aCrate{4, 4}))
	x.apply()
	x.apply()
	require.True(t, x.client.Expects(a), "the second Apply might have brought it")
	x.apply()
	require.False(t, x.client.Expects(a))
	require.True(t, x.client.Expects(b))
	require.True(t, x.mirror.Alive(a), "it is the user's")
	require.EqualValues(t, 1, x.client.Stats().Unconfirmed)
	late := spawnWith(x, aCrate{1, 1})
	x.round() // the fourth
	m, ok := x.mirrored(late)
	require.True(t, ok)
	require.NotEqual(t, a, m)
	spawnWith(x, aCrate{2, 2})
	x.round() // the fifth
	_, ok = x.client.NetID(b)
	require.True(t, ok, "in the last moment")
	for range 100 {
		x.apply()
	}
	require.True(t, x.client.Expects(c))
	require.EqualValues(t, 1, x.client.Stats().Unconfirmed)

	// The client keeps nothing of entities that are gone.
	x.mirror.RemoveEntity(c)
	require.False(t, x.client.Expects(c))
	for range 5 {
		x.apply()
	}
	require.Empty(t, x.client.apply.Expected.ByEntity)
	require.Empty(t, x.client.apply.Expected.BySign)
}

// TestALevelIsAdoptedAgain: after a reset of the client's world the level is loaded again, and the
// server's entities are adopted into it.
func TestALevelIsAdoptedAgain(t *testing.T) {
	x := connectedWire(t, adoptSchema())
	var crates []ecs.Entity
	load := func() (level []ecs.Entity) {
		for i := range 20 {
			e := localEntity(x, aCrate{float32(i), 0})
			Expect[aCrate](x.client, e, 0)
			level = append(level, e)
		}
		return level
	}
	for i := range 20 {
		crates = append(crates, spawnWith(x, aCrate{float32(19 - i), 0}))
	}
	requireAdopted := func(level []ecs.Entity) {
		t.Helper()
		for i, e := range crates {
			m, ok := x.mirrored(e)
			require.True(t, ok)
			require.Equal(t, level[19-i], m)
		}
		require.Equal(t, 20, x.mirror.Stats().Entities.Used)
	}
	level := load()
	x.rounds(3)
	requireAdopted(level)

	load() // lost with the world
	x.mirror.Reset()
	level = load()
	x.apply()
	requireAdopted(level)

	// A new session with the same server finds its entities. Another server has different entities,
	// which the level loaded meanwhile waits for.
	x.client.Reconnect()
	x.rounds(12)
	requireAdopted(level)
	require.EqualValues(t, 40, x.client.Stats().Adopted)
	level = load()
	x.replaceServer(faceOf(x.client.schema), 99)
	for i := range crates {
		crates[i] = spawnWith(x, aCrate{float32(19 - i), 0})
	}
	x.client.Reconnect()
	x.rounds(12)
	requireAdopted(level)
}

// TestAnAdoptedEntityKeepsItsRelation: a relation added before the adoption stays, like one that
// the user adds later.
func TestAnAdoptedEntityKeepsItsRelation(t *testing.T) {
	x := connectedWire(t, adoptSchema())
	orbit, orbits := ecs.ComponentID[tOrbit](x.mirror), ecs.ComponentID[rOrbits](x.mirror)
	sun := x.mirror.NewEntity()
	mine := localEntity(x, aCrate{1, 1}, orbit)
	x.mirror.Relations().Set(mine, orbit, sun)
	same := localEntity(x, aCrate{2, 2}, orbits)
	x.mirror.Relations().Set(same, orbits, sun)
	Expect[aCrate](x.client, mine, 0)
	Expect[aCrate](x.client, same, 0)

	serverSun := x.spawn()
	serverOrbits := ecs.ComponentID[rOrbits](x.world)
	for _, at := range []float32{1, 2} {
		e := spawnWith(x, aCrate{at, at}, serverOrbits)
		x.world.Relations().Set(e, serverOrbits, serverSun)
	}
	x.rounds(3)
	require.EqualValues(t, 2, x.client.Stats().Adopted)
	require.EqualValues(t, 1, x.client.Stats().RelationConflicts)
	require.Equal(t, sun, x.mirror.Relations().Get(mine, orbit))
	require.False(t, x.mirror.Has(mine, orbits))
	mirrorSun, _ := x.mirrored(serverSun)
	require.Equal(t, mirrorSun, x.mirror.Relations().Get(same, orbits))
}

func TestWhatCantBeExpected(t *testing.T) {
	x := connectedWire(t, adoptSchema())
	e := localEntity(x, aCrate{1, 1})
	dead := localEntity(x, aCrate{1, 1})
	x.mirror.RemoveEntity(dead)
	shown := spawnWith(x, aCrate{5, 5})
	x.rounds(2)
	shown, _ = x.mirrored(shown)
	for sentence, expect := range map[string]func(){
		"replication: there is no client: NewClient makes one":                                                               func() { Expect[aCrate](nil, e, 0) },
		"replication: Expect: replication.tLocal is not registered: the server sends nothing of it":                          func() { Expect[tLocal](x.client, e, 0) },
		"replication: Expect: -1ns: use 1ms to 240 hours, or 0 for as long as it takes":                                      func() { Expect[aCrate](x.client, e, -1) },
		"replication: Expect: 90ns: use 1ms to 240 hours, or 0 for as long as it takes":                                      func() { Expect[aCrate](x.client, e, 90) },
		"replication: Expect: the entity is dead: expect one that is in the client's world":                                  func() { Expect[aCrate](x.client, dead, 0) },
		"replication: Expect: the entity has no aShot: add the component, its value is what the server's entity is known by": func() { Expect[aShot](x.client, e, 0) },
		"replication: Expect: the entity is a replica already: expect a local one":                                           func() { Expect[aCrate](x.client, shown, 0) },
	} {
		require.PanicsWithValue(t, sentence, expect)
	}
	require.False(t, x.client.Expects(e))
}

// TestAdoptionOverABadNetwork: a client fires shots before the server knows of them. Every shot
// that the server fires too is adopted exactly once, and the worlds converge whatever the network
// does.
func TestAdoptionOverABadNetwork(t *testing.T) {
	ticks := 2000
	if testing.Short() {
		ticks = 500
	}
	seed := seedOf(t)
	w := ecs.NewWorld()
	schema := adoptSchema()
	s := NewServer(&w, schema, WithSeed(seed))
	e := connect(s, seed, netsim.Config{Latency: 3, Jitter: 2, Loss: 0.2, Duplicate: 0.1, Reorder: 0.2, ReorderBy: 6})
	g := newGame(seed, &w, schema, 0)
	shot, position, marker := ecs.ComponentID[aShot](&w), ecs.ComponentID[tPosition](&w), ReplicatedID(&w)
	mirrorShot, local := ecs.ComponentID[aShot](e.world), ecs.ComponentID[tLocal](e.world)
	owner := w.NewEntity(marker)

	type flight struct {
		number   uint16
		fired    int // at the server, -1 for never
		ends     int
		server   ecs.Entity
		mirror   ecs.Entity
		adopted  bool
		received bool
	}
	var flights []*flight
	number := uint16(0)
	adopted, unconfirmed, never := 0, 0, 0
	x := &fixture{world: &w, mirror: e.world, server: s, client: e.client}
	for tick := range ticks {
		me, here := x.mirrored(owner)
		if here && tick < ticks-200 && g.rng.IntN(3) == 0 {
			number++
			f := &flight{number: number, fired: tick + 1 + g.rng.IntN(6), mirror: localEntity(x, aShot{me, number}, local)}
			f.ends = f.fired + 20 + g.rng.IntN(40)
			if g.rng.IntN(5) == 0 {
				f.fired = -1 // the server knows that there was no ammunition left
			}
			Expect[aShot](e.client, f.mirror, ofTicks(120))
			flights = append(flights, f)
		}
		if tick < ticks-200 && g.rng.IntN(300) == 0 { // the last shots must not end in a search for the server
			e.client.Reconnect()
		}
		for _, f := range flights {
			switch {
			case f.fired == tick:
				f.server = w.NewEntity(marker, shot, position)
				*(*aShot)(w.Get(f.server, shot)) = aShot{owner, f.number}
			case f.fired >= 0 && f.ends == tick:
				w.RemoveEntity(f.server)
			case !f.server.IsZero() && w.Alive(f.server):
				(*tPosition)(w.Get(f.server, position)).X += 0.5
			}
		}
		s.Replicate()
		e.step(t)
		if d := e.client.Verify(); d != nil {
			require.FailNow(t, "not the server's state", "tick %d: %v", tick, d)
		}
		seen := map[uint16]bool{}
		filter := ecs.All(mirrorShot)
		q := e.world.Query(&filter)
		for q.Next() {
			n := (*aShot)(q.Get(mirrorShot)).Number
			if seen[n] {
				number := n
				q.Close()
				require.FailNow(t, "a shot is there twice", "tick %d, shot %d", tick, number)
			}
			seen[n] = true
		}
		kept := flights[:0]
		for _, f := range flights {
			_, mirrored := e.client.NetID(f.mirror)
			if mirrored && !f.adopted {
				f.adopted = true
				adopted++
				require.GreaterOrEqual(t, f.fired, 0)
				require.True(t, e.world.Has(f.mirror, local))
			}
			switch {
			case f.adopted && !e.world.Alive(f.mirror): // expired
			case !f.adopted && !e.client.Expects(f.mirror):
				unconfirmed++
				if f.fired < 0 {
					never++
				}
				e.world.RemoveEntity(f.mirror) // the user removed it
			default:
				kept = append(kept, f)
			}
		}
		flights = kept
	}
	require.Empty(t, flights)
	require.Empty(t, e.client.apply.Expected.ByEntity)
	// The server keeps a shot for at least 20 ticks: only a new session or a burst of losses can
	// make the client miss it.
	require.GreaterOrEqual(t, unconfirmed, never)
	require.LessOrEqual(t, unconfirmed-never, 10+adopted/10) // 7 in one short run of 3,000, of which each adopts 70
	stats := e.client.Stats()
	require.EqualValues(t, adopted, stats.Adopted)
	require.EqualValues(t, unconfirmed, stats.Unconfirmed)
	require.Greater(t, adopted, ticks/40)
	require.Equal(t, 1, e.world.Stats().Entities.Used, "the owner")
}

func TestExpectDoesNotAllocate(t *testing.T) {
	skipAllocationTest(t)
	x := connectedWire(t, adoptSchema())
	me := x.spawn()
	x.rounds(3)
	me, _ = x.mirrored(me)
	shot := ecs.ComponentID[aShot](x.mirror)
	e := x.mirror.NewEntity(shot)
	number := uint16(0)
	fire := func() {
		number++
		*(*aShot)(x.mirror.Get(e, shot)) = aShot{me, number}
		Expect[aShot](x.client, e, ofTicks(3))
		x.client.apply.Expected.Expire(1)
	}
	for range 100 {
		fire()
	}
	require.Zero(t, testing.AllocsPerRun(100, fire))
}
