package replication

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// related is a wire of entities that are children of others.
type related struct {
	*fixture
	child  ecs.ID // on the server
	mirror ecs.ID // on the client
}

func newRelated(t testing.TB, opts ...ServerOption) *related {
	x := connectedWire(t, referenceSchema(), opts...)
	return &related{x, ecs.ComponentID[rChildOf](x.world), ecs.ComponentID[rChildOf](x.mirror)}
}

func (x *related) adopt(e, parent ecs.Entity) { x.world.Relations().Set(e, x.child, parent) }

// requireChild requires that the replica of e is a child of the replica of parent, or has no
// target.
func (x *related) requireChild(e, parent ecs.Entity, msg ...any) {
	x.t.Helper()
	m, ok := x.mirrored(e)
	require.True(x.t, ok, "not mirrored")
	var want ecs.Entity
	if !parent.IsZero() {
		want, ok = x.mirrored(parent)
		require.True(x.t, ok, "the target is not mirrored")
	}
	require.Equal(x.t, want, x.fixture.mirror.Relations().Get(m, x.mirror), msg...)
}

func TestRelationsFollowTheirTargets(t *testing.T) {
	x := newRelated(t)
	e, a, b := x.spawn(x.child), x.spawn(), x.spawn()
	(*rChildOf)(x.world.Get(e, x.child)).Seat = 4
	x.rounds(2)
	x.requireChild(e, nobody)
	x.adopt(e, a)
	x.rounds(2)
	x.requireChild(e, a)
	for i := range 20 { // the only row of its table, before and after
		x.adopt(e, []ecs.Entity{b, a}[i%2])
		x.round()
		x.requireChild(e, []ecs.Entity{b, a}[i%2])
	}
	x.adopt(e, b)
	(*rChildOf)(x.world.Get(e, x.child)).Of = a
	x.rounds(2)
	x.requireChild(e, b)
	m, _ := x.mirrored(e)
	v := (*rChildOf)(x.fixture.mirror.Get(m, x.mirror))
	ofA, _ := x.mirrored(a)
	require.EqualValues(t, 4, v.Seat)
	require.Equal(t, ofA, v.Of, "a reference beside the relation")
	x.adopt(e, nobody)
	x.rounds(2)
	x.requireChild(e, nobody)
}

// TestDespawnOfATarget: on the server Arche keeps the dead target; the child's replica has none.
func TestDespawnOfATarget(t *testing.T) {
	x := newRelated(t)
	parent := x.spawn()
	var children []ecs.Entity
	for range 100 { // more than a block of rows
		children = append(children, x.spawn(x.child))
		x.adopt(children[len(children)-1], parent)
	}
	x.rounds(4)
	for _, e := range children {
		x.requireChild(e, parent)
	}
	x.world.RemoveEntity(parent)
	x.rounds(2)
	for _, e := range children {
		require.Equal(t, parent, x.world.Relations().Get(e, x.child))
		x.requireChild(e, nobody)
	}
	successor := x.spawn()
	require.Equal(t, parent.ID(), successor.ID())
	x.rounds(2)
	for _, e := range children {
		x.requireChild(e, nobody, "the successor is another entity")
	}
	for _, e := range children[:50] {
		x.adopt(e, successor)
	}
	x.rounds(3)
	for i, e := range children {
		x.requireChild(e, []ecs.Entity{successor, nobody}[i/50])
	}
	checkLinks(&x.client.apply, t, 50)
}

func TestRelationsToTargetsThatHaveNotArrived(t *testing.T) {
	x := newRelated(t)
	visible := map[ecs.Entity]bool{}
	x.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return visible[e] }})
	e, hidden, plain := x.spawn(x.child), x.spawn(), x.world.NewEntity()
	visible[e] = true
	x.adopt(e, hidden)
	x.rounds(3)
	m, _ := x.mirrored(e)
	require.Equal(t, nobody, x.fixture.mirror.Relations().Get(m, x.mirror))
	visible[hidden] = true
	x.rounds(3)
	x.requireChild(e, hidden)
	visible[hidden] = false
	x.rounds(3)
	require.Equal(t, nobody, x.fixture.mirror.Relations().Get(m, x.mirror))

	x.adopt(e, plain) // not replicated
	x.rounds(3)
	require.Equal(t, nobody, x.fixture.mirror.Relations().Get(m, x.mirror))
	visible[plain] = true
	x.world.Add(plain, ReplicatedID(x.world))
	x.rounds(3)
	x.requireChild(e, plain)
}

