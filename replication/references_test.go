package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// referring is a wire of entities with an rTarget each.
type referring struct {
	*fixture
	target ecs.ID // on the server
	mirror ecs.ID // on the client
}

func newReferring(t testing.TB, opts ...ServerOption) *referring {
	x := connectedWire(t, referenceSchema(), opts...)
	return &referring{x, ecs.ComponentID[rTarget](x.world), ecs.ComponentID[rTarget](x.mirror)}
}

// point makes e reference another entity.
func (x *referring) point(e, to ecs.Entity) { (*rTarget)(x.world.Get(e, x.target)).Entity = to }

// shown returns the reference that the replica of e shows.
func (x *referring) shown(e ecs.Entity) ecs.Entity {
	x.t.Helper()
	m, ok := x.mirrored(e)
	require.True(x.t, ok, "not mirrored")
	return (*rTarget)(x.fixture.mirror.Get(m, x.mirror)).Entity
}

// requireShown requires that the replica of e references the replica of to, or no entity.
func (x *referring) requireShown(e, to ecs.Entity, msg ...any) {
	x.t.Helper()
	var want ecs.Entity
	if !to.IsZero() {
		m, ok := x.mirrored(to)
		require.True(x.t, ok, "the target is not mirrored")
		want = m
	}
	require.Equal(x.t, want, x.shown(e), msg...)
}

var nobody ecs.Entity

func TestEntitiesThatReferToEachOtherArriveTogether(t *testing.T) {
	x := newReferring(t)
	a, b, own := x.spawn(x.target), x.spawn(x.target), x.spawn(x.target)
	x.point(a, b)
	x.point(b, a)
	x.point(own, own)
	require.NotEqual(t, a, own)
	x.deliver(x.replicate()...)
	x.apply()
	x.requireShown(a, b)
	x.requireShown(b, a)
	x.requireShown(own, own)
	x.rounds(3)

	x.world.RemoveEntity(own)
	x.world.RemoveEntity(a)
	x.rounds(3)
	x.requireShown(b, nobody)
}

// TestReferencesInEveryPlace has references in nested structs, arrays, and arrays of structs. One
// of each changes.
func TestReferencesInEveryPlace(t *testing.T) {
	x := newReferring(t)
	squad := ecs.ComponentID[rSquad](x.world)
	e := x.spawn(squad)
	var men []ecs.Entity
	for range 6 {
		men = append(men, x.spawn())
	}
	set := []func(v *rSquad, e ecs.Entity){
		func(v *rSquad, e ecs.Entity) { v.Leader = e },
		func(v *rSquad, e ecs.Entity) { v.Men[0] = e },
		func(v *rSquad, e ecs.Entity) { v.Men[2] = e },
		func(v *rSquad, e ecs.Entity) { v.Gear[0].Owner = e },
		func(v *rSquad, e ecs.Entity) { v.Gear[1].Owner = e },
	}
	var want rSquad
	for round := range 3 {
		for i, set := range set {
			man := men[(i+2*round)%len(men)]
			set((*rSquad)(x.world.Get(e, squad)), man)
			x.rounds(2)
			m, ok := x.mirrored(man)
			require.True(t, ok)
			set(&want, m)
			mirrored, _ := x.mirrored(e)
			require.Equal(t, want, *(*rSquad)(x.fixture.mirror.Get(mirrored, ecs.ComponentID[rSquad](x.fixture.mirror))))
		}
	}
}

func TestTargetThatComesLaterIsFilledIn(t *testing.T) {
	x := newReferring(t)
	e, late := x.spawn(x.target), x.world.NewEntity(x.target)
	x.point(e, late)
	x.rounds(3)
	x.requireShown(e, nobody, "not replicated")
	before := x.peer.Stats()
	x.rounds(3)
	require.Equal(t, before.Updates, x.peer.Stats().Updates)
	x.world.Add(late, ReplicatedID(x.world)) // the bytes of e do not change
	x.rounds(2)
	x.requireShown(e, late)
	x.world.Remove(late, ReplicatedID(x.world))
	x.rounds(2)
	x.requireShown(e, nobody)
	x.world.Add(late, ReplicatedID(x.world))
	x.rounds(2)
	x.requireShown(e, late, "the next incarnation")
}

