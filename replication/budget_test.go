package replication

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestNoEntityWaitsLongerThanAFullPass changes every entity in every tick under a budget of one
// packet per tick: no entity waits much longer than it takes to send all of them.
func TestNoEntityWaitsLongerThanAFullPass(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	sizes := []int{10000, 1500}
	if testing.Short() {
		sizes = []int{3000, 1500}
	}
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c := newLoadWorld(t, n, loadSchema())
			m := c.join(5, 0)
			m.peer.SetBudget(1200 * 60)
			last := make([]int, n) // tick in which each entity was last sent
			longest, sends, first := 0, 0, 0
			ticks := n/20 + 200
			for tick := 1; tick <= ticks; tick++ {
				c.tickAll()
				sent(m.peer, func(slot int, _ baseline.RecordKind) {
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
			require.LessOrEqual(t, longest, int(math.Ceil(pass/1200))+2) // a tick may use the tokens of the next one
			require.Greater(t, ticks, 2*longest, "everything was sent several times")
			require.InDelta(t, 1200, float64(bytes)/float64(len(m.sizes)-first), 12, "the budget is used")
			requireWithin(t, m.sizes, 1200*60, 60, depthOf(m.peer, 1200*60))
		})
	}
}

// TestSpawnsAndDespawnsGetThroughASmallBudget: spawns, despawns and component-set changes arrive in
// time, though the budget is far too small for all moving entities and those have more weight.
func TestSpawnsAndDespawnsGetThroughASmallBudget(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	const rate, within = 8000, 40
	n := 10_000
	if testing.Short() {
		n = 3000
	}
	for _, loss := range []float64{0, 0.1} {
		t.Run(fmt.Sprint("loss ", loss), func(t *testing.T) {
			c := newLoadWorld(t, n, loadSchema())
			c.tick()
			for _, e := range c.entities {
				c.server.SetPriority(e, 1000)
			}
			e := connect(c.server, 1, netsim.Config{}, WithSeed(9))
			for e.client.Stats().Spawns < uint64(n) {
				require.Less(t, c.ticks, 100)
				c.tickAll()
				e.step(t)
			}
			e.peer.SetBudget(rate)
			e.link.SetConfig(netsim.Config{Latency: 2, Loss: loss})
			type event struct {
				id      NetID
				tick    int
				present bool
			}
			var pending []event
			longest, delivered := 0, 0
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
					if tick%8 == 0 { // the slot is used again, and the spawn covers both
						pending = append(pending, event{id, tick, true})
					}
				}
				e.step(t)
				pending = slices.DeleteFunc(pending, func(v event) bool {
					if _, shown := e.client.Entity(v.id); shown != v.present {
						return false
					}
					longest, delivered = max(longest, tick-v.tick), delivered+1
					return true
				})
				if tick >= ticks && len(pending) == 0 {
					break
				}
			}
			require.Empty(t, pending)
			require.Equal(t, 75+38, delivered)
			t.Logf("the longest took %d ticks", longest)
			require.LessOrEqual(t, longest, within*(1+int(loss*20)))
		})
	}
}

// TestDespawnsGetThroughASmallBudget despawns a part of the crowd while all others move.
func TestDespawnsGetThroughASmallBudget(t *testing.T) {
	oneGoroutine(t)
	const rate = 8000
	n := 10_000
	if testing.Short() {
		n = 3000
	}
	c := newLoadWorld(t, n, loadSchema())
	e := connect(c.server, 1, netsim.Config{}, WithSeed(9))
	for e.client.Stats().Spawns < uint64(n) {
		require.Less(t, c.ticks, 100)
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
	// Despawns get an eighth of the rate, and each takes less than two bytes.
	require.LessOrEqual(t, ticks, n/10*2*60*8/rate+20)
	t.Logf("%d despawns took %d ticks", n/10, ticks)
}

// TestASmallBudgetIsSavedForPacketsWorthTheirHeader: of a crowd, 15 packets per second.
func TestASmallBudgetIsSavedForPacketsWorthTheirHeader(t *testing.T) {
	c := newLoadWorld(t, 1000, loadSchema())
	m := c.join(5, 0)
	m.peer.SetBudget(6000)
	for range 1200 {
		c.tickAll()
	}
	const seconds = 10
	packets := m.peer.Stats().Packets
	for range seconds * c.server.opts.TickRate {
		c.tickAll()
	}
	sizes := m.sizes[len(m.sizes)-seconds*c.server.opts.TickRate:]
	require.InDelta(t, 15*seconds, m.peer.Stats().Packets-packets, seconds)
	require.InDelta(t, 6000*seconds, sum(sizes), 600)
}

// TestBudgetIsNeverExceeded: in no span of time are more bytes sent than the rate and the depth of
// the bucket allow.
func TestBudgetIsNeverExceeded(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
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
					big := w.NewEntity(huge, g.marker) // sent in parts
					e := connect(s, seed, netsim.Config{Latency: 2, Jitter: 1, Loss: 0.1}, WithSeed(1))
					e.peer.SetBudget(rate)
					var sizes []int
					send := e.peer.out.Send
					e.peer.out.Send = func(p []byte) error {
						if rng.IntN(10) == 0 {
							return errors.New("buffer full")
						}
						return send(p)
					}
					countBytes(e.peer, &sizes)
					o := newTruth()
					used := 0 // ticks
					for tick := range ticks {
						sizes = append(sizes, 0)
						g.step()
						if e.peer.Connected() {
							used++
						}
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
						return // there was not always enough to send
					}
					require.Greater(t, sum(sizes), rate*used/tickRate*8/10-2*mtu, "it is used")
					require.Greater(t, used, ticks/2)
				})
			}
		}
	}
}