func TestRelationsThatComeAndGo(t *testing.T) {
	x := newRelated(t)
	orbits, dead := ecs.ComponentID[rOrbits](x.world), ecs.ComponentID[rDead](x.world)
	target, e := ecs.ComponentID[rTarget](x.world), x.spawn()
	a, b := x.spawn(), x.spawn()
	for range 3 {
		x.world.Add(e, x.child)
		x.adopt(e, a)
		x.rounds(2)
		x.requireChild(e, a)
		x.world.Add(e, target) // it moves to another table with its target
		x.rounds(2)
		x.requireChild(e, a)
		x.world.Relations().Exchange(e, []ecs.ID{orbits}, []ecs.ID{x.child}, orbits, b)
		x.rounds(2)
		m, _ := x.mirrored(e)
		sun, _ := x.mirrored(b)
		require.Equal(t, sun, x.fixture.mirror.Relations().Get(m, ecs.ComponentID[rOrbits](x.fixture.mirror)))
		require.False(t, x.fixture.mirror.Has(m, x.mirror))
		x.world.Relations().Exchange(e, []ecs.ID{dead}, []ecs.ID{orbits, target}, dead, a)
		x.rounds(2)
		require.Equal(t, nobody, x.fixture.mirror.Relations().Get(m, ecs.ComponentID[rDead](x.fixture.mirror)), "its target is not replicated")
		x.world.Remove(e, dead)
		x.rounds(2)
		checkLinks(&x.client.apply, t, 0)
		require.Zero(t, x.client.apply.View.Replicas.At(uint32(x.slotOf(e))).Links)
	}
}

// TestTargetsGoTogetherWithTheirChildren: two entities are each other's targets.
func TestTargetsGoTogetherWithTheirChildren(t *testing.T) {
	x := newRelated(t)
	for range 5 {
		a, b := x.spawn(x.child), x.spawn(x.child)
		x.adopt(a, b)
		x.adopt(b, a)
		x.rounds(2)
		x.requireChild(a, b)
		x.requireChild(b, a)
		x.world.RemoveEntity(a)
		x.world.RemoveEntity(b)
		x.rounds(2)
	}
	require.Zero(t, x.fixture.mirror.Stats().Entities.Used)
	checkLinks(&x.client.apply, t, 0)
}

// TestAnEntityThatTargetsItself: Arche panics when such an entity is removed, whether by the
// client's user or, as here, by the library. So the replica must not be in that state when it is
// despawned.
func TestAnEntityThatTargetsItself(t *testing.T) {
	x := newRelated(t)
	for range 3 {
		e := x.spawn(x.child)
		x.adopt(e, e)
		x.rounds(2)
		x.requireChild(e, e)
		m, _ := x.mirrored(e)
		x.adopt(e, nobody)
		x.world.RemoveEntity(e)
		require.NotPanics(t, func() { x.rounds(2) })
		require.False(t, x.fixture.mirror.Alive(m))

		// And a local relation of the same kind.
		e = x.spawn()
		x.rounds(2)
		m, _ = x.mirrored(e)
		orbit := ecs.ComponentID[tOrbit](x.fixture.mirror)
		x.fixture.mirror.Add(m, orbit)
		x.fixture.mirror.Relations().Set(m, orbit, m)
		x.world.RemoveEntity(e)
		require.NotPanics(t, func() { x.rounds(2) })
		require.False(t, x.fixture.mirror.Alive(m))
	}
}

