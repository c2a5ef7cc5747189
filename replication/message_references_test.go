package replication

import (
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// rLabel identifies an entity on both ends without NetIDs: labels are unique and never change.
type rLabel struct{ N uint32 }

type rWhom struct {
	Number uint32
	Target ecs.Entity
	Others [3]ecs.Entity
	Inside [2]struct {
		N   uint8
		Who ecs.Entity
	}
	Local ecs.Entity `repl:"-"`
}

type rWhomNow struct {
	Number uint32
	Target ecs.Entity
}

type rWhomUnreliable struct {
	Number uint32
	Target ecs.Entity
}

type rOrder struct {
	Fire    bool
	Target  ecs.Entity
	Escorts [2]ecs.Entity
}

func mentioningSchema() *Schema {
	s := NewSchema()
	Register[rLabel](s)
	RegisterMessage[rWhom](s)
	RegisterMessage[rWhomNow](s, Immediate())
	RegisterMessage[rWhomUnreliable](s, Unreliable())
	RegisterInput[rOrder](s)
	return s
}

// mentioning is a wire with messages about labelled entities.
type mentioning struct {
	*fixture
	got    []rWhom
	gotNow []rWhomNow
	up     []rWhom
	labels uint32
}

func newMentioning(t testing.TB, opts ...ServerOption) *mentioning {
	x := &mentioning{fixture: connectedWire(t, mentioningSchema(), opts...)}
	x.listen()
	OnClientMessage(x.server, func(_ *Peer, m rWhom) { x.up = append(x.up, m) })
	return x
}

func (x *mentioning) listen() {
	OnServerMessage(x.client, func(m rWhom) { x.got = append(x.got, m) })
	OnServerMessage(x.client, func(m rWhomNow) { x.gotNow = append(x.gotNow, m) })
}

func (x *mentioning) spawn() ecs.Entity {
	x.labels++
	e := x.fixture.spawn(ecs.ComponentID[rLabel](x.world))
	(*rLabel)(x.world.Get(e, ecs.ComponentID[rLabel](x.world))).N = x.labels
	return e
}

// mirrorOf returns the client's entity for one of the server's.
func (x *mentioning) mirrorOf(e ecs.Entity) ecs.Entity {
	x.t.Helper()
	m, ok := x.mirrored(e)
	require.True(x.t, ok, "not mirrored")
	return m
}

// roundWithoutState is a tick of which only messages arrive.
func (x *mentioning) roundWithoutState() {
	x.t.Helper()
	for _, p := range x.replicate() {
		if wire.KindOf(p[wire.ChecksumSize:]) == wire.KindMessages {
			x.deliver(p)
		}
	}
	x.answer(x.apply()...)
}

func TestEntitiesInMessagesGoBothWays(t *testing.T) {
	x := newMentioning(t)
	x.mirror.NewEntity() // makes entity IDs differ between the worlds
	a, b, c := x.spawn(), x.spawn(), x.spawn()
	unknown := x.world.NewEntity() // not replicated
	x.rounds(3)
	ma, mb, mc := x.mirrorOf(a), x.mirrorOf(b), x.mirrorOf(c)
	require.NotEqual(t, a, ma)

	m := rWhom{Number: 1, Target: a, Others: [3]ecs.Entity{c, {}, b}, Local: a}
	m.Inside[1].N, m.Inside[1].Who = 7, b
	require.NoError(t, SendToClient(x.peer, m))
	require.NoError(t, SendToClient(x.peer, rWhom{Number: 2, Target: unknown}))
	require.NoError(t, SendToAll(x.server, rWhomNow{Number: 3, Target: c}))
	x.round()
	want := rWhom{Number: 1, Target: ma, Others: [3]ecs.Entity{mc, {}, mb}}
	want.Inside[1].N, want.Inside[1].Who = 7, mb
	require.Equal(t, []rWhom{want, {Number: 2}}, x.got)
	require.Equal(t, []rWhomNow{{3, mc}}, x.gotNow)

	m = rWhom{Number: 1, Target: ma, Others: [3]ecs.Entity{mc, {}, mb}, Local: ma}
	m.Inside[1].N, m.Inside[1].Who = 7, mb
	require.NoError(t, SendToServer(x.client, m))
	require.NoError(t, SendToServer(x.client, rWhom{Number: 2, Target: x.mirror.NewEntity()})) // a local one
	x.round()
	want = rWhom{Number: 1, Target: a, Others: [3]ecs.Entity{c, {}, b}}
	want.Inside[1].N, want.Inside[1].Who = 7, b
	require.Equal(t, []rWhom{want, {Number: 2}}, x.up)
}

// TestAMessageFindsWhatWasSpawnedForIt: a message waits for an entity of its own tick and then
// references it, also if state is sent every fourth tick only. A message that does not wait has a
// zero reference if it arrives first.
func TestAMessageFindsWhatWasSpawnedForIt(t *testing.T) {
	for _, interval := range []int{1, 4} {
		x := newMentioning(t)
		x.peer.SetSendInterval(interval)
		for range 8 {
			x.got, x.gotNow = nil, nil
			e := x.spawn()
			require.NoError(t, SendToClient(x.peer, rWhom{Number: 1, Target: e}))
			require.NoError(t, SendToClient(x.peer, rWhomNow{Number: 1, Target: e}))
			x.roundWithoutState()
			require.Empty(t, x.got)
			require.Equal(t, []rWhomNow{{Number: 1}}, x.gotNow)
			for range 30 {
				x.round()
			}
			require.Equal(t, []rWhom{{Number: 1, Target: x.mirrorOf(e)}}, x.got)
		}
		e := x.spawn()
		require.NoError(t, SendToClient(x.peer, rWhomNow{Number: 2, Target: e}))
		for range interval {
			x.round()
		}
		if interval == 1 { // the state of a tick is sent first
			require.Equal(t, rWhomNow{2, x.mirrorOf(e)}, x.gotNow[len(x.gotNow)-1])
		}
	}
}

// TestMessagesDoNotReferToDeadEntities: neither to one that was dead when the message was sent, nor
// to one that died before delivery, nor to an entity that took its place.
func TestMessagesDoNotReferToDeadEntities(t *testing.T) {
	x := newMentioning(t)
	a, b := x.spawn(), x.spawn()
	x.rounds(3)
	ma, mb := x.mirrorOf(a), x.mirrorOf(b)

	// Dead when the message is sent, with a successor that has its ID.
	require.NoError(t, SendToClient(x.peer, rWhom{Number: 1, Target: a}))
	x.world.RemoveEntity(a)
	successor := x.spawn()
	require.Equal(t, a.ID(), successor.ID())
	require.NoError(t, SendToClient(x.peer, rWhom{Number: 2, Target: a}))
	require.NoError(t, SendToServer(x.client, rWhom{Number: 1, Target: ma})) // the client does not know yet
	x.round()
	require.Equal(t, []rWhom{{Number: 1}, {Number: 2}}, x.got)
	require.Equal(t, []rWhom{{Number: 1}}, x.up)
	require.False(t, x.mirror.Alive(ma))
	require.NoError(t, SendToServer(x.client, rWhom{Number: 2, Target: ma})) // now it does
	x.round()
	require.Equal(t, rWhom{Number: 2}, x.up[1])

	// Despawns, and its slot is reused before the message arrives.
	x.got, x.up = nil, nil
	id, _ := x.server.NetID(b)
	require.NoError(t, SendToClient(x.peer, rWhom{Number: 3, Target: b}))
	require.NoError(t, SendToServer(x.client, rWhom{Number: 3, Target: mb}))
	heir := NetID{}
	for range 1000 {
		for _, p := range x.replicate() {
			if wire.KindOf(p[wire.ChecksumSize:]) != wire.KindMessages {
				x.deliver(p)
			}
		}
		for _, p := range x.apply() {
			if wire.KindOf(p[wire.ChecksumSize:]) != wire.KindMessages {
				x.answer(p)
			}
		}
		if x.world.Alive(b) {
			x.world.RemoveEntity(b)
		}
		if heir, _ = x.server.NetID(successor); heir.Slot == id.Slot {
			break
		}
		successor = x.spawn()
	}
	require.Equal(t, id.Slot, heir.Slot, "the slot was not used again")
	require.Empty(t, x.got)
	require.Empty(t, x.up)
	x.rounds(100)
	x.mirrorOf(successor)
	require.Equal(t, []rWhom{{Number: 3}}, x.got)
	require.Equal(t, []rWhom{{Number: 3}}, x.up)
}

// TestAnEntityRemovedByAHandlerIsZeroForTheNext: references of a packet's messages are resolved one
// message after the other.
func TestAnEntityRemovedByAHandlerIsZeroForTheNext(t *testing.T) {
	x := newMentioning(t)
	e := x.spawn()
	x.rounds(3)
	m := x.mirrorOf(e)
	OnClientMessage(x.server, func(_ *Peer, w rWhom) {
		x.up = append(x.up, w)
		if !w.Target.IsZero() {
			x.world.RemoveEntity(w.Target)
		}
	})
	for n := range uint32(2) {
		require.NoError(t, SendToServer(x.client, rWhom{Number: n, Target: m}))
	}
	x.round()
	require.Equal(t, []rWhom{{Number: 0, Target: e}, {Number: 1}}, x.up)
}

// TestMessagesAboutOneWorldInAnother: after a reset a world has other entities, and so has another
// server, whose NetIDs are the same.
func TestMessagesAboutOneWorldInAnother(t *testing.T) {
	x := newMentioning(t)
	var all []ecs.Entity
	for range 300 {
		all = append(all, x.spawn())
	}
	x.rounds(3)
	last := all[len(all)-1]
	m := x.mirrorOf(last)

	// The server's world is reset between two ticks.
	require.NoError(t, SendToServer(x.client, rWhom{Number: 1, Target: m}))
	require.NoError(t, SendToViewers(x.server, last, rWhom{Number: 1, Target: last}))
	x.world.Reset()
	x.answer(x.apply()...)
	require.Equal(t, []rWhom{{Number: 1}}, x.up)
	e := x.spawn()
	require.Equal(t, all[0], e, "the same in Arche")
	require.NoError(t, SendToClient(x.peer, rWhom{Number: 2, Target: last}))
	require.NoError(t, SendToClient(x.peer, rWhom{Number: 3, Target: e}))
	x.rounds(3)
	require.Equal(t, rWhom{Number: 3, Target: x.mirrorOf(e)}, x.got[len(x.got)-1])
	require.Equal(t, rWhom{Number: 2}, x.got[len(x.got)-2])

	// The client's world is reset.
	m = x.mirrorOf(e)
	x.mirror.Reset()
	require.NoError(t, SendToServer(x.client, rWhom{Number: 4, Target: m}))
	local := x.mirror.NewEntity()
	require.NoError(t, SendToServer(x.client, rWhom{Number: 5, Target: local}))
	x.round()
	require.NoError(t, SendToServer(x.client, rWhom{Number: 6, Target: local}))
	require.NoError(t, SendToServer(x.client, rWhom{Number: 7, Target: m}))
	require.NoError(t, SendToServer(x.client, rWhom{Number: 8, Target: x.mirrorOf(e)}))
	x.round()
	require.Len(t, x.up, 6)
	for _, m := range x.up[:4] {
		require.Equal(t, nobody, m.Target, m.Number)
	}
	require.Equal(t, e, x.up[5].Target)
}

// TestMessagesOfAnotherServer: until the world of a new server arrives, that of the previous server
// is shown, and no message refers to its entities, whatever the NetIDs.
func TestMessagesOfAnotherServer(t *testing.T) {
	x := newMentioning(t)
	old := x.spawn()
	x.rounds(3)
	m := x.mirrorOf(old)
	oldID, _ := x.server.NetID(old)
	x.replaceServer(faceOf(x.server.schema), 99)
	OnClientMessage(x.server, func(_ *Peer, m rWhom) { x.up = append(x.up, m) })
	e := x.spawn()
	x.client.Reconnect()
	sent := false
	for range 20 {
		for _, p := range x.replicate() {
			if kind := wire.KindOf(p[wire.ChecksumSize:]); sent || kind != wire.KindState || wire.OpenHandshake(p) != nil {
				x.deliver(p)
			}
		}
		if !sent && x.peer.Connected() {
			sent = true
			id, _ := x.server.NetID(e)
			require.Equal(t, oldID, id, "the same name")
			require.True(t, x.mirror.Alive(m))
			require.NoError(t, SendToClient(x.peer, rWhomNow{Number: 1, Target: e}))
			require.NoError(t, SendToServer(x.client, rWhom{Number: 1, Target: m}))
			x.roundWithoutState()
			require.Equal(t, []rWhomNow{{Number: 1}}, x.gotNow)
			require.Equal(t, []rWhom{{Number: 1}}, x.up)
		}
		x.answer(x.apply()...)
		x.deliver(x.takeDown()...)
	}
	require.True(t, sent)
	require.NoError(t, SendToClient(x.peer, rWhom{Number: 2, Target: e}))
	x.round()
	require.Equal(t, rWhom{Number: 2, Target: x.mirrorOf(e)}, x.got[len(x.got)-1])
}

// TestReferencesOutOfViewAreZero: of two clients that get the same message, one sees its entity.
func TestReferencesOutOfViewAreZero(t *testing.T) {
	x := newMentioning(t)
	hidden := true
	var secret ecs.Entity
	x.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return e != secret || !hidden }})
	secret = x.spawn()
	open := x.spawn()
	m := rWhom{Target: secret, Others: [3]ecs.Entity{open, secret, open}}
	require.NoError(t, SendToClient(x.peer, m))
	x.round()
	mo := x.mirrorOf(open)
	require.Equal(t, []rWhom{{Others: [3]ecs.Entity{mo, {}, mo}}}, x.got)
	hidden = false // enters the view in the tick of the message
	require.NoError(t, SendToClient(x.peer, m))
	x.roundWithoutState()
	require.Len(t, x.got, 1, "waits")
	x.rounds(10)
	ms := x.mirrorOf(secret)
	require.Equal(t, []rWhom{{Target: ms, Others: [3]ecs.Entity{mo, ms, mo}}}, x.got[1:])
}

