package replication

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// What users may do to both worlds.

// tLocal is a component that the client's user adds.
type tLocal struct{ Heat float64 }

// tOrbit is an unregistered relation.
type tOrbit struct{ ecs.Relation }

func TestEntityRemovedByTheClientsUserStaysRemoved(t *testing.T) {
	x, e, move := crowd(t, 3)
	m, _ := x.mirrored(e[0])
	x.mirror.RemoveEntity(m)
	for range 10 {
		move(e[0], 1)
		x.round()
		_, ok := x.mirrored(e[0])
		require.False(t, ok)
	}
	require.Equal(t, 2, x.mirror.Stats().Entities.Used)

	// Another entity may reuse its place in the client's world, and is not touched.
	own := x.mirror.NewEntity(ecs.ComponentID[tPosition](x.mirror))
	require.Equal(t, m.ID(), own.ID())
	move(e[0], 1)
	x.rounds(2)
	require.Zero(t, (*tPosition)(x.mirror.Get(own, ecs.ComponentID[tPosition](x.mirror))).X)

	// Its despawn on the server does no harm either.
	slot := x.slotOf(e[0])
	x.world.RemoveEntity(e[0])
	x.rounds(3)
	require.True(t, x.mirror.Alive(own))
	newcomer := x.spawn(ecs.ComponentID[tPosition](x.world))
	x.rounds(3)
	require.Equal(t, slot, x.slotOf(newcomer))
	x.requireEqual("a spawn in the same slot is another entity")
	require.True(t, x.mirror.Alive(own))
}

func TestComponentRemovedByTheClientsUserStaysRemoved(t *testing.T) {
	x, e, move := crowd(t, 2)
	position := ecs.ComponentID[tPosition](x.mirror)
	m, _ := x.mirrored(e[0])
	x.mirror.Remove(m, position)
	for range 5 {
		move(e[0], 1)
		x.round()
		require.False(t, x.mirror.Has(m, position))
	}
	// Another component is added and removed meanwhile.
	x.world.Add(e[0], ecs.ComponentID[tHealth](x.world))
	x.rounds(2)
	require.False(t, x.mirror.Has(m, position))
	require.True(t, x.mirror.Has(m, ecs.ComponentID[tHealth](x.mirror)))
	// The server removes it and adds it again.
	x.world.Remove(e[0], ecs.ComponentID[tPosition](x.world))
	x.rounds(2)
	x.world.Add(e[0], ecs.ComponentID[tPosition](x.world))
	move(e[0], 7)
	x.rounds(2)
	require.True(t, x.mirror.Has(m, position))
	x.requireEqual()
}

func TestComponentThatTheUserAddedFirst(t *testing.T) {
	x, e, _ := crowd(t, 1)
	m, _ := x.mirrored(e[0])
	health := ecs.ComponentID[tHealth](x.mirror)
	x.mirror.Add(m, health)
	(*tHealth)(x.mirror.Get(m, health)).HP = 5
	x.world.Add(e[0], ecs.ComponentID[tHealth](x.world))
	x.rounds(2)
	x.requireEqual("the server's value counts")
	x.world.Remove(e[0], ecs.ComponentID[tHealth](x.world))
	x.rounds(2)
	require.False(t, x.mirror.Has(m, health))
}

func TestLocalComponentsSurvive(t *testing.T) {
	x, e, move := crowd(t, 2)
	local, position := ecs.ComponentID[tLocal](x.mirror), ecs.ComponentID[tPosition](x.world)
	health := ecs.ComponentID[tHealth](x.world)
	m, _ := x.mirrored(e[0])
	x.mirror.Add(m, local)
	(*tLocal)(x.mirror.Get(m, local)).Heat = 36.6
	for i := range 12 {
		switch i % 4 {
		case 0:
			x.world.Add(e[0], health)
		case 1:
			x.world.Remove(e[0], position)
		case 2:
			x.world.Remove(e[0], health)
		case 3:
			x.world.Add(e[0], position)
			move(e[0], 1)
		}
		x.round()
		x.requireEqual()
		require.Equal(t, 36.6, (*tLocal)(x.mirror.Get(m, local)).Heat)
	}
}

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

func TestMarkerRemovedByTheClientsUser(t *testing.T) {
	x, e, move := crowd(t, 2)
	m, _ := x.mirrored(e[0])
	x.mirror.Remove(m, x.client.apply.View.Marker)
	move(e[0], 1)
	require.NotPanics(t, func() { x.rounds(3) })
	_, ok := x.client.NetID(m)
	require.False(t, ok)
	x.world.RemoveEntity(e[0])
	require.NotPanics(t, func() { x.rounds(3) })
}

