package replication

import (
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/stretchr/testify/require"
)

func TestKeptModels(t *testing.T) {
	var k compact.KeptModels
	packet := func(sequence uint32, tick delta.Tick, first, last uint32) *compact.State {
		s := k.Take()
		s.Tick = tick
		k.Keep(sequence, first, last, s)
		return s
	}
	require.Nil(t, k.Choose(0), "nothing is known to have come")
	packet(1, 10, 0, 9)
	packet(2, 11, 0, 4)
	packet(3, 11, 5, 20)
	require.Nil(t, k.Choose(0))

	k.Acknowledge(1)
	require.EqualValues(t, 1, k.Choose(15).Sequence)
	k.Acknowledge(2)
	require.EqualValues(t, 2, k.Choose(15).Sequence, "a newer one")
	k.Acknowledge(3)
	require.EqualValues(t, 3, k.Choose(15).Sequence, "of the same tick, but of these slots")
	require.EqualValues(t, 2, k.Choose(3).Sequence)
	k.Lose(3)
	require.EqualValues(t, 3, k.Choose(15).Sequence, "what came is not lost")
	k.Acknowledge(77)
	k.Lose(77)

	packet(4, 14, 0, 1)
	k.Acknowledge(4)
	require.Len(t, k.List, 1, "older ones are not needed any more")
	require.Len(t, k.Free, 3)
	packet(5, 15, 0, 1)
	k.Lose(5)
	k.Acknowledge(5)
	require.EqualValues(t, 4, k.Choose(0).Sequence, "too late: it was given up")
}

func TestKeptModelsAreFew(t *testing.T) {
	var k compact.KeptModels
	for i := range uint32(3) {
		k.Keep(i, 0, 0, k.Take())
		k.Acknowledge(i)
	}
	n := uint32(3)
	for ; k.Room(); n++ {
		require.LessOrEqual(t, len(k.List), compact.MaxKept-1)
		k.Keep(n, 0, 0, k.Take())
	}
	require.Len(t, k.List, compact.MaxKept)
	require.NotNil(t, k.Choose(0), "one that came is left")
	k.Lose(n - 1)
	require.True(t, k.Room())
}

// TestModelsThatMayBeDroppedAreNotReferenced: a model is not referenced once the client may have
// dropped it.
func TestModelsThatMayBeDroppedAreNotReferenced(t *testing.T) {
	var server compact.KeptModels
	var client compact.ModelStore
	server.Keep(0, 0, 0, server.Take())
	client.Keep(0, new(compact.State))
	server.Acknowledge(0)
	named := 0
	for n := uint32(1); n < 200; n++ { // all packets arrive, but no acknowledgement does
		if m := server.Choose(0); m != nil {
			named++
			require.NotNil(t, client.At(m.Sequence))
		}
		server.Keep(n, 0, 0, server.Take())
		server.Lose(n)
		client.Keep(n, new(compact.State))
	}
	require.Equal(t, compact.MaxSince, named)
	require.Nil(t, client.At(0))
	require.Len(t, client.List, compact.HeldModels)
}

func TestModelStoreKeepsTheNewest(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOf(t), 0))
	var h compact.ModelStore
	first := ^uint32(0) - 100 // the numbers wrap
	order := rng.Perm(200)
	for i, n := range order {
		s := &compact.State{Tick: delta.Tick(n)}
		old := h.Keep(first+uint32(n), s)
		require.NotNil(t, old)
		seen := append([]int(nil), order[:i+1]...)
		for _, n := range seen {
			newer := 0
			for _, o := range seen {
				if o > n {
					newer++
				}
			}
			got := h.At(first + uint32(n))
			require.Equal(t, newer < compact.HeldModels, got != nil)
			if got != nil {
				require.EqualValues(t, n, got.Tick)
			}
		}
	}
}

// TestSlotsOfCompactPackets: slots are decoded as they were encoded, whatever the list, and take no
// more bits than predicted.
func TestSlotsOfCompactPackets(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOf(t), 0))
	schema := testSchema()
	schema.raw.Freeze()
	x, r := &compact.Writer{}, compact.NewReader(&schema.raw)
	c := compact.NewCoder(&schema.raw)
	var ours, theirs compact.State
	ours.CopyFrom(nil)
	theirs.CopyFrom(nil)
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
		ours.CopyFrom(&from)
		x.State = &ours
		x.Walk.Begin(&from, 5)
		x.E = delta.NewRangeEncoder(buf)
		c.Coder.Begin(&ours.Model)
		c.Rows = c.Rows[:0]
		var chains []int
		for _, slot := range slots {
			most, before := x.Worst(c, slot, &compact.Entry{Kind: wire.EntryDespawn}), x.E.Spent()
			chains = append(chains, x.PutSlot(c.Coder, slot))
			require.LessOrEqual(t, int(x.E.Spent()-before)/delta.CostUnit, most)
		}
		before := x.E.Len()
		x.PutEnd(c.Coder)
		body, err := x.E.Finish()
		require.NoError(t, err)
		require.LessOrEqual(t, len(body), before+compact.EndBytes)

		r.Spare = &theirs
		theirs.CopyFrom(&from2)
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

func TestModelsOfABurstAreGivenBack(t *testing.T) {
	var k compact.KeptModels
	for i := range uint32(20) {
		k.Keep(i, 0, 0, k.Take())
	}
	for i := range uint32(19) {
		k.Lose(i)
	}
	require.Len(t, k.Free, 19)
	for now := delta.Tick(1); now < 3*ackstate.ResizeTicks; now++ { // one or two models are needed
		k.Shrink(now)
		a := k.Take()
		if now%2 == 0 {
			k.Give(k.Take())
		}
		k.Give(a)
	}
	require.Len(t, k.Free, 2)
}
