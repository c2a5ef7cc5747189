package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestSendIntervals: peers with an interval of three ticks are served in different ticks, and
// converge.
func TestSendIntervals(t *testing.T) {
	oneGoroutine(t)
	seed := seedOf(t)
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(seed))
	g := newGame(seed, &w, faceOf(s.schema), 30)
	o := newTruth()
	var ends []*end
	sentAt := make([]map[uint32]bool, 6)
	for i := range sentAt {
		e := connect(s, seed+uint64(i), netsim.Config{Latency: 2, Loss: 0.05}, WithSeed(uint64(i)+1))
		e.peer.SetSendInterval(3)
		sentAt[i] = map[uint32]bool{}
		send := e.peer.out.Send
		e.peer.out.Send = func(p []byte) error {
			if e.peer.Connected() {
				sentAt[i][uint32(s.Tick())] = true
			}
			return send(p)
		}
		ends = append(ends, e)
	}
	for range 300 {
		g.step()
		for _, e := range g.entities {
			g.mutate(e)
		}
		tickAll(t, s, o, ends)
	}
	turns := map[uint32]int{}
	for _, ticks := range sentAt {
		require.Greater(t, len(ticks), 50) // of 100, less those before it was connected
		turn := uint32(99)
		for tick := range ticks {
			if turn == 99 {
				turn = tick % 3
			}
			require.Equal(t, turn, tick%3)
		}
		turns[turn]++
	}
	require.Equal(t, map[uint32]int{0: 2, 1: 2, 2: 2}, turns, "they take turns")
	for _, e := range ends {
		e.link.SetConfig(netsim.Config{Latency: 2})
		require.NotZero(t, e.peer.Stats().NotItsTurn)
	}
	requireEqualSoon(t, s, o, ends, 100)
	require.Panics(t, func() { ends[0].peer.SetSendInterval(0) })
	require.Panics(t, func() { ends[0].peer.SetSendInterval(61) })
}

// TestEvery: a component with Every(5) is shown as it was at its latest reading, and without delay
// when it is new.
func TestEvery(t *testing.T) {
	oneGoroutine(t)
	const n = 5
	schema := NewSchema()
	Register[tPosition](schema)
	Register[tExact](schema, Every(n))
	x := connectedWire(t, schema)
	position, exact := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tExact](x.world)
	var entities []ecs.Entity
	type key struct {
		e    ecs.Entity
		tick uint32
	}
	values := map[key]int32{}
	looked := map[Tick]int{} // number of entities by the phase at which they changed
	for tick := range 200 {
		var spawned ecs.Entity
		if tick%10 == 3 && len(entities) < 15 {
			spawned = x.spawn(position, exact)
			entities = append(entities, spawned)
		}
		next := x.server.Tick() + 1
		for _, e := range entities {
			(*tPosition)(x.world.Get(e, position)).X += 0.1
			v := (*tExact)(x.world.Get(e, exact))
			v.B++
			values[key{e, uint32(next)}] = v.B
		}
		x.round()
		for _, e := range entities {
			m, ok := x.mirrored(e)
			require.True(t, ok, "new ones are sent at once")
			require.InDelta(t, (*tPosition)(x.world.Get(e, position)).X, x.position(e).X, 0.006, "others are sent in every tick")
			id, _ := x.server.NetID(e)
			b := (*tExact)(x.mirror.Get(m, ecs.ComponentID[tExact](x.mirror))).B
			now := values[key{e, uint32(next)}]
			if (Tick(id.Slot)+next)%n == 0 || e == spawned {
				require.Equal(t, now, b)
				looked[next%n]++
				continue
			}
			require.Less(t, now-b, int32(n), "not older than the last turn")
			require.Less(t, b, now, "and not looked at in between")
		}
	}
	require.Len(t, looked, n, "they take turns")
	require.Panics(t, func() { Every(0) })
	require.Panics(t, func() { Every(61) })
}

// TestBudgetsOfPeersWithIntervals: a peer with a budget and a long interval gets everything that
// its budget allows, also where that is more per send than peers save up otherwise.
func TestBudgetsOfPeersWithIntervals(t *testing.T) {
	oneGoroutine(t)
	const rate, ticks = 6000, 240
	for _, interval := range []int{1, 7, 30, 60} {
		c := newLoadWorld(t, 1500, loadSchema())
		m := c.join(2, 0)
		m.peer.SetSendInterval(interval)
		m.peer.SetBudget(rate)
		for range 60 {
			c.tickAll()
		}
		from := len(m.sizes)
		for range ticks {
			c.tickAll()
		}
		bytes := sum(m.sizes[from:])
		t.Logf("interval %d: %d bytes of %d", interval, bytes, rate*ticks/60)
		require.Greater(t, bytes, rate*ticks/60*9/10, "interval %d", interval)
		requireWithin(t, m.sizes, rate, 60, depthOf(m.peer, rate))
	}
}

// TestADespawnKeepsAnIntervalFromSharedPackets: with few changes, a peer gets shared packets only if it needs nothing
// else. It needs the end of an entity, though the entity changed in the interval.
func TestADespawnKeepsAnIntervalFromSharedPackets(t *testing.T) {
	const interval = 2
	x := newDrifting(t, 200)
	x.peer.SetSendInterval(interval)
	play := func(ticks int) (shared uint64) {
		before := x.server.Stats().SharedPackets
		for range ticks {
			x.tick(0)
		}
		return x.server.Stats().SharedPackets - before
	}
	play(60)
	require.NotZero(t, play(interval))
	for range interval {
		x.world.RemoveEntity(x.all[0])
		x.all, x.speeds = x.all[1:], x.speeds[1:]
		before := x.peer.Stats().Despawns
		shared := play(1)
		if x.peer.Stats().Despawns > before {
			require.Zero(t, shared)
		}
	}
	require.NotZero(t, x.peer.Stats().Despawns)
	play(60)
	require.NotZero(t, play(interval))
	x.requireEqual()
}