func TestServerWorldReset(t *testing.T) {
	x, _, _ := crowd(t, 10)
	x.world.Reset()
	x.rounds(3)
	x.requireEqual()
	require.EqualValues(t, 10, x.client.Stats().Despawns)
	position := ecs.ComponentID[tPosition](x.world)
	for i := range 4 { // the same Arche entities
		e := x.spawn(position)
		(*tPosition)(x.world.Get(e, position)).X = float32(i)
	}
	x.rounds(3)
	x.requireEqual()

	// Immediately, without a tick in between.
	x.world.Reset()
	for range 6 {
		x.spawn(position, ecs.ComponentID[tFrozen](x.world))
	}
	x.rounds(5)
	x.requireEqual()
	require.EqualValues(t, 6, x.server.Stats().Entities)
	require.Zero(t, x.server.Stats().CopiedMarkers)
}

func TestReplicateWorksOnALockedWorld(t *testing.T) {
	x, e, move := crowd(t, 5)
	x.spawn(ecs.ComponentID[tHealth](x.world)) // with a new component set
	filter := ecs.All()
	q := x.world.Query(filter)
	move(e[0], 1)
	require.NotPanics(t, func() { x.rounds(3) })
	q.Close()
	require.False(t, x.world.IsLocked(), "all locks are given back")
	x.requireEqual()
}

func TestApplyOnALockedWorldPanicsWithAdvice(t *testing.T) {
	x, _, _ := crowd(t, 1)
	q := x.mirror.Query(ecs.All())
	defer q.Close()
	require.PanicsWithValue(t, "replication: Apply on a locked world: call it outside of queries, since it adds and removes entities",
		func() { _ = x.client.Apply() })
}

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

func TestTwoServersAndClientsInOneProcess(t *testing.T) {
	schema := testSchema()
	a, b := connectedWire(t, schema), connectedWire(t, schema, WithMTU(200))
	ga, gb := newGame(1, a.world, schema, 10), newGame(2, b.world, schema, 10)
	for range 100 {
		ga.step()
		gb.step()
		a.round()
		b.round()
		a.requireEqual()
		b.requireEqual()
	}
}

// twoIntoOneWorld returns wires of two servers whose clients share a world.
func twoIntoOneWorld(t testing.TB) (a, b *fixture) {
	schema := testSchema()
	a, b = newWire(t, schema), newWire(t, schema)
	b.mirror = a.mirror
	b.client = NewClient(a.mirror, schema, func(p []byte) error {
		b.up = append(b.up, append([]byte(nil), p...))
		return nil
	}, WithSeed(5))
	return a, b
}

// TestTwoClientsInOneWorld replicates two servers side by side.
func TestTwoClientsInOneWorld(t *testing.T) {
	a, b := twoIntoOneWorld(t)
	ga, gb := newGame(1, a.world, faceOf(a.server.schema), 10), newGame(2, b.world, faceOf(b.server.schema), 10)
	for range 200 {
		ga.step()
		gb.step()
		a.round()
		b.round()
	}
	a.requireEqual()
	b.requireEqual()
	require.Equal(t, a.server.Stats().Entities+b.server.Stats().Entities, a.mirror.Stats().Entities.Used)
}

// TestRelay: a client's world is the world of another server.
func TestRelay(t *testing.T) {
	schema := testSchema()
	a := newWire(t, schema)
	b := newWire(t, schema)
	b.world = a.mirror
	b.server = NewServer(a.mirror, schema, WithSeed(3))
	b.peer = b.server.Connect(func(p []byte) error {
		b.down = append(b.down, append([]byte(nil), p...))
		return nil
	})
	g := newGame(1, a.world, schema, 10)
	marker := ReplicatedID(a.mirror)
	for range 200 {
		g.step()
		a.round()
		var fresh []ecs.Entity
		for _, e := range a.client.Entities() {
			if !a.mirror.Has(e, marker) {
				fresh = append(fresh, e)
			}
		}
		for _, e := range fresh {
			a.mirror.Add(e, marker)
		}
		b.round()
	}
	b.rounds(5)
	a.requireEqual()
	b.requireEqual()
	require.Equal(t, a.server.Stats().Entities, b.server.Stats().Entities)
}

