package replication

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// TestReferencesConvergeOverHostileLinks: whatever a game does to its references and a
// network to its packets, what a mirror refers to is the mirror of what the server's
// entity referred to in that tick, in that very incarnation, or nothing. Views change,
// acks fail for ten seconds, and the world begins anew meanwhile.
func TestReferencesConvergeOverHostileLinks(t *testing.T) {
	ticks := 5000
	if testing.Short() {
		ticks = 600
	}
	seed := seedOf(t)
	w := ecs.NewWorld()
	s := NewServer(&w, referenceSchema(), WithSeed(seed))
	g := newReferenceGame(seed, &w, s.schema, 30)
	o := &referenceTruth{}
	var ends []*end
	for i, cfg := range hostileLinks() {
		e := connect(s, seed+uint64(i), cfg, WithNonce(seed+uint64(i)+1))
		if i%4 > 1 {
			e.peer.SetInterest(Interest{
				Visible: func(e ecs.Entity) bool { return (e.ID()+s.Tick()/40)%3 > 0 },
				Keep:    i%4 == 2,
			})
		}
		if i == 4 {
			e.peer.SetBudget(1500)
		}
		ends = append(ends, e)
	}
	for tick := range ticks {
		g.step()
		switch tick {
		case ticks / 4:
			ends[1].link.Up.SetConfig(netsim.Config{Loss: 1})
		case ticks / 3:
			w.Reset()
			g.entities, g.dead = nil, nil
		case ticks/4 + 600:
			ends[1].link.Up.SetConfig(netsim.Config{Latency: 3})
		}
		tickReferences(t, s, o, ends)
	}
	for _, e := range ends {
		e.peer.SetInterest(Interest{})
		e.peer.SetBudget(0)
	}
	requireReferencesSettle(t, s, o, ends, 400)
	for i, e := range ends {
		t.Logf("link %d: %+v", i, e.peer.Stats())
	}
}

// referring is a wire of entities with an rTarget each.
type referring struct {
	*wire
	target ecs.ID // at the server
	mirror ecs.ID // at the client
}

func newReferring(t testing.TB, opts ...ServerOption) *referring {
	x := connectedWire(t, referenceSchema(), opts...)
	return &referring{x, ecs.ComponentID[rTarget](x.world), ecs.ComponentID[rTarget](x.mirror)}
}

// point makes e refer to another entity.
func (x *referring) point(e, to ecs.Entity) { (*rTarget)(x.world.Get(e, x.target)).Entity = to }

// shown returns what the mirror of e refers to.
func (x *referring) shown(e ecs.Entity) ecs.Entity {
	x.t.Helper()
	m, ok := x.mirrored(e)
	require.True(x.t, ok, "not mirrored")
	return (*rTarget)(x.wire.mirror.Get(m, x.mirror)).Entity
}

// requireShown says that the mirror of e refers to the mirror of to, or to nothing.
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

// TestReferencesInEveryPlace has references in nested structs, arrays, and arrays of
// structs, of which one each changes.
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
			require.Equal(t, want, *(*rSquad)(x.wire.mirror.Get(mirrored, ecs.ComponentID[rSquad](x.wire.mirror))))
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
	x.world.Add(late, ReplicatedID(x.world)) // e's bytes are as before
	x.rounds(2)
	x.requireShown(e, late)
	x.world.Remove(late, ReplicatedID(x.world))
	x.rounds(2)
	x.requireShown(e, nobody)
	x.world.Add(late, ReplicatedID(x.world))
	x.rounds(2)
	x.requireShown(e, late, "the next incarnation")
}

// TestTargetWhosePacketIsLate: an update is shown before the spawn that it refers to.
func TestTargetWhosePacketIsLate(t *testing.T) {
	x := newReferring(t, withoutSteps)
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
	require.NotZero(t, x.client.mirrors.at(uint32(x.slotOf(e))).links)
	x.rounds(20) // the spawn is repeated
	x.requireShown(e, spawned)
}

func TestReferenceToTheDeadIsNone(t *testing.T) {
	x := newReferring(t)
	e, target := x.spawn(x.target), x.spawn(x.target)
	x.point(e, target)
	x.point(target, e)
	x.rounds(3)
	x.requireShown(e, target)
	x.world.RemoveEntity(target)
	x.rounds(2)
	x.requireShown(e, nobody)
	require.Zero(t, x.client.mirrors.at(uint32(x.slotOf(e))).links, "it is none at the server as well")

	// One that is dead from the start, and one of another world.
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

// TestReferenceNeverPointsToTheNextIncarnation recycles the target's slot and its entity,
// with despawn, spawn and referrer each in packets of their own that come in any order.
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
	// Within one tick, and no word of what was before.
	for range 20 {
		x.world.RemoveEntity(target)
		target = x.spawn()
		x.point(e, target)
		x.round()
		x.requireShown(e, target)
	}
}

