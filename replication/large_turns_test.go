package replication

import (
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