// TestMessagesBetweenTurnsLeaveABudgetAmple: peers with a send interval and large budgets get shared packets, also if
// they are sent a message in every tick.
func TestMessagesBetweenTurnsLeaveABudgetAmple(t *testing.T) {
	w := ecs.NewWorld()
	schema := messageSchema()
	s := NewServer(&w, schema, WithSeed(1))
	position := ecs.ComponentID[tPosition](&w)
	entities := make([]ecs.Entity, 100)
	for i := range entities {
		entities[i] = w.NewEntity(position, ReplicatedID(&w))
	}
	ends := []*end{connect(s, 1, netsim.Config{Latency: 1}), connect(s, 2, netsim.Config{Latency: 1})}
	for _, e := range ends {
		e.peer.SetSendInterval(3)
		e.peer.SetBudget(1_000_000)
	}
	o, before := newTruth(), uint64(0)
	for tick := range 200 {
		for _, e := range entities {
			(*tPosition)(w.Get(e, position)).X += 0.1
		}
		for _, e := range ends {
			if e.peer.Connected() {
				require.NoError(t, SendToClient(e.peer, mHit{Number: uint32(tick)}))
			}
		}
		tickAll(t, s, o, ends)
		if tick == 100 {
			before = s.Stats().SharedPackets
		}
	}
	require.Greater(t, s.Stats().SharedPackets, before+50)
}

// TestAnEndedEntityDoesNotStayForItsHeir: before a small budget allows the despawn of an entity, its slot goes to one
// of weight 0. The client does not show the former one for ever.
func TestAnEndedEntityDoesNotStayForItsHeir(t *testing.T) {
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(1), WithMTU(300))
	position, exact, marker := ecs.ComponentID[tPosition](&w), ecs.ComponentID[tExact](&w), ReplicatedID(&w)
	victim := w.NewEntity(position, marker)
	var movers []ecs.Entity
	for range 300 {
		movers = append(movers, w.NewEntity(position, exact, marker))
	}
	e := connect(s, 1, netsim.Config{Latency: 1}, WithSeed(1))
	for range 60 {
		s.Replicate()
		e.step(t)
	}
	id, ok := s.NetID(victim)
	require.True(t, ok)
	e.peer.SetBudget(2000)
	var heir ecs.Entity
	e.peer.SetPriorityFunc(func(es []ecs.Entity, weights []float32) {
		if i := slices.Index(es, heir); i >= 0 {
			weights[i] = 0
		}
	})
	tick := 0
	step := func() {
		for i, m := range movers {
			*(*tPosition)(w.Get(m, position)) = tPosition{X: float32((tick*7919+i*104729)%20000)/100 - 100}
		}
		for range 5 { // despawns that take their share of the budget
			w.RemoveEntity(movers[0])
			movers = append(movers[1:], w.NewEntity(position, exact, marker))
		}
		s.Replicate()
		e.step(t)
		tick++
	}
	for range 60 {
		step()
	}
	w.RemoveEntity(victim)
	step()
	heir = w.NewEntity(position, marker)
	step()
	next, _ := s.NetID(heir)
	require.Equal(t, id.Slot, next.Slot)
	_, shown := e.client.Entity(id)
	require.True(t, shown)
	for until := tick + 2000; shown && tick < until; {
		step()
		_, shown = e.client.Entity(id)
	}
	require.False(t, shown)
}

