package replication

import (
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/stretchr/testify/require"
)

// TestSlotsOfCompactPackets: slots are decoded as they were encoded, whatever the list, and take no
// more bits than predicted.
func TestSlotsOfCompactPackets(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOf(t), 0))
	schema := testSchema()
	schema.raw.Freeze()
	x, r := &compact.Writer{}, compact.NewReader(&schema.raw)
	c := compact.NewCoder(&schema.raw)
	var ours, theirs compact.State
	ours.CopyFrom(nil, c.Coder)
	theirs.CopyFrom(nil, r.Coder)
	buf := make([]byte, 1<<16)
	density := 0.5
	for range 600 {
		if rng.IntN(20) == 0 {
			density = rng.Float64()
		}
		from := compact.State{Model: ours.Model, Slots: append([]compact.ListedSlot(nil), ours.Slots...)}
		from2 := compact.State{Model: theirs.Model, Slots: append([]compact.ListedSlot(nil), theirs.Slots...)}
		require.Equal(t, from.Slots, from2.Slots)
		var slots []int
		for slot, end := rng.IntN(60)*rng.IntN(2), 30+rng.IntN(200); slot < end; slot++ {
			if rng.Float64() < density {
				slots = append(slots, slot)
			}
		}
		ours.CopyFrom(&from, c.Coder)
		x.State = &ours
		x.Walk.Begin(&from, 5)
		x.E = delta.NewRangeEncoder(buf)
		c.Coder.Begin(&ours.Model)
		c.Rows = c.Rows[:0]
		var chains []int
		for _, slot := range slots {
			most, before := x.Worst(c, slot, &compact.Entry{Kind: wire.EntryDespawn}), x.E.Len()
			chains = append(chains, x.PutSlot(c.Coder, slot))
			require.LessOrEqual(t, 8*(x.E.Len()-before), most+8, "but for a byte that both lengths round up")
		}
		before := x.E.Len()
		x.PutEnd(c.Coder)
		body, err := x.E.Finish()
		require.NoError(t, err)
		require.LessOrEqual(t, len(body), before+compact.EndBytes)

		r.Spare = &theirs
		theirs.CopyFrom(&from2, r.Coder)
		r.D = delta.NewRangeDecoder(body)
		r.Coder.Begin(&theirs.Model)
		r.Walk.Begin(&from2, 5)
		for i, slot := range slots {
			chain, end, ok := r.GetSlot(1000)
			require.True(t, ok && !end)
			require.Equal(t, slot, r.Walk.Next-1)
			require.Equal(t, chains[i], chain)
			known := compact.ChainNew
			for _, l := range from.Slots {
				if int(l.Slot) == slot {
					known = compact.ChainListed + int(l.Seen&1)
				}
			}
			require.Equal(t, known, chain)
		}
		_, end, ok := r.GetSlot(1000)
		require.True(t, end && ok)
		require.NoError(t, r.Finish())
		require.Equal(t, ours, theirs)
		for i := range ours.Slots {
			require.True(t, i == 0 || ours.Slots[i-1].Slot < ours.Slots[i].Slot)
		}
	}
}
