package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// TestClientWorldReset: the next Apply restores all replicas, though the server sends nothing.
func TestClientWorldReset(t *testing.T) {
	x, e, move := crowd(t, 10)
	gone, _ := x.mirrored(e[3])
	x.mirror.RemoveEntity(gone)
	id, _ := x.server.NetID(e[0])
	_, ok := x.client.Entity(id)
	require.True(t, ok)
	before := x.peer.Stats()

	x.mirror.Reset()
	_, ok = x.client.Entity(id)
	require.False(t, ok)
	own := x.mirror.NewEntity(ecs.ComponentID[tPosition](x.mirror)) // has the ID of a former replica
	_, ok = x.client.NetID(own)
	require.False(t, ok)
	for range x.client.Entities() {
		require.Fail(t, "there is none now")
	}

	x.rounds(2)
	x.requireEqual("also what the user had removed")
	require.Equal(t, 11, x.mirror.Stats().Entities.Used)
	require.True(t, x.mirror.Alive(own))
	require.Zero(t, (*tPosition)(x.mirror.Get(own, ecs.ComponentID[tPosition](x.mirror))).X)
	require.Equal(t, before.FullStates, x.peer.Stats().FullStates, "without traffic")
	now, _ := x.client.Entity(id)
	require.NotEqual(t, own, now)
	require.False(t, x.mirror.Has(own, x.client.apply.View.Marker))

	// Replication goes on.
	move(e[0], 3)
	x.world.RemoveEntity(e[1])
	x.world.Add(e[2], ecs.ComponentID[tHealth](x.world))
	x.rounds(3)
	x.requireEqual()
	require.Equal(t, before.FullStates, x.peer.Stats().FullStates)
	stats := x.client.Stats()
	require.EqualValues(t, 9, stats.Spawns-stats.Despawns)
}

// TestClientWorldResetAtAnyTime: while everything changes over a bad network, and with received
// states that are not applied yet.
func TestClientWorldResetAtAnyTime(t *testing.T) {
	t.Parallel()
	ticks := 3000
	if testing.Short() {
		ticks = 600
	}
	seed := seedOf(t)
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(seed))
	g := newGame(seed, &w, faceOf(s.schema), 25)
	o := newTruth()
	e := connect(s, seed, netsim.Config{Latency: 3, Jitter: 2, Loss: 0.2, Duplicate: 0.1, Reorder: 0.2, ReorderBy: 6})
	local := ecs.ComponentID[tLocal](e.world)
	for range ticks {
		g.step()
		s.Replicate()
		o.record(s)
		e.link.Step()
		e.link.Down.Receive(func(p []byte) { _ = e.client.Receive(p) })
		if g.rng.IntN(20) == 0 {
			e.world.Reset()
			for range g.rng.IntN(5) { // local entities in the new world
				e.world.NewEntity(local)
			}
		}
		require.NoError(t, e.client.Apply())
		e.link.Up.Receive(func(p []byte) { _ = e.peer.Receive(p) })
		e.check(t, s, o)
		if g.rng.IntN(20) == 0 { // the user removes some
			var mirrored []ecs.Entity
			for _, m := range e.client.Entities() {
				mirrored = append(mirrored, m)
			}
			for _, m := range mirrored[:len(mirrored)/4] {
				e.world.RemoveEntity(m)
			}
		}
	}
	e.link.SetConfig(netsim.Config{})
	e.world.Reset()
	requireEqualSoon(t, s, o, []*end{e}, 100)
	require.EqualValues(t, len(o.live), e.world.Stats().Entities.Used)
}

// TestResetOfAWorldThatTwoClientsMirrorInto: each of them notices.
func TestResetOfAWorldThatTwoClientsMirrorInto(t *testing.T) {
	a, b := twoIntoOneWorld(t)
	ga, gb := newGame(1, a.world, faceOf(a.server.schema), 10), newGame(2, b.world, faceOf(b.server.schema), 10)
	for tick := range 200 {
		ga.step()
		gb.step()
		a.round()
		if tick%30 == 7 {
			a.mirror.Reset()
		}
		b.round()
		if tick%30 == 22 {
			a.mirror.Reset()
		}
	}
	a.rounds(2)
	b.rounds(2)
	a.requireEqual()
	b.requireEqual()
	require.Equal(t, a.server.Stats().Entities+b.server.Stats().Entities, a.mirror.Stats().Entities.Used)
}

// TestMatchRestart resets the server's world again and again: slots and generations continue, so
// that no entity of a match is taken for one of another.
func TestMatchRestart(t *testing.T) {
	matches := 40
	if testing.Short() {
		matches = 10
	}
	seed := seedOf(t)
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(seed), replicationtest.FirstTick(1<<32-1000), replicationtest.FirstSequence(1<<16-100))
	g := newGame(seed, &w, faceOf(s.schema), 25)
	o := newTruth()
	ends := []*end{
		connect(s, seed, netsim.Config{Latency: 2}),
		connect(s, seed+1, netsim.Config{Latency: 3, Jitter: 2, Loss: 0.25, Duplicate: 0.1, Reorder: 0.2, ReorderBy: 6}),
	}
	ids := map[NetID]int{} // the match of each id
	for match := range matches {
		for range 20 + g.rng.IntN(60) {
			g.step()
			tickAll(t, s, o, ends)
			for id := range o.live {
				if before, ok := ids[id]; ok {
					require.Equal(t, before, match, "%v is used again", id)
				}
				ids[id] = match
			}
		}
		w.Reset()
		g.entities = g.entities[:0]
		if match%2 == 0 { // the next begins in the same tick
			g.spawn(g.ids[0], g.ids[2])
		} else {
			tickAll(t, s, o, ends)
		}
	}
	ends[1].link.SetConfig(netsim.Config{Latency: 2})
	requireEqualSoon(t, s, o, ends, 200)
	require.Zero(t, s.Stats().CopiedMarkers)
	require.LessOrEqual(t, s.snap.Slots.Len(), 60)
}

