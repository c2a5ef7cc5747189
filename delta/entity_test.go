package delta

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// An entityTest writes and reads entities of a layout.
type entityTest struct {
	t      testing.TB
	layout *Layout
	packed *Packed
	slow   *slowPacked
}

func newEntityTest(t testing.TB, components ...Component) *entityTest {
	l := NewLayout(components...)
	return &entityTest{t, l, NewPacked(l), newSlowPacked(l)}
}

// bits returns the bits of an entity after it has been read back, compared with what the
// slow twin makes of it, and added up.
func (x *entityTest) bits(ratio int64, rows ...slowRow) string {
	x.packed.Costs = x.packed.Costs[:0]
	w := bitbuf.NewWriter(make([]byte, 1<<14))
	x.packed.Begin()
	symbols := 0
	for _, r := range rows {
		if r.base != nil && x.layout.Components[r.component].Width() > 0 {
			symbols++
		}
		if two := r.base2 != nil && ratio != 0; r.base != nil && equal(r.cur, r.base) && (!two || equal(r.cur, r.base2)) {
			x.packed.AddSame(r.component, two)
		} else {
			x.packed.Add(r.component, r.cur, r.base, r.base2, ratio)
		}
	}
	x.packed.End(&w)
	require.NoError(x.t, w.Err())
	got := bitsOf(&w)
	require.Equal(x.t, x.slow.encodeEntity(rows, ratio), got, "%+v, ratio %d", rows, ratio)
	sum := 0
	for _, c := range x.packed.Costs {
		sum += int(c.Bits)
	}
	require.Equal(x.t, len(got), sum, "what it cost: %v", x.packed.Costs)

	r := bitbuf.NewReader(w.Bytes())
	read := ReadSymbols(&r, symbols)
	for _, row := range rows {
		dst := make([]uint32, len(row.cur))
		if !x.packed.DecodeChange(&r, row.component, &read, dst, row.base, row.base2, ratio) {
			copy(dst, row.base)
		}
		require.NoError(x.t, r.Err())
		require.Equal(x.t, row.cur, dst)
	}
	require.Equal(x.t, w.Len(), r.Pos())
	return got
}

func TestEntitiesOfKnownBits(t *testing.T) {
	at := Component{Fields: []Field{{Kind: Linear, Bits: 8}}}
	hp := Component{Fields: []Field{{Kind: Plain, Bits: 6}}}
	tag := Component{}
	spin := Component{Fields: []Field{{Kind: Quat, Bits: 3}}}
	x := newEntityTest(t, at, hp, tag, at, spin, hp)
	type row = []uint32
	for _, c := range []struct {
		name string
		rows []slowRow
		want string
	}{
		{"nothing", nil, ""},
		{"one row has its symbol", []slowRow{{0, row{111}, row{100}, row{90}}}, "0 1 10"},
		{"a tag has none", []slowRow{{1, row{5}, row{5}, row{5}}, {2, row{}, row{}, row{}}}, "0"},
		{"moving nearly as predicted, and the same: no symbols", []slowRow{{0, row{111}, row{100}, row{90}}, {1, row{5}, row{5}, row{5}}}, "0  1 10"},
		{"at rest, all of it", []slowRow{{0, row{100}, row{100}, row{100}}, {1, row{5}, row{5}, row{5}}}, "0"},
		{"exactly as predicted is not usual", []slowRow{{0, row{110}, row{100}, row{90}}, {1, row{5}, row{5}, row{5}}}, "1  10  0"},
		{"nor is a change of what does not move", []slowRow{{0, row{111}, row{100}, row{90}}, {1, row{6}, row{5}, row{5}}}, "1  0 1 10  1 1 100"},
		{"one baseline: what moves usually did, what does not did not", []slowRow{{0, row{101}, row{100}, nil}, {1, row{5}, row{5}, nil}}, "0  1 100"},
		{"one baseline, and something else changed", []slowRow{{0, row{100}, row{100}, nil}, {1, row{6}, row{5}, nil}}, "1  0  1 1 100"},
		{"a rotation in the same chart", []slowRow{{1, row{5}, row{5}, nil}, {4, row{2, 4, 4, 4}, row{2, 3, 4, 4}, nil}}, "0  1 010 1 0 1 0"},
		{"one in another chart is not usual", []slowRow{{1, row{5}, row{5}, nil}, {4, row{0, 2, 0, 3}, row{2, 2, 4, 3}, nil}}, "1  0  1 1 00 1 000 1 1"},
		{"a new component has none", []slowRow{{0, row{111}, row{100}, row{90}}, {1, row{5}, nil, nil}}, "0 1 10  101000"},
		{"one that is new since the second baseline counts as with one", []slowRow{{0, row{111}, row{100}, row{90}}, {3, row{101}, row{100}, nil}}, "0  1 10  1 100"},
		{"of four the only unusual one is named", []slowRow{{0, row{111}, row{100}, row{90}}, {1, row{6}, row{5}, row{5}}, {3, row{111}, row{100}, row{90}}, {5, row{5}, row{5}, row{5}}}, "1 0 10  1 10  1 100  1 10"},
		{"as is one that is as predicted", []slowRow{{0, row{111}, row{100}, row{90}}, {1, row{5}, row{5}, row{5}}, {3, row{110}, row{100}, row{90}}, {5, row{5}, row{5}, row{5}}}, "1 0 01  1 10  0"},
		{"but with all of its symbol if it has charts", []slowRow{{0, row{111}, row{100}, row{90}}, {1, row{5}, row{5}, nil}, {4, row{0, 2, 0, 3}, row{2, 2, 4, 3}, nil}, {5, row{5}, row{5}, row{5}}}, "1 0 01  1 10  1 1 00 1 000 1 1"},
		{"two of four are not named", []slowRow{{0, row{111}, row{100}, row{90}}, {1, row{6}, row{5}, row{5}}, {3, row{110}, row{100}, row{90}}, {5, row{5}, row{5}, row{5}}}, "1 1  0 1 10  1 1 100  1 0  0"},
		{"a new component and two others", []slowRow{{0, row{255}, nil, nil}, {1, row{5}, row{5}, row{5}}, {3, row{111}, row{100}, row{90}}}, "0  11111111  1 10"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x.t = t
			require.Equal(t, strings.ReplaceAll(c.want, " ", ""), x.bits(1<<16, c.rows...))
		})
	}
}