// TestBudgetCanBeChanged sets, lifts and changes a budget while it is in use.
func TestBudgetCanBeChanged(t *testing.T) {
	oneGoroutine(t)
	c := newLoadWorld(t, 1000, loadSchema())
	m := c.join(5, 0.02)
	last := 0 // the previous rate: its savings may remain, up to the limit of the new one
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
				require.Greater(t, sum(sizes[100:]), 150_000, "all of it is sent")
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

// TestRemovingTheBudgetResetsUrgency: ticks waited under an earlier budget do not count.
func TestRemovingTheBudgetResetsUrgency(t *testing.T) {
	oneGoroutine(t)
	c := newLoadWorld(t, 2000, loadSchema())
	m := c.join(5, 0)
	m.peer.SetBudget(2000)
	for range 50 {
		c.tickAll()
	}
	m.peer.SetBudget(0)
	for range 20 {
		c.tickAll()
	}
	require.Nil(t, m.peer.out.Selector.Urgency.Planes, "it takes no memory")
	require.NotZero(t, m.peer.out.Budget.Tokens)
	m.peer.SetBudget(2000)
	require.Zero(t, m.peer.out.Budget.Tokens, "nor do debts and savings")
	for ticks := 0; m.peer.out.Selector.Urgency.Planes == nil; ticks++ {
		require.Less(t, ticks, 20, "there must be tokens for a packet")
		c.tickAll()
	}
	for slot := range 2000 {
		require.LessOrEqual(t, urgencyOf(&m.peer.out.Selector.Urgency, slot), 2*snapshot.WeightUnit)
	}
}

// TestSendIntervalsDoNotChangeTheBudget: a peer with a send interval may spend what it saved since
// its last turn, but in no tick more than an eighth of a second's bytes, or an interval's bytes if
// that is longer, plus two packets.
func TestSendIntervalsDoNotChangeTheBudget(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	const rate, tickRate, ticks = 20_000, 60, 600
	for _, interval := range []int{1, 7, 20, 60} {
		t.Run(fmt.Sprint(interval), func(t *testing.T) {
			c := newLoadWorld(t, 5000, loadSchema())
			m := c.join(5, 0)
			m.peer.SetBudget(rate)
			m.peer.SetSendInterval(interval)
			for range ticks {
				c.tickAll()
			}
			most := max(rate/8, rate*interval/tickRate) + 2*m.peer.server.opts.MTU
			require.LessOrEqual(t, slices.Max(m.sizes), most)
			requireWithin(t, m.sizes, rate, tickRate, most)
			bytes := sum(m.sizes[2*interval:]) * tickRate / (ticks - 2*interval)
			t.Logf("%d bytes per second, %d at once", bytes, slices.Max(m.sizes))
			require.Greater(t, bytes, rate*8/10, "the budget is used")
		})
	}
}

// urgencyOf returns the urgency of a slot as a number.
func urgencyOf(u *snapshot.Urgency, slot int) (n int) {
	for i := range snapshot.UrgencyBits {
		n |= int(u.Plane(i)[slot>>6]>>(slot&63)&1) << i
	}
	return n
}

// TestAMassOfSpawnsDoesNotStopTheMovers: all spawns have waited for longer than a mover that has just had its turn.
func TestAMassOfSpawnsDoesNotStopTheMovers(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	const movers, spawns = 100, 10_000
	c := newLoadWorld(t, movers, loadSchema())
	e := connect(c.server, 1, netsim.Config{Latency: 2}, WithSeed(9))
	var ids []NetID
	step := func() {
		for i, entity := range c.entities {
			c.move((*tPosition)(c.world.Get(entity, c.position)), i)
		}
		c.replicate()
		e.step(t)
	}
	for range 60 {
		step()
	}
	for _, entity := range c.entities {
		id, ok := c.server.NetID(entity)
		require.True(t, ok)
		ids = append(ids, id)
	}
	e.peer.SetBudget(8000)
	for range 60 {
		step()
	}
	marker := ReplicatedID(&c.world)
	for range spawns {
		c.world.NewEntity(c.position, marker)
	}
	longest := Tick(0)
	for range 300 {
		step()
		for _, id := range ids {
			mirrored, ok := e.client.Entity(id)
			require.True(t, ok)
			at, _ := e.client.StateTick(mirrored)
			longest = max(longest, c.server.Tick()-at)
		}
	}
	t.Logf("the longest wait was %d ticks", longest)
	require.Less(t, longest, uint32(150))
	require.Greater(t, e.client.Stats().Spawns, uint64(movers+1000))
	require.Less(t, e.client.Stats().Spawns, uint64(movers+spawns), "it still goes on")
}
