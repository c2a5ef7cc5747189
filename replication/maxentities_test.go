package replication

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// replace removes the n oldest entities, and makes as many new ones.
func replace(w *ecs.World, entities []ecs.Entity, n int, ids ...ecs.ID) {
	for _, e := range entities[:n] {
		w.RemoveEntity(e)
	}
	copy(entities, entities[n:])
	for i := range n {
		entities[len(entities)-n+i] = w.NewEntity(ids...)
	}
}

// TestMaxEntitiesLimitsLiveEntities: a world that never has more entities than the client was made
// for is replicated, however many of them are replaced in a tick, and whatever else takes slots.
func TestMaxEntitiesLimitsLiveEntities(t *testing.T) {
	oneGoroutine(t)
	picked := OnlyFor(func(*Peer) bool { return true })
	scale := 100
	if os.Getenv("REPLICATION_SCALE") != "" {
		scale = 1
	}
	for _, c := range []struct {
		name              string
		max, at, replaced int
		register          func(s *Schema)
	}{
		{"more than half are replaced", 100, 100, 60, func(*Schema) {}},
		{"all are replaced", 100, 100, 100, func(*Schema) {}},
		{"none are replaced", 100, 100, 0, func(*Schema) {}},
		{"one under a condition", 100, 100, 0, func(s *Schema) { Register[tRotation](s, picked) }},
		{"all under conditions, replaced", 100, 100, 100, func(s *Schema) {
			Register[tRotation](s, picked)
			Register[tFrozen](s, ExceptOwner())
		}},
		{"a single one", 1, 1, 1, func(s *Schema) { Register[tRotation](s, picked) }},
		{"resources", 1, 1, 1, func(s *Schema) { RegisterResource[rsWeather](s) }},
		{"resources and conditions", 32, 32, 32, func(s *Schema) {
			RegisterResource[rsWeather](s)
			Register[tRotation](s, picked)
		}},
		// The default is 2^20: the same proportions as a million entities of which a tenth is
		// replaced.
		{"as by default", 1 << 20 / scale, 1_000_000 / scale, 100_000 / scale, func(*Schema) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			schema := NewSchema()
			Register[tHealth](schema)
			c.register(schema)
			x := newWire(t, schema)
			x.restart(schema, 8, WithMaxEntities(c.max))
			ids := []ecs.ID{ReplicatedID(x.world)}
			for i := range schema.raw.Components {
				if s := &schema.raw.Components[i]; !s.Resource && i != schema.raw.Link {
					ids = append(ids, ecs.TypeID(x.world, s.Typ))
				}
			}
			if x.server.snap.Resources.Any {
				setResource(x.world, rsWeather{Rain: 1})
			}
			entities := make([]ecs.Entity, c.at)
			for i := range entities {
				entities[i] = x.world.NewEntity(ids...)
			}
			ticks := min(100, 10+100_000/(c.replaced+1))
			for range ticks {
				replace(x.world, entities, c.replaced, ids...)
				x.round()
			}
			for n := 0; int(x.client.Stats().Spawns-x.client.Stats().Despawns) != c.at; n++ {
				require.Less(t, n, 1000)
				x.round()
			}
			if c.at <= 1000 {
				x.requireEqual()
			}
			require.Zero(t, x.client.Stats().RefusedPackets)
			require.Zero(t, x.peer.Stats().Withheld)
			require.LessOrEqual(t, x.server.snap.Slots.Len(), int(x.client.recv.Replicas.Limit))
		})
	}
}

