package replication

import (
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/stretchr/testify/require"
)

func TestKeptModels(t *testing.T) {
	var k keptModels
	packet := func(sequence uint32, tick delta.Tick, first, last uint32) *compactState {
		s := k.take()
		s.tick = tick
		k.keep(sequence, first, last, s)
		return s
	}
	require.Nil(t, k.choose(0), "nothing is known to have come")
	packet(1, 10, 0, 9)
	packet(2, 11, 0, 4)
	packet(3, 11, 5, 20)
	require.Nil(t, k.choose(0))

	k.acknowledge(1)
	require.EqualValues(t, 1, k.choose(15).sequence)
	k.acknowledge(2)
	require.EqualValues(t, 2, k.choose(15).sequence, "a newer one")
	k.acknowledge(3)
	require.EqualValues(t, 3, k.choose(15).sequence, "of the same tick, but of these slots")
	require.EqualValues(t, 2, k.choose(3).sequence)
	k.lose(3)
	require.EqualValues(t, 3, k.choose(15).sequence, "what came is not lost")
	k.acknowledge(77)
	k.lose(77)

	packet(4, 14, 0, 1)
	k.acknowledge(4)
	require.Len(t, k.list, 1, "older ones are not needed any more")
	require.Len(t, k.free, 3)
	packet(5, 15, 0, 1)
	k.lose(5)
	k.acknowledge(5)
	require.EqualValues(t, 4, k.choose(0).sequence, "too late: it was given up")
}

func TestKeptModelsAreFew(t *testing.T) {
	var k keptModels
	for i := range uint32(3) {
		k.keep(i, 0, 0, k.take())
		k.acknowledge(i)
	}
	n := uint32(3)
	for ; k.room(); n++ {
		require.LessOrEqual(t, len(k.list), maxKept-1)
		k.keep(n, 0, 0, k.take())
	}
	require.Len(t, k.list, maxKept)
	require.NotNil(t, k.choose(0), "one that came is left")
	k.lose(n - 1)
	require.True(t, k.room())
}

// A model is not named any more when the client may have dropped it.
func TestModelsThatMayBeDroppedAreNotNamed(t *testing.T) {
	var server keptModels
	var client modelStore
	server.keep(0, 0, 0, server.take())
	client.keep(0, new(compactState))
	server.acknowledge(0)
	named := 0
	for n := uint32(1); n < 200; n++ { // that all come, and no acknowledgement does
		if m := server.choose(0); m != nil {
			named++
			require.NotNil(t, client.at(m.sequence))
		}
		server.keep(n, 0, 0, server.take())
		server.lose(n)
		client.keep(n, new(compactState))
	}
	require.Equal(t, maxSince, named)
	require.Nil(t, client.at(0))
	require.Len(t, client.list, heldModels)
}

func TestModelStoreKeepsTheNewest(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOf(t), 0))
	var h modelStore
	first := ^uint32(0) - 100 // they wrap
	order := rng.Perm(200)
	for i, n := range order {
		s := &compactState{tick: delta.Tick(n)}
		old := h.keep(first+uint32(n), s)
		require.NotNil(t, old)
		seen := append([]int(nil), order[:i+1]...)
		for _, n := range seen {
			newer := 0
			for _, o := range seen {
				if o > n {
					newer++
				}
			}
			got := h.at(first + uint32(n))
			require.Equal(t, newer < heldModels, got != nil)
			if got != nil {
				require.EqualValues(t, n, got.tick)
			}
		}
	}
}

// What is said of slots is understood, whatever the list, and takes no more than it is said to.
func TestSlotsOfCompactPackets(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOf(t), 0))
	schema := testSchema()
	schema.raw.Seal()
	x, r := &compactWriter{}, newCompactReader(&schema.raw)
	c := newCompactCoder(&schema.raw)
	var ours, theirs compactState
	ours.copyFrom(nil)
	theirs.copyFrom(nil)
	buf := make([]byte, 1<<16)
	density := 0.5
	for range 600 {
		if rng.IntN(20) == 0 {
			density = rng.Float64()
		}
		from := compactState{model: ours.model, slots: append([]listedSlot(nil), ours.slots...)}
		from2 := compactState{model: theirs.model, slots: append([]listedSlot(nil), theirs.slots...)}
		require.Equal(t, from.slots, from2.slots)
		var slots []int
		for slot, end := rng.IntN(60)*rng.IntN(2), 30+rng.IntN(200); slot < end; slot++ {
			if rng.Float64() < density {
				slots = append(slots, slot)
			}
		}
		ours.copyFrom(&from)
		x.state = &ours
		x.walk.begin(&from, 5)
		x.e = delta.NewRangeEncoder(buf)
		c.coder.Begin(&ours.model)
		c.rows = c.rows[:0]
		var origins []int
		for _, slot := range slots {
			most, before := x.worst(c, slot, &compactEntry{kind: wire.EntryDespawn}), x.e.Spent()
			origins = append(origins, x.putSlot(c.coder, slot))
			require.LessOrEqual(t, int(x.e.Spent()-before)/delta.CostUnit, most)
		}
		before := x.e.Len()
		x.putEnd(c.coder)
		body, err := x.e.Finish()
		require.NoError(t, err)
		require.LessOrEqual(t, len(body), before+endBytes)

		r.spare = &theirs
		theirs.copyFrom(&from2)
		r.d = delta.NewRangeDecoder(body)
		r.coder.Begin(&theirs.model)
		r.walk.begin(&from2, 5)
		for i, slot := range slots {
			origin, end, ok := r.getSlot(1000)
			require.True(t, ok && !end)
			require.Equal(t, slot, r.walk.next-1)
			require.Equal(t, origins[i], origin)
			known := originNew
			for _, l := range from.slots {
				if int(l.slot) == slot {
					known = originListed + int(l.seen&1)
				}
			}
			require.Equal(t, known, origin)
		}
		_, end, ok := r.getSlot(1000)
		require.True(t, end && ok)
		require.NoError(t, r.finish())
		require.Equal(t, ours, theirs)
		for i := range ours.slots {
			require.True(t, i == 0 || ours.slots[i-1].slot < ours.slots[i].slot)
		}
	}
}

func TestModelsOfABurstAreGivenBack(t *testing.T) {
	var k keptModels
	for i := range uint32(20) {
		k.keep(i, 0, 0, k.take())
	}
	for i := range uint32(19) {
		k.lose(i)
	}
	require.Len(t, k.free, 19)
	for now := delta.Tick(1); now < 3*resizeTicks; now++ { // one or two are needed
		k.shrink(now)
		a := k.take()
		if now%2 == 0 {
			k.give(k.take())
		}
		k.give(a)
	}
	require.Len(t, k.free, 2)
}
