package receive

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/stretchr/testify/require"
)

// TestSlotHistoryWhereTicksWrapAround: the slots of the last ticks before the wrap-around are still known after it,
// whatever the window.
func TestSlotHistoryWhereTicksWrapAround(t *testing.T) {
	for _, ticks := range []delta.Tick{62, 64, 66, 80, 200} {
		var h slotHistory
		h.reset(ticks)
		const span = 31 // ticks to which a packet may refer
		for now := ^delta.Tick(0) - 2*span; now != 2*span; now++ {
			h.fresh = []wire.SlotBlock{{Block: uint32(now), Mask: 1}}
			h.keep(now)
			for at := now - span; at != now+1; at++ {
				if at-(^delta.Tick(0)-2*span) <= 4*span+1 {
					require.Equal(t, []wire.SlotBlock{{Block: uint32(at), Mask: 1}}, h.at(at), "%d places, tick %d at %d", ticks, at, now)
				}
			}
		}
	}
}
