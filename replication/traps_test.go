package replication

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// Mistakes that replication libraries have made, with a test for each.

// crowd is a wire with entities that have positions, known to the client.
func crowd(t *testing.T, n int, opts ...ServerOption) (x *fixture, entities []ecs.Entity, move func(e ecs.Entity, dx float32)) {
	x = connectedWire(t, testSchema(), opts...)
	position := ecs.ComponentID[tPosition](x.world)
	for range n {
		entities = append(entities, x.spawn(position))
	}
	x.rounds(4)
	x.requireEqual()
	return x, entities, func(e ecs.Entity, dx float32) { (*tPosition)(x.world.Get(e, position)).X += dx }
}

func (x *fixture) slotOf(e ecs.Entity) int {
	x.t.Helper()
	id, ok := x.server.NetID(e)
	require.True(x.t, ok)
	return int(id.Slot)
}

// withoutSharedPackets makes the server assemble everything entry by entry.
var withoutSharedPackets = config.ServerFunc(func(o *config.ServerOptions) { o.NoSharedPackets = true })

// inStep returns the slots of a block that lack nothing up to the baseline of shared packets.
func inStep(p *ackstate.Tracker, b int) uint64 {
	base, t := p.Base(), &p.Acks
	return p.Snap.Slots.Alive[b] &^ (t.Lacks(base, b) | t.Lacks(p.Second(base), b) | t.None[b])
}

// acked returns the tick at which the newest state of a slot began that the peer is known to hold.
func (x *fixture) acked(slot int) delta.Tick {
	x.peer.acked.Follow()
	at, ok := x.peer.acked.Acks.Holds(slot)
	if ok {
		if began, known := x.server.snap.Slots.ChangedBy(slot, at); known {
			return began
		}
	}
	return at
}

func TestNewestBaselineIsNamedNotInferred(t *testing.T) {
	x, e, move := crowd(t, 3, withoutSharedPackets, neverSilent)
	slot := x.slotOf(e[0])
	for i := range x.server.opts.Window + 40 {
		move(e[0], 0.3)
		before := x.peer.Stats()
		x.peer.acked.Follow()
		acked, _ := x.peer.acked.Acks.Holds(slot)
		x.deliver(x.replicate()...)
		x.apply() // the acks are lost, so the client holds states that the server does not know of
		x.requireEqual()
		now := x.peer.Stats()
		require.EqualValues(t, 1, now.Updates-before.Updates+now.FullStates-before.FullStates+now.KeyframeFallbacks-before.KeyframeFallbacks, "tick %d", i)
		if x.server.snap.Tick-acked <= delta.Tick(x.server.opts.Window) {
			held, _ := x.peer.acked.Acks.Holds(slot)
			require.Equal(t, acked, held, "tick %d", i)
			require.Zero(t, now.FullStates-before.FullStates, "tick %d", i)
		}
	}
	require.Zero(t, x.client.Stats().MissingBaselines)
}

func TestAckCoversExactlyWhatItsPacketCarried(t *testing.T) {
	x, entities, move := crowd(t, 60, WithMTU(100), withoutSharedPackets)
	for i, e := range entities {
		move(e, float32(i%7)+1)
	}
	packets, sent := x.replicate(), x.server.snap.Tick
	require.Greater(t, len(packets), 2)
	carried := map[int]bool{}
	last := x.peer.acked.Log.At(x.peer.acked.Log.Next - 2) // the last but one
	for i := range last.Count {
		r := x.peer.acked.Log.Record(last, i)
		for slot := range bitset.Slots(int(r.Block), r.Mask) {
			carried[slot] = true
		}
	}
	require.NotEmpty(t, carried)
	x.deliver(packets[len(packets)-2])
	x.answer(x.apply()...)
	move(entities[0], 1)
	x.round() // a packet's fate is resolved by a later one
	x.peer.acked.Follow()
	for i := range entities {
		b, bit := i>>6, uint64(1)<<(i&63)
		require.Equal(t, carried[i], x.peer.acked.Acks.Lacks(sent, b)&bit == 0, "slot %d", i)
	}
	x.rounds(10)
	x.requireEqual()
}

func TestAPacketWithAnUndecodableEntityIsNotAcknowledged(t *testing.T) {
	x, entities, move := crowd(t, 10)
	for _, e := range entities {
		move(e, 1)
	}
	x.client.recv.Replicas.At(5).Held = receive.HeldStates{}
	packets := x.replicate()
	require.Len(t, packets, 1)
	require.ErrorIs(t, x.client.Receive(packets[0]), wire.ErrMissingBaseline)
	acked := x.peer.Stats().Acked
	x.answer(x.apply()...)
	require.Equal(t, acked, x.peer.Stats().Acked)
}

