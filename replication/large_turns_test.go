package replication

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// lTome is larger than what the budget of these tests allows in the time in which it changes.
type lTome struct{ Pages [200]uint64 }

// lRound is a resource, which has slot 0.
type lRound struct{ Number uint32 }

// TestLargeStatesLeaveOthersTheirTurn: an entity that changes faster than its state can be sent keeps nothing else from
// being sent: not the slot that comes first, nor what is in a group with it, nor other groups.
func TestLargeStatesLeaveOthersTheirTurn(t *testing.T) {
	t.Parallel()
	for _, grouped := range []bool{false, true} {
		for _, budget := range []int{1000, 1500} {
			t.Run(fmt.Sprintf("grouped=%v/%d", grouped, budget), func(t *testing.T) {
				s := NewSchema()
				Register[tHealth](s)
				Register[lTome](s)
				RegisterResource[lRound](s)
				x := connectedWire(t, s)
				x.peer.SetBudget(budget)
				health, tome := ecs.ComponentID[tHealth](x.world), ecs.ComponentID[lTome](x.world)
				round := &lRound{}
				ecs.AddResource(x.world, round)
				var all []ecs.Entity
				for range 8 {
					all = append(all, x.spawn(health))
					x.round() // in this order of slots
				}
				large := all[7] // the turn after it is that of slot 0
				if grouped {
					large = all[3]
					for _, members := range [][]int{{2, 3, 6}, {0, 5, 7}} {
						g := x.server.NewGroup()
						for _, i := range members {
							g.Add(all[i])
						}
					}
				}
				x.world.Add(large, tome)
				n := uint64(1)
				for tick := range 3600 {
					if tick%4 == 0 {
						for _, e := range all {
							h := (*tHealth)(x.world.Get(e, health))
							h.HP = (h.HP + 1) % 100
						}
						round.Number++
					}
					n = n*6364136223846793005 + 1442695040888963407
					(*lTome)(x.world.Get(large, tome)).Pages[n>>32%200] = n
					x.round()
				}
				for i, e := range all {
					id, _ := x.server.NetID(e)
					mirrored, _ := x.client.Entity(id)
					at, ok := x.client.StateTick(mirrored)
					require.True(t, ok, i)
					require.Less(t, x.server.Tick()-at, uint32(600), "entity %d", i)
				}
				require.Less(t, round.Number-ecs.GetResource[lRound](x.mirror).Number, uint32(150), "the resource")
				require.True(t, x.client.Complete())
			})
		}
	}
}

// TestLargeStatesDoNotStopTheMovers: a budget that has room for the movers shares what is left among larger states. Parts
// are so small that movers have their turn between two of them, and weights count.
func TestLargeStatesDoNotStopTheMovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ weight, movers, tomes int }{{1, 11, 240}, {20, 11, 240}} {
		s := NewSchema()
		Register[tPosition](s)
		Register[lTome](s)
		x := connectedWire(t, s)
		x.peer.SetBudget(6000)
		position, tome := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[lTome](x.world)
		var movers, tomes []ecs.Entity
		for range 3 {
			tomes = append(tomes, x.spawn(tome))
		}
		for range 60 {
			e := x.spawn(position)
			movers = append(movers, e)
			x.server.SetPriority(e, float32(c.weight))
		}
		oldest := func(of []ecs.Entity) (age Tick) {
			for _, e := range of {
				m, ok := x.mirrored(e)
				require.True(t, ok)
				at, _ := x.client.StateTick(m)
				age = max(age, x.server.Tick()-at)
			}
			return age
		}
		n := uint64(1)
		longest := [2]Tick{}
		for tick := range 1800 {
			for i, e := range movers {
				(*tPosition)(x.world.Get(e, position)).X = float32((tick+i)%100) / 10
			}
			if tick%90 == 0 {
				for _, e := range tomes {
					for i := range 200 {
						n = n*6364136223846793005 + 1442695040888963407
						(*lTome)(x.world.Get(e, tome)).Pages[i] = n
					}
				}
			}
			if x.round(); tick > 300 {
				longest = [2]Tick{max(longest[0], oldest(movers)), max(longest[1], oldest(tomes))}
			}
		}
		t.Logf("weight %d: movers wait for %d ticks at most, large states for %d", c.weight, longest[0], longest[1])
		require.Less(t, longest[0], uint32(c.movers))
		require.Less(t, longest[1], uint32(c.tomes))
	}
}

// TestNothingKeepsLargeStatesFromTheirTurn: states that change all the time and take all the room, of a budget or of the
// packets that may be in flight, leave the larger ones every second turn; also in a group, wherever the large one is.
func TestNothingKeepsLargeStatesFromTheirTurn(t *testing.T) {
	t.Parallel()
	type lPage struct{ Lines [24]uint64 }
	for _, c := range []struct {
		budget, mtu, pages, words int
		grouped                   bool
		large                     int // its place among the others
		ticks                     int
	}{
		{budget: 1000, pages: 1, words: 24, ticks: 400},
		{budget: 1500, pages: 2, words: 24, ticks: 400},
		{budget: 1000, pages: 10, words: 24, ticks: 1200},
		{budget: 1000, pages: 40, words: 5, grouped: true, ticks: 2400},
		{budget: 1000, pages: 40, words: 5, grouped: true, large: 39, ticks: 2400},
		{mtu: 256, pages: 300, words: 24, ticks: 60},
	} {
		s := NewSchema()
		Register[lPage](s)
		Register[lTome](s)
		x := connectedWire(t, s, WithMTU(cmp.Or(c.mtu, 1200)))
		page, tome := ecs.ComponentID[lPage](x.world), ecs.ComponentID[lTome](x.world)
		var all []ecs.Entity
		for range c.pages {
			all = append(all, x.spawn(page))
		}
		large := all[c.large]
		if x.rounds(60); !c.grouped {
			large = x.spawn()
		}
		if c.grouped {
			g := x.server.NewGroup()
			for _, e := range all {
				g.Add(e)
			}
		}
		if x.rounds(10); c.budget > 0 {
			x.peer.SetBudget(c.budget)
		}
		n := uint64(1)
		next := func() uint64 {
			n = n*6364136223846793005 + 1442695040888963407
			return n ^ n>>29
		}
		x.world.Add(large, tome)
		for i := range (*lTome)(x.world.Get(large, tome)).Pages {
			(*lTome)(x.world.Get(large, tome)).Pages[i] = next()
		}
		arrived := func() bool {
			m, ok := x.mirrored(large)
			return ok && x.mirror.Has(m, ecs.ComponentID[lTome](x.mirror))
		}
		var late [][][]byte
		for tick := 0; tick < c.ticks && !arrived(); tick++ {
			for _, e := range all {
				for i := range c.words {
					(*lPage)(x.world.Get(e, page)).Lines[i] = next()
				}
			}
			x.deliver(x.replicate()...)
			if late = append(late, x.apply()); len(late) > 12 {
				x.answer(late[0]...)
				late = late[1:]
			}
		}
		require.True(t, arrived(), "%+v", c)
	}
}