func TestEntitiesInInputs(t *testing.T) {
	x := newMentioning(t)
	x.mirror.NewEntity()
	a, b := x.spawn(), x.spawn()
	x.rounds(5)
	ma, mb := x.mirrorOf(a), x.mirrorOf(b)
	at := x.server.Tick() + 3
	orders := []rOrder{
		{Fire: true, Target: ma},
		{Target: ma, Escorts: [2]ecs.Entity{mb, ma}}, // references after the first are coded as differences
		{Target: mb},
		{},
		{Target: x.mirror.NewEntity()},
		{Target: mb},
	}
	want := []rOrder{{Fire: true, Target: a}, {Target: a, Escorts: [2]ecs.Entity{b, a}}, {Target: b}, {}, {}, {Target: b}}
	for i, o := range orders {
		require.NoError(t, SetInput(x.client, at+Tick(i), o))
	}
	x.round()
	for i := range want {
		o, ok := Input[rOrder](x.peer, at+Tick(i))
		require.True(t, ok)
		require.Equal(t, want[i], o, i)
	}
	// The target is gone when the message is delivered: in the same tick, and when another entity
	// has its slot.
	x.world.RemoveEntity(b)
	for range 2 {
		o, ok := Input[rOrder](x.peer, at+2)
		require.True(t, ok)
		require.Equal(t, rOrder{}, o)
		x.spawn()
		x.round()
	}
	o, _ := Input[rOrder](x.peer, at+1)
	require.Equal(t, rOrder{Target: a, Escorts: [2]ecs.Entity{{}, a}}, o)
}

