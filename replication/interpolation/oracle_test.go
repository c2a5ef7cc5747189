package interpolation_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
)

// A naive play-out computes what an entity shows from nothing but the client's held states: it looks at one tick
// after the other, keeps nothing between frames, and does arithmetic in float64.
type naive struct {
	inside *seam.Client
	at     delta.Tick
	part   float64
	cut    int // the component that counts teleports
}

// between returns the rows around the present time, and how far the way between them has passed. Both are nil if
// nothing is known of the component.
func (n *naive) between(slot uint32, k int) (a, b []uint32, f float64) {
	r := n.inside.Apply.RowsOf(slot, k)
	if r == nil || !r.Any || r.Empty {
		return nil, nil, 0
	}
	newest := r.Held.At(r.Newest)
	if newest == nil {
		return nil, nil, 0
	}
	words := n.inside.Schema.Components[k].Words
	row := func(s *receive.HeldState, k, words int) []uint32 {
		if s == nil || s.Generation != newest.Generation {
			return nil
		}
		return s.Row(k, words)
	}
	var before, after *receive.HeldState
	for i := range delta.Tick(1000) {
		if before = r.Held.At(n.at - i); before != nil {
			break
		}
	}
	for i := delta.Tick(1); i < 1000 && after == nil; i++ {
		after = r.Held.At(n.at + i)
	}
	a, b = row(before, k, words), row(after, k, words)
	if after != nil && a != nil {
		if end, gone := after.Ended(); gone && n.at.Before(end) {
			return a, a, 0
		} else if gone {
			a = nil
		}
	}
	switch {
	case a == nil:
		for i := delta.Tick(1); i < 1000 && b == nil; i++ {
			b = row(r.Held.At(n.at+i), k, words)
		}
		return b, b, 0
	case b == nil:
		return a, a, 0
	}
	if x, y := row(before, n.cut, 1), row(after, n.cut, 1); x != nil && y != nil && x[0] != y[0] {
		return a, a, 0
	}
	if comp := &n.inside.Schema.Components[k]; comp.Refers() && n.named(comp, a) != n.named(comp, b) {
		return a, a, 0
	}
	from := before.Tick
	if rested, ok := after.Rested(); ok && rested.After(from) {
		from = rested
	}
	return a, b, max(0, float64(int32(n.at-from))+n.part) / float64(after.Tick-from)
}

// named returns the words of a row's first reference.
func (n *naive) named(c *schema.Component, row []uint32) [2]uint32 {
	return [2]uint32(row[c.Columns[c.References[0]].Word:])
}

// entity returns the entity to which a row's first reference refers.
func (n *naive) entity(c *schema.Component, row []uint32) ecs.Entity {
	words := n.named(c, row)
	e, _ := n.inside.Apply.View.Entity(wire.NetID{Slot: words[0] - 1, Generation: uint16(words[1])})
	return e
}

// values returns what a component is expected to be at a row.
func valueOf[T any](n *naive, k int, row []uint32) (v T) {
	n.inside.Schema.Components[k].Write(unsafe.Pointer(&v), row)
	return v
}

func lerp(a, b float32, f float64) float64 { return float64(a) + (float64(b)-float64(a))*f }

type aim struct {
	Yaw float64 `repl:"angle,bits=12,period=360"`
}

type ammo struct {
	Rounds uint8
}

type shownAmmo ammo

