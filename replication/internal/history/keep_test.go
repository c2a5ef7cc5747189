package history

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/delta"
)

// circle is the number of codes of the first word if that wraps.
const circle = 16

// near reports whether no word differs by more than one.
func near(row, present []uint32, wraps bool) bool {
	for k, x := range row {
		d := x - present[k] + 1
		if wraps && k == 0 {
			d %= circle
		}
		if d > 2 {
			return false
		}
	}
	return true
}

// Rows that are to be kept are no change, in whichever way rows are set.
func TestKeptRowsAreNoChange(t *testing.T) {
	rng := randomOf(t)
	const slots = 200
	for play := range 10 {
		words, wraps := play/2+1, play%2 == 0
		h, truth, tick := New(words, 8), map[uint32][]uint32{}, delta.Tick(1<<32-50)
		var given, asked []uint32 // the rows of a call, and of which the history asked
		masks := slices.Repeat([]uint32{KeepOne}, words)
		if wraps {
			masks[0] &= circle - 1
		}
		kept := 0
		h.Keep(masks, func(i int, row, present []uint32) bool {
			require.Equal(t, given[i*words:][:words], row)
			asked = append(asked, uint32(i))
			return near(row, present, wraps)
		})
		for range roundsOf(400, 100) {
			tick++
			first, n := rng.Uint32N(slots-64), rng.IntN(65)
			set := make([]uint32, n)
			for i := range set {
				set[i] = first + uint32(i)
			}
			if rng.IntN(2) == 0 {
				set = set[:0]
				for _, slot := range rng.Perm(slots)[:rng.IntN(slots)] {
					set = append(set, uint32(slot))
				}
			}
			given, asked = given[:0], asked[:0]
			var want []int
			for i, slot := range set {
				row, old := make([]uint32, words), truth[slot]
				for k := range row {
					switch rng.IntN(3) {
					case 0:
						row[k] = rng.Uint32N(20)
					default:
						if old != nil {
							row[k] = old[k] + rng.Uint32N(3) - 1
						}
					}
				}
				if wraps {
					row[0] %= circle
				}
				given = append(given, row...)
				switch {
				case old != nil && slices.Equal(row, old):
				case old != nil && near(row, old, wraps):
					kept++
				default:
					truth[slot] = row
					want = append(want, i)
				}
			}
			changed := make([]uint64, (len(set)+63)/64)
			h.SetRows(set, tick, func(int) delta.Tick { return tick }, given, changed)
			var got []int
			for i := range set {
				if changed[i/64]>>(i%64)&1 != 0 {
					got = append(got, i)
				}
			}
			require.Equal(t, want, got)
			require.True(t, len(asked) == 0 || slices.Max(asked) < uint32(len(set)))
			for slot, row := range truth {
				require.Equal(t, row, h.Row(int(slot)))
			}
			if rng.IntN(4) == 0 { // a new incarnation keeps nothing
				slot := rng.Uint32N(slots)
				h.Begin(int(slot))
				delete(truth, slot)
			}
		}
		require.Greater(t, kept, 100)
	}
	require.PanicsWithValue(t, "history: Keep needs a mask for each word of a row", func() { New(2, 8).Keep([]uint32{KeepOne}, nil) })
}
