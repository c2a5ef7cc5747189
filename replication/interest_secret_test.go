package replication

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// Hidden entities leave no trace in a peer's packets.

// A secret makes hidden entities behave differently. The peer must not learn of it.
type secret struct {
	rng *rand.Rand
	g   *stage
	ids []ecs.ID // components to add or remove
}

// play changes an actor that the peer does not see.
func (x *secret) play(a *actor) {
	g, r := x.g, x.rng
	p := (*tPosition)(g.world.Get(a.entity, g.position))
	switch r.IntN(8) {
	case 0, 1:
		p.X, p.Y = -40-50*r.Float32(), 100*r.Float32()
	case 2:
		p.Z = 100 * r.Float32()
		(*tExact)(g.world.Get(a.entity, g.exact)).F = r.Float32()
	case 3:
		if id := x.ids[r.IntN(len(x.ids))]; g.world.Has(a.entity, id) {
			g.world.Remove(a.entity, id)
		} else {
			g.world.Add(a.entity, id)
		}
	case 4:
		if _, ok := g.server.NetID(a.entity); ok {
			g.server.SetPriority(a.entity, 0.1+10*r.Float32())
		}
	}
}

// TestHiddenEntitiesLeaveNoTrace plays the same game twice, differing only in what a peer does not
// see: the peer gets the same bytes. Hidden are entities that it never saw, in slots of their own
// and in slots whose last entity it saw despawn, and entities that left its view. They move, gain
// and lose components, have large or small weights, and despawn earlier or later.
func TestHiddenEntitiesLeaveNoTrace(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	seed := seedOf(t)
	for kind, name := range []string{"filter", "grid", "set", "visible"} {
		for _, set := range []struct {
			name             string
			budget, interval int
			keep             bool
			even, compact    bool // without a priority function; the coding
		}{
			{name: "all"},
			{name: "keep", keep: true},
			{name: "budget", budget: 6000},
			{name: "tight", budget: 1500},
			{name: "tight keep", budget: 1500, keep: true},
			{name: "interval", interval: 4, budget: 4000, keep: true},
			{name: "even", even: true, budget: 1500},
			{name: "compact", compact: true},
			{name: "compact, tight", compact: true, even: true, budget: 1500, keep: true},
		} {
			if name != "grid" && set.name != "all" && set.name != "tight keep" {
				continue // no differences below this
			}
			t.Run(name+"/"+set.name, func(t *testing.T) {
				play := func(variant uint64) (sent [][]byte, g *stage) {
					g = newStageOf(seed, 0)
					i := g.interests(set.keep)[kind].Interest
					peer := g.connect(i, netsim.Config{Latency: 3, Jitter: 2, Loss: 0.15, Reorder: 0.1, ReorderBy: 5}).peer
					g.connect(Interest{}, netsim.Config{Latency: 2, Loss: 0.1}) // sees everything
					peer.SetBudget(set.budget)
					peer.SetSendInterval(max(set.interval, 1))
					peer.conn.Compact = set.compact
					if !set.even {
						peer.SetPriorityFunc(func(entities []ecs.Entity, weights []float32) {
							for i, e := range entities {
								require.True(t, g.entities[e].visible)
								weights[i] *= float32(1 + g.entities[e].serial%5)
							}
						})
					}
					send := peer.out.Send
					peer.out.Send = func(p []byte) error {
						sent = append(sent, append([]byte{byte(g.server.Tick()), byte(g.server.Tick() >> 8)}, p...))
						return send(p)
					}
					g.playSecretly(t, variant, set.keep)
					return sent, g
				}
				first, g := play(1)
				second, h := play(2)
				for i := range min(len(first), len(second)) {
					require.True(t, bytes.Equal(first[i], second[i]), "packet %d, tick %d and %d", i,
						int(first[i][0])+int(first[i][1])<<8, int(second[i][0])+int(second[i][1])<<8)
				}
				require.Equal(t, len(first), len(second))
				require.Greater(t, len(first), 20)
				require.NotEqual(t, g.server.Stats().RawBits, h.server.Stats().RawBits, "the secrets differ")
				require.NotZero(t, g.ends[0].peer.Stats().Despawns)
			})
		}
	}
}

// playSecretly plays a game in which everything visible is the same for all variants.
func (g *stage) playSecretly(t testing.TB, variant uint64, keep bool) {
	x := &secret{rng: rand.New(rand.NewPCG(variant, 3)), g: g}
	for _, i := range []int{1, 2, 4, 5} {
		x.ids = append(x.ids, ecs.TypeID(g.world, g.schema.raw.Components[i].Typ))
	}
	w := g.world
	var seen, hidden []*actor // alternating in the slots
	var left []*actor         // out of view for good
	for i := range 120 {
		a := g.enter(g.rng)
		if i%2 == 0 {
			seen = append(seen, a)
			w.Add(a.entity, x.ids[i/2%2])
		} else {
			hidden = append(hidden, a)
		}
	}
	g.server.Replicate() // assigns the slots
	drop := func(list *[]*actor, i int) {
		a := (*list)[i]
		w.RemoveEntity(a.entity)
		(*list)[i] = (*list)[len(*list)-1]
		*list = (*list)[:len(*list)-1]
	}
	for tick := range ticksOf(400, 240) {
		for i, a := range seen {
			switch g.rng.IntN(12) {
			case 0, 1, 2:
				p := (*tPosition)(w.Get(a.entity, g.position))
				p.Z += 0.1
				p.Y = 3 * g.rng.Float32()
				g.act(a)
			case 3:
				if g.rng.IntN(3) == 0 {
					g.flip(a)
				}
			case 4:
				id := x.ids[g.rng.IntN(2)]
				if w.Has(a.entity, id) {
					w.Remove(a.entity, id)
				} else if i%8 == 0 {
					w.Add(a.entity, id)
				}
			}
		}
		for _, a := range hidden {
			x.play(a)
		}
		for _, a := range left {
			x.play(a)
		}
		if tick > 100 && !keep && x.rng.IntN(20) == 0 && len(left) > 0 {
			drop(&left, x.rng.IntN(len(left))) // with Keep, the peer learns of that
		}
		if i := g.rng.IntN(len(seen)); tick%10 == 5 && len(seen) > 12 {
			a := seen[i]
			switch {
			case tick%20 == 5 && a.visible: // leaves the view for good
				g.flip(a)
				left = append(left, a)
				seen = append(seen[:i], seen[i+1:]...)
			default: // despawns, and a hidden entity may get its slot
				drop(&seen, i)
			}
		}
		if tick == 100 { // from now on only hidden entities take slots
			x.ids = append(x.ids, ecs.ComponentID[tVelvet](w))
		}
		if tick > 100 && x.rng.IntN(4) == 0 && len(hidden) > 20 {
			drop(&hidden, x.rng.IntN(len(hidden)))
		}
		if tick > 100 && x.rng.IntN(5) == 0 {
			hidden = append(hidden, g.enter(x.rng))
		}
		g.server.Replicate()
		for _, e := range g.ends {
			e.step(t)
		}
	}
}