// TestSlotsStayBelowTheLimit replaces entities, conditional components and resources over a bad
// network: from none up to the limit at a time.
func TestSlotsStayBelowTheLimit(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	const most = 90
	seed := seedOf(t)
	// A packet that comes more than 128 packets late, as here now and then, must not look like a damaged one.
	g := newConditionPlay(seed, most, WithoutChecksum())
	r := rand.New(rand.NewPCG(seed, 3))
	bad := netsim.Config{Latency: 3, Jitter: 2, Loss: 0.2, Duplicate: 0.1, Reorder: 0.1, ReorderBy: 5}
	for n := range uint64(2) {
		g.ends = append(g.ends, connect(g.server, seed+n, bad, WithSeed(n+1), WithMaxEntities(most)))
	}
	limit := int(g.ends[0].client.recv.Replicas.Limit)
	require.Equal(t, 5*192, limit, "twice as many in blocks of 64, for entities and 4 conditions")
	for range ticksOf(2000, 300) {
		if r.IntN(20) == 0 { // all but a few despawn, and as many as allowed spawn
			for len(g.entities) > r.IntN(10) {
				g.world.RemoveEntity(g.entities[0])
				g.entities = g.entities[1:]
			}
			for len(g.entities) < most {
				ids := []ecs.ID{g.marker}
				for _, id := range g.ids[:9] {
					if r.IntN(4) > 0 {
						ids = append(ids, id)
					}
				}
				g.entities = append(g.entities, g.world.NewEntity(ids...))
			}
		}
		g.tick()
		require.LessOrEqual(t, g.server.snap.Slots.Len(), limit)
		for _, e := range g.ends {
			e.step(t)
			require.Zero(t, e.client.Stats().RefusedPackets)
			require.Zero(t, e.peer.Stats().Withheld)
		}
	}
}

// TestClientsWithLittleRoomGetWhatFits: one client of a server has room for fewer entities than
// there are. It is sent the entities whose slots are below its limit, and the server counts the
// others; other clients are sent everything. When enough entities despawn, it has all the rest.
func TestClientsWithLittleRoomGetWhatFits(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	const entities, most = 300, 50
	for _, coding := range []Coding{Packed, Compact} {
		t.Run(coding.String(), func(t *testing.T) {
			seed := seedOf(t)
			w := ecs.NewWorld()
			s := NewServer(&w, testSchema(), WithSeed(seed), config.ServerFunc(func(o *config.ServerOptions) { o.Compact = coding == Compact }))
			g := newGame(seed, &w, faceOf(s.schema), entities)
			link := netsim.Config{Latency: 2, Jitter: 2, Loss: 0.1, Duplicate: 0.1}
			little := connect(s, seed, link, WithSeed(1), WithMaxEntities(most))
			ends := []*end{little, connect(s, seed+1, link, WithSeed(2)), connect(s, seed+2, link, WithSeed(3), WithMaxEntities(entities))}
			o := newTruth()
			for range 40 {
				g.step()
				tickAll(t, s, o, ends)
			}
			require.Zero(t, little.peer.Stats().Withheld)
			for len(g.entities) < entities {
				g.spawn(g.ids[0], g.ids[2])
			}
			g.limit = 0 // no more entities are made
			for range ticksOf(200, 60) {
				for range 5 {
					g.mutate(g.entities[g.rng.IntN(len(g.entities))])
				}
				tickAll(t, s, o, ends)
			}
			for _, e := range ends {
				e.link.SetConfig(netsim.Config{Latency: 2})
			}
			for range 60 {
				tickAll(t, s, o, ends)
			}
			before := ends[0].peer.Stats()
			tickAll(t, s, o, ends)
			after := ends[0].peer.Stats()

			shown := map[NetID]bool{}
			for id := range little.client.Entities() {
				shown[id] = true
			}
			beyond := 0
			for id := range o.live {
				require.Equal(t, id.Slot < 2*most, shown[id], "%v", id)
				if id.Slot >= 2*most {
					beyond++
				}
			}
			require.Len(t, shown, len(o.live)-beyond)
			require.Equal(t, entities-2*most, beyond)
			require.EqualValues(t, beyond, after.Withheld-before.Withheld)
			require.Zero(t, after.NotVisible)
			require.Equal(t, "", ends[1].equalTo(s, o))
			require.Equal(t, "", ends[2].equalTo(s, o))
			for i, e := range ends {
				require.Zero(t, e.client.Stats().RefusedPackets, "client %d", i)
				require.Equal(t, i == 0, e.peer.Stats().Withheld > 0, "client %d", i)
			}

			for len(g.entities) > most/2 {
				g.despawn(g.rng.IntN(len(g.entities)))
			}
			for range 5 { // new entities get the lowest slots
				replace(&w, g.entities, len(g.entities), g.ids[0], g.marker)
				tickAll(t, s, o, ends)
			}
			requireEqualSoon(t, s, o, ends, 60)
		})
	}
}

