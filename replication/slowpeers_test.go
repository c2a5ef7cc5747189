package replication

import (
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// Peers whose links are slow, or silent for long.

// TestJoiningTakesNoLongerThanItMust: a peer of 64 kbit/s that joins a large world has it as soon
// as its link allows, whether or not entities move, and other peers are not affected.
func TestJoiningTakesNoLongerThanItMust(t *testing.T) {
	t.Parallel()
	const rate = 64_000 / 8
	n := 10_000
	if testing.Short() || raceDetector {
		n = 2000
	}
	play := func(t *testing.T, joins bool, movers []int) (others []uint64) {
		c := newLoadWorld(t, n, loadSchema())
		for i := range 2 {
			c.join(5+i, 0)
		}
		for !c.members[1].peer.acked.Join.Complete {
			require.Less(t, c.ticks, 100)
			c.tick()
		}
		worldBytes := sum(c.members[0].sizes)
		first := len(c.members[0].sizes) + 60
		for range 60 {
			c.tick(movers...)
		}
		var e *end
		var sizes []int
		ideal := float64(worldBytes) / rate * 60
		if joins {
			e = connect(c.server, 1, netsim.Config{}, WithSeed(99))
			e.peer.SetBudget(rate)
			countBytes(e.peer, &sizes)
		}
		ticks := 0
		for limit := int(1.15 * ideal); ticks < limit; ticks++ {
			sizes = append(sizes, 0)
			c.tick(movers...)
			if joins {
				e.step(t)
				if e.client.Stats().Spawns == uint64(n) {
					joins = false // from here on everything is sent
					t.Logf("%d bytes of wholes took %d ticks, ideal %.0f", worldBytes, ticks, ideal)
					requireWithin(t, sizes, rate, 60, depthOf(e.peer, rate))
				}
			}
		}
		if joins {
			require.Fail(t, "not joined in time", "%d of %d entities in %d ticks", e.client.Stats().Spawns, n, ticks)
		}
		for _, m := range c.members {
			require.Len(t, m.sizes, first+ticks)
			others = append(others, m.hash)
		}
		return others
	}
	var movers []int
	for i := 0; i < n; i += 10 {
		movers = append(movers, i)
	}
	t.Run("still", func(t *testing.T) { play(t, true, nil) })
	t.Run("moving", func(t *testing.T) {
		require.Equal(t, play(t, false, movers), play(t, true, movers), "others get the same packets")
	})
}

// TestSlowPeersDoNotAffectOthers plays the same game with and without a peer that is silent for a
// minute and one of 8 kbit/s: all others get the same packets, and memory does not grow.
func TestSlowPeersDoNotAffectOthers(t *testing.T) { // not parallel: it measures the heap
	const rate = 8000 / 8
	entities, others, silence := 60, 100, 3600
	if testing.Short() || raceDetector {
		entities, others, silence = 60, 10, 900
	}
	var moving []int
	for i := 0; i < entities; i += 3 {
		moving = append(moving, i)
	}
	play := func(poor bool) (hashes []uint64) {
		c := newLoadWorld(t, entities, loadSchema(), WithTimeout(0))
		for i := range others {
			c.join(5+i%5, 0)
		}
		var silent, slow *end
		var sizes []int
		if poor {
			silent = connect(c.server, 1, netsim.Config{Latency: 2}, WithSeed(1001))
			slow = connect(c.server, 2, netsim.Config{Latency: 2}, WithSeed(1002))
			slow.peer.SetBudget(rate)
			countBytes(slow.peer, &sizes)
		}
		tick := func(moving []int) {
			sizes = append(sizes, 0)
			c.tick(moving...)
			if poor {
				silent.step(t)
				slow.step(t)
			}
		}
		for _, m := range c.members {
			m.sizes = slices.Grow(m.sizes, silence+1000)
		}
		for range 100 {
			tick(moving)
		}
		early := heapInUse()
		for i := range silence {
			if poor && i == 0 {
				silent.link.SetConfig(netsim.Config{Loss: 1})
			}
			tick(moving)
		}
		grown := heapInUse() - early
		if poor {
			require.Less(t, grown, int64(4<<20))
			silent.link.SetConfig(netsim.Config{Latency: 2})
		}
		for range 60 {
			tick(moving)
		}
		for range 300 { // then it is idle
			tick(nil)
		}
		if poor {
			o := newTruth()
			o.record(c.server)
			require.Empty(t, silent.equalTo(c.server, o), "the silent one is back")
			require.Empty(t, slow.equalTo(c.server, o), "the slow one is there at last")
			requireWithin(t, sizes, rate, 60, depthOf(slow.peer, rate))
			require.Greater(t, sum(sizes[100:silence]), (silence-100)*rate/60*95/100, "its line is used")
		}
		for _, m := range c.members {
			require.NotZero(t, m.hash)
			hashes = append(hashes, m.hash)
		}
		runtime.KeepAlive(c)
		return hashes
	}
	require.Equal(t, play(false), play(true))
}
