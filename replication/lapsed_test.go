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

// orbitWorld is a world of movers on circles, each of which has a component that never changes: updates are much smaller
// than full states. One client sees it.
type orbitWorld struct {
	world  ecs.World
	server *Server
	movers []*tPosition
	*end
	ticks int
	sent  PeerStats // up to the last count
}

func newOrbitWorld(coding Coding) *orbitWorld {
	s := NewSchema()
	Register[tPosition](s)
	Register[tExact](s)
	x := &orbitWorld{world: ecs.NewWorld()}
	position, exact := ecs.ComponentID[tPosition](&x.world), ecs.ComponentID[tExact](&x.world)
	x.server = NewServer(&x.world, s, WithSeed(1), config.ServerFunc(func(o *config.ServerOptions) { o.Compact = coding == Compact }))
	var entities []ecs.Entity
	for i := range 250 {
		e := x.world.NewEntity(position, exact, ReplicatedID(&x.world))
		(*tExact)(x.world.Get(e, exact)).A = math.Sqrt(float64(i))
		entities = append(entities, e)
	}
	for _, e := range entities {
		x.movers = append(x.movers, (*tPosition)(x.world.Get(e, position)))
	}
	x.end = connect(x.server, 1, netsim.Config{Latency: 3, Jitter: 1, Loss: 0.01}, WithSeed(2))
	return x
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
	for coding, budget := range map[Coding]int{Packed: 4000, Compact: 2000} {
		for _, event := range []string{"joins with the budget", "connects again", "gets nothing for 1.5 s"} {
			t.Run(fmt.Sprint(coding, " ", event), func(t *testing.T) {
				x := newOrbitWorld(coding)
				x.peer.SetSendInterval(3)
				if event == "joins with the budget" {
					x.peer.SetBudget(budget)
				} else {
					x.play(t, 300)
					x.peer.SetBudget(budget)
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

// TestAShortBudgetIsNotSpentOnFullStatesAlone: it does not suffice to send every entity once within the window.
func TestAShortBudgetIsNotSpentOnFullStatesAlone(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	for _, budget := range []int{1000, 2000} {
		x := newOrbitWorld(Packed)
		x.peer.SetBudget(budget)
		x.play(t, 1200)
		updates, full := x.play(t, 900)
		t.Logf("%d bytes per second: %d updates and %d full states in 15 s", budget, updates, full)
		require.Greater(t, updates, 2*full)
		require.Greater(t, full, uint64(budget/50), "the others are not forgotten")
	}
}
