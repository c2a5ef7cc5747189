package snapshot

import (
	"fmt"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestSlotsFor compares the room of a client with the worst case of a server: all entities have
// everything, and all despawn in the tick in which as many spawn.
func TestSlotsFor(t *testing.T) {
	for _, resources := range []bool{false, true} {
		for conditions := range 4 {
			for _, n := range []int{1, 2, 31, 32, 33, 64, 100} {
				for rest := range delta.Tick(5) {
					var s SlotTable
					s.InitClasses(conditions, rest)
					if resources {
						s.Add(ecs.Entity{}, 1)
					}
					var live []int
					for now := delta.Tick(1); now < 9; now++ {
						var newcomers []int
						s.Reclaim(now)
						for range n {
							for class := range 1 + conditions {
								newcomers = append(newcomers, s.addTo(class, ecs.Entity{}, now))
								s.SubEntityCount += min(class, 1)
							}
						}
						for _, slot := range live {
							s.Remove(slot, now)
							s.SubEntityCount -= min(s.Class(slot>>6), 1)
						}
						live = newcomers
					}
					room := int(SlotsFor(n, conditions, resources))
					require.LessOrEqual(t, s.Len(), room, fmt.Sprint(n, conditions, resources))
					if conditions == 0 && rest == 0 {
						require.Equal(t, room, s.Len())
					}
				}
			}
		}
	}
	require.EqualValues(t, MaxSlots, SlotsFor(1<<30, 255, true))
	require.EqualValues(t, 2, SlotsFor(1, 0, false))
}

// TestSlotsRest for as long as the user wants, if there are others, and then the lowest is taken first, as always.
func TestSlotsRest(t *testing.T) {
	for _, conditions := range []int{0, 2} {
		for _, rest := range []delta.Tick{0, 1, 3, 10} {
			var s SlotTable
			s.InitClasses(conditions, rest)
			now := delta.Tick(1<<32 - 20)
			var many []int
			for range 20 {
				many = append(many, s.Add(ecs.Entity{}, now))
			}
			s.Reclaim(now)
			ended := map[int]delta.Tick{}
			for _, slot := range many {
				s.Remove(slot, now)
				ended[slot] = now
			}
			for tick := range 100 {
				if tick == 50 { // those that rested at the beginning are in use again
					clear(ended)
				}
				now++
				s.Reclaim(now)
				slot := s.Add(ecs.Entity{}, now)
				if since, again := ended[slot]; again {
					require.GreaterOrEqual(t, now-since, max(rest, 1))
				}
				require.LessOrEqual(t, s.Len(), 128)
				require.Less(t, len(s.rest.queue), 64)
				s.Remove(slot, now)
				ended[slot] = now
			}
			require.Len(t, ended, max(int(rest), 1), "conditions %d, rest %d", conditions, rest)
		}
	}
}
