package replication

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// TestNobodyWaitsLongerThanAPass has everything change in every tick and a budget of one
// packet a tick: no entity waits much longer than it takes to send all of them.
func TestNobodyWaitsLongerThanAPass(t *testing.T) {
	sizes := []int{10000, 1500}
	if testing.Short() || raceDetector {
		sizes = []int{3000, 1500}
	}
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c := newThrong(t, n, throngSchema())
			m := c.join(5, 0)
			m.peer.SetBudget(1200 * 60)
			last := make([]int, n) // tick of the last time that it was sent
			longest, sends, first := 0, 0, 0
			ticks := n/20 + 200
			for tick := 1; tick <= ticks; tick++ {
				c.tickAll()
				sent(m.peer, func(slot int, _ recordKind) {
					if last[slot] > ticks/3 {
						longest = max(longest, tick-last[slot])
					}
					last[slot] = tick
					if tick > ticks/3 {
						sends++
					}
				})
				if tick == ticks/3 {
					first = len(m.sizes)
				}
			}
			for _, at := range last {
				longest = max(longest, ticks-at)
			}
			bytes := sum(m.sizes[first:])
			pass := float64(bytes) / float64(sends) * float64(n)
			t.Logf("a pass takes %.0f bytes, %.1f rounds; the longest wait was %d", pass, pass/1200, longest)
			require.LessOrEqual(t, longest, int(math.Ceil(pass/1200))+1)
			require.Greater(t, ticks, 2*longest, "everything was sent several times")
			require.InDelta(t, 1200, float64(bytes)/float64(len(m.sizes)-first), 12, "the budget is used")
			requireWithin(t, m.sizes, 1200*60, 60, depthOf(m.peer, 1200*60))
		})
	}
}

// sendCounts plays ticks in which everything moves and counts how often each entity was
// sent to the first member.
func (c *throng) sendCounts(warmUp, ticks int) (counts []int) {
	for range warmUp {
		c.tickAll()
	}
	counts = make([]int, len(c.entities))
	for range ticks {
		c.tickAll()
		sent(c.members[0].peer, func(slot int, _ recordKind) { counts[slot]++ })
	}
	return counts
}

// requireShares checks that entities were sent in proportion to their weights, of each
// weight all alike.
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
		require.InEpsilon(t, w, mean/unit, 0.2, "weight %v", w)
		require.Greater(t, least[w], mean/2, "nobody of a weight is left behind")
	}
}

