package compact

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/delta"
)

// TestSkippedToSlotsAreBelowTheLimit: a packet that skips what the one before had does not skip beyond the last slot.
func TestSkippedToSlotsAreBelowTheLimit(t *testing.T) {
	const slot = 300
	for _, limit := range []int{slot, slot + 1} {
		c := delta.NewCompact(delta.NewLayout())
		var heads []head
		for i := range maxPassed + 1 {
			heads = append(heads, head{slot: i, name: Name{A1: 9}})
		}
		before, s := new(State), new(State)
		encodeHeads(t, c, heads, nil, before, 10)
		body, _ := encodeHeads(t, c, []head{{slot: slot, name: Name{A1: 9}}}, before, s, 11)
		x := Reader{Coder: c, Spare: new(State), D: delta.NewRangeDecoder(body)}
		x.Spare.CopyFrom(before, c)
		x.Walk.Begin(before, 11)
		c.Begin(&x.Spare.Model)
		_, end, ok := x.GetSlot(limit)
		require.False(t, end)
		require.Equal(t, limit > slot, ok)
	}
}