// TestTargetWhosePacketIsLate: an update is shown before the spawn of the entity that it
// references.
func TestTargetWhosePacketIsLate(t *testing.T) {
	x := newReferring(t, withoutSharedPackets)
	e := x.spawn(x.target)
	x.rounds(3)
	spawned := x.spawn(x.target)
	x.replicate() // the spawn is lost
	id, ok := x.server.NetID(spawned)
	require.True(t, ok)
	x.point(e, spawned)
	x.deliver(x.replicate()...)
	x.answer(x.apply()...)
	_, ok = x.client.Entity(id)
	require.False(t, ok)
	require.Equal(t, nobody, x.shown(e))
	require.NotZero(t, x.client.apply.View.Replicas.At(uint32(x.slotOf(e))).Links)
	x.rounds(20) // the spawn is repeated
	x.requireShown(e, spawned)
}

func TestReferenceToADeadEntityIsZero(t *testing.T) {
	x := newReferring(t)
	e, target := x.spawn(x.target), x.spawn(x.target)
	x.point(e, target)
	x.point(target, e)
	x.rounds(3)
	x.requireShown(e, target)
	x.world.RemoveEntity(target)
	x.rounds(2)
	x.requireShown(e, nobody)
	require.Zero(t, x.client.apply.View.Replicas.At(uint32(x.slotOf(e))).Links, "it is none at the server as well")

	// A dead one, and one of another world.
	dead := x.world.NewEntity()
	x.world.RemoveEntity(dead)
	other := ecs.NewWorld()
	var stranger ecs.Entity
	for range 1000 {
		stranger = other.NewEntity()
	}
	for _, target := range []ecs.Entity{dead, stranger} {
		e := x.spawn(x.target)
		x.point(e, target)
		x.rounds(2)
		x.requireShown(e, nobody)
	}
}

// TestReferenceNeverPointsToTheNextIncarnation reuses the target's slot and its entity ID. Despawn,
// spawn and referrer are in packets of their own that arrive in any order.
func TestReferenceNeverPointsToTheNextIncarnation(t *testing.T) {
	x := newReferring(t)
	e := x.spawn(x.target)
	target := x.spawn()
	x.point(e, target)
	x.rounds(3)
	for range 20 {
		slot := x.slotOf(target)
		x.world.RemoveEntity(target)
		x.round()
		x.requireShown(e, nobody)
		successor := x.spawn()
		require.Equal(t, target.ID(), successor.ID(), "recycled by Arche")
		x.round()
		require.Equal(t, slot, x.slotOf(successor))
		x.requireShown(e, nobody, "it refers to the dead one still")
		x.point(e, successor)
		x.round()
		x.requireShown(e, successor)
		target = successor
	}
	// Within one tick, without any packet about the previous entity.
	for range 20 {
		x.world.RemoveEntity(target)
		target = x.spawn()
		x.point(e, target)
		x.round()
		x.requireShown(e, target)
	}
}

func TestReferencesOfComponentsThatComeAndGo(t *testing.T) {
	x := newReferring(t)
	e, target := x.spawn(), x.spawn(x.target)
	for range 3 {
		x.world.Add(e, x.target)
		x.point(e, target)
		x.rounds(2)
		x.requireShown(e, target)
		x.world.Remove(e, x.target)
		x.rounds(2)
		checkLinks(&x.client.apply, t, 0)
		require.Zero(t, x.client.apply.View.Replicas.At(uint32(x.slotOf(e))).Links)
	}
}