// TestServerWorldResetForgetsMembersOfSets: Arche takes an entity from before a reset for alive if
// its ID is the next to be reused.
func TestServerWorldResetForgetsMembersOfSets(t *testing.T) {
	x := connectedWire(t, testSchema())
	set := x.server.NewEntitySet()
	marker := ReplicatedID(x.world)
	x.world.RemoveEntity(x.world.NewEntity(marker))
	set.Add(x.world.NewEntity(marker)) // the second entity with this ID
	x.rounds(3)
	require.Equal(t, 1, set.Len())
	x.world.Reset()
	x.world.RemoveEntity(x.world.NewEntity(marker))
	x.rounds(3)
	require.Zero(t, set.Len())
	x.requireEqual()
}

// TestServerWorldResetForgetsEntitySettings: handles of a new match equal those of the previous
// one. No new entity is in a group or a set, or owned, because an earlier one with its handle was,
// not even if the game set that before the next Replicate.
func TestServerWorldResetForgetsEntitySettings(t *testing.T) {
	for _, pause := range []bool{false, true} {
		schema := NewSchema()
		Register[tPosition](schema)
		Register[cAmmo](schema, OwnerOnly())
		x := connectedWire(t, schema)
		position, ammo := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[cAmmo](x.world)
		old, set := x.server.NewGroup(), x.server.NewEntitySet()
		x.peer.SetInterest(Interest{Sets: []*EntitySet{set}})
		spawn := func() (all [4]ecs.Entity) {
			for i := range all {
				all[i] = x.spawn(position, ammo)
			}
			return all
		}
		first := spawn()
		for _, e := range first {
			old.Add(e)
			set.Add(e)
			x.server.SetOwner(e, x.peer)
		}
		x.rounds(3)
		x.requireEqual()
		x.world.Reset()
		if pause {
			x.rounds(3)
			require.Zero(t, x.client.Stats().Spawns-x.client.Stats().Despawns)
		}
		second := spawn()
		require.Equal(t, first, second, "they look the same")
		group := x.server.NewGroup()
		require.NotPanics(t, func() { group.Add(second[0]) })
		set.Add(second[0])
		x.server.SetOwner(second[0], x.peer)
		set.Add(second[1])
		x.rounds(3)
		require.Zero(t, old.Len())
		require.Equal(t, 1, group.Len())
		require.Equal(t, 2, set.Len())
		for i, e := range second {
			m, here := x.mirrored(e)
			require.Equal(t, i < 2, here, "entity %d", i)
			require.Equal(t, i < 1, here && x.mirror.Has(m, ecs.ComponentID[cAmmo](x.mirror)), "entity %d", i)
			require.Equal(t, i < 1, x.server.Owner(e) != nil)
		}
		old.Add(second[1])
		require.Equal(t, 1, old.Len())
	}
}

// TestAHookMayResetTheWorld and expect an entity of the new one, whatever the hook is called for.
func TestAHookMayResetTheWorld(t *testing.T) {
	for _, when := range []string{"despawn", "component", "close", "leftover"} {
		t.Run(when, func(t *testing.T) {
			schema := testSchema()
			x := connectedWire(t, schema)
			position, health := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tHealth](x.world)
			e := x.spawn(position, health)
			x.rounds(3)
			done := false
			OnRemove(x.client, func(ecs.Entity, *tPosition) {
				if !done {
					done = true
					x.mirror.Reset()
					Expect[tPosition](x.client, x.mirror.NewEntity(ecs.ComponentID[tPosition](x.mirror)), ofTicks(60))
				}
			})
			OnRemove(x.client, func(ecs.Entity, *tHealth) {})
			switch when {
			case "despawn":
				x.world.RemoveEntity(e)
			case "component":
				x.world.Remove(e, position, health)
			case "leftover":
				x.replaceServer(schema, 99)
				x.client.Reconnect()
			case "close":
				x.client.Close()
				require.True(t, done)
				return
			}
			x.rounds(12)
			require.True(t, done)
			x.requireEqual()
		})
	}
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

// TestAHookOfATimeoutMayResetTheWorld in Replicate: nothing of before is taken for something of the new world.
func TestAHookOfATimeoutMayResetTheWorld(t *testing.T) {
	x := newMentioning(t, WithTimeout(ofTicks(60)))
	old := x.spawn()
	x.rounds(3)
	x.server.Connect(func([]byte) error { return nil }) // who never answers
	var fresh ecs.Entity
	x.server.OnDisconnect(func(*Peer) {
		x.world.Reset()
		fresh = x.spawn()
	})
	for n := 0; fresh.IsZero(); n++ {
		require.Less(t, n, 100)
		require.NoError(t, SendToClient(x.peer, rWhom{Target: old}))
		x.round()
	}
	require.Equal(t, old, fresh, "it has the handle of the old one")
	_, ok := x.server.NetID(fresh)
	require.True(t, ok)
	x.rounds(5)
	require.NotZero(t, x.got[0].Target)
	require.Zero(t, x.got[len(x.got)-1].Target)
	x.requireEqual()
}