func TestMissingBaselineAffectsOneEntity(t *testing.T) {
	for _, inStep := range []bool{false, true} {
		x, entities, move := crowd(t, 20)
		if inStep {
			for range 3 * snapshot.RecentTicks / 2 {
				move(entities[0], 0.1)
				x.round()
			}
		}
		x.client.recv.Replicas.At(7).Held = receive.HeldStates{}
		before := x.peer.Stats()
		for i := range 20 {
			for _, e := range entities {
				move(e, 0.5)
			}
			x.round()
			if i > 0 {
				x.requireEqual("it takes one round")
			}
		}
		now := x.peer.Stats()
		require.EqualValues(t, 1, now.MissingBaselines-before.MissingBaselines)
		require.EqualValues(t, 1, now.FullStates-before.FullStates)
	}
}

func TestDirtyComparesVersionsNotValues(t *testing.T) {
	for name, arrives := range map[string][2]bool{
		"both arrive": {true, true},
		"only B":      {true, false},
		"only A":      {false, true},
		"none":        {false, false},
	} {
		t.Run(name, func(t *testing.T) {
			x, e, move := crowd(t, 1) // A is acknowledged
			move(e[0], 1)
			b := x.replicate()
			require.NotEmpty(t, b)
			move(e[0], -1)
			a := x.replicate()
			require.NotEmpty(t, a, "the client may be showing B")
			if arrives[0] {
				x.deliver(b...)
				x.apply() // its ack is lost
				require.NotZero(t, x.position(e[0]).X)
			}
			if arrives[1] {
				x.deliver(a...)
				x.apply()
				x.requireEqual()
			}
			x.rounds(60)
			x.requireEqual()
		})
	}
}

func TestSlowMoversAreNotLost(t *testing.T) {
	x, e, move := crowd(t, 1)
	sent := x.peer.Stats().Updates
	for range 2000 {
		move(e[0], 0.0005) // a twentieth of the step
		x.round()
		x.requireEqual()
	}
	require.InDelta(t, 1, x.position(e[0]).X, 0.011)
	sent = x.peer.Stats().Updates - sent
	require.Greater(t, sent, uint64(90))
	require.Less(t, sent, uint64(250), "what is below the step is no change")
}

func TestLateUpdateDoesNotReviveAnEntity(t *testing.T) {
	for _, settled := range []bool{false, true} {
		x, e, move := crowd(t, 2)
		move(e[0], 1)
		late := x.replicate()
		require.NotEmpty(t, late)
		x.world.RemoveEntity(e[0])
		x.deliver(x.replicate()...)
		up := x.apply()
		if settled { // the server has forgotten that the client ever saw the entity
			x.answer(up...)
			x.rounds(5)
		}
		require.EqualValues(t, 1, x.client.Stats().Despawns)
		spawns := x.client.Stats().Spawns
		x.deliver(late...)
		x.apply()
		require.Equal(t, spawns, x.client.Stats().Spawns)
		x.requireEqual()
	}
}

func TestLateSpawnDoesNotReviveAnEntity(t *testing.T) {
	x := connectedWire(t, testSchema())
	e := x.spawn(ecs.ComponentID[tPosition](x.world))
	late := x.replicate() // a full state, which needs no baseline
	x.world.RemoveEntity(e)
	x.rounds(5)
	x.deliver(late...)
	x.apply()
	require.Zero(t, x.client.Stats().Spawns)
	x.requireEqual()
}

func TestLateDespawnSparesTheNextGeneration(t *testing.T) {
	x, e, _ := crowd(t, 2)
	slot := x.slotOf(e[0])
	x.world.RemoveEntity(e[0])
	late := x.replicate()
	require.NotEmpty(t, late)
	newcomer := x.spawn(ecs.ComponentID[tPosition](x.world))
	x.rounds(3)
	require.Equal(t, slot, x.slotOf(newcomer), "the slot is used again")
	x.requireEqual()
	x.deliver(late...)
	x.answer(x.apply()...)
	x.requireEqual()
	x.rounds(3)
	x.requireEqual()
}

func TestLateAckOfADespawnIsNotForTheNextGeneration(t *testing.T) {
	x, e, _ := crowd(t, 1)
	x.world.RemoveEntity(e[0])
	x.deliver(x.replicate()...)
	late := x.apply()
	x.spawn(ecs.ComponentID[tPosition](x.world))
	x.replicate() // lost
	x.answer(late...)
	x.rounds(60)
	x.requireEqual()
}

