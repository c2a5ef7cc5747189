package replication

import (
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// spoil changes the client's newest held state of an entity.
func (x *fixture) spoil(e ecs.Entity, change func(state *receive.HeldState)) {
	x.t.Helper()
	m := x.client.recv.Replicas.At(uint32(x.slotOf(e)))
	state := m.Held.At(m.Newest)
	require.NotNil(x.t, state)
	change(state)
}

func TestStateHashesNameTheFirstFieldThatDiffers(t *testing.T) {
	for _, opts := range [][]ServerOption{{WithStateHash(1)}, {WithStateHash(1), WithoutChecksum()}} {
		x := connectedWire(t, testSchema(), opts...)
		position, health := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tHealth](x.world)
		x.spawn(position)
		b := x.spawn(position, health)
		(*tHealth)(x.world.Get(b, health)).HP = 40
		x.rounds(10)
		require.Nil(t, x.client.Divergence())
		require.Greater(t, x.client.Stats().HashesCompared, uint64(10))

		x.spoil(b, func(state *receive.HeldState) { state.Row(2, 2)[0] = 41 })
		x.rounds(1)
		d := x.client.Divergence()
		require.NotNil(t, d)
		id, _ := x.server.NetID(b)
		mb, _ := x.mirrored(b)
		require.Equal(t, Divergence{NetID: id, Entity: mb, Tick: d.Tick, Component: "tHealth", Field: "HP", Got: int16(41)}, *d)
		require.Equal(t, "tHealth.HP of the entity in slot 1, generation 1, is 41, and at the server's tick 5 it was something else", d.String())
		require.EqualValues(t, 1, x.client.Stats().Diverged)

		// The first divergence is reported until another session begins.
		x.spoil(b, func(state *receive.HeldState) { state.Row(0, 3)[1]++ })
		x.rounds(1)
		require.Same(t, d, x.client.Divergence())
		require.EqualValues(t, 2, x.client.Stats().Diverged)
		x.client.Reconnect()
		x.rounds(12)
		require.Nil(t, x.client.Divergence())
		x.spoil(b, func(state *receive.HeldState) { state.Row(0, 3)[1]++ })
		x.rounds(3)
		require.Equal(t, "tPosition.Y", x.client.Divergence().Name())
	}
}

func TestStateHashesSkipMissingEntities(t *testing.T) {
	x := connectedWire(t, testSchema(), WithStateHash(1))
	position, frozen := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tFrozen](x.world)
	a, b := x.spawn(position, frozen), x.spawn(position)
	x.rounds(3)
	full := x.client.apply.View.Replicas.At(uint32(x.slotOf(a))).Layout
	x.spoil(b, func(state *receive.HeldState) { state.Layout = full })
	x.rounds(1)
	d := x.client.Divergence()
	require.Equal(t, []any{"tFrozen", "", true, false}, []any{d.Component, d.Field, d.Got, d.Want})

	x = connectedWire(t, testSchema(), WithStateHash(1))
	a = x.spawn()
	x.rounds(3)
	x.spoil(a, func(state *receive.HeldState) { state.Generation = 9 })
	x.rounds(1)
	d = x.client.Divergence()
	require.Equal(t, "the generation of the entity in slot 0, generation 9, is 9, and at the server's tick 5 it was 1", d.String())
}

// TestEveryBitOfAStateIsHashed: within a few ticks, because a hash of 8 bits misses some.
func TestEveryBitOfAStateIsHashed(t *testing.T) {
	for name, schema := range map[string]*Schema{"values": testSchema(), "references": referenceSchema()} {
		x := connectedWire(t, schema, WithStateHash(1))
		e := x.world.NewEntity(ReplicatedID(x.world))
		for i := range schema.raw.Components {
			if typ := schema.raw.Components[i].Typ; !schema.raw.Components[i].Targeted() && schema.raw.Components[i].Name != "rDead" {
				x.world.Add(e, ecs.TypeID(x.world, typ))
			}
		}
		x.rounds(8)
		require.Nil(t, x.client.Divergence())
		m := x.client.recv.Replicas.At(uint32(x.slotOf(e)))
		state := m.Held.At(m.Newest)
		for k := range schema.raw.Components {
			comp := &schema.raw.Components[k]
			row := state.Row(k, comp.Words)
			if len(row) == 0 {
				continue
			}
			for i := range comp.Columns {
				col := &comp.Columns[i]
				word := col.Word + i%col.Codec.Words()
				row[word] ^= 1
				x.client.apply.Hashes.Divergence = nil
				for n := 0; x.client.Divergence() == nil; n++ {
					require.Less(t, n, 8, "%s: %s.%s", name, comp.Name, col.Path)
					x.round()
				}
				require.Equal(t, comp.Name, x.client.Divergence().Component)
				require.Equal(t, col.Path, x.client.Divergence().Field)
				row[word] ^= 1
			}
		}
	}
}

