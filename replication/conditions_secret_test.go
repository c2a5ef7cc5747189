package replication

import (
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// Conditional components that a peer may not see leave no trace in its packets.

// TestConditionsLeaveNoTrace plays the same game twice, differing only in conditional components
// that a peer may not see: the peer gets the same bytes. Their values differ and change at other
// times, entities that the peer does not own get other owners, and components come and go, as long
// as these take at most one block of slots.
func TestConditionsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	seed := seedOf(t)
	for _, set := range []struct {
		name             string
		entities         int
		structure        bool
		budget, interval int
		grid, keep       bool
		even, compact    bool // without a priority function; the coding
	}{
		{name: "all", entities: 60, structure: true},
		{name: "many", entities: 400},
		{name: "view", entities: 60, structure: true, grid: true},
		{name: "view, kept", entities: 60, structure: true, grid: true, keep: true},
		{name: "budget", entities: 60, structure: true, budget: 1500},
		{name: "interval", entities: 200, interval: 4, budget: 4000, grid: true},
		{name: "even", entities: 60, structure: true, budget: 1500, even: true},
		{name: "compact", entities: 60, structure: true, grid: true, compact: true},
		{name: "compact, budget", entities: 60, structure: true, budget: 1500, even: true, compact: true},
	} {
		t.Run(set.name, func(t *testing.T) {
			play := func(variant uint64) (sent [][]byte, raw string) {
				g := newConditionPlay(seed, 0)
				secret := rand.New(rand.NewPCG(seed, variant))
				fools := g.connect(netsim.Config{Latency: 3, Jitter: 2, Loss: 0.15, Reorder: 0.1, ReorderBy: 5})
				others := []*end{g.connect(netsim.Config{Latency: 2, Loss: 0.1}), g.connect(netsim.Config{Latency: 4})}
				g.picked[others[0].peer] = true
				p := fools.peer // the peer is not picked, and owns every third entity
				p.SetBudget(set.budget)
				p.SetSendInterval(max(set.interval, 1))
				p.conn.Compact = set.compact
				if !set.even {
					p.SetPriorityFunc(func(_ []ecs.Entity, weights []float32) {
						for i := range weights {
							weights[i] *= 1 + float32(i%5)
						}
					})
				}
				if set.grid {
					p.SetInterest(Interest{Keep: set.keep, Visible: func(e ecs.Entity) bool { return (int(e.ID())+int(g.server.Tick())/30)%4 > 0 }})
				}
				send := p.out.Send
				p.out.Send = func(b []byte) error {
					sent = append(sent, append([]byte{byte(g.server.Tick()), byte(g.server.Tick() >> 8)}, b...))
					return send(b)
				}
				hidden := func(i int) []int { // components of entity i that are hidden from the peer
					if i%3 == 0 {
						return []int{3, 4, 5} // the peer is the owner
					}
					return []int{1, 2, 4, 5, 8}
				}
				spawn := func(i int) ecs.Entity {
					ids := []ecs.ID{g.marker, g.ids[0], g.ids[1], g.ids[3], g.ids[4], g.ids[7]}
					e := g.world.NewEntity(ids...)
					(*cPlace)(g.world.Get(e, g.ids[0])).X = int32(i)
					for _, k := range hidden(i) {
						if g.world.Has(e, g.ids[k]) {
							g.secretly(secret, e, k)
						}
					}
					if i%3 == 0 {
						g.server.SetOwner(e, p)
					} else {
						g.server.SetOwner(e, others[secret.IntN(2)].peer)
					}
					return e
				}
				for i := range set.entities {
					g.entities = append(g.entities, spawn(i))
				}
				for tick := range ticksOf(300, 200) {
					for i, e := range g.entities {
						if g.rng.IntN(8) == 0 {
							g.mutate(e, 0)
						}
						if shown := []int{3, 1}[1-min(i%3, 1)]; g.rng.IntN(8) == 0 { // visible to the peer
							if shown == 1 {
								(*cAmmo)(g.world.Get(e, g.ids[1])).Rounds++
							} else {
								(*cGhost)(g.world.Get(e, g.ids[3])).Seen++
							}
						}
						for _, k := range hidden(i) {
							switch {
							case secret.IntN(4) > 0:
							case g.world.Has(e, g.ids[k]) && (!set.structure || secret.IntN(6) > 0):
								g.secretly(secret, e, k)
							case !set.structure || tick == 0 || k == 3 || k == 1:
							case g.world.Has(e, g.ids[k]):
								g.world.Remove(e, g.ids[k])
							default:
								g.world.Add(e, g.ids[k])
							}
						}
						if i%3 > 0 && secret.IntN(20) == 0 {
							g.server.SetOwner(e, others[secret.IntN(2)].peer)
						}
					}
					if tick%7 == 3 {
						i := g.rng.IntN(len(g.entities))
						g.world.RemoveEntity(g.entities[i])
						g.entities[i] = spawn(i)
					}
					g.server.Replicate()
					for _, e := range g.ends {
						e.step(t)
					}
				}
				require.NotZero(t, p.Stats().NotVisible)
				require.NotZero(t, fools.client.Stats().Spawns)
				for _, e := range g.entities {
					for class := 1; class < 5; class++ {
						raw += g.state(g.world, e, class)
					}
				}
				return sent, raw
			}
			first, secret := play(1)
			second, another := play(2)
			for i := range min(len(first), len(second)) {
				require.Equal(t, first[i], second[i], "packet %d, tick %d and %d", i,
					int(first[i][0])+int(first[i][1])<<8, int(second[i][0])+int(second[i][1])<<8)
			}
			require.Equal(t, len(first), len(second))
			require.Greater(t, len(first), 20)
			require.NotEqual(t, secret, another, "the secrets differ")
		})
	}
}

// secretly changes a hidden component.
func (g *conditionPlay) secretly(r *rand.Rand, e ecs.Entity, i int) {
	own := g.rng
	g.rng = r
	g.mutate(e, i)
	g.rng = own
}
