package replication

import (
	"math"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// sendCounts plays ticks in which everything moves and counts how often each entity was sent to the
// first client.
func (c *loadWorld) sendCounts(warmUp, ticks int) (counts []int) {
	for range warmUp {
		c.tickAll()
	}
	counts = make([]int, len(c.entities))
	for range ticks {
		c.tickAll()
		sent(c.members[0].peer, func(slot int, _ baseline.RecordKind) { counts[slot]++ })
	}
	return counts
}

// requireShares checks that entities were sent in proportion to their weights, and alike for equal
// weights.
func requireShares(t *testing.T, counts []int, weight func(slot int) float64) {
	t.Helper()
	sums, members, least := map[float64]float64{}, map[float64]float64{}, map[float64]float64{}
	for slot, n := range counts {
		w := weight(slot)
		sums[w] += float64(n)
		members[w]++
		if l, ok := least[w]; !ok || float64(n) < l {
			least[w] = float64(n)
		}
	}
	unit := sums[1] / members[1]
	require.Greater(t, unit, 3.0)
	for w := range sums {
		mean := sums[w] / members[w]
		t.Logf("weight %v: sent %.1f times, at least %.0f", w, mean, least[w])
		require.InEpsilon(t, w, mean/unit, 0.25, "weight %v", w)
		require.Greater(t, least[w], mean/2, "nobody of a weight is left behind")
	}
}

// TestWeightsSetTheUpdateRate: an entity of weight w is sent w times as often.
func TestWeightsSetTheUpdateRate(t *testing.T) {
	oneGoroutine(t)
	weight := func(slot int) float64 { return []float64{1, 2, 4, 8}[slot%4] }
	t.Run("of entities", func(t *testing.T) {
		c := newLoadWorld(t, 400, loadSchema())
		c.join(5, 0).peer.SetBudget(6000)
		c.tick() // finds the entities
		for i, e := range c.entities {
			c.server.SetPriority(e, float32(weight(i)))
		}
		requireShares(t, c.sendCounts(100, 900), weight)
	})
	t.Run("of components", func(t *testing.T) {
		schema := NewSchema()
		Register[tPosition](schema)
		Register[tHealth](schema, Priority(4))
		c := newLoadWorld(t, 400, schema)
		health := ecs.ComponentID[tHealth](&c.world)
		for i := 0; i < len(c.entities); i += 4 {
			c.world.Add(c.entities[i], health)
		}
		for i, e := range c.entities {
			c.positions[i] = (*tPosition)(c.world.Get(e, c.position))
		}
		c.join(5, 0).peer.SetBudget(6000)
		slots := map[uint32]bool{}
		c.tick()
		for i := 0; i < len(c.entities); i += 4 {
			id, _ := c.server.NetID(c.entities[i])
			slots[id.Slot] = true
		}
		requireShares(t, c.sendCounts(100, 900), func(slot int) float64 {
			if slots[uint32(slot)] {
				return 4
			}
			return 1
		})
	})
	t.Run("by distance", func(t *testing.T) {
		c := newLoadWorld(t, 600, loadSchema())
		p := c.join(5, 0).peer
		p.SetBudget(6000)
		calls := 0
		p.SetPriorityFunc(func(entities []ecs.Entity, weights []float32) {
			calls++
			require.Len(t, weights, len(entities))
			for i, e := range entities {
				y := (*tPosition)(c.world.Get(e, c.position)).Y // its row number
				weights[i] *= 5 / (y + 101)
			}
		})
		requireShares(t, c.sendCounts(100, 900), func(slot int) float64 {
			switch slot / 200 {
			case 0:
				return 5. / 1 / (5. / 3)
			case 1:
				return 5. / 2 / (5. / 3)
			}
			return 1
		})
		require.NotZero(t, calls)
	})
	t.Run("of rest", func(t *testing.T) {
		c := newLoadWorld(t, 3000, loadSchema())
		m := c.join(5, 0)
		m.peer.SetBudget(60_000)
		for range 300 {
			c.tickAll()
		}
		moving := make([]int, 0, 1500)
		for i := range 1500 {
			moving = append(moving, 2*i)
		}
		resting := map[int]bool{} // stopped and not sent yet
		for slot := 1; slot < 3000; slot += 2 {
			if m.peer.acked.Dirty.Has(slot) {
				resting[slot] = true
			}
		}
		ticks, movers := 0, map[int]bool{}
		for ; len(resting) > 0; ticks++ {
			require.Less(t, ticks, 200)
			c.tick(moving...)
			sent(m.peer, func(slot int, _ baseline.RecordKind) {
				delete(resting, slot)
				if slot%2 == 0 {
					movers[slot] = true
				}
			})
		}
		t.Logf("after %d ticks all that rests was sent, and %d of 1500 that move", ticks, len(movers))
		require.Less(t, len(movers), 1000)
		require.NotEmpty(t, movers, "those are not left behind")
	})
	t.Run("of nothing", func(t *testing.T) {
		c := newLoadWorld(t, 600, loadSchema())
		m := c.join(5, 0)
		m.peer.SetBudget(20_000)
		for range 200 {
			c.tick()
		}
		m.peer.SetBudget(6000)
		number := map[ecs.Entity]int{}
		for i, e := range c.entities {
			number[e] = i
		}
		m.peer.SetPriorityFunc(func(entities []ecs.Entity, weights []float32) {
			for i, e := range entities {
				switch number[e] % 3 {
				case 0:
					weights[i] = 0
				case 1:
					weights[i] = float32(math.NaN()) // counts as the smallest weight
				}
			}
		})
		counts := c.sendCounts(50, 100)
		worthless := 0
		for slot, n := range counts {
			if slot%3 == 2 {
				require.NotZero(t, n)
			} else {
				worthless += n
			}
		}
		require.Zero(t, worthless, "there was no room")
		var few []int
		for i := 2; i < 100; i += 3 {
			few = append(few, i)
		}
		counts = make([]int, 600)
		for tick := range 200 {
			if tick == 0 {
				c.tickAll() // entities sent in the previous tick have to be sent again
			} else {
				c.tick(few...)
			}
			sent(m.peer, func(slot int, _ baseline.RecordKind) { counts[slot]++ })
		}
		for _, n := range counts {
			require.NotZero(t, n, "there was room for all")
		}
	})
}

// TestPriorityFunctionsGetLiveVisibleEntities: the function gets live entities that the peer may
// see, though despawns of others are waiting as well.
func TestPriorityFunctionsGetLiveVisibleEntities(t *testing.T) {
	c := newLoadWorld(t, 400, loadSchema())
	m := c.join(5, 0.1)
	m.peer.SetBudget(2000)
	hidden := map[ecs.Entity]bool{}
	m.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return !hidden[e] }})
	calls := 0
	m.peer.SetPriorityFunc(func(entities []ecs.Entity, weights []float32) {
		calls++
		for i, e := range entities {
			require.True(t, c.world.Alive(e))
			require.False(t, hidden[e])
			require.Positive(t, weights[i])
		}
	})
	for range 100 {
		c.tickAll()
	}
	for i := range 300 {
		c.world.RemoveEntity(c.entities[i])
		if i < 50 {
			hidden[c.entities[399-i]] = true
		}
		for j := i + 1; j < 400; j++ {
			c.move((*tPosition)(c.world.Get(c.entities[j], c.position)), j)
		}
		c.replicate()
	}
	require.Greater(t, calls, 50)
	require.NotZero(t, m.peer.Stats().Despawns)
}
