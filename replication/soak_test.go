package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// hostileLinks are the links of the soak.
func hostileLinks() []netsim.Config {
	return []netsim.Config{
		{},
		{Latency: 3, Jitter: 2, Loss: 0.05},
		{Latency: 6, Loss: 0.2, Duplicate: 0.25, Reorder: 0.3, ReorderBy: 8},
		{Latency: 10, Jitter: 9, Loss: 0.5},
		{Latency: 2, Loss: 0.25, Duplicate: 0.05, Reorder: 0.04, ReorderBy: 40},
		{Latency: 30, Jitter: 30, Loss: 0.1, Duplicate: 0.25, Reorder: 0.3, ReorderBy: 20},
		{Latency: 4, Burst: netsim.Burst{Start: 0.01, Length: 60}},
		{Latency: 1, Loss: 0.01, Corrupt: 0.2},
	}
}

// TestWorldsConvergeOverHostileLinks is the main test of the library: whatever a game does and
// whatever a network does, every client shows states that existed, each entity as of one tick,
// never older than before; and when the network recovers, all worlds are equal.
func TestWorldsConvergeOverHostileLinks(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	ticks := ticksOf(20000, 1500)
	seed := seedOf(t)
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(seed))
	g := newGame(seed, &w, faceOf(s.schema), 30)
	o := newTruth()
	var ends []*end
	for i, cfg := range hostileLinks() {
		ends = append(ends, connect(s, seed+uint64(i), cfg, WithSeed(seed+uint64(i)+1)))
	}
	for tick := range ticks {
		g.step()
		s.Replicate()
		o.record(s)
		for i, e := range ends {
			if i == 1 { // no acks at all for ten seconds
				switch tick {
				case ticks / 2:
					e.link.Up.SetConfig(netsim.Config{Loss: 1})
				case ticks/2 + 600:
					e.link.Up.SetConfig(netsim.Config{Latency: 3})
				}
			}
			e.step(t)
			e.check(t, s, o)
		}
	}
	for _, e := range ends {
		e.link.SetConfig(netsim.Config{Latency: 2})
	}
	requireEqualSoon(t, s, o, ends, 400)
	for i, e := range ends {
		t.Logf("link %d: %+v", i, e.peer.Stats())
	}
}

// requireEqualSoon lets the network settle and compares all worlds.
func requireEqualSoon(t *testing.T, s *Server, o *truth, ends []*end, ticks int) {
	t.Helper()
	for range ticks {
		tickAll(t, s, o, ends)
	}
	for i, e := range ends {
		require.Empty(t, e.equalTo(s, o), "link %d: %+v\n%+v", i, e.peer.Stats(), e.client.Stats())
	}
}

// TestSlotReuseNeverMixesIncarnations despawns and spawns in the same slot every tick.
func TestSlotReuseNeverMixesIncarnations(t *testing.T) {
	t.Parallel()
	ticks := 20000
	if testing.Short() {
		ticks = 2000
	}
	seed := seedOf(t)
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(seed))
	g := newGame(seed, &w, faceOf(s.schema), 30)
	o := newTruth()
	ends := []*end{
		connect(s, seed, netsim.Config{Latency: 4, Jitter: 3, Loss: 0.25, Reorder: 0.1, ReorderBy: 6}),
		connect(s, seed+1, netsim.Config{Latency: 1, Loss: 0.25, Duplicate: 0.25}),
	}
	for range ticks {
		if len(g.entities) > 0 {
			g.despawn(0)
		}
		tickAll(t, s, o, ends) // the slot is empty for one tick
		g.spawn(g.ids[0], g.ids[2])
		tickAll(t, s, o, ends)
	}
	require.Equal(t, 1, s.snap.Slots.Len(), "one slot was used all along")
	requireEqualSoon(t, s, o, ends, 100)
}

// TestCountersWrap starts ticks and sequences shortly before they wrap.
func TestCountersWrap(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	for _, first := range []uint32{1<<16 - 100, 1<<31 - 100, 1<<32 - 100} {
		seed := seedOf(t)
		w := ecs.NewWorld()
		s := NewServer(&w, testSchema(), WithSeed(seed), replicationtest.FirstTick(first), replicationtest.FirstSequence(1<<16-100))
		g := newGame(seed, &w, faceOf(s.schema), 20)
		o := newTruth()
		ends := []*end{
			connect(s, 0, netsim.Config{Latency: 2}),
			connect(s, seed, netsim.Config{Latency: 3, Jitter: 3, Loss: 0.2, Duplicate: 0.1, Reorder: 0.3, ReorderBy: 9}),
		}
		for range ticksOf(2000, 1000) {
			g.step()
			tickAll(t, s, o, ends)
		}
		requireEqualSoon(t, s, o, ends, 200)
	}
}

// TestRestingEntitiesKeepTheirBaselines lets entities rest for longer than the range of baseline
// ticks on the wire, and then move for a moment.
func TestRestingEntitiesKeepTheirBaselines(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	ticks := 20000
	if testing.Short() {
		ticks = 4000
	}
	seed := seedOf(t)
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(seed))
	g := newGame(seed, &w, faceOf(s.schema), 30)
	o := newTruth()
	ends := []*end{
		connect(s, seed, netsim.Config{Latency: 3}),
		connect(s, seed+1, netsim.Config{Latency: 3, Jitter: 1, Loss: 0.3}),
		connect(s, seed+2, netsim.Config{Latency: 6, Loss: 0.2, Duplicate: 0.25, Reorder: 0.3, ReorderBy: 40}),
	}
	for range 20 {
		g.spawn(g.ids[0], g.ids[1])
	}
	requireEqualSoon(t, s, o, ends[:1], 20)
	moving := make([]int, len(g.entities))
	for range ticks {
		for i, e := range g.entities {
			if moving[i] > 0 {
				moving[i]--
				g.mutate(e)
			} else if g.rng.IntN(300) == 0 {
				moving[i] = 1 + g.rng.IntN(12)
			}
		}
		tickAll(t, s, o, ends)
	}
	requireEqualSoon(t, s, o, ends, 400)
	for i, e := range ends[:2] {
		stats := e.peer.Stats()
		require.Zero(t, e.client.Stats().MissingBaselines, "link %d", i)
		if i == 0 {
			require.EqualValues(t, 20, stats.FullStates, "an entity is sent in full once, however long it rests")
		}
	}
}