// TestEntitiesAreThoseOfTheSlowTwin has long rows among others, and rows of every state.
func TestEntitiesAreThoseOfTheSlowTwin(t *testing.T) {
	rng := randomOf(t)
	starts := map[byte]int{}
	for range 500 {
		s := &script{randomBytes(rng, 3000)}
		var components []Component
		for range 1 + s.below(5) {
			components = append(components, s.componentOf(Plain, Linear, Wrap, Quat, Reference, Counter, Flags, Bytes))
			if s.below(4) == 0 {
				components[len(components)-1] = s.componentOfWheels()
			}
			s.replaceOrders(&components[len(components)-1])
		}
		x := newEntityTest(t, components...)
		for n := range 3 {
			x.slow.shift = Shift(n+len(components)) % shifts
			x.packed.SetShift(x.slow.shift)
			ratio := int64(s.below(4)) << 15
			var rows []slowRow
			for c := range x.layout.Components {
				comp := &x.layout.Components[c]
				r := slowRow{component: c}
				r.base2 = s.row(comp, nil)
				r.base = s.row(comp, r.base2)
				if s.below(3) == 0 {
					r.base = r.base2
				}
				switch s.below(8) {
				case 0:
					r.cur = r.base
				case 1:
					r.cur = s.row(comp, nil)
				case 2, 3, 4:
					if x.slow.predict(comp, r.base, r.base2, ratio) {
						r.cur = s.row(comp, append([]uint32(nil), x.slow.row...))
						break
					}
					fallthrough
				default:
					r.cur = s.row(comp, r.base)
				}
				switch s.below(12) {
				case 0:
					r.base, r.base2 = nil, nil
				case 1, 2:
					r.base2 = nil
				}
				if s.below(10) > 0 {
					rows = append(rows, r)
				}
			}
			if bits := x.bits(ratio, rows...); len(rows) > 1 && bits != "" {
				starts[bits[0]]++
			}
		}
	}
	require.Greater(t, min(starts['0'], starts['1']), 90, "%v", starts)
}

// TestAnEntityAsUsualCostsABit: however many components it has that stay as they are.
func TestAnEntityAsUsualCostsABit(t *testing.T) {
	var components []Component
	var rows []slowRow
	for c := range MaxComponents {
		components = append(components, Component{Fields: []Field{{Kind: Plain, Bits: 3}}})
		rows = append(rows, slowRow{c, []uint32{1}, []uint32{1}, nil})
	}
	x := newEntityTest(t, components...)
	require.Equal(t, "0", x.bits(0, rows...))
	rows[7].cur = []uint32{2}
	require.Len(t, x.bits(0, rows...), 2+8+3, "the only one that changed is named")
	rows[9].cur = []uint32{2}
	require.Len(t, x.bits(0, rows...), 2+MaxComponents+3+3)
}

// TestManyChartsAreLeftOut: they take more than a word.
func TestManyChartsAreLeftOut(t *testing.T) {
	for _, n := range []int{62, 63, 64, 65, 130} {
		fields := make([]Field, n)
		for i := range fields {
			fields[i] = Field{Kind: Quat, Bits: 3}
		}
		x := newEntityTest(t, Component{Fields: fields}, Component{Fields: []Field{{Kind: Plain, Bits: 3}}})
		var base, cur []uint32
		for i := range n {
			base = append(base, 2, 3, 4, 4)
			cur = append(cur, 2, 3+uint32(i%2), 4, 4)
		}
		flag := []uint32{1}
		all := len(x.bits(0, slowRow{0, cur, base, nil}))
		require.Len(t, x.bits(0, slowRow{0, cur, base, nil}, slowRow{1, flag, flag, nil}), 1+all-1-n)
		require.Len(t, x.bits(0, slowRow{0, cur, base, nil}, slowRow{1, []uint32{2}, flag, nil}), 1+all+1+3)
	}
}