// TestRelationBesideALocalOne: Arche allows one relation, so the user's stays, and the conflict is
// counted.
func TestRelationBesideALocalOne(t *testing.T) {
	x := newRelated(t)
	target := ecs.ComponentID[rTarget](x.world)
	orbits := ecs.ComponentID[rOrbits](x.world)
	e, sun := x.spawn(), x.spawn()
	x.rounds(2)
	type tMoon struct{ ecs.Relation } // new to the client's world
	moon := ecs.ComponentID[tMoon](x.fixture.mirror)
	m, _ := x.mirrored(e)
	mirroredSun, _ := x.mirrored(sun)
	x.fixture.mirror.Add(m, moon)
	x.fixture.mirror.Relations().Set(m, moon, mirroredSun)

	x.world.Add(e, x.child, target)
	x.adopt(e, sun)
	(*rTarget)(x.world.Get(e, target)).Entity = sun
	require.NotPanics(t, func() { x.rounds(3) })
	require.EqualValues(t, 1, x.client.Stats().RelationConflicts)
	require.False(t, x.fixture.mirror.Has(m, x.mirror))
	require.Equal(t, mirroredSun, x.fixture.mirror.Relations().Get(m, moon))
	require.Equal(t, mirroredSun, (*rTarget)(x.fixture.mirror.Get(m, ecs.ComponentID[rTarget](x.fixture.mirror))).Entity, "all else arrives")
	x.adopt(e, nobody)
	x.rounds(2)
	x.adopt(e, sun)
	x.rounds(2)
	x.world.RemoveEntity(sun)
	require.NotPanics(t, func() { x.rounds(3) })

	// Another relation of the server's conflicts as well, until the user removes the local one.
	x.world.Exchange(e, []ecs.ID{orbits}, []ecs.ID{x.child})
	require.NotPanics(t, func() { x.rounds(3) })
	require.EqualValues(t, 2, x.client.Stats().RelationConflicts)
	x.fixture.mirror.Remove(m, moon)
	x.world.Exchange(e, []ecs.ID{x.child}, []ecs.ID{orbits})
	parent := x.spawn()
	x.adopt(e, parent)
	x.rounds(3)
	x.requireChild(e, parent)
	x.world.Exchange(e, []ecs.ID{orbits}, []ecs.ID{x.child})
	x.rounds(3)
	require.True(t, x.fixture.mirror.Has(m, ecs.ComponentID[rOrbits](x.fixture.mirror)), "one for the other is none")
	require.EqualValues(t, 2, x.client.Stats().RelationConflicts)
}

func TestRelationsLeaveAloneWhatTheUserRemoved(t *testing.T) {
	x := newRelated(t)
	parent, e, gone := x.spawn(), x.spawn(x.child), x.spawn(x.child)
	x.rounds(2)
	m, _ := x.mirrored(e)
	x.fixture.mirror.Remove(m, x.mirror)
	other, _ := x.mirrored(gone)
	x.fixture.mirror.RemoveEntity(other)
	for _, e := range []ecs.Entity{e, gone} {
		x.adopt(e, parent)
	}
	require.NotPanics(t, func() { x.rounds(3) })
	require.False(t, x.fixture.mirror.Has(m, x.mirror))
	x.world.RemoveEntity(parent)
	require.NotPanics(t, func() { x.rounds(3) })
	checkLinks(&x.client.apply, t, 0)
}

// TestTargetsThatChangeEveryTick over a bad link, with every child in a table of its own, and
// parents that despawn.
func TestTargetsThatChangeEveryTick(t *testing.T) {
	ticks := 1500
	if testing.Short() {
		ticks = 300
	}
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 3))
	w := ecs.NewWorld()
	s := NewServer(&w, referenceSchema(), WithSeed(seed))
	child, marker := ecs.ComponentID[rChildOf](&w), ReplicatedID(&w)
	o := &referenceTruth{}
	ends := []*end{
		connect(s, seed, netsim.Config{Latency: 3, Jitter: 3, Loss: 0.2, Duplicate: 0.1, Reorder: 0.3, ReorderBy: 9}),
		connect(s, seed+1, netsim.Config{Latency: 1}),
	}
	var parents, children []ecs.Entity
	for range 8 {
		parents = append(parents, w.NewEntity(marker))
	}
	for i := range 12 {
		children = append(children, w.NewEntity(marker, child))
		if i < 4 {
			parents = append(parents, children[i]) // which are children too
		}
	}
	for range ticks {
		for _, e := range children {
			target := parents[rng.IntN(len(parents))]
			if target != e {
				w.Relations().Set(e, child, target)
			}
		}
		if i := rng.IntN(40); i < 8 {
			w.RemoveEntity(parents[i])
			parents[i] = w.NewEntity(marker)
		}
		tickReferences(t, s, o, ends)
	}
	requireReferencesSettle(t, s, o, ends, 60)
}