// TestTargetsInAndOutOfView: what a peer can't see is none to it, whether it was there
// before or not.
func TestTargetsInAndOutOfView(t *testing.T) {
	for _, keep := range []bool{false, true} {
		x := newReferring(t)
		visible := map[ecs.Entity]bool{}
		x.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return visible[e] }, Keep: keep})
		e, target := x.spawn(x.target), x.spawn(x.target)
		visible[e] = true
		x.point(e, target)
		x.point(target, e)
		x.rounds(3)
		require.Equal(t, nobody, x.shown(e), "never seen")
		visible[target] = true
		x.rounds(3)
		x.requireShown(e, target)
		x.requireShown(target, e)

		visible[target] = false
		x.rounds(3)
		if keep {
			x.requireShown(e, target, "as it was last seen")
		} else {
			require.Equal(t, nobody, x.shown(e))
		}
		visible[target], visible[e] = true, false
		x.rounds(3)
		if keep {
			x.requireShown(e, target)
			x.requireShown(target, e)
		} else {
			require.Equal(t, nobody, x.shown(target))
		}
		visible[e] = true
		x.rounds(3)
		x.requireShown(e, target)
		x.requireShown(target, e)

		visible[e] = false
		x.rounds(3)
		x.world.RemoveEntity(target) // which e is not told of, but the client is
		x.rounds(3)
		if keep {
			require.Equal(t, nobody, x.shown(e))
		}
		visible[e] = true
		x.rounds(3)
		require.Equal(t, nobody, x.shown(e))
		x.client.checkLinks(t, 0)
	}
}

// TestHiddenTargetsShowTheirNumberOnly: what a hidden entity is and does changes no bit of
// what a peer gets that sees who refers to it. Its number does, and its end.
func TestHiddenTargetsShowTheirNumberOnly(t *testing.T) {
	play := func(strangers int, act func(x *referring, hidden ecs.Entity, tick int)) (sent []byte) {
		x := newReferring(t)
		e := x.spawn(x.target)
		x.peer.SetInterest(Interest{Visible: func(other ecs.Entity) bool { return other == e }})
		for range strangers {
			x.spawn()
		}
		hidden := x.spawn()
		x.rounds(2) // who is captured first gets the lower slot
		x.point(e, hidden)
		for tick := range 20 {
			act(x, hidden, tick)
			down := x.replicate()
			sent = append(sent, bytes.Join(down, nil)...)
			x.deliver(down...)
			x.answer(x.apply()...)
			x.requireShown(e, nobody)
		}
		return sent
	}
	still := play(1, func(*referring, ecs.Entity, int) {})
	busy := play(1, func(x *referring, hidden ecs.Entity, tick int) {
		if tick%5 == 1 {
			x.world.Add(hidden, x.target, ecs.ComponentID[tPosition](x.world))
			x.point(hidden, hidden)
		}
		if tick%5 == 4 {
			x.world.Remove(hidden, x.target, ecs.ComponentID[tPosition](x.world))
		}
		x.spawn(x.target)
	})
	require.Equal(t, still, busy)
	require.NotEqual(t, still, play(2, func(*referring, ecs.Entity, int) {}))
	mortal := play(1, func(x *referring, hidden ecs.Entity, tick int) {
		if tick == 10 {
			x.world.RemoveEntity(hidden)
		}
	})
	require.NotEqual(t, still, mortal)
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
		x.client.checkLinks(t, 0)
		require.Zero(t, x.client.mirrors.at(uint32(x.slotOf(e))).links)
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
	x.wire.mirror.RemoveEntity(m)
	m, _ = x.mirrored(e[1])
	x.wire.mirror.Remove(m, x.mirror)
	x.rounds(2)
	for range 2 { // nothing is sent of those who refer to it
		hidden = !hidden
		require.NotPanics(t, func() { x.rounds(3) })
	}
	x.requireShown(e[2], target)
	x.point(e[0], e[1])
	x.rounds(2)
	x.client.checkLinks(t, 0)
	require.Zero(t, x.client.mirrors.at(uint32(x.slotOf(e[0]))).links, "nothing to look after any more")
	gone, _ := x.mirrored(target)
	x.wire.mirror.RemoveEntity(gone)
	x.point(e[3], nobody)
	x.rounds(2)
	x.point(e[3], target)
	x.rounds(2)
	require.Equal(t, nobody, x.shown(e[3]), "it is not here")
	require.Equal(t, gone, x.shown(e[2]), "the user knows")
	x.world.RemoveEntity(target)
	require.NotPanics(t, func() { x.rounds(3) })
	require.Equal(t, nobody, x.shown(e[2]))
	require.False(t, x.wire.mirror.Has(m, x.mirror))
	for _, e := range e {
		x.world.RemoveEntity(e)
	}
	x.rounds(3)
	x.client.checkLinks(t, 0)
}

