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

// TestSlotHistoryAfterLongRest: the place of a tick was last used so long ago that its tick seems to be of the future.
func TestSlotHistoryAfterLongRest(t *testing.T) {
	var h slotHistory
	h.reset(128)
	keep := func(tick delta.Tick) bool {
		h.fresh = []wire.SlotBlock{{Block: 1, Mask: 1}}
		h.keep(tick)
		return h.at(tick) != nil
	}
	require.True(t, keep(1000))
	const later = 1000 + 1<<31 + 128
	for turn := range uint32(128) { // of all ticks in between, some of each place are enough
		h.refresh(later-1<<29, turn)
	}
	require.True(t, keep(later))
	h.refresh(later, later%128)
	require.NotNil(t, h.at(later))
	require.False(t, keep(later-128), "too late")
}