// TestStateHashesRaiseNoFalseAlarm: over a bad network, while everything changes, while entities
// leave the view and come back, and whatever the client's user does.
func TestStateHashesRaiseNoFalseAlarm(t *testing.T) {
	t.Parallel()
	ticks := 2000
	if testing.Short() {
		ticks = 500
	}
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 7))
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(seed), WithStateHash(2), WithMTU(300), WithWorkers(2))
	g := newGame(seed, &w, faceOf(s.schema), 40)
	o := newTruth()
	cfg := netsim.Config{Latency: 3, Jitter: 2, Loss: 0.2, Duplicate: 0.1, Reorder: 0.2, ReorderBy: 6}
	ends := []*end{connect(s, seed, cfg), connect(s, seed+1, cfg), connect(s, seed+2, netsim.Config{})}
	hidden := uint32(0)
	ends[0].peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return e.ID()%4 != hidden }})
	ends[1].peer.SetSendInterval(3)
	ends[1].peer.SetBudget(4000)
	for range ticks {
		g.step()
		if rng.IntN(10) == 0 {
			hidden = rng.Uint32N(5)
		}
		if rng.IntN(400) == 0 {
			ends[rng.IntN(3)].client.Reconnect()
		}
		tickAll(t, s, o, ends)
		for i, e := range ends {
			if d := e.client.Divergence(); d != nil {
				require.FailNow(t, "the codec is right", "client %d, tick %d: %v", i, s.Tick(), d)
			}
		}
	}
	for i, e := range ends {
		stats := e.client.Stats()
		t.Logf("client %d: %d compared, %d passed, %d bytes beside %d", i, stats.HashesCompared, stats.HashesSkipped, e.peer.Stats().HashBytes, e.peer.Stats().Bytes)
		require.Greater(t, stats.HashesCompared, uint64(ticks/4), "client %d", i)
		require.Zero(t, stats.MissingBaselines)
	}
}

// TestStateHashesReachAllEntities: also where a packet holds few, and one entity is too large.
func TestStateHashesReachAllEntities(t *testing.T) {
	x := newWire(t, testSchema(), WithStateHash(3), WithMTU(64))
	position, bulk, exact := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tBulk](x.world), ecs.ComponentID[tExact](x.world)
	var entities []ecs.Entity
	for range 50 {
		entities = append(entities, x.spawn(position, exact))
	}
	large := x.spawn(bulk, position, exact)
	entities = append(entities, x.spawn(position))
	x.rounds(200)
	x.requireEqual()
	for _, e := range entities {
		x.client.apply.Hashes.Divergence = nil
		x.spoil(e, func(state *receive.HeldState) { state.Words[1] ^= 2 })
		for n := 0; x.client.Divergence() == nil; n++ {
			require.Less(t, n, 400)
			x.round()
		}
		require.Equal(t, "tPosition.Y", x.client.Divergence().Name())
		id, _ := x.server.NetID(e)
		require.Equal(t, id, x.client.Divergence().NetID)
		x.spoil(e, func(state *receive.HeldState) { state.Words[1] ^= 2 })
	}
	x.client.apply.Hashes.Divergence = nil
	x.spoil(large, func(state *receive.HeldState) { state.Words[1] ^= 2 })
	x.rounds(200)
	require.Nil(t, x.client.Divergence(), "its digests take more than a packet")

	// A third of the usual packets, each of full size.
	before := x.peer.Stats()
	x.rounds(30)
	after := x.peer.Stats()
	require.LessOrEqual(t, after.HashBytes-before.HashBytes, uint64(10*64))
	require.Greater(t, after.HashBytes-before.HashBytes, uint64(9*40))
}

