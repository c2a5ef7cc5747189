package compact

import (
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/stretchr/testify/require"
)

// A head is a slot of a packet with the baselines of its entry.
type head struct {
	slot int
	name Name
}

// encodeHeads returns a packet of tick now that begins with the model of from, and the chain state of
// each of its slots. s becomes the state at its end.
func encodeHeads(t *testing.T, c *delta.Compact, heads []head, from, s *State, now delta.Tick) (body []byte, chains []int) {
	x := Writer{E: delta.NewRangeEncoder(make([]byte, 1<<16)), State: s}
	s.CopyFrom(from, c)
	s.Tick = now
	x.Walk.Begin(from, now)
	c.Begin(&s.Model)
	for i := range heads {
		chain := x.PutSlot(c, heads[i].slot)
		x.putName(c, chain, &heads[i].name)
		chains = append(chains, chain)
	}
	x.PutEnd(c)
	body, err := x.E.Finish()
	require.NoError(t, err)
	return body, chains
}

// decodeHeads reads what encodeHeads wrote.
func decodeHeads(t *testing.T, c *delta.Compact, body []byte, limit int, from, s *State, now delta.Tick) (heads []head, chains []int) {
	x := Reader{Coder: c, Spare: s, D: delta.NewRangeDecoder(body)}
	s.CopyFrom(from, c)
	s.Tick = now
	x.Walk.Begin(from, now)
	c.Begin(&s.Model)
	for {
		chain, end, ok := x.GetSlot(limit)
		require.True(t, ok)
		if end {
			require.NoError(t, x.Finish())
			return heads, chains
		}
		h := head{x.Walk.Next - 1, x.GetName(chain)}
		s.Named(h.slot, &h.name)
		heads, chains = append(heads, h), append(chains, chain)
	}
}

// TestHeadsArriveAsTheyWereSent plays chains of packets. The list of a model has the slots that the
// last packets of its chain carried; both ends agree on it, and on every slot and baseline.
func TestHeadsArriveAsTheyWereSent(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 8))
	for range 40 {
		limit := 1 + rng.IntN(400)
		writes, reads := delta.NewCompact(delta.NewLayout()), delta.NewCompact(delta.NewLayout())
		var from, sent, received *State
		carried := map[int][]int{} // by slot: the packets of the chain, unless a skip forgot them
		for n := range 30 {
			now := delta.Tick(^uint32(0) - 10 + uint32(n)) // ticks wrap
			heads := randomHeads(rng, limit, now)
			from, sent = sent, new(State)
			if len(heads) > 0 && from != nil && len(from.Slots) > maxPassed && int(from.Slots[maxPassed].Slot) < heads[0].slot {
				for slot := range heads[0].slot {
					delete(carried, slot)
				}
			}
			body, chains := encodeHeads(t, writes, heads, from, sent, now)
			before := received
			received = new(State)
			got, same := decodeHeads(t, reads, body, limit, before, received, now)
			require.Equal(t, heads, got)
			require.Equal(t, chains, same)
			require.Equal(t, sent, received, "both ends list the same")
			for i, h := range heads {
				want := ChainNew
				if before := carried[h.slot]; len(before) > 0 && before[len(before)-1] >= n-seenBits {
					want = ChainListed
					if before[len(before)-1] == n-1 {
						want = ChainRepeated
					}
				}
				require.Equal(t, want, chains[i], "slot %d in packet %d, before in %d", h.slot, n, carried[h.slot])
				carried[h.slot] = append(carried[h.slot], n)
			}
		}
	}
}

// randomHeads returns random entries in the order of their slots, with baselines of few kinds.
func randomHeads(rng *rand.Rand, limit int, now delta.Tick) (heads []head) {
	share := replicationtest.Pick(rng, 0, 0.02, 0.3, 0.9, 1)
	for slot := range limit {
		if rng.Float64() >= share {
			continue
		}
		name := Name{A1: now - 1 - delta.Tick(rng.IntN(3))}
		if rng.IntN(3) > 0 {
			name.Span = 1 + delta.Tick(rng.IntN(2))*delta.Tick(rng.IntN(1<<spanBits))
			name.Third = delta.Tick(rng.IntN(2)) * delta.Tick(rng.IntN(1<<nearBits))
			if name.Third != 0 {
				name.Fourth = delta.Tick(rng.IntN(2)) * delta.Tick(rng.IntN(1<<nearBits))
			}
		}
		heads = append(heads, head{slot, name})
	}
	return heads
}

// TestListedSlotsHaveContextsOfTheirOwn: whether a listed slot is carried again is predicted from
// which of the last packets carried it, and from whether the listed slot before it is carried.
func TestListedSlotsHaveContextsOfTheirOwn(t *testing.T) {
	of := map[int]ListedSlot{}
	for seen := range uint8(1 << seenBits) {
		for _, again := range []bool{false, true} {
			w := Walk{before: []ListedSlot{{Seen: seen}}, again: again}
			context := w.repeatedContext()
			require.GreaterOrEqual(t, context, headRepeated)
			require.Less(t, context, headGap)
			require.NotContains(t, of, context)
			of[context] = w.before[0]
		}
	}
}