func TestTwoIncarnationsShareNoBaseline(t *testing.T) {
	x, e, _ := crowd(t, 1)
	before := x.peer.Stats()
	x.world.RemoveEntity(e[0])
	x.replicate() // lost
	newcomer := x.spawn(ecs.ComponentID[tPosition](x.world))
	require.NotEmpty(t, x.replicate()) // lost
	require.Zero(t, x.slotOf(newcomer))
	now := x.peer.Stats()
	require.Zero(t, now.Updates-before.Updates)
	require.EqualValues(t, 1, now.FullStates-before.FullStates)
	x.rounds(40)
	x.requireEqual()
	require.EqualValues(t, 2, x.client.Stats().Spawns)
	require.EqualValues(t, 1, x.client.Stats().Despawns)
}

func TestAReaddedComponentHasNewBaselines(t *testing.T) {
	x, e, _ := crowd(t, 1)
	health := ecs.ComponentID[tHealth](x.world)
	x.world.Add(e[0], health)
	(*tHealth)(x.world.Get(e[0], health)).HP = 77
	x.rounds(3)
	x.requireEqual()
	x.world.Remove(e[0], health)
	x.replicate() // lost
	x.world.Add(e[0], health)
	(*tHealth)(x.world.Get(e[0], health)).HP = 78
	x.round()
	x.requireEqual()
	m, _ := x.mirrored(e[0])
	require.EqualValues(t, 78, (*tHealth)(x.mirror.Get(m, ecs.ComponentID[tHealth](x.mirror))).HP)
}

func TestBothBaselinesAreAcknowledged(t *testing.T) {
	seed := seedOf(t)
	x, entities, move := crowd(t, 5, WithSeed(seed), withoutSharedPackets)
	rng := rand.New(rand.NewPCG(seed, 4))
	acked := map[delta.Tick]bool{}
	note := func() {
		for i := range x.peer.acked.Log.Ring {
			if sent := &x.peer.acked.Log.Ring[i]; sent.Status == ackstate.SentAcked {
				acked[sent.Tick] = true
			}
		}
	}
	note()
	changes := make([][]delta.Tick, len(entities))
	version := func(slot int, at delta.Tick) int {
		n, _ := slices.BinarySearch(changes[slot], at+1)
		return n
	}
	// valid verifies that a baseline tick is one at which an acknowledged state was valid, and that
	// the client finds that state.
	valid := func(slot int, named delta.Tick) {
		t.Helper()
		state := x.client.recv.Replicas.At(uint32(slot)).Held.Find(named)
		require.NotNil(t, state, "the client must hold it")
		require.Equal(t, version(slot, named), version(slot, state.Tick), "the client must find it")
		at := named
		for !acked[at] {
			at--
		}
		require.Equal(t, version(slot, named), version(slot, at), "it must be acknowledged")
	}
	two := 0
	for range 2000 {
		for _, e := range entities {
			if rng.IntN(3) > 0 {
				move(e, rng.Float32()-0.5)
			}
		}
		packets := x.replicate()
		for slot := range entities {
			if x.server.snap.Slots.ChangedAt[slot] == x.server.snap.Tick {
				changes[slot] = append(changes[slot], x.server.snap.Tick)
			}
		}
		if rng.IntN(3) > 0 {
			x.deliver(packets...)
		}
		up := x.apply()
		if rng.IntN(3) > 0 {
			x.answer(up...)
			note()
		}
		for slot := range entities {
			x.peer.acked.Follow()
			x.peer.acked.ClassOfSlot(slot)
			require.Len(t, x.peer.acked.Classes.List, 1)
			if b := x.peer.acked.Classes.List[0]; !b.Full {
				valid(slot, b.A1)
				if b.Two {
					two++
					valid(slot, b.A2)
				}
			}
		}
	}
	require.Greater(t, two, 1000)
	require.Zero(t, x.client.Stats().MissingBaselines)
}

func TestInFlightIsNeitherLostNorReceived(t *testing.T) {
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(1))
	position := ecs.ComponentID[tPosition](&w)
	entity := w.NewEntity(position, ReplicatedID(&w))
	o := newTruth()
	e := connect(s, 1, netsim.Config{Latency: 25}, WithSeed(1))
	(*tPosition)(w.Get(entity, position)).X = -90
	tick := func() {
		(*tPosition)(w.Get(entity, position)).X += 0.25
		s.Replicate()
		o.record(s)
		e.step(t)
		e.check(t, s, o)
	}
	for range 300 {
		tick()
	}
	before := e.peer.Stats()
	for range 300 {
		tick()
	}
	now := e.peer.Stats()
	require.EqualValues(t, 300, now.Updates-before.Updates, "fifty ticks in flight, and a delta every tick")
	require.Zero(t, now.FullStates-before.FullStates)
	require.Zero(t, now.Lost-before.Lost)
	require.Zero(t, e.client.Stats().MissingBaselines)
}