func TestMessagesAreNoRelations(t *testing.T) {
	require.PanicsWithValue(t, "replication: rOrbits: a relation is for components: use a field of type ecs.Entity", func() {
		RegisterMessage[rOrbits](NewSchema())
	})
	require.Panics(t, func() { RegisterInput[rChildOf](NewSchema()) })
}

// TestMessageReferencesOverHostileLinks: whatever arrives late, twice or never while entities
// spawn, despawn and enter and leave the view, a reference is to the intended entity or zero, and
// zero only if the entity is not there.
func TestMessageReferencesOverHostileLinks(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	ticks := 3000
	if testing.Short() {
		ticks = 600
	}
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 5))
	w := ecs.NewWorld()
	s := NewServer(&w, mentioningSchema(), WithSeed(seed))
	label := ecs.ComponentID[rLabel](&w)
	labels, alive := []ecs.Entity{{}}, []int{} // labels of all entities ever, and of those alive
	spawn := func() int {
		n := len(labels)
		e := w.NewEntity(label, ReplicatedID(&w))
		(*rLabel)(w.Get(e, label)).N = uint32(n)
		labels, alive = append(labels, e), append(alive, n)
		return n
	}
	hidden := func(n uint32) bool { return (n+uint32(s.Tick())/50)%4 == 0 }
	found, nobodies := 0, 0
	var ends []*end
	for i, cfg := range hostileLinks() {
		e := connect(s, seed+uint64(i), cfg, WithSeed(seed+uint64(i)+1))
		if i%3 == 1 {
			e.peer.SetInterest(Interest{
				Visible: func(e ecs.Entity) bool { return !hidden((*rLabel)(w.Get(e, label)).N) },
			})
		}
		ends = append(ends, e)
		own := ecs.ComponentID[rLabel](e.world)
		// The number of a message is the label of its entity.
		check := func(number uint32, target ecs.Entity, waits bool) {
			if !target.IsZero() {
				found++
				require.Equal(t, number, (*rLabel)(e.world.Get(target, own)).N)
				return
			}
			nobodies++
			if waits && i%3 != 1 {
				require.False(t, w.Alive(labels[number]), "nobody, though it lives")
			}
		}
		OnServerMessage(e.client, func(m rWhom) {
			check(m.Number, m.Target, true)
			check(m.Number, m.Others[2], true)
		})
		OnServerMessage(e.client, func(m rWhomNow) { check(m.Number, m.Target, false) })
		OnServerMessage(e.client, func(m rWhomUnreliable) { check(m.Number, m.Target, true) })
	}
	up := func(number uint32, target ecs.Entity) {
		want := labels[number]
		if !w.Alive(want) {
			want = nobody
		}
		require.Equal(t, want, target)
	}
	ups := 0
	OnClientMessage(s, func(_ *Peer, m rWhom) { up(m.Number, m.Target); ups++ })
	OnClientMessage(s, func(_ *Peer, m rWhomUnreliable) { up(m.Number, m.Target); ups++ })
	for range ticks {
		for range rng.IntN(3) {
			spawn()
		}
		for len(alive) > 30 || len(alive) > 2 && rng.IntN(2) == 0 {
			k := rng.IntN(len(alive))
			w.RemoveEntity(labels[alive[k]])
			alive[k] = alive[len(alive)-1]
			alive = alive[:len(alive)-1]
		}
		for _, e := range ends {
			if len(alive) == 0 {
				continue
			}
			n := uint32(alive[rng.IntN(len(alive))])
			if rng.IntN(3) == 0 { // the youngest
				n = uint32(alive[len(alive)-1])
			}
			target := labels[n]
			_ = SendToClient(e.peer, rWhom{Number: n, Target: target, Others: [3]ecs.Entity{2: target}})
			_ = SendToClient(e.peer, rWhomNow{Number: n, Target: target})
			_ = SendToClient(e.peer, rWhomUnreliable{Number: n, Target: target})
			own := ecs.ComponentID[rLabel](e.world)
			for _, m := range e.client.Entities() {
				if rng.IntN(10) == 0 {
					n := (*rLabel)(e.world.Get(m, own)).N
					_ = SendToServer(e.client, rWhom{Number: n, Target: m})
					_ = SendToServer(e.client, rWhomUnreliable{Number: n, Target: m})
					_ = SetInput(e.client, e.client.InputTick(), rOrder{Target: m, Fire: true})
				}
			}
			if o, ok := Input[rOrder](e.peer, s.Tick()+1); ok && !o.Target.IsZero() {
				require.True(t, w.Alive(o.Target))
			}
		}
		s.Replicate()
		for _, e := range ends {
			e.step(t)
		}
	}
	t.Logf("%d found, %d nobody, %d up", found, nobodies, ups)
	require.Greater(t, found, ticks)
	require.Greater(t, nobodies, ticks/10)
	require.Greater(t, ups, ticks)
}

