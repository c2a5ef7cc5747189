package delta

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnglesTurnTogether has the limits of what counts as turning together.
func TestAnglesTurnTogether(t *testing.T) {
	for _, c := range []struct {
		name        string
		first       Field
		second      Field
		other, way  int64
		together    bool
		m, expected uint64 // the bits of the difference, and what the second is expected at if the first is off by 3
	}{
		{"equally far", Field{Kind: Wrap, Bits: 8}, Field{Kind: Wrap, Bits: 8}, 16, 16, true, 0, 35},
		{"too slow", Field{Kind: Wrap, Bits: 8}, Field{Kind: Wrap, Bits: 8}, 15, 15, false, 0, 0},
		{"backwards", Field{Kind: Wrap, Bits: 8}, Field{Kind: Wrap, Bits: 8}, -16, -16, true, 0, 227},
		{"one backwards", Field{Kind: Wrap, Bits: 8}, Field{Kind: Wrap, Bits: 8}, -16, 16, false, 0, 0},
		{"1 of 32 more", Field{Kind: Wrap, Bits: 8}, Field{Kind: Wrap, Bits: 8}, 31, 32, true, 1, 67},
		{"1 of 31 less", Field{Kind: Wrap, Bits: 8}, Field{Kind: Wrap, Bits: 8}, 32, 31, false, 0, 0},
		{"2 of 64 less", Field{Kind: Wrap, Bits: 8}, Field{Kind: Wrap, Bits: 8}, 66, 64, true, 2, 131},
		{"circles of 100", Field{Kind: Wrap, Bits: 7, Max: 99}, Field{Kind: Wrap, Bits: 8, Max: 99}, 40, 40, true, 0, 83},
		{"other circles", Field{Kind: Wrap, Bits: 8, Max: 254}, Field{Kind: Wrap, Bits: 8}, 40, 40, false, 0, 0},
		{"no circle before", Field{Kind: Linear, Bits: 8}, Field{Kind: Wrap, Bits: 8}, 40, 40, false, 0, 0},
		{"no circle", Field{Kind: Wrap, Bits: 8}, Field{Kind: Linear, Bits: 8}, 40, 40, false, 0, 0},
		{"44 bits", Field{Kind: Wrap, Bits: 44}, Field{Kind: Wrap, Bits: 44}, 1 << 36, 1 << 36, true, 0, 1<<37 + 3},
		{"45 bits", Field{Kind: Wrap, Bits: 45}, Field{Kind: Wrap, Bits: 45}, 1 << 36, 1 << 36, false, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := NewLayout(Component{Fields: []Field{c.first, c.second}})
			comp := &l.Components[0]
			row := func(a, b int64) []uint32 {
				codes := make([]uint32, comp.Words())
				for i, code := range []int64{a, b} {
					f := &comp.Fields[i]
					f.setCode(codes, uint64(code+int64(f.Max)+1)%(f.Max+1))
				}
				return codes
			}
			f, before := &comp.Fields[1], &comp.Fields[0]
			ref := &reference{row: row(2*c.other, 2*c.way), base: row(c.other, c.way), base2: row(0, 0)}
			together := false
			if f.beside {
				var at uint64
				var m uint
				at, m, together = ref.together(f, before, row(2*c.other+3, 0))
				if together {
					require.Equal(t, c.expected, at)
					require.EqualValues(t, besideOrders+c.m, m)
				}
			}
			require.Equal(t, c.together, together)

			// In both codings a row that is off by the same twice takes fewer bits than one that is not.
			cur, other := row(2*c.other+3, 2*c.way+3), row(2*c.other+3, 2*c.way-3)
			x := newRowTest(t, *comp)
			packed := x.check(cur, ref.base, ref.base2, 1<<16) < x.check(other, ref.base, ref.base2, 1<<16)
			require.Equal(t, c.together, packed, "Packed")
			past := Past{Base: ref.base, Base2: ref.base2, Ratio: 1 << 16}
			size := func(cur []uint32) int {
				y := newCompactTest(t, *comp)
				return len(y.check([]compactRow{{0, true, cur, past}, {0, true, cur, past}, {0, true, cur, past}, {0, true, cur, past}}))
			}
			require.Equal(t, c.together, size(cur) < size(other), "Compact")
		})
	}
}
