package wire

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// blocksOf returns a set of slots as blocks.
func blocksOf(slots map[int]bool) (blocks []SlotBlock) {
	for b := range uint32(64) {
		var mask uint64
		for i := range uint32(64) {
			if slots[int(b<<6+i)] {
				mask |= 1 << i
			}
		}
		if mask != 0 {
			blocks = append(blocks, SlotBlock{b, mask})
		}
	}
	return blocks
}

// TestSlotListsRoundTrip: a reader that has the same reference in the range of the lists finds the entries that were
// added, in no more bits than were reserved, and in none after a rollback.
func TestSlotListsRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var l SlotLists
	var s SlotReader
	ranges := 0
	for range 3000 {
		world := 1 + rng.IntN(64*64-1)
		from := rng.IntN(world)
		density, lost, other := rng.Float64(), rng.Float64()*rng.Float64(), rng.Float64()*rng.Float64()
		ref := map[int]bool{}
		var want []ListedSlot
		for slot := range world {
			if rng.Float64() < density {
				ref[slot] = true
			}
			switch p := rng.Float64(); {
			case slot < from && rng.IntN(4) > 0:
			case p < other/8:
				want = append(want, ListedSlot{uint32(slot), EntryKind(1 + rng.IntN(int(LastEntryKind)))})
			case ref[slot] && rng.Float64() > lost, p < other:
				want = append(want, ListedSlot{uint32(slot), EntryUpdate})
			}
		}
		if len(want) == 0 {
			continue
		}
		if rng.IntN(3) == 0 {
			want = want[:1+rng.IntN(len(want))]
		}
		if rng.IntN(8) == 0 {
			clear(ref)
		}
		blocks := blocksOf(ref)
		l.Begin(blocks, CountSlots(blocks))
		for i := 0; i < len(want); {
			mark := l.Mark()
			back := rng.IntN(4) == 0
			if e := want[i]; e.Kind != EntryUpdate {
				l.AddOther(int(e.Slot), e.Kind)
				i++
			} else {
				var mask uint64
				b := e.Slot >> 6
				for ; i < len(want) && want[i].Slot>>6 == b && want[i].Kind == EntryUpdate; i++ {
					mask |= 1 << (want[i].Slot & 63)
				}
				if back {
					l.AddUpdates(int(b), mask)
					l.Rollback(&mark)
				}
				l.AddUpdates(int(b), mask)
			}
		}
		w := bitbuf.NewWriter(make([]byte, 1<<16))
		in := l.Write(&w)
		require.NoError(t, w.Err())
		require.LessOrEqual(t, w.Len(), l.MaxLen())
		require.True(t, l.Fits(l.MaxLen()))
		require.False(t, l.Fits(w.Len()-1))
		r := bitbuf.NewReader(w.Bytes())
		complete, used, apart := s.HasReference(&r)
		require.False(t, apart)
		require.Equal(t, len(blocks) > 0, used)
		if len(blocks) > 0 && !complete {
			ranges++
			for slot := range world {
				if slot < in.From || slot >= in.To {
					ref[slot] = rng.IntN(2) == 0
				}
			}
			if other := blocksOf(ref); len(other) > 0 {
				blocks = other
			}
		}
		s.Read(&r, blocks, complete, uint64(world))
		require.NoError(t, r.Err())
		require.Equal(t, w.Len(), r.Pos())
		var got []ListedSlot
		for slot, kind, ok := s.Next(); ok; slot, kind, ok = s.Next() {
			got = append(got, ListedSlot{slot, kind})
		}
		require.True(t, slices.Equal(want, got))
	}
	require.Greater(t, ranges, 300)
}