// TestReferencesLeaveAloneWhatTheUserRemoved: holders, components and targets.
func TestReferencesLeaveAloneWhatTheUserRemoved(t *testing.T) {
	x := newReferring(t)
	var e [4]ecs.Entity
	for i := range e {
		e[i] = x.spawn(x.target)
	}
	target := x.spawn()
	for _, e := range e {
		x.point(e, target)
	}
	hidden := false
	x.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return e != target || !hidden }})
	x.rounds(3)
	m, _ := x.mirrored(e[0])
	x.fixture.mirror.RemoveEntity(m)
	m, _ = x.mirrored(e[1])
	x.fixture.mirror.Remove(m, x.mirror)
	x.rounds(2)
	for range 2 { // nothing is sent about its referrers
		hidden = !hidden
		require.NotPanics(t, func() { x.rounds(3) })
	}
	x.requireShown(e[2], target)
	x.point(e[0], e[1])
	x.rounds(2)
	checkLinks(&x.client.apply, t, 0)
	require.Zero(t, x.client.apply.View.Replicas.At(uint32(x.slotOf(e[0]))).Links, "nothing to look after any more")
	gone, _ := x.mirrored(target)
	x.fixture.mirror.RemoveEntity(gone)
	x.point(e[3], nobody)
	x.rounds(2)
	x.point(e[3], target)
	x.rounds(2)
	require.Equal(t, nobody, x.shown(e[3]), "it is not here")
	require.Equal(t, gone, x.shown(e[2]), "the user knows")
	x.world.RemoveEntity(target)
	require.NotPanics(t, func() { x.rounds(3) })
	require.Equal(t, nobody, x.shown(e[2]))
	require.False(t, x.fixture.mirror.Has(m, x.mirror))
	for _, e := range e {
		x.world.RemoveEntity(e)
	}
	x.rounds(3)
	checkLinks(&x.client.apply, t, 0)
}

// TestReferencesOfSeldomComponents: a component that is read every third tick keeps a reference to
// a dead entity for a while, which never becomes one to another entity.
func TestReferencesOfSeldomComponents(t *testing.T) {
	x := newReferring(t)
	seldom := ecs.ComponentID[rSeldom](x.world)
	e, target := x.spawn(seldom), x.spawn()
	(*rSeldom)(x.world.Get(e, seldom)).Who = target
	shown := func() ecs.Entity {
		m, _ := x.mirrored(e)
		return (*rSeldom)(x.fixture.mirror.Get(m, ecs.ComponentID[rSeldom](x.fixture.mirror))).Who
	}
	for range 10 {
		x.rounds(5)
		m, ok := x.mirrored(target)
		require.True(t, ok)
		require.Equal(t, m, shown())
		x.world.RemoveEntity(target)
		target = x.spawn()
		x.round()
		require.Equal(t, nobody, shown())
		x.rounds(4)
		require.Equal(t, nobody, shown())
		(*rSeldom)(x.world.Get(e, seldom)).Who = target
	}
	x.rounds(8)
	before := x.peer.Stats().Updates
	x.rounds(8)
	require.Equal(t, before, x.peer.Stats().Updates)
}

// TestReferencesCostLittle counts bits of rows, as the server does.
func TestReferencesCostLittle(t *testing.T) {
	x := newReferring(t)
	for range 200 { // slots in use
		x.spawn()
	}
	e, target := x.spawn(x.target), x.spawn()
	x.rounds(40)
	cost := func() (bits uint64) {
		for _, f := range x.server.Stats().Fields {
			if f.Component == "rTarget" && f.Field == "Entity" {
				bits = f.Bits
			}
		}
		return bits
	}
	require.EqualValues(t, 1, cost(), "a spawn with a reference to nobody")
	for _, c := range []struct {
		to   ecs.Entity
		bits uint64
		why  string
	}{
		{target, 2 + 10 + 4, "from nobody to slot 201, incarnation 1"},
		{e, 1 + 2 + 10 + 4, "from one to another, slot 200"},
		{nobody, 1, "to nobody"},
	} {
		before := cost()
		x.point(e, c.to)
		x.rounds(20)
		require.Equal(t, c.bits, cost()-before, c.why)
		require.Equal(t, c.bits, cost()-before, "an unchanged one is free")
	}
}

