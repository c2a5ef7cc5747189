package snapshot

import (
	"fmt"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestSlotsFor compares the room of a client with the worst case of a server: all entities have
// everything, and all despawn in the tick in which as many spawn.
func TestSlotsFor(t *testing.T) {
	for _, resources := range []bool{false, true} {
		for conditions := range 4 {
			for _, n := range []int{1, 2, 31, 32, 33, 64, 100} {
				var s SlotTable
				s.InitClasses(conditions)
				if resources {
					s.Add(ecs.Entity{}, 1)
				}
				var live []int
				for range 5 {
					var newcomers []int
					s.Reclaim()
					for range n {
						for class := range 1 + conditions {
							newcomers = append(newcomers, s.addTo(class, ecs.Entity{}, 1))
						}
					}
					for _, slot := range live {
						s.Remove(slot, 1)
					}
					live = newcomers
				}
				room := int(SlotsFor(n, conditions, resources))
				require.LessOrEqual(t, s.Len(), room, fmt.Sprint(n, conditions, resources))
				if conditions == 0 {
					require.Equal(t, room, s.Len())
				}
			}
		}
	}
	require.EqualValues(t, MaxSlots, SlotsFor(1<<30, 255, true))
	require.EqualValues(t, 2, SlotsFor(1, 0, false))
}