// TestAbandonedPartsMakeRoom: parts of entities that are gone do not block the assembly of others.
func TestAbandonedPartsMakeRoom(t *testing.T) {
	x := connectedWire(t, testSchema(), WithMTU(128))
	bulk := ecs.ComponentID[tBulk](x.world)
	var entities []ecs.Entity
	for range receive.MaxAssemblies + 10 {
		entities = append(entities, x.spawn(bulk))
	}
	for i, p := range x.replicate() {
		if i%3 == 0 { // some parts of all
			x.deliver(p)
		}
	}
	for _, e := range entities {
		x.world.RemoveEntity(e)
	}
	x.rounds(10)
	x.requireEqual()
	for range 10 {
		x.spawn(bulk)
	}
	x.rounds(100)
	x.requireEqual()
}

// TestMoreComponentSetsThanAClientKnows: over time a game may have any number of them.
func TestMoreComponentSetsThanAClientKnows(t *testing.T) {
	const tags = 13
	s := NewSchema()
	for i := range tags {
		RegisterType(s, reflect.StructOf([]reflect.StructField{{Name: fmt.Sprintf("F%d", i), Type: reflect.TypeFor[bool]()}}), Name(fmt.Sprintf("Tag%d", i)))
	}
	x := connectedWire(t, s, WithWindow(8))
	e := x.spawn()
	x.rounds(3)
	for k := range tags { // as if so many had been used already
		x.client.recv.Layouts.Of(delta.Set{1 << k})
	}
	for n := uint64(0); len(x.client.recv.Layouts.Known) < receive.MaxLayouts; n++ {
		x.client.recv.Layouts.Of(delta.Set{n})
	}
	for n := 1; n < 1<<tags; n += 37 {
		for i := range tags {
			if id := ecs.TypeID(x.world, s.raw.Components[i].Typ); x.world.Has(e, id) != (n>>i&1 != 0) {
				if x.world.Has(e, id) {
					x.world.Remove(e, id)
				} else {
					x.world.Add(e, id)
				}
			}
		}
		x.round()
	}
	x.rounds(3)
	x.requireEqual()
	require.LessOrEqual(t, x.client.Stats().RefusedPackets, uint64(1), "until the next Apply")
	require.Less(t, len(x.client.recv.Layouts.Known), receive.MaxLayouts)
}

// TestClientsHoldStatesForTwoWindows, and not longer: they take memory.
func TestClientsHoldStatesForTwoWindows(t *testing.T) {
	for _, window := range []int{8, 16, 64} {
		x, e, move := crowd(t, 1, WithWindow(window))
		for i := range 8 * window {
			move(e[0], float32(1-i%2*2))
			x.round()
		}
		held := &x.client.recv.Replicas.At(0).Held
		for age := range delta.Tick(2 * window) {
			require.NotNil(t, held.At(x.server.snap.Tick-age), "window %d, %d ticks old", window, age)
		}
		require.EqualValues(t, 2*window+1, held.N, "window %d: and one that is as old as that", window)
		require.LessOrEqual(t, len(held.Ring), 2*window+2, "window %d: it has room for no more than it needs", window)
	}
}

// TestWhatTheUserRemovedComesAnew: three entities go out of view and come back. The client's user removes one of them,
// and a component of another one.
func TestWhatTheUserRemovedComesAnew(t *testing.T) {
	for _, play := range []struct {
		name                     string
		linger, first, reconnect bool // first: the user removes them before they end
	}{
		{name: "removed before", first: true},
		{name: "removed before, lingering", first: true, linger: true},
		{name: "removed while lingering", linger: true},
		{name: "in another session", linger: true, reconnect: true},
	} {
		x, e, _ := crowd(t, 3)
		health := ecs.ComponentID[tHealth](x.mirror)
		for _, e := range e {
			x.world.Add(e, ecs.ComponentID[tHealth](x.world))
		}
		hidden, added := false, 0
		x.peer.SetInterest(Interest{Visible: func(ecs.Entity) bool { return !hidden }})
		x.rounds(3)
		OnAdd(x.client, func(ecs.Entity, *tHealth) { added++ })
		x.client.apply.Lingering.MayEnd = func(delta.Tick) bool { return !play.linger }
		third, _ := x.mirrored(e[2])
		remove := func() {
			m, ok := x.mirrored(e[0])
			require.True(t, ok, play.name)
			x.mirror.RemoveEntity(m)
			m, _ = x.mirrored(e[1])
			x.mirror.Remove(m, health)
		}
		if play.first {
			remove()
			x.rounds(2)
		}
		hidden = true
		x.rounds(3)
		if !play.first {
			remove()
		}
		if play.reconnect {
			x.client.Reconnect()
		} else {
			x.rounds(2)
		}
		require.Equal(t, play.linger, x.mirror.Alive(third), play.name)
		require.Zero(t, added, play.name)
		hidden = false
		x.rounds(8)
		x.requireEqual(play.name)
		require.Equal(t, play.linger, x.mirror.Alive(third), play.name)
		want := 3
		if play.linger {
			want = 2 // the third one goes on
		}
		require.Equal(t, want, added, play.name)
	}
}

