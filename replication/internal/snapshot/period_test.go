package snapshot

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/stretchr/testify/require"
)

// TestPeriodsAddUpTheirTicks: a period has what changed in any of its ticks, and liveIn has what of that still
// held an entity at the end.
func TestPeriodsAddUpTheirTicks(t *testing.T) {
	replicationtest.OneGoroutine(t)
	seed := replicationtest.Seed(t)
	for i, first := range []delta.Tick{1 << 20, ^delta.Tick(0) - 100} { // ticks wrap
		c := &changeTwin{rng: rand.New(rand.NewPCG(seed, uint64(i))), now: first}
		c.slots.InitClasses(0, 0)
		c.slots.Recent.Now = first
		var changed, alive []bitset.Set // by tick
		for range 200 {
			s := &c.slots
			c.tick(t)
			changed, alive = append(changed, slices.Clone(s.Changed)), append(alive, slices.Clone(s.Alive))
			requirePeriods(t, s, changed, delta.Tick(1+c.rng.IntN(MaxPeriod)))
			s.Settle(c.now)
			ago := c.rng.IntN(min(len(changed), RecentTicks-MaxPeriod+1))
			last := len(changed) - ago
			requireLive(t, s, changed[:last], alive[last-1], c.now-delta.Tick(ago))
		}
	}
}

// requirePeriods finds the periods of up to n ticks, and compares them with what changed in each tick.
func requirePeriods(t *testing.T, s *SlotTable, changed []bitset.Set, n delta.Tick) {
	for n := range MaxPeriod + delta.Tick(2) {
		require.Nil(t, s.Periods.Get(n), "a period of the tick before")
	}
	require.NotPanics(t, func() { s.Periods.Find(MaxPeriod+1, s) })
	require.Nil(t, s.Periods.Get(MaxPeriod+1))
	for ; n > 0; n-- {
		s.Periods.Find(n, s)
		p, count, blocks := s.Periods.Get(n), 0, []int(nil)
		require.Equal(t, n, p.Ticks)
		for b, word := range within(changed, int(n), s.Len()) {
			require.Equal(t, word, p.Changed[b], "block %d in %d ticks", b, n)
			if count += bits.OnesCount64(word); word != 0 {
				blocks = append(blocks, b)
			}
		}
		require.Equal(t, count, p.Changes)
		require.Equal(t, blocks, slices.Collect(p.Blocks.All()))
	}
}

// requireLive compares liveIn and AppendLive with what changed in each tick up to a last one and was alive at its end.
func requireLive(t *testing.T, s *SlotTable, changed []bitset.Set, alive bitset.Set, last delta.Tick) {
	for n := range min(MaxPeriod, len(changed)) {
		var all []wire.SlotBlock
		for b, word := range within(changed, n+1, s.Len()) {
			live := uint64(0)
			if b < len(alive) {
				live = alive[b]
			}
			require.Equal(t, word&live, s.liveIn(delta.Tick(n+1), last, b))
			if word&live != 0 {
				all = append(all, wire.SlotBlock{Block: uint32(b), Mask: word & live})
			}
		}
		if s.Recent.Now-(last-delta.Tick(n+1)) < RecentTicks {
			require.Equal(t, all, s.AppendLive(nil, delta.Tick(n+1), last))
		}
	}
}

// within returns what changed in the last n ticks.
func within(changed []bitset.Set, n, slots int) bitset.Set {
	sum := bitset.Set(nil).Grown(slots)
	for _, set := range changed[max(0, len(changed)-n):] {
		for b, word := range set {
			sum[b] |= word
		}
	}
	return sum
}