// TestReferencesOfSeldomComponents: one that is looked at every third tick goes on naming
// the dead for a while, and never means another entity by it.
func TestReferencesOfSeldomComponents(t *testing.T) {
	x := newReferring(t)
	seldom := ecs.ComponentID[rSeldom](x.world)
	e, target := x.spawn(seldom), x.spawn()
	(*rSeldom)(x.world.Get(e, seldom)).Who = target
	shown := func() ecs.Entity {
		m, _ := x.mirrored(e)
		return (*rSeldom)(x.wire.mirror.Get(m, ecs.ComponentID[rSeldom](x.wire.mirror))).Who
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

// TestReferencesCostLittle: bits of rows, as the server books them.
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

// TestReferenceToASlotBeyondTheClientsBound is to nobody, and costs no memory.
func TestReferenceToASlotBeyondTheClientsBound(t *testing.T) {
	x := newReferring(t)
	e, target := x.spawn(x.target), x.spawn()
	x.point(e, target)
	x.client.referrers.limit = 1
	x.client.mirrors.limit = 1
	seen := map[ecs.Entity]bool{e: true}
	x.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return seen[e] }})
	x.rounds(3)
	require.Equal(t, nobody, x.shown(e))
	require.Empty(t, x.client.referrers.heads)
	require.Zero(t, x.client.stats.RefusedPackets)
}

// TestReferencesOfAnEntityInParts: one that fits no packet.
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
	x.client.checkLinks(t, 260)
}

// TestReferencesThroughARelay: the client of one server is a server itself.
func TestReferencesThroughARelay(t *testing.T) {
	x := newReferring(t)
	server := NewServer(x.wire.mirror, x.server.schema, WithSeed(2))
	far := connect(server, 1, netsim.Config{})
	marker := ReplicatedID(x.wire.mirror)
	fresh := ecs.All(x.client.marker).Without(marker)
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
			q := x.wire.mirror.Query(&fresh)
			var add []ecs.Entity
			for q.Next() {
				add = append(add, q.Entity())
			}
			for _, m := range add {
				x.wire.mirror.Add(m, marker)
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

func TestServerFindsEntitiesByNetID(t *testing.T) {
	x := newReferring(t)
	e := x.spawn()
	_, ok := x.server.Entity(NetID{})
	require.False(t, ok)
	x.round()
	id, _ := x.server.NetID(e)
	found, ok := x.server.Entity(id)
	require.True(t, ok)
	require.Equal(t, e, found)
	for _, id := range []NetID{{id.Slot, id.Generation + 1}, {id.Slot + 1, 1}, {1 << 31, 1}} {
		_, ok = x.server.Entity(id)
		require.False(t, ok, id)
	}
	x.world.RemoveEntity(e)
	x.round()
	_, ok = x.server.Entity(id)
	require.False(t, ok)
}

// TestCodesOfReferences: without a world they are what Arche calls the entity.
func TestCodesOfReferences(t *testing.T) {
	w := ecs.NewWorld()
	w.RemoveEntity(w.NewEntity())
	e := w.NewEntity()
	require.EqualValues(t, 1, e.Generation())
	require.Equal(t, []uint64{uint64(e.ID()) | 1<<32}, referenceSchema().Codes(rTarget{e}, nil))
	require.Equal(t, []uint64{0, 7, 0}, referenceSchema().Codes(rChildOf{Seat: 7}, nil))
}

// referringWire is a session in which the client holds references and relations of all
// kinds. packets is called with all that the server sent.
func referringWire(t testing.TB, packets func(p []byte)) *wire {
	x := newWire(t, referenceSchema(), WithMTU(300))
	g := newReferenceGame(5, x.world, x.server.schema, 12)
	for range 30 {
		g.step()
		down := x.replicate()
		x.deliver(down...)
		x.answer(x.apply()...)
		x.deliver(x.takeDown()...)
		for _, p := range down {
			packets(p)
		}
	}
	return x
}

// FuzzReferences is [FuzzPacket] for entities that refer to each other.
func FuzzReferences(f *testing.F) {
	referringWire(f, func(p []byte) {
		if len(p) > 12 {
			f.Add(p[4]>>padShift&7, p[11:])
		}
	})
	f.Fuzz(func(t *testing.T, pad byte, body []byte) {
		x := referringWire(t, func([]byte) {})
		x.receiveForged(pad, body)
		x.rounds(3)
	})
}

// TestRestingReferencesAreNotLookedAt: only where somebody came or went are bytes no proof
// that nothing changed.
func TestRestingReferencesAreNotLookedAt(t *testing.T) {
	if safeKernels {
		t.Skip("the safe kernels can't compare bytes")
	}
	x := newReferring(t)
	child := ecs.ComponentID[rChildOf](x.world)
	var e []ecs.Entity
	for i := range 100 {
		e = append(e, x.spawn(x.target, child))
		x.point(e[i], e[0])
	}
	x.rounds(20)
	block := func(component int) *memberBlock {
		for _, table := range x.server.capture.order {
			for i := range table.members {
				if m := &table.members[i]; m.component == component && len(m.blocks) == 2 {
					return &m.blocks[1]
				}
			}
		}
		require.FailNow(t, "no such table")
		return nil
	}
	rested := func() [2]int { return [2]int{block(1).rested, block(3).rested} }
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

// BenchmarkCaptureReferences compares the capture of a component that refers to an entity
// with that of one of two plain numbers, in a world in which an entity comes and one goes
// in every tick.
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
			g.server.tick++
			g.server.captureWorld()
			g.server.slots.settle(g.server.tick)
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
