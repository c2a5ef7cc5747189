package replication

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// settledSeeds are seeds of small games that once found a fault, or find a planted one: intervals that last
// for no send tick, or change before a late packet comes; ticks that wrap; functions that panic.
var settledSeeds = []uint64{0, 9, 47, 48, 69, 88, 100, 117, 1210}

// TestSettledTicksAreTrue: whatever the game, the network and the settings do, what a client holds as of a
// settled tick is what the server had, and what rested did.
func TestSettledTicksAreTrue(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	claims, states := 0, 0
	play := func(c chaosConfig, wild bool, n, ticks, ends int) {
		c.n, c.ticks, c.ends, c.settled = min(c.n, n), min(c.ticks, ticks), min(c.ends, ends), true
		c.workers = 1 // several send the same packets
		msg, a := runChaos(t, c)
		require.Empty(t, msg, "wild %v: %+v %+v", wild, c, c.wild)
		claims, states = claims+a.settled.claims, states+a.settled.states
	}
	for _, seed := range settledSeeds {
		play(wildChaosConfig(seed), true, 20, 150, 2)
	}
	for _, seed := range []uint64{64, 976} { // packets overtake each other while intervals change
		c := wildChaosConfig(seed)
		c.jitter, c.wild.restless = 8, true
		play(c, true, 20, 300, 2)
	}
	// A peer's interval becomes shorter, and what changed before was out of view in the last send tick of the old one.
	play(wildChaosConfig(1795426588025496597), true, 130, 300, 4)
	// Packets were farther apart than the old one.
	play(wildChaosConfig(1795496792220355028), true, 130, 300, 4)
	seed := seedOf(t)
	for i := range uint64(longOf(60, 40, 20)) {
		play(wildChaosConfig(seed+i), true, 20, 150, 2)
		play(randomChaosConfig(seed+i), false, 20, 150, 2)
	}
	for i := range uint64(longOf(30, 20, 10)) {
		c := wildChaosConfig(seed + i)
		r := rand.New(rand.NewPCG(seed+i, 80))
		c.interval, c.loss, c.toggles, c.wild.restless = pick(r, 1, 2, 3, 3, 5, 8), pick(r, 0.05, 0.2, 0.4), false, false
		c.delay = min(c.delay, 12)
		play(c, true, 20, 300, 2)
	}
	for i := range uint64(longOf(9, 6, 2)) {
		play(wildChaosConfig(seed+i), true, 130, 300, 4)
		play(randomChaosConfig(seed+i), false, 130, 400, 5)
	}
	t.Logf("%d settled ticks and %d states were compared", claims, states)
	require.Greater(t, claims, 1000)
}

// TestSettledTickLag: without loss the settled tick is at most two send intervals and the way from the
// server behind. Loss holds it up.
func TestSettledTickLag(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	const interval, latency = 3, 4
	for _, c := range []struct {
		loss   float64
		coding Coding
		median int32 // at most
	}{{0, Packed, 2*interval + latency}, {0, Compact, 2*interval + latency}, {0.05, Packed, 12}, {0.2, Packed, 30}, {0.2, Compact, 30}} {
		g := newConditionPlay(seedOf(t), 0, config.ServerFunc(func(o *config.ServerOptions) { o.Compact = c.coding == Compact }))
		entity := []ecs.Entity{}
		for range 60 {
			entity = append(entity, g.world.NewEntity(g.marker, g.ids[0]))
		}
		e := connect(g.server, g.rng.Uint64(), netsim.Config{Latency: latency, Loss: c.loss}, WithSeed(9))
		e.peer.SetSendInterval(interval)
		var lags []int32
		for tick := range 4000 {
			for i := range entity {
				if i%2 == 0 || g.rng.IntN(30) == 0 {
					(*cPlace)(g.world.Get(entity[i], g.ids[0])).X = int32(tick%1000 - i)
				}
			}
			g.tick()
			e.step(t)
			if settled, ok := e.client.Settled(); ok && tick > 60 {
				lags = append(lags, int32(g.server.Tick()-settled))
			}
		}
		slices.Sort(lags)
		require.Greater(t, len(lags), 3500)
		median := lags[len(lags)/2]
		t.Logf("loss %v, coding %v: the settled tick is %d ticks behind in the median, %d in 90%%, %d at most",
			c.loss, e.client.Coding(), median, lags[len(lags)*9/10], lags[len(lags)-1])
		require.LessOrEqual(t, median, c.median)
		if c.loss == 0 {
			require.LessOrEqual(t, lags[len(lags)-1], c.median)
		}
	}
}

// TestAnEntityIsKnownToRest: while others move, an entity that stays as it is is known to have rested up to
// the settled tick, and when it starts to move, up to one send interval before.
func TestAnEntityIsKnownToRest(t *testing.T) {
	const interval = 3
	for _, coding := range []Coding{Packed, Compact} {
		g := newConditionPlay(1, 0, config.ServerFunc(func(o *config.ServerOptions) { o.Compact = coding == Compact }))
		still, moving := g.world.NewEntity(g.marker, g.ids[0]), g.world.NewEntity(g.marker, g.ids[0])
		e := connect(g.server, 1, netsim.Config{Latency: 2})
		e.peer.SetSendInterval(interval)
		_, ok := e.client.Settled()
		require.False(t, ok)
		play := func(ticks int, movers ...ecs.Entity) {
			for range ticks {
				for _, m := range movers {
					(*cPlace)(g.world.Get(m, g.ids[0])).X++
				}
				g.tick()
				e.step(t)
			}
		}
		play(120, moving)
		id, _ := g.server.NetID(still)
		mirror, _ := e.client.Entity(id)
		changed, _ := e.client.StateTick(mirror)
		settled, ok := e.client.Settled()
		require.True(t, ok)
		require.Greater(t, settled, changed+90)
		rested, ok := e.client.KnownUntil(mirror)
		require.True(t, ok)
		require.Equal(t, settled, rested)
		play(20, moving, still)
		moved, _ := e.client.StateTick(mirror)
		require.Greater(t, moved, settled)
		in := seam.OfClient(e.client)
		held := &in.Apply.RowsOf(id.Slot, 0).Held
		first, next := held.Around(settled)
		require.EqualValues(t, changed, first.Tick)
		until, ok := next.Rested()
		require.True(t, ok)
		require.EqualValues(t, interval, next.Tick-until, "it is known to have rested up to the send before")
		_, ok = e.client.KnownUntil(e.world.NewEntity())
		require.False(t, ok)
	}
}