// TestStateHashesRevealNothingHidden: not even its existence.
func TestStateHashesRevealNothingHidden(t *testing.T) {
	x := newWire(t, testSchema(), WithStateHash(1))
	position := ecs.ComponentID[tPosition](x.world)
	shown, hidden := x.spawn(position), x.spawn(position)
	x.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return e == shown }})
	x.rounds(10)
	before := x.peer.Stats()
	x.rounds(10)
	require.EqualValues(t, 10, x.peer.Stats().Hashes-before.Hashes)
	var packets [][]byte
	for range 20 {
		(*tPosition)(x.world.Get(hidden, position)).X++
		x.server.Replicate()
		x.server.snap.Tick-- // the same tick again, so that everything else is the same
		x.peer.out.Hashing.At--
		packets = append(packets, x.takeDown()...)
	}
	require.GreaterOrEqual(t, len(packets), 20)
	for _, p := range packets[1:] {
		require.Equal(t, packets[0], p)
	}
}

func TestMalformedStateHashes(t *testing.T) {
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 3))
	x := connectedWire(t, referenceSchema(), WithStateHash(1))
	squad, target := ecs.ComponentID[rSquad](x.world), ecs.ComponentID[rTarget](x.world)
	for range 5 {
		x.spawn(squad, target)
	}
	x.rounds(4)
	var good []byte
	for _, p := range x.replicate() {
		if p[wire.ChecksumSize] == byte(wire.KindHashes) {
			good = p
		}
	}
	require.NotNil(t, good)
	require.NoError(t, x.client.Receive(good))
	require.NoError(t, x.client.Receive(good), "twice is no harm")
	refused := 0
	for range 5000 {
		bad := append([]byte(nil), good...)
		switch rng.IntN(3) {
		case 0:
			bad = bad[:wire.ChecksumSize+1+rng.IntN(len(bad)-wire.ChecksumSize-1)]
		case 1:
			for i := range 1 + rng.IntN(40) {
				bad = append(bad, byte(rng.Uint32()>>i))
			}
		}
		if tail := bad[wire.ChecksumSize+1:]; len(tail) > 0 {
			for range rng.IntN(4) {
				tail[rng.IntN(len(tail))] ^= 1 << rng.IntN(8)
			}
		}
		before := x.client.Stats()
		require.ErrorIs(t, x.client.Receive(append([]byte{bad[0] ^ 1}, bad[1:]...)), wire.ErrChecksum)
		x.client.session.Down.Write(bad, 0, 0) // as a faulty server would
		if err := x.client.Receive(bad); err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed)
			require.Equal(t, before.HashesCompared, x.client.Stats().HashesCompared, "nothing of it is believed")
			refused++
		}
	}
	require.Greater(t, refused, 1000)
	require.PanicsWithValue(t, "replication: WithTuning: a StateHash of -1: use 1 to 3600", func() { WithStateHash(-1) })
	require.PanicsWithValue(t, "replication: WithTuning: a StateHash of 3601: use 1 to 3600", func() { WithStateHash(3601) })
}

func TestStateHashesDoNotAllocate(t *testing.T) {
	skipAllocationTest(t)
	x := connectedWire(t, testSchema(), WithStateHash(1))
	for range 200 {
		x.spawn(ecs.ComponentID[tPosition](x.world))
	}
	x.rounds(5)
	x.peer.out.Send = func([]byte) error { return nil }
	require.Zero(t, testing.AllocsPerRun(20, func() { x.peer.out.SendHashes(x.server.sender.hashes) }))
	var packet []byte
	x.peer.out.Send = func(p []byte) error { packet = append(packet[:0], p...); return nil }
	x.peer.out.SendHashes(x.server.sender.hashes)
	before := x.client.Stats().HashesCompared
	require.Zero(t, testing.AllocsPerRun(20, func() { _ = x.client.Receive(packet) }))
	require.Greater(t, x.client.Stats().HashesCompared, before+20*30)
}