// TestFitsNext: with more entries for which FitsNext holds, Fits does.
func TestFitsNext(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var l SlotLists
	yes := 0
	for range 3000 {
		var ref []SlotBlock
		for b := range uint32(1 + rng.IntN(40)) {
			if rng.IntN(3) > 0 {
				ref = append(ref, SlotBlock{b, rng.Uint64()&rng.Uint64() | 1})
			}
		}
		if rng.IntN(3) == 0 {
			ref = nil
		}
		l.Begin(ref, CountSlots(ref))
		step := 1 + rng.IntN(1<<rng.IntN(9))
		for slot := rng.IntN(200); slot < 40*64; slot += 1 + rng.IntN(step) {
			most := l.MaxLen() + rng.IntN(1200)
			mask := uint64(1) << (slot & 63)
			if rng.IntN(2) == 0 {
				mask |= rng.Uint64() &^ (mask - 1)
			}
			first := slot
			slot = slot&^63 + bits.Len64(mask) - 1
			near := l.FitsNext(slot, bits.OnesCount64(mask), most)
			passed := 0
			for _, b := range l.ref[l.at:] {
				if int(b.Block) <= slot>>6 {
					passed += bits.OnesCount64(b.Mask)
				}
			}
			rough := l.roughLen(slot, bits.OnesCount64(mask), passed)
			if rng.IntN(5) > 0 {
				l.AddUpdates(slot>>6, mask)
			} else {
				for ; mask != 0; mask &= mask - 1 {
					l.AddOther(first&^63+bits.TrailingZeros64(mask), LastEntryKind)
				}
			}
			require.LessOrEqual(t, l.maxLen(1, l.listed), rough, "slot %d", slot)
			if near {
				yes++
				require.LessOrEqual(t, l.MaxLen(), most, "slot %d", slot)
			}
		}
	}
	require.Greater(t, yes, 1000)
}

// TestLongReferencesFit: of a reference of any length, with few updates or few slots without one, in places that are as
// bad as can be, the list takes no more than MaxLen.
func TestLongReferencesFit(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	room := make([]byte, 1<<20)
	for range 400 {
		blocks := 1 + rng.IntN(1<<rng.IntN(17))
		ref := make([]SlotBlock, blocks)
		for b := range ref {
			ref[b] = SlotBlock{uint32(b), ^uint64(0)}
		}
		var l SlotLists
		l.Begin(ref, CountSlots(ref))
		few, late := rng.IntN(40), rng.IntN(2) == 0 // all at the end, or anywhere
		for b := range ref {
			chosen := uint64(0)
			for range 1 + few/blocks {
				if late && b == blocks-1 || !late && rng.IntN(blocks) < few {
					chosen |= 1 << rng.IntN(64)
				}
			}
			if few%2 == 0 {
				chosen = ^chosen
			}
			if chosen != 0 {
				l.AddUpdates(b, chosen)
			}
		}
		if len(l.blocks) == 0 {
			continue
		}
		w := bitbuf.NewWriter(room)
		l.Write(&w)
		require.NoError(t, w.Err())
		require.LessOrEqual(t, w.Len(), l.MaxLen(), "%d blocks, %d slots, %t", blocks, few, late)
	}
}

// TestBurstsFit: of runs of updates with gaps that just do not fit into the unary part of a Rice code, the list takes no
// more than MaxLen.
func TestBurstsFit(t *testing.T) {
	room := make([]byte, 1<<16)
	for _, blocks := range []int{3, 32, 128} {
		ref := make([]SlotBlock, blocks)
		for b := range ref {
			ref[b] = SlotBlock{uint32(b), ^uint64(0)}
		}
		for _, gap := range []int{31, 32, 33, 63, 64, 65, 128, 256} {
			for run := 1; run < 80; run++ {
				for _, kept := range []bool{true, false} {
					var l SlotLists
					l.Begin(ref, CountSlots(ref))
					for b := range ref {
						chosen := uint64(0)
						for i := range 64 {
							if ((b<<6+i)%(gap+run) < run) == kept {
								chosen |= 1 << i
							}
						}
						if chosen != 0 {
							l.AddUpdates(b, chosen)
						}
					}
					w := bitbuf.NewWriter(room)
					l.Write(&w)
					require.NoError(t, w.Err())
					require.LessOrEqual(t, w.Len(), l.MaxLen(), "%d blocks, runs of %d, gaps of %d, %t", blocks, run, gap, kept)
				}
			}
		}
	}
}