// TestReferenceToASlotBeyondTheClientsBound is zero, and costs no memory.
func TestReferenceToASlotBeyondTheClientsBound(t *testing.T) {
	x := newReferring(t)
	e, target := x.spawn(x.target), x.spawn()
	x.point(e, target)
	x.client.apply.Referrers.Limit = 1
	x.client.recv.Replicas.Limit = 1
	seen := map[ecs.Entity]bool{e: true}
	x.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return seen[e] }})
	x.rounds(3)
	require.Equal(t, nobody, x.shown(e))
	require.Empty(t, x.client.apply.Referrers.Heads)
	require.Zero(t, x.client.stats.RefusedPackets)
}

// TestReferencesOfAnEntityInParts: the entity does not fit into a packet.
func TestReferencesOfAnEntityInParts(t *testing.T) {
	type crew struct{ Men [300]ecs.Entity }
	schema := NewSchema()
	Register[crew](schema)
	x := connectedWire(t, schema, WithMTU(120))
	id := ecs.ComponentID[crew](x.world)
	e := x.spawn(id)
	men := (*crew)(x.world.Get(e, id)).Men[:]
	for i := range men {
		men[i] = x.spawn()
	}
	copy((*crew)(x.world.Get(e, id)).Men[:], men)
	x.rounds(30)
	require.NotZero(t, x.peer.Stats().Parts)
	check := func() {
		m, ok := x.mirrored(e)
		require.True(t, ok)
		for i, man := range (*crew)(x.mirror.Get(m, ecs.ComponentID[crew](x.mirror))).Men {
			want, ok := x.mirrored((*crew)(x.world.Get(e, id)).Men[i])
			if !ok {
				want = nobody
			}
			require.Equal(t, want, man, i)
		}
	}
	check()
	for i := range 40 {
		x.world.RemoveEntity((*crew)(x.world.Get(e, id)).Men[7*i])
		x.round()
		check()
	}
	checkLinks(&x.client.apply, t, 260)
}

// TestReferencesThroughARelay: the client of one server is a server itself.
func TestReferencesThroughARelay(t *testing.T) {
	x := newReferring(t)
	server := NewServer(x.fixture.mirror, faceOf(x.server.schema), WithSeed(2))
	far := connect(server, 1, netsim.Config{})
	marker := ReplicatedID(x.fixture.mirror)
	fresh := ecs.All(x.client.apply.View.Marker).Without(marker)
	var e []ecs.Entity
	shown := func(e ecs.Entity) (entity, target ecs.Entity) {
		m, _ := x.mirrored(e)
		id, ok := server.NetID(m)
		require.True(t, ok)
		entity, ok = far.client.Entity(id)
		require.True(t, ok)
		return entity, (*rTarget)(far.world.Get(entity, ecs.ComponentID[rTarget](far.world))).Entity
	}
	for round := range 20 {
		if round < 10 {
			e = append(e, x.spawn(x.target))
		}
		for i := range e {
			x.point(e[i], e[(i*3+round)%len(e)])
		}
		for range 4 {
			x.round()
			q := x.fixture.mirror.Query(&fresh)
			var add []ecs.Entity
			for q.Next() {
				add = append(add, q.Entity())
			}
			for _, m := range add {
				x.fixture.mirror.Add(m, marker)
			}
			server.Replicate()
			far.step(t)
		}
		for i := range e {
			_, target := shown(e[i])
			want, _ := shown(e[(i*3+round)%len(e)])
			require.Equal(t, want, target)
		}
	}
}

// TestCodesOfReferences: without a world, the codes are Arche's ID and generation.
func TestCodesOfReferences(t *testing.T) {
	w := ecs.NewWorld()
	w.RemoveEntity(w.NewEntity())
	e := w.NewEntity()
	require.EqualValues(t, 1, e.Generation())
	require.Equal(t, []uint64{uint64(e.ID()) | 1<<32}, referenceSchema().Codes(rTarget{e}, nil))
	require.Equal(t, []uint64{0, 7, 0}, referenceSchema().Codes(rChildOf{Seat: 7}, nil))
}