// TestWhatTheUserRemovedComesAnewWithinAnApply: an entity, and a component of another one, which go out of view and
// come back between two calls.
func TestWhatTheUserRemovedComesAnewWithinAnApply(t *testing.T) {
	x, e, move := crowd(t, 2)
	hidden := false
	x.peer.SetInterest(Interest{Visible: func(ecs.Entity) bool { return !hidden }})
	x.rounds(2)
	m, _ := x.mirrored(e[0])
	x.mirror.RemoveEntity(m)
	m, _ = x.mirrored(e[1])
	x.mirror.Remove(m, ecs.ComponentID[tPosition](x.mirror))
	x.rounds(2)
	for n := range 6 {
		hidden = n < 2
		move(e[0], 1)
		move(e[1], 1)
		x.deliver(x.replicate()...)
	}
	x.rounds(2)
	x.requireEqual()
}

// TestWhatTheServerAddedAgainComesAnewWithinAnApply: the user removed a component, one under a condition and a resource.
// The server takes one of them away and gives it again between two calls: that one is there again, the others are not.
func TestWhatTheServerAddedAgainComesAnewWithinAnApply(t *testing.T) {
	s := NewSchema()
	Register[tPosition](s)
	Register[tHealth](s)
	Register[cAmmo](s, OwnerOnly())
	RegisterResource[pMatch](s)
	toggle := func(x *fixture, e ecs.Entity, id ecs.ID) {
		if x.world.Has(e, id) {
			x.world.Remove(e, id)
		} else {
			x.world.Add(e, id)
		}
	}
	for name, twice := range map[string]func(x *fixture, e ecs.Entity, on bool){ // what is called twice
		"a component":                   func(x *fixture, e ecs.Entity, _ bool) { toggle(x, e, ecs.ComponentID[tHealth](x.world)) },
		"a component under a condition": func(x *fixture, e ecs.Entity, _ bool) { toggle(x, e, ecs.ComponentID[cAmmo](x.world)) },
		"ownership": func(x *fixture, e ecs.Entity, on bool) {
			if x.server.SetOwner(e, nil); on {
				x.server.SetOwner(e, x.peer)
			}
		},
		"a resource": func(x *fixture, _ ecs.Entity, on bool) {
			if dropResource[pMatch](x.world); on {
				setResource(x.world, pMatch{5})
			}
		},
	} {
		x := connectedWire(t, s)
		setResource(x.world, pMatch{4})
		e := x.spawn(ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tHealth](x.world), ecs.ComponentID[cAmmo](x.world))
		x.server.SetOwner(e, x.peer)
		x.rounds(10)
		x.requireEqual()
		m, _ := x.mirrored(e)
		health, ammo := ecs.ComponentID[tHealth](x.mirror), ecs.ComponentID[cAmmo](x.mirror)
		x.mirror.Remove(m, health, ammo)
		dropResource[pMatch](x.mirror)
		has := func() (n int) {
			for _, there := range []bool{
				x.mirror.Has(m, health), x.mirror.Has(m, ammo), resourceOf[pMatch](x.mirror) != nil,
			} {
				if there {
					n++
				}
			}
			return n
		}
		x.rounds(10)
		require.Zero(t, has(), name)
		added, changed := 0, 0
		OnAdd(x.client, func(ecs.Entity, *tHealth) { added++ })
		OnAdd(x.client, func(ecs.Entity, *cAmmo) { added++ })
		OnAdd(x.client, func(ecs.Entity, *pMatch) { added++ })
		OnChange(x.client, func(_ ecs.Entity, _, _ *pMatch) { changed++ })
		for n := range 6 {
			if n%3 == 0 {
				twice(x, e, n == 3)
			}
			x.deliver(x.replicate()...)
		}
		x.rounds(5)
		require.Equal(t, 1, has(), name)
		require.Equal(t, [2]int{1, 0}, [2]int{added, changed}, name)
	}
}