// TestWeightsSayHowOften: an entity of weight w is sent w times as often.
func TestWeightsSayHowOften(t *testing.T) {
	weight := func(slot int) float64 { return []float64{1, 2, 4, 8}[slot%4] }
	t.Run("of entities", func(t *testing.T) {
		c := newThrong(t, 400, throngSchema())
		c.join(5, 0).peer.SetBudget(6000)
		c.tick() // finds them
		for i, e := range c.entities {
			c.server.SetPriority(e, float32(weight(i)))
		}
		requireShares(t, c.sendCounts(100, 900), weight)
	})
	t.Run("of components", func(t *testing.T) {
		schema := NewSchema()
		Register[tPosition](schema)
		Register[tHealth](schema, Priority(4))
		c := newThrong(t, 400, schema)
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
		c := newThrong(t, 600, throngSchema())
		p := c.join(5, 0).peer
		p.SetBudget(6000)
		calls := 0
		p.SetPriority(func(entities []ecs.Entity, weights []float32) {
			calls++
			require.Len(t, weights, len(entities))
			for i, e := range entities {
				y := (*tPosition)(c.world.Get(e, c.position)).Y // the row that it stands in
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
		c := newThrong(t, 3000, throngSchema())
		m := c.join(5, 0)
		m.peer.SetBudget(60_000)
		for range 300 {
			c.tickAll()
		}
		moving := make([]int, 0, 1500)
		for i := range 1500 {
			moving = append(moving, 2*i)
		}
		resting := map[int]bool{} // have come to rest and are not sent yet
		for slot := 1; slot < 3000; slot += 2 {
			if m.peer.due.has(slot) {
				resting[slot] = true
			}
		}
		ticks, movers := 0, map[int]bool{}
		for ; len(resting) > 0; ticks++ {
			require.Less(t, ticks, 200)
			c.tick(moving...)
			sent(m.peer, func(slot int, _ recordKind) {
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
		c := newThrong(t, 600, throngSchema())
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
		m.peer.SetPriority(func(entities []ecs.Entity, weights []float32) {
			for i, e := range entities {
				switch number[e] % 3 {
				case 0:
					weights[i] = 0
				case 1:
					weights[i] = float32(math.NaN()) // as good as nothing
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
				c.tickAll() // what was sent in the tick before has to be sent again
			} else {
				c.tick(few...)
			}
			sent(m.peer, func(slot int, _ recordKind) { counts[slot]++ })
		}
		for _, n := range counts {
			require.NotZero(t, n, "there was room for all")
		}
	})
}

// TestPriorityIsAskedOfWhatIsThere: the function that weighs gets live entities that the
// peer may see, though ends of others wait for being sent as well.
func TestPriorityIsAskedOfWhatIsThere(t *testing.T) {
	c := newThrong(t, 400, throngSchema())
	m := c.join(5, 0.1)
	m.peer.SetBudget(2000)
	hidden := map[ecs.Entity]bool{}
	m.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return !hidden[e] }})
	calls := 0
	m.peer.SetPriority(func(entities []ecs.Entity, weights []float32) {
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

// TestJoiningTakesNoLongerThanItMust: a peer of 64 kbit/s that joins a large world has it
// as soon as its line allows, whether things move or not, and others notice nothing.
func TestJoiningTakesNoLongerThanItMust(t *testing.T) {
	const rate = 64_000 / 8
	n := 10_000
	if testing.Short() || raceDetector {
		n = 2000
	}
	play := func(t *testing.T, joins bool, movers []int) (others []uint64) {
		c := newThrong(t, n, throngSchema())
		for i := range 2 {
			c.join(5+i, 0)
		}
		c.tick(movers...)
		whole := c.members[0].sizes[len(c.members[0].sizes)-1] // all at once
		for range 60 {
			c.tick(movers...)
		}
		var e *end
		var sizes []int
		ideal := float64(whole) / rate * 60
		if joins {
			e = connect(c.server, 1, netsim.Config{}, WithNonce(99))
			e.peer.SetBudget(rate)
			send := e.peer.send
			e.peer.send = func(p []byte) error {
				if e.peer.Connected() {
					sizes[len(sizes)-1] += len(p)
				}
				return send(p)
			}
		}
		ticks := 0
		for limit := int(1.15 * ideal); ticks < limit; ticks++ {
			sizes = append(sizes, 0)
			c.tick(movers...)
			if joins {
				e.step(t)
				if e.client.Stats().Spawns == uint64(n) {
					joins = false // and off it goes
					t.Logf("%d bytes of wholes took %d ticks, ideal %.0f", whole, ticks, ideal)
					requireWithin(t, sizes, rate, 60, depthOf(e.peer, rate))
				}
			}
		}
		if joins {
			require.Fail(t, "not joined in time", "%d of %d entities in %d ticks", e.client.Stats().Spawns, n, ticks)
		}
		for _, m := range c.members {
			require.Len(t, m.sizes, ticks+61)
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

// TestPoorPeersAreTheirOwnProblem plays the same game with and without a peer that is
// silent for a minute and one of 8 kbit/s: all others get the same packets, and memory
// stays where it was.
func TestPoorPeersAreTheirOwnProblem(t *testing.T) {
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
		c := newThrong(t, entities, throngSchema())
		for i := range others {
			c.join(5+i%5, 0)
		}
		var silent, slow *end
		var sizes []int
		if poor {
			silent = connect(c.server, 1, netsim.Config{Latency: 2}, WithNonce(1001))
			slow = connect(c.server, 2, netsim.Config{Latency: 2}, WithNonce(1002))
			slow.peer.SetBudget(rate)
			send := slow.peer.send
			slow.peer.send = func(p []byte) error {
				if slow.peer.Connected() {
					sizes[len(sizes)-1] += len(p)
				}
				return send(p)
			}
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
		early := heapBytes()
		var grown int64
		for i := range silence {
			if poor && i == 0 {
				silent.link.SetConfig(netsim.Config{Loss: 1})
			}
			tick(moving)
		}
		grown = int64(heapBytes()) - int64(early)
		if poor {
			require.Less(t, grown, int64(4<<20))
			silent.link.SetConfig(netsim.Config{Latency: 2})
		}
		for range 60 {
			tick(moving)
		}
		for range 300 { // and rests
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

func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestStructureGetsThrough: what comes and goes is told in time, though the budget is far
// too small for all that moves, and that has more weight.
func TestStructureGetsThrough(t *testing.T) {
	const rate, within = 8000, 40
	n := 10_000
	if testing.Short() || raceDetector {
		n = 3000
	}
	for _, loss := range []float64{0, 0.1} {
		t.Run(fmt.Sprint("loss ", loss), func(t *testing.T) {
			c := newThrong(t, n, throngSchema())
			c.tick()
			for _, e := range c.entities {
				c.server.SetPriority(e, 1000)
			}
			e := connect(c.server, 1, netsim.Config{}, WithNonce(9))
			for range 5 { // all of it comes
				c.tickAll()
				e.step(t)
			}
			require.EqualValues(t, n, e.client.Stats().Spawns)
			e.peer.SetBudget(rate)
			e.link.SetConfig(netsim.Config{Latency: 2, Loss: loss})
			type event struct {
				id      NetID
				tick    int
				present bool
			}
			var pending []event
			longest, told := 0, 0
			marker := ReplicatedID(&c.world)
			ticks := 300
			for tick := range ticks + 200 {
				for i, entity := range c.entities {
					if c.world.Alive(entity) {
						c.move((*tPosition)(c.world.Get(entity, c.position)), i)
					}
				}
				var spawned ecs.Entity
				if tick < ticks && tick%4 == 0 {
					id, ok := c.server.NetID(c.entities[tick])
					require.True(t, ok)
					c.world.RemoveEntity(c.entities[tick])
					pending = append(pending, event{id, tick, false})
					spawned = c.world.NewEntity(c.position, marker)
					c.entities = append(c.entities, spawned)
				}
				c.replicate()
				if tick < ticks && tick%4 == 0 {
					id, ok := c.server.NetID(spawned)
					require.True(t, ok)
					if tick%8 == 0 { // the slot is used again: the spawn says both
						pending = append(pending, event{id, tick, true})
					}
				}
				e.step(t)
				pending = slices.DeleteFunc(pending, func(v event) bool {
					if _, shown := e.client.Entity(v.id); shown != v.present {
						return false
					}
					longest, told = max(longest, tick-v.tick), told+1
					return true
				})
				if tick >= ticks && len(pending) == 0 {
					break
				}
			}
			require.Empty(t, pending)
			require.Equal(t, 75+38, told)
			t.Logf("the longest took %d ticks", longest)
			require.LessOrEqual(t, longest, within*(1+int(loss*20)))
		})
	}
}

// TestTombstonesGetThrough despawns a part of the crowd while all others move.
func TestTombstonesGetThrough(t *testing.T) {
	const rate = 8000
	n := 10_000
	if testing.Short() || raceDetector {
		n = 3000
	}
	c := newThrong(t, n, throngSchema())
	e := connect(c.server, 1, netsim.Config{}, WithNonce(9))
	for range 5 {
		c.tickAll()
		e.step(t)
	}
	for _, entity := range c.entities {
		c.server.SetPriority(entity, 1000)
	}
	e.peer.SetBudget(rate)
	for range 30 {
		c.tickAll()
		e.step(t)
	}
	for i := 0; i < n; i += 10 {
		c.world.RemoveEntity(c.entities[i])
	}
	ticks := 0
	for ; e.client.Stats().Despawns < uint64(n/10); ticks++ {
		for i, entity := range c.entities {
			if i%10 != 0 {
				c.move((*tPosition)(c.world.Get(entity, c.position)), i)
			}
		}
		c.replicate()
		e.step(t)
		require.Less(t, ticks, 600, "%d despawns", e.client.Stats().Despawns)
	}
	// An eighth of the rate is theirs, and one takes less than two bytes.
	require.LessOrEqual(t, ticks, n/10*2*60*8/rate+20)
	t.Logf("%d despawns took %d ticks", n/10, ticks)
}

// TestBudgetIsNeverExceeded: whatever happens, in no span of time more is sent than the
// rate and the depth of the bucket allow.
func TestBudgetIsNeverExceeded(t *testing.T) {
	ticks := 400
	if testing.Short() {
		ticks = 150
	}
	for _, mtu := range []int{64, 300, 1200} {
		for _, rate := range []int{500, 4000, 40_000} {
			for _, tickRate := range []int{5, 60} {
				t.Run(fmt.Sprintf("mtu %d, %d B/s, %d Hz", mtu, rate, tickRate), func(t *testing.T) {
					seed := seedOf(t)
					rng := rand.New(rand.NewPCG(seed, 5))
					w := ecs.NewWorld()
					s := NewServer(&w, hugeSchema(), WithSeed(seed), WithMTU(mtu), WithTickRate(tickRate))
					g := newGame(seed, &w, testSchema(), 60)
					huge := ecs.ComponentID[tHuge](&w)
					big := w.NewEntity(huge, g.marker) // comes in parts
					e := connect(s, seed, netsim.Config{Latency: 2, Jitter: 1, Loss: 0.1}, WithNonce(1))
					e.peer.SetBudget(rate)
					var sizes []int
					send := e.peer.send
					e.peer.send = func(p []byte) error {
						if e.peer.Connected() {
							sizes[len(sizes)-1] += len(p)
						}
						if rng.IntN(10) == 0 {
							return errors.New("buffer full")
						}
						return send(p)
					}
					o := newTruth()
					for tick := range ticks {
						sizes = append(sizes, 0)
						g.step()
						if tick%100 == 0 {
							cells := (*tHuge)(w.Get(big, huge))
							for j := range cells.Cells {
								cells.Cells[j] = rng.Uint64()
							}
						}
						tickAll(t, s, o, []*end{e})
					}
					requireWithin(t, sizes, rate, tickRate, depthOf(e.peer, rate))
					if rate*ticks/tickRate > 10_000 {
						return // there was not always as much to say
					}
					require.Greater(t, sum(sizes), rate*ticks/tickRate*8/10-2*mtu, "it is used")
				})
			}
		}
	}
}

// TestBudgetCanBeChanged sets, lifts and changes a budget while it is in use.
func TestBudgetCanBeChanged(t *testing.T) {
	c := newThrong(t, 1000, throngSchema())
	m := c.join(5, 0.02)
	last := 0 // the rate before: its savings may still be there, as far as the new one's go
	for _, rate := range []int{0, 8000, 30_000, 1000, 0, 3000, 600_000, 0, math.MaxInt, 2000} {
		m.peer.SetBudget(rate)
		from := len(m.sizes)
		for range 150 {
			c.tickAll()
		}
		sizes := m.sizes[from:]
		switch rate {
		case 0, math.MaxInt:
			if last != math.MaxInt {
				require.Greater(t, sum(sizes[100:]), 50*1000*4, "all of it is sent")
			}
		default:
			requireWithin(t, sizes, rate, 60, depthOf(m.peer, rate))
			if rate < 100_000 {
				require.Greater(t, sum(sizes), rate*150/60-1200, "rate %d", rate)
			}
		}
		last = rate
	}
	require.Panics(t, func() { m.peer.SetBudget(-1) })
	require.Panics(t, func() { c.server.SetPriority(c.entities[0], 0) })
	require.Panics(t, func() { c.server.SetPriority(c.entities[0], float32(math.NaN())) })
	require.Panics(t, func() { Priority(0.5) })
}

// TestWaitingIsForgottenWithTheBudget: ticks waited under an earlier budget don't count.
func TestWaitingIsForgottenWithTheBudget(t *testing.T) {
	c := newThrong(t, 2000, throngSchema())
	m := c.join(5, 0)
	m.peer.SetBudget(2000)
	for range 50 {
		c.tickAll()
	}
	m.peer.SetBudget(0)
	for range 20 {
		c.tickAll()
	}
	require.Nil(t, m.peer.waits, "it takes no memory")
	m.peer.SetBudget(2000)
	c.tickAll()
	for slot := range 2000 {
		require.LessOrEqual(t, m.peer.rankOf(slot, 1), uint32(256))
	}
}

// TestRankClassesRise: the classes by which ranks are sorted roughly are in their order,
// and fine.
func TestRankClassesRise(t *testing.T) {
	last := rankClass(0)
	for rank := uint64(1); rank < 1<<32; rank += 1 + rank/100 {
		class := rankClass(uint32(rank))
		require.GreaterOrEqual(t, class, last)
		require.Less(t, class, rankClasses)
		if rank >= 16 && rank+rank/15+1 < 1<<32 {
			require.Greater(t, rankClass(uint32(rank+rank/15+1)), class)
		}
		last = class
	}
	require.Less(t, rankClass(math.MaxUint32), rankClasses)
}

// TestChooserKeepsTheBest: sorting in linear time leaves what a full sort has at the top,
// of every kind.
func TestChooserKeepsTheBest(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOf(t), 0))
	for range 300 {
		var all []candidate
		for slot := range rng.IntN(500) {
			all = append(all, candidate{int32(slot), candidateKind(rng.IntN(int(candidateKinds))), uint32(rng.Uint64() >> (32 + rng.IntN(32)))})
		}
		c := chooser{candidates: slices.Clone(all)}
		room := rng.IntN(2000)
		c.sort(room)
		slices.SortFunc(all, func(x, y candidate) int {
			return cmp.Or(cmp.Compare(y.rank, x.rank), cmp.Compare(x.slot, y.slot))
		})
		var taken [candidateKinds]int
		i := 0
		for _, want := range all {
			if taken[want.kind]++; taken[want.kind] > room/leastEntry {
				continue // need not be there
			}
			for i < len(c.candidates) && c.candidates[i] != want {
				i++
			}
			require.Less(t, i, len(c.candidates), "a good one was dropped")
		}
		require.True(t, slices.IsSortedFunc(c.candidates, func(x, y candidate) int {
			return cmp.Or(cmp.Compare(y.rank, x.rank), cmp.Compare(x.slot, y.slot))
		}))
	}
}