// TestEntitiesInMessagesDoNotAllocate: once all buffers have grown, messages and inputs about
// entities allocate nothing.
func TestEntitiesInMessagesDoNotAllocate(t *testing.T) {
	skipAllocationTest(t)
	x := newReusingLink(t, mentioningSchema())
	world, s, peer, client := x.world, x.server, x.peer, x.client
	met, handled, orders := 0, 0, 0
	var last ecs.Entity
	OnServerMessage(client, func(m rWhom) {
		if last = m.Target; !last.IsZero() {
			met++
		}
	})
	OnClientMessage(s, func(_ *Peer, m rWhom) {
		if !m.Others[1].IsZero() {
			handled++
		}
	})
	label, marker := ecs.ComponentID[rLabel](world), ReplicatedID(world)
	var all []ecs.Entity
	for range 20 {
		all = append(all, world.NewEntity(marker, label))
	}
	tick := 0
	round := func() {
		tick++
		k := tick % len(all)
		if tick%8 == 0 {
			world.RemoveEntity(all[k])
			all[k] = world.NewEntity(marker, label)
		}
		if o, ok := Input[rOrder](peer, s.Tick()+1); ok && !o.Target.IsZero() {
			orders++
		}
		_ = SendToClient(peer, rWhom{Target: all[k]})
		s.Replicate()
		x.receive()
		if x.mirror.Alive(last) {
			_ = SetInput(client, client.InputTick(), rOrder{Target: last})
			_ = SendToServer(client, rWhom{Others: [3]ecs.Entity{1: last}})
		}
		x.apply()
		x.acknowledge()
	}
	for range 3000 {
		round()
	}
	met, handled, orders = 0, 0, 0
	const runs = 1000
	require.Zero(t, testing.AllocsPerRun(runs, round))
	require.Greater(t, met, runs*9/10)
	require.Greater(t, handled, runs/2)
	require.Greater(t, orders, runs/2)
}