// changesOf returns a function that changes at random what the client gets of a list of entities, and how often.
func changesOf(g *game, r *rand.Rand) func(list []ecs.Entity) {
	set, group := g.server.NewEntitySet(), g.server.NewGroup()
	var grouped []ecs.Entity
	return func(list []ecs.Entity) {
		for _, e := range list[:min(2, len(list))] {
			if r.IntN(2) == 0 {
				set.Add(e)
			} else {
				set.Remove(e)
			}
		}
		switch r.IntN(200) {
		case 0:
			g.peer.SetSendInterval(1 + r.IntN(6))
		case 1:
			g.peer.SetBudget(100 + r.IntN(2000))
		case 2:
			g.peer.SetInterest(replication.Interest{Sets: []*replication.EntitySet{set}, Keep: r.IntN(2) == 0})
		case 3, 4:
			g.peer.SetInterest(replication.Interest{})
		case 5:
			for _, e := range grouped {
				if g.world.Alive(e) {
					group.Remove(e)
				}
			}
			grouped = append(grouped[:0], list[:min(3, len(list))]...)
			for _, e := range grouped {
				group.Add(e)
			}
		}
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
}

// TestAllIsShownAsTheHeldStatesAre plays chaos: entities come, go and change their components, teleport and rest, slots
// are used again, packets get lost and overtake each other, views, groups, budgets and intervals change, and the
// client's world is reset.
func TestAllIsShownAsTheHeldStatesAre(t *testing.T) {
	replicationtest.OneGoroutine(t)
	g := &game{
		t: t, rand: rand.New(rand.NewPCG(replicationtest.Seed(t), 3)), frames: 60, wobble: 0.3, rate: 20,
		profile: profile{oneWay: 0.1, jitter: 0.05, loss: 0.2, spikes: 0.1},
	}
	g.prepare(replicationtest.Seed(t), func() {
		replication.Register[aim](g.schema, replication.OwnerOnly())
		replication.Register[ammo](g.schema, replication.OwnerOnly())
		replication.Register[seat](g.schema)
		replication.Register[bench](g.schema)
	})
	seats, benches := ecs.ComponentID[seat](&g.world), ecs.ComponentID[bench](&g.world)
	marker, aims, ammos := ecs.ComponentID[replication.Replicated](&g.world), ecs.ComponentID[aim](&g.world), ecs.ComponentID[ammo](&g.world)
	all := []ecs.ID{g.ids.place, g.ids.teleports, g.ids.health, aims, ammos, seats, benches}
	v := newView(g)
	interpolation.Into[ammo, shownAmmo](v.Interpolation)
	r := rand.New(rand.NewPCG(replicationtest.Seed(t), 4))
	var list []ecs.Entity
	change := changesOf(g, r)
	g.onTick = func(n int) {
		change(list)
		for i := 0; i < len(list); i++ {
			e := list[i]
			switch r.IntN(60) {
			case 0:
				g.world.RemoveEntity(e)
				list = append(list[:i], list[i+1:]...)
				continue
			case 1, 2:
				id := all[r.IntN(len(all))]
				if g.world.Has(e, id) {
					g.world.Remove(e, id)
				} else {
					g.world.Add(e, id)
				}
			case 3:
				g.server.SetOwner(e, g.peer)
			case 4:
				if g.world.Has(e, g.ids.teleports) {
					(*teleports)(g.world.Get(e, g.ids.teleports)).N++
				}
			}
			if r.IntN(4) == 0 {
				continue // at rest
			}
			if g.world.Has(e, g.ids.place) {
				*g.place(e) = place{r.Float32() * 100, r.Float32() * 100, float32(n % 50)}
			}
			if g.world.Has(e, g.ids.health) {
				(*health)(g.world.Get(e, g.ids.health)).HP = uint8(r.IntN(100))
			}
			if g.world.Has(e, aims) {
				(*aim)(g.world.Get(e, aims)).Yaw = r.Float64() * 360
			}
			if g.world.Has(e, ammos) {
				(*ammo)(g.world.Get(e, ammos)).Rounds++
			}
			other := list[r.IntN(len(list))]
			if s := (*seat)(g.world.Get(e, seats)); s != nil {
				s.X = r.Float32() * 100
				if r.IntN(8) == 0 {
					s.Of = other
				}
			}
			if b := (*bench)(g.world.Get(e, benches)); b != nil {
				b.X = r.Float32() * 100
				if r.IntN(8) == 0 && other != e { // Arche can't remove an entity that is its own target
					g.world.Relations().Set(e, benches, other)
				}
			}
		}
		for len(list) < 40 {
			list = append(list, g.world.NewEntity(marker, g.ids.place, g.ids.health))
		}
	}
	n := naive{inside: seam.OfClient(g.client), cut: 1}
	local := struct{ aim, ammo, twin, seat, bench ecs.ID }{
		ecs.ComponentID[aim](&g.local), ecs.ComponentID[ammo](&g.local), ecs.ComponentID[shownAmmo](&g.local),
		ecs.ComponentID[seat](&g.local), ecs.ComponentID[bench](&g.local),
	}
	compared := map[string]int{}
	v.after = func(float64) {
		at, _ := v.Time()
		n.at, n.part = at.Tick, float64(at.Fraction)
		for id, e := range g.client.Entities() {
			if p := (*place)(g.local.Get(e, g.at.place)); p != nil {
				if a, b, f := n.between(id.Slot, 0); a != nil {
					from, to := valueOf[place](&n, 0, a), valueOf[place](&n, 0, b)
					require.InDelta(t, lerp(from.X, to.X, f), p.X, 1e-3, "%v", id)
					require.InDelta(t, lerp(from.Y, to.Y, f), p.Y, 1e-3)
					require.InDelta(t, lerp(from.Z, to.Z, f), p.Z, 1e-3)
					compared["place"]++
				}
			}
			if h := (*health)(g.local.Get(e, g.at.health)); h != nil {
				if a, _, _ := n.between(id.Slot, 2); a != nil {
					require.Equal(t, valueOf[health](&n, 2, a), *h)
					compared["health"]++
				}
			}
			if h := (*aim)(g.local.Get(e, local.aim)); h != nil {
				if a, b, f := n.between(id.Slot, 3); a != nil {
					from, to := valueOf[aim](&n, 3, a), valueOf[aim](&n, 3, b)
					want := from.Yaw + math.Remainder(to.Yaw-from.Yaw, 360)*f
					if math.Abs(math.Abs(to.Yaw-from.Yaw)-180) > 1e-9 { // both ways are as short
						require.InDelta(t, 0, math.Remainder(want-h.Yaw, 360), 1e-3)
					}
					compared["aim"]++
				}
			}
			if s := (*seat)(g.local.Get(e, local.seat)); s != nil {
				if a, b, f := n.between(id.Slot, 5); a != nil {
					require.InDelta(t, lerp(valueOf[seat](&n, 5, a).X, valueOf[seat](&n, 5, b).X, f), s.X, 1e-3)
					require.Equal(t, n.entity(&n.inside.Schema.Components[5], a), s.Of)
					compared["seat"]++
				}
			}
			if s := (*bench)(g.local.Get(e, local.bench)); s != nil {
				if a, b, f := n.between(id.Slot, 6); a != nil {
					require.InDelta(t, lerp(valueOf[bench](&n, 6, a).X, valueOf[bench](&n, 6, b).X, f), s.X, 1e-3)
					require.Equal(t, n.entity(&n.inside.Schema.Components[6], a), g.local.Relations().Get(e, local.bench))
					compared["bench"]++
				}
			}
			require.Equal(t, g.local.Has(e, local.ammo), g.local.Has(e, local.twin), "the twin follows")
			if twin := (*ammo)(g.local.Get(e, local.twin)); twin != nil {
				if a, _, _ := n.between(id.Slot, 4); a != nil {
					require.Equal(t, valueOf[ammo](&n, 4, a), *twin)
					compared["twin"]++
				}
			}
		}
		switch g.rand.IntN(2000) {
		case 0:
			g.local.Reset()
		case 1:
			g.client.Reconnect()
		}
		require.Nil(t, g.client.Verify(), "Verify must leave interpolated components out, and find the others as they are")
	}
	g.run(120)
	for _, what := range []string{"place", "health", "aim", "twin", "seat", "bench"} {
		require.Greater(t, compared[what], 1_000, what)
	}
}