// TestMaxEntitiesBelongsToTheSession: a client with more room replaces one with little.
func TestMaxEntitiesBelongsToTheSession(t *testing.T) {
	x := newWire(t, testSchema())
	x.restart(faceOf(x.server.schema), 8, WithMaxEntities(5))
	for range 20 {
		x.spawn(ecs.ComponentID[tHealth](x.world))
	}
	x.rounds(10)
	require.Equal(t, 10, x.mirror.Stats().Entities.Used)
	x.restart(faceOf(x.server.schema), 9, WithMaxEntities(20))
	x.rounds(10)
	x.requireEqual()
	before := x.peer.Stats()
	x.rounds(10)
	after := x.peer.Stats()
	require.Equal(t, before.Withheld, after.Withheld)
	require.EqualValues(t, 200, after.UpToDate-before.UpToDate)

	x.restart(faceOf(x.server.schema), 10, WithMaxEntities(7))
	x.rounds(10)
	require.Equal(t, 14, x.mirror.Stats().Entities.Used)
	require.Zero(t, x.client.Stats().RefusedPackets)
}

// TestEntitiesWithoutRoomAreCounted: every live entity is counted once in every tick, also for a
// client with little room, whatever it may see.
func TestEntitiesWithoutRoomAreCounted(t *testing.T) {
	seed := seedOf(t)
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(seed))
	g := newGame(seed, &w, faceOf(s.schema), 200)
	for range 150 {
		g.spawn(g.ids[0])
	}
	var ends []*end
	for i := range uint64(4) {
		e := connect(s, seed+i, netsim.Config{Latency: 1, Loss: 0.05}, WithSeed(i+1), WithMaxEntities(20+int(i)))
		switch i {
		case 1:
			e.peer.SetBudget(1000)
		case 2:
			e.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return (int(e.ID())+int(s.Tick())/20)%2 == 0 }})
		case 3:
			e.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return e.ID()%2 == 0 }, Keep: true})
			e.peer.SetSendInterval(3)
		}
		ends = append(ends, e)
	}
	o := newTruth()
	before := make([]PeerStats, len(ends))
	for tick := range 200 {
		g.step()
		tickAll(t, s, o, ends)
		for i, e := range ends {
			b, a := before[i], e.peer.Stats()
			before[i] = a
			if tick < 50 {
				continue // they connect
			}
			total := a.NotVisible - b.NotVisible + a.UpToDate - b.UpToDate + a.InFlight - b.InFlight + a.Withheld - b.Withheld +
				a.NotItsTurn - b.NotItsTurn + a.Silent - b.Silent + a.OverBudget - b.OverBudget + a.Updates - b.Updates + a.FullStates - b.FullStates + a.KeyframeFallbacks - b.KeyframeFallbacks
			require.EqualValues(t, s.Stats().Entities, total, "peer %d\n%+v\n%+v", i, b, a)
			require.Greater(t, a.Withheld, b.Withheld)
		}
	}
}