func TestSilentPeerPinsNothing(t *testing.T) {
	x := connectedWire(t, testSchema())
	silent := connect(x.server, 1, netsim.Config{}, WithSeed(55))
	for range 5 {
		x.round()
		silent.step(t)
	}
	require.True(t, silent.peer.Connected(), "and from now on it is silent")
	silent.peer.out.Send = func([]byte) error { return nil }
	g := newGame(5, x.world, faceOf(x.server.schema), 15)
	for range 2000 {
		g.step()
		x.round()
	}
	x.rounds(3)
	x.requireEqual()
	require.LessOrEqual(t, x.server.snap.Slots.Len(), 17, "slots are reused though the client was not notified")
	require.NotZero(t, silent.peer.Stats().Packets)
	require.Zero(t, x.peer.Stats().Lost)
}

func TestStillEntityKeepsItsBaseline(t *testing.T) {
	x, e, move := crowd(t, 3)
	for range 20 * x.server.opts.Window {
		move(e[1], 0.1)
		if x.server.snap.Tick%512 == 0 {
			move(e[1], -51)
		}
		x.round()
	}
	before := x.peer.Stats()
	move(e[0], 1)
	x.rounds(3)
	x.requireEqual()
	now := x.peer.Stats()
	require.Zero(t, now.FullStates-before.FullStates)
	require.Zero(t, x.client.Stats().MissingBaselines)
}

// TestStillEntityOutlivesSerialArithmetic lets years pass: an idle entity, a slot that has been
// empty for as long, and a peer that knows them.
func TestStillEntityOutlivesSerialArithmetic(t *testing.T) {
	x, e, move := crowd(t, 300, WithTimeout(0))
	still, gone, mover := e[0], e[299], e[1]
	x.world.RemoveEntity(gone)
	x.rounds(3)
	x.requireEqual()
	before := x.peer.Stats()
	const jump = 1 << 28
	jumps := 9 // beyond 2^31
	if testing.Short() {
		jumps = 5 // beyond the oldest recorded tick
	}
	for range jumps {
		x.jump(jump)
		for i := range snapshot.RefreshShare + 3 {
			move(mover, float32(1-i%2*2))
			x.round()
		}
		x.requireEqual()
	}
	now := x.peer.Stats()
	require.LessOrEqual(t, now.FullStates-before.FullStates, uint64(3*299+jumps), "sent in full once in 2^30 ticks")
	spawns := x.client.Stats().Spawns
	require.EqualValues(t, 300, spawns, "what was shown stayed")
	move(still, 3)
	x.spawn(ecs.ComponentID[tPosition](x.world)) // where one was despawned
	x.rounds(3)
	x.requireEqual()
	require.Equal(t, spawns+1, x.client.Stats().Spawns)
	require.Equal(t, 300, x.server.snap.Slots.Len())
}

func TestGenerationsWrap(t *testing.T) {
	x, e, _ := crowd(t, 1)
	for range 5 {
		x.world.RemoveEntity(e[0])
		x.rounds(2)
		if x.server.snap.Slots.Info[0].Generation < 1<<16-3 {
			x.server.snap.Slots.Info[0].Generation = 1<<16 - 3
		}
		e[0] = x.spawn(ecs.ComponentID[tPosition](x.world))
		x.rounds(2)
		x.requireEqual()
	}
}

// TestLostAcksAreRepeated: acks repeat earlier ones, so a lost ack costs nothing where packets are
// few.
func TestLostAcksAreRepeated(t *testing.T) {
	x, e, move := crowd(t, 1)
	lost := x.peer.Stats().Lost
	for i := range 400 {
		move(e[0], 0.1)
		x.deliver(x.replicate()...)
		up := x.apply()
		if i%2 == 0 {
			x.answer(up...)
		}
	}
	require.Equal(t, lost, x.peer.Stats().Lost)
}

// TestABadPatchIsForgotten: after a period of slow acks, a lost packet is noticed soon, even if no
// other packet shows that round trips are short again.
func TestABadPatchIsForgotten(t *testing.T) {
	x, e, move := crowd(t, 2)
	for i := range 12 {
		move(e[0], 1)
		x.deliver(x.replicate()...)
		for range 100 + 200*(i%2) {
			x.server.Replicate()
		}
		x.takeDown()
		x.answer(x.apply()...)
	}
	x.rounds(10)
	x.requireEqual()
	move(e[1], 1)
	x.replicate() // lost
	t.Logf("round trip of %v, timeout of %d ticks", x.peer.RoundTrip(), x.peer.acked.Trip.Timeout())
	for n := 0; x.position(e[1]).X == 0; n++ {
		x.round()
		require.LessOrEqual(t, n, 2*x.server.opts.Window, "round trip of %v, timeout of %d ticks", x.peer.RoundTrip(), x.peer.acked.Trip.Timeout())
	}
}
