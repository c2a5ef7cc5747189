package replication

import (
	"fmt"
	"math"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// orbitWorld is a world of movers on circles, with a component that never changes: updates are much smaller than full
// states. One client sees it.
type orbitWorld struct {
	world   ecs.World
	server  *Server
	movers  []*tPosition
	of      []ecs.Entity // that move
	bullets []ecs.Entity
	*end
	ticks int
	sent  PeerStats // up to the last count
}

func newOrbitWorld(coding Coding, movers int, opts ...ServerOption) *orbitWorld {
	s := NewSchema()
	Register[tPosition](s)
	Register[tExact](s)
	Register[tWide](s)
	x := &orbitWorld{world: ecs.NewWorld()}
	position, exact := ecs.ComponentID[tPosition](&x.world), ecs.ComponentID[tExact](&x.world)
	opts = append(opts, WithSeed(1), config.ServerFunc(func(o *config.ServerOptions) { o.Compact = coding == Compact }))
	x.server = NewServer(&x.world, s, opts...)
	for i := range movers {
		e := x.world.NewEntity(position, exact, ReplicatedID(&x.world))
		(*tExact)(x.world.Get(e, exact)).A = math.Sqrt(float64(i))
		x.of = append(x.of, e)
	}
	x.find()
	x.end = connect(x.server, 1, netsim.Config{Latency: 3, Jitter: 1, Loss: 0.01}, WithSeed(2))
	return x
}

// find finds the positions of the movers, after changes of their components.
func (x *orbitWorld) find() {
	x.movers = x.movers[:0]
	for _, e := range x.of {
		x.movers = append(x.movers, (*tPosition)(x.world.Get(e, ecs.ComponentID[tPosition](&x.world))))
	}
}

// play plays some ticks and counts the updates and full states that were sent in them.
func (x *orbitWorld) play(t *testing.T, ticks int) (updates, full uint64) {
	for range ticks {
		for i, p := range x.movers {
			at := float64(x.ticks)/200 + 0.7*float64(i)
			p.X, p.Y = float32(90*math.Sin(at)), float32(90*math.Cos(at))
		}
		x.ticks++
		x.server.Replicate()
		x.step(t)
	}
	before := x.sent
	x.sent = x.peer.Stats()
	return x.sent.Updates - before.Updates, x.sent.FullStates - before.FullStates
}

// TestABudgetThatSufficesForUpdatesGetsThere: once everything is sent in full, a round takes longer than the window. Unless
// what has a baseline comes first, it has lost that when it has its next turn, and everything is sent in full for ever.
func TestABudgetThatSufficesForUpdatesGetsThere(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	for _, c := range []struct {
		coding           Coding
		window, interval int
		budget           int
	}{
		{Packed, 64, 3, 4000},
		{Packed, 32, 1, 6000},
		{Packed, 16, 1, 12000},
		{Compact, 64, 3, 2000},
		{Compact, 16, 1, 6000},
	} {
		for _, event := range []string{"joins with the budget", "connects again", "gets nothing for 1.5 s"} {
			t.Run(fmt.Sprintf("%v window %d %s", c.coding, c.window, event), func(t *testing.T) {
				x := newOrbitWorld(c.coding, 250, WithWindow(c.window))
				x.peer.SetSendInterval(c.interval)
				if event == "joins with the budget" {
					x.peer.SetBudget(c.budget)
				} else {
					x.play(t, 300)
					x.peer.SetBudget(c.budget)
					x.play(t, 300)
				}
				switch event {
				case "connects again":
					x.client.Reconnect()
				case "gets nothing for 1.5 s":
					send := x.peer.out.Send
					x.peer.out.Send = func([]byte) error { return nil }
					x.play(t, 90)
					x.peer.out.Send = send
				}
				x.play(t, 900)
				updates, full := x.play(t, 300)
				t.Logf("%d updates and %d full states in 5 s", updates, full)
				require.Greater(t, updates, uint64(2*5*len(x.movers)))
				require.Less(t, 20*full, updates)
			})
		}
	}
}

// TestFullStatesOfAllWidthsAreCountedAsTheyAre: what full states take beyond a guess is not taken for the cost of updates,
// which would look as large, and not worth room of their own.
func TestFullStatesOfAllWidthsAreCountedAsTheyAre(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	x := newOrbitWorld(Packed, 249)
	for i, e := range x.of {
		switch i % 3 {
		case 0:
			x.world.Remove(e, ecs.ComponentID[tExact](&x.world))
		case 2:
			x.world.Add(e, ecs.ComponentID[tWide](&x.world))
		}
	}
	x.find()
	x.peer.SetBudget(3000)
	x.play(t, 1800)
	updates, full := x.play(t, 600)
	t.Logf("%d updates and %d full states in 10 s", updates, full)
	require.Greater(t, updates, 2*full)
}

type tWide struct{ A, B, C, D float64 }

// TestWhatComesBackIntoViewIsNotStarved: with Keep, the client shows it as it was before. It goes before what the client
// has seen all the time, however short its visits, but not for longer than until it is sent.
func TestWhatComesBackIntoViewIsNotStarved(t *testing.T) {
	t.Parallel()
	for interval, spawns := range map[int]bool{1: true, 3: false} {
		x := newOrbitWorld(Packed, 250)
		all, visitor := x.sectors(1), x.of[100]
		x.peer.SetInterest(Interest{Sets: all, Keep: true})
		x.peer.SetSendInterval(interval)
		x.play(t, 300)
		x.peer.SetBudget(2000)
		fresh := 0
		for visit := range 40 {
			all[0].Remove(visitor)
			x.playBeside(t, 60, all[0], spawns)
			all[0].Add(visitor)
			came := x.server.Tick()
			x.playBeside(t, 60, all[0], spawns)
			id, _ := x.server.NetID(visitor)
			e, _ := x.client.Entity(id)
			if at, _ := x.client.StateTick(e); visit >= 10 && at > came {
				fresh++
			}
		}
		t.Logf("the client got a state in %d of 30 visits of a second", fresh)
		require.Greater(t, fresh, 25)
		for _, returned := range x.peer.acked.Acks.Returned {
			require.Zero(t, returned, "all have been sent since")
		}
	}
}

// playBeside plays some ticks. If it spawns, that is an entity in every second tick, which is too much for their share of
// the budget; each lives for a second.
func (x *orbitWorld) playBeside(t *testing.T, ticks int, seen *EntitySet, spawns bool) {
	for i := range ticks {
		if spawns && i%2 == 0 {
			e := x.world.NewEntity(ecs.ComponentID[tExact](&x.world), ReplicatedID(&x.world))
			seen.Add(e)
			if x.bullets = append(x.bullets, e); len(x.bullets) > 30 {
				x.world.RemoveEntity(x.bullets[0])
				x.bullets = x.bullets[1:]
			}
		}
		x.play(t, 1)
	}
}

// TestACameraThatTurnsSeesEverything: what comes back again and again, and is never sent completely before it is out of
// view, does not go before what the client has never seen.
func TestACameraThatTurnsSeesEverything(t *testing.T) {
	t.Parallel()
	x := newOrbitWorld(Packed, 250)
	sets := x.sectors(5)
	x.peer.SetBudget(1500)
	for turn := range 60 {
		x.peer.SetInterest(Interest{Sets: []*EntitySet{sets[0], sets[1+turn%4]}, Keep: true})
		x.play(t, 30)
	}
	for i, e := range x.of {
		id, _ := x.server.NetID(e)
		_, ok := x.client.Entity(id)
		require.True(t, ok, "mover %d", i)
	}
}

// sectors divides the movers into sets.
func (x *orbitWorld) sectors(n int) (sets []*EntitySet) {
	x.server.Replicate()
	for range n {
		sets = append(sets, x.server.NewEntitySet())
	}
	for i, e := range x.of {
		sets[i%n].Add(e)
	}
	return sets
}

// TestAHopelessBudgetTakesTurns: if a budget cannot keep what everything has from lapsing, what has lapsed does not wait
// for updates of the rest.
func TestAHopelessBudgetTakesTurns(t *testing.T) {
	t.Parallel()
	x := newOrbitWorld(Packed, 400)
	x.peer.SetBudget(1000)
	x.play(t, 1200)
	var sum, n int
	for range 300 {
		x.play(t, 1)
		for slot := range 400 {
			if at, ok := x.peer.acked.Acks.Holds(slot); ok {
				sum, n = sum+int(x.server.snap.Tick-at), n+1
			}
		}
	}
	t.Logf("mean age %d ticks", sum/n)
	require.Less(t, sum/n, 400)
}

// TestAShortBudgetIsNotSpentOnFullStatesAlone: it does not suffice to send every entity once within the window.
func TestAShortBudgetIsNotSpentOnFullStatesAlone(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	for _, budget := range []int{1500, 2000} {
		x := newOrbitWorld(Packed, 250)
		x.peer.SetBudget(budget)
		x.play(t, 1200)
		updates, full := x.play(t, 900)
		t.Logf("%d bytes per second: %d updates and %d full states in 15 s", budget, updates, full)
		require.Greater(t, updates, 2*full)
		require.Greater(t, full, uint64(budget/50), "the others are not forgotten")
	}
}