// TestGroupsWithoutRoomAreWithheldCompletely: a client without room for one member of a group is
// sent no member. Sub-entities are withheld one by one.
func TestGroupsWithoutRoomAreWithheldCompletely(t *testing.T) {
	schema := NewSchema()
	Register[tHealth](schema)
	Register[tRotation](schema, OnlyFor(func(*Peer) bool { return true }))
	x := newWire(t, schema)
	x.restart(schema, 8, WithMaxEntities(32)) // 64 for entities, 64 for sub-entities
	health, rotation := ecs.ComponentID[tHealth](x.world), ecs.ComponentID[tRotation](x.world)
	for range 62 {
		x.spawn(health)
	}
	inside, outside := x.server.NewGroup(), x.server.NewGroup()
	var all []ecs.Entity
	for range 4 { // slots 62, 63, 64 and 65
		all = append(all, x.spawn(health, rotation))
	}
	inside.Add(all[0])
	outside.Add(all[1])
	outside.Add(all[2])
	x.rounds(10)
	require.Equal(t, 63, x.mirror.Stats().Entities.Used)
	seen := func(e ecs.Entity) bool {
		_, ok := x.mirrored(e)
		return ok
	}
	require.True(t, seen(all[0]))
	for _, e := range all[1:] {
		require.False(t, seen(e))
	}
	require.NotZero(t, x.peer.Stats().Withheld)
	outside.Remove(all[1])
	x.rounds(5)
	require.True(t, seen(all[1]), "by itself there is room for it")
	require.Zero(t, x.client.Stats().RefusedPackets)
}

// TestGroupsAtTheEntityLimitAreNeverSplit: crews whose members come and go around the limits of
// clients are shown as they were in one tick, or not at all.
func TestGroupsAtTheEntityLimitAreNeverSplit(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	f := newCrewGame(seedOf(t), 8, 6)
	for k, cfg := range hostileLinks() {
		e := connect(f.server, f.rng.Uint64(), cfg, WithSeed(uint64(k)+1), WithMaxEntities(10+k))
		f.watch(e, losesMuch(cfg))
	}
	for i := range ticksOf(5000, 700) {
		if i%200 == 100 {
			f.views()
		}
		f.tick(t, allOfThem)
	}
	f.requireUnsplit(t)
	for k, e := range f.ends {
		require.NotZero(t, e.peer.Stats().Withheld, "end %d", k)
		require.NotZero(t, e.client.Stats().Spawns, "end %d", k)
	}
}

// TestHellosThatClaimAnyRoom: whatever room a client claims, the server goes on, and other clients
// get the same bytes.
func TestHellosThatClaimAnyRoom(t *testing.T) {
	play := func(hostile bool) (sent [][]byte) {
		schema := testSchema()
		x := connectedWire(t, schema)
		g := newGame(3, x.world, schema, 200)
		for range 150 {
			g.spawn(g.ids[0])
		}
		x.rounds(5)
		for n, slots := range []uint32{1, 2, 63, 64, 65, 127, 128, 1 << 30, 1 << 31, 1<<32 - 1, 0} {
			var liar *fixture
			if hostile {
				liar = &fixture{t: t, world: x.world, server: x.server}
				liar.connect()
				liar.restart(schema, 100+uint64(n))
				liar.client.session.Slots, liar.client.recv.Replicas.Limit = slots, slots
			}
			for range 20 {
				g.step()
				x.server.Replicate()
				sent = append(sent, x.down...)
				x.deliver(x.takeDown()...)
				x.answer(x.apply()...)
				if hostile {
					if liar.client.Connected() {
						liar.client.recv.Replicas.Limit = 1 << 20 // to count everything that is sent
					}
					liar.deliver(liar.takeDown()...)
					liar.answer(liar.apply()...)
				}
			}
			if hostile {
				require.True(t, liar.peer.Connected())
				require.Zero(t, liar.client.Stats().RefusedPackets)
				for id := range liar.client.Entities() {
					require.True(t, slots == 0 || id.Slot < slots, "%v with room for %d", id, slots)
				}
				require.Equal(t, slots == 0 || slots > 1000, liar.peer.Stats().Withheld == 0, "%d slots", slots)
				liar.peer.Disconnect(Reason{})
			}
		}
		x.requireEqual()
		return sent
	}
	honest, withLiars := play(false), play(true)
	require.Equal(t, len(honest), len(withLiars))
	for i := range honest {
		require.True(t, bytes.Equal(honest[i], withLiars[i]), "packet %d", i)
	}
}