// TestWorkersSendTheSameReferences: packets are the same whatever the number of workers.
func TestWorkersSendTheSameReferences(t *testing.T) {
	seed := seedOf(t)
	play := func(workers int) (sent []byte) {
		w := ecs.NewWorld()
		s := NewServer(&w, referenceSchema(), WithSeed(seed), WithWorkers(workers))
		g := newReferenceGame(seed, &w, faceOf(s.schema), 40)
		var ends []*end
		for i := range 12 {
			e := connect(s, seed+uint64(i), netsim.Config{Latency: float64(i % 4), Loss: float64(i%3) * 0.1}, WithSeed(uint64(i)+1))
			send := e.peer.out.Send
			e.peer.out.Send = func(p []byte) error {
				sent = append(append(sent, byte(i)), p...)
				return send(p)
			}
			ends = append(ends, e)
		}
		for range 150 {
			g.step()
			s.Replicate()
			for _, e := range ends {
				e.step(t)
			}
		}
		return sent
	}
	one := play(1)
	require.NotEmpty(t, one)
	require.True(t, bytes.Equal(one, play(4)))
}

// tOrbit is an unregistered relation.
type tOrbit struct{ ecs.Relation }

// TestLocalRelationSurvives: a relation added by the user keeps its target.
func TestLocalRelationSurvives(t *testing.T) {
	x, e, _ := crowd(t, 3)
	orbit := ecs.ComponentID[tOrbit](x.mirror)
	m, _ := x.mirrored(e[0])
	sun, _ := x.mirrored(e[1])
	x.mirror.Add(m, orbit)
	x.mirror.Relations().Set(m, orbit, sun)
	x.world.Add(e[0], ecs.ComponentID[tHealth](x.world))
	x.rounds(2)
	x.requireEqual()
	require.Equal(t, sun, x.mirror.Relations().Get(m, orbit))
	x.world.RemoveEntity(e[1]) // the target
	x.rounds(2)
	x.requireEqual()
}

// TestRelationsInArchetypes: the rows of entities with one component set lie in several tables if
// their relation has several targets.
func TestRelationsInArchetypes(t *testing.T) {
	x := connectedWire(t, testSchema())
	position, orbit := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tOrbit](x.world)
	var suns, planets []ecs.Entity
	for range 4 {
		suns = append(suns, x.world.NewEntity())
	}
	for i := range 40 {
		p := x.spawn(position, orbit)
		x.world.Relations().Set(p, orbit, suns[i%4])
		(*tPosition)(x.world.Get(p, position)).X = float32(i)
		planets = append(planets, p)
	}
	check := func() {
		t.Helper()
		x.rounds(3)
		x.requireEqual()
		for _, p := range planets {
			require.InDelta(t, (*tPosition)(x.world.Get(p, position)).X, x.position(p).X, 0.01)
		}
	}
	check()
	ids := map[ecs.Entity]NetID{}
	for _, p := range planets {
		ids[p], _ = x.server.NetID(p)
	}
	spawns := x.client.Stats().Spawns
	for i, p := range planets { // planets change their suns
		x.world.Relations().Set(p, orbit, suns[(i/3)%4])
		(*tPosition)(x.world.Get(p, position)).Y = float32(i)
	}
	check()
	x.world.RemoveEntity(suns[0]) // Arche moves its planets to the zero target
	check()
	for range 3 { // and reuses the table for another target
		suns = append(suns, x.world.NewEntity())
		x.world.Relations().Set(planets[len(suns)%40], orbit, suns[len(suns)-1])
	}
	check()
	require.Equal(t, spawns, x.client.Stats().Spawns, "none was taken for another")
	for _, p := range planets {
		id, _ := x.server.NetID(p)
		require.Equal(t, ids[p], id)
	}
}
