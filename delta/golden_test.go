package delta

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// TestRowsOfKnownBits is the wire format by example. Bits are in the order in which they
// are sent, numbers with their low bit first. A residual is q zeros, a one unless q is
// the last class, and k+q bits.
func TestRowsOfKnownBits(t *testing.T) {
	var (
		x       = []Field{{Kind: Linear, Bits: 8}}
		xy      = []Field{{Kind: Linear, Bits: 10}, {Kind: Linear, Bits: 10}}
		angle   = []Field{{Kind: Wrap, Bits: 8}}
		flag    = []Field{{Kind: Plain, Bits: 1}}
		enum    = []Field{{Kind: Plain, Bits: 2}, {Kind: Plain, Bits: 6}}
		quat    = []Field{{Kind: Quat, Bits: 3}}
		turning = []Field{{Kind: Linear, Bits: 8}, {Kind: Quat, Bits: 3}}
		ref     = []Field{{Kind: Reference, Bits: ReferenceBits}}
		refs    = []Field{{Kind: Reference, Bits: ReferenceBits}, {Kind: Reference, Bits: ReferenceBits}}
		hour    = []Field{{Kind: Wrap, Bits: 5, Max: 23}}
		wheels  = []Field{{Kind: Wrap, Bits: 8}, {Kind: Wrap, Bits: 8}}
		hands   = []Field{{Kind: Wrap, Bits: 7, Max: 99}, {Kind: Wrap, Bits: 7, Max: 99}}
		kills   = []Field{{Kind: Counter, Bits: 32}, {Kind: Counter, Bits: 10}}
		keys    = []Field{{Kind: Flags, Bits: 5}}
		name    = []Field{{Kind: Bytes, Max: 9}}
	)
	type row = []uint32
	text := func(s string) row {
		f := &NewLayout(Component{Fields: name}).Components[0].Fields[0]
		r := make(row, f.Words())
		setText(f, r, s)
		return r
	}
	for _, c := range []struct {
		name             string
		fields           []Field
		cur, base, base2 row
		want             string
	}{
		{"absolute", xy, row{5, 512}, nil, nil, "1010000000 0000000001"},
		{"absolute quaternion: the dropped component, the others", quat, row{2, 1, 4, 7}, nil, nil, "01 100 001 111"},
		{"still, equal", xy, row{5, 6}, row{5, 6}, nil, "0"},

		// The last residual is not zero, since none before it shows the difference: one less is sent.
		{"still, +1: residual 2 less one, order 3", x, row{101}, row{100}, nil, "1 1 100"},
		{"still, -1: residual 1 less one", x, row{99}, row{100}, nil, "1 1 000"},
		{"still, +20: residual 39 in class 2, 15 from its first", x, row{120}, row{100}, nil, "1 001 11110"},
		{"still, a jump: the last class of 8-3, full width", x, row{128}, row{0}, nil, "1 00000 01111111"},
		{"still, +1 and +1: after a residual of 2 bits the order is 1", xy, row{6, 7}, row{5, 6}, nil, "1 1 010 01 00"},
		{"still, 0 and +1: order 0, class 1", xy, row{5, 7}, row{5, 6}, nil, "1 1 000 01 0"},
		{"angles wrap: -1", angle, row{255}, row{0}, nil, "1 1 000"},

		{"moving as predicted", x, row{110}, row{100}, row{90}, "10"},
		{"moving, but stopped", x, row{100}, row{100}, row{90}, "110"},
		{"moving, +1: the distance 10 has 4 bits, so order 2", x, row{111}, row{100}, row{90}, "0 1 10"},
		{"moving, nearer to the baseline", x, row{101}, row{100}, row{90}, "111 1 100"},
		{"moving beyond the largest code: clamped", x, row{255}, row{250}, row{240}, "10"},
		{"turning past the largest code", angle, row{4}, row{250}, row{240}, "10"},

		{"a flag that must have changed if it is sent", flag, row{0}, row{1}, nil, "1"},
		{"first field +1: same or not, residual 2 less one in order 0; second the same", enum, row{2, 9}, row{1, 9}, nil, "1 1 01 0 0"},
		{"second field +1: its flag is implied, residual 2 less one in order 3", enum, row{1, 10}, row{1, 9}, nil, "1 0 1 100"},

		{"same chart, residuals 2, 0 and 0 in orders 3, 1 and 1", quat, row{2, 4, 4, 4}, row{2, 3, 4, 4}, nil, "1 0 1 010 1 0 1 0"},
		{
			// The baseline's n are -1, 1, sqrt(4*4-2) = 3.7, 0. With x positive they are
			// 1, -1, -3.7, 0: the codes 2, 0 (the least there is) and 3.
			"another chart: x dropped instead of z, residuals 0 in orders 3, 0 and 0", quat,
			row{0, 2, 0, 3},
			row{2, 2, 4, 3},
			nil, "1 1 00 1 000 1 1",
		},

		{"what moves and turns: the chart stands in front, turning begins in order 3 too", turning, row{101, 2, 4, 4, 4}, row{100, 2, 3, 4, 4}, nil, "1 0 1 010 1 010 1 0 1 0"},

		{"absolute references to nothing, and to index 6, counter 1", refs, row{0, 0, 7, 1}, nil, nil, "0 1 1 0110000 1 100"},
		{"index 130 is 2 in class 1, counter 9 is 1 in class 1", ref, row{131, 9}, nil, nil, "1 01 0100000000 01 1000"},
		{"index 600000 and counter 5 at full width", ref, row{600001, 5}, nil, nil, "1 00000 " + number(600000, 30) + number(5, 16)},
		{"a reference that must have changed if it is sent: to nothing", ref, row{0, 0}, row{7, 1}, nil, "1 0"},
		{"from nothing to something needs no bit that it is something", ref, row{7, 1}, row{0, 0}, nil, "1 1 0110000 1 100"},
		{"from one to another", ref, row{7, 1}, row{5, 1}, nil, "1 1 1 0110000 1 100"},
		{"the first the same, the second to the next incarnation", refs, row{0, 0, 7, 2}, row{0, 0, 7, 1}, nil, "1 0 1 1 0110000 1 010"},
		{"the first to nothing, the second the same", refs, row{0, 0, 7, 1}, row{3, 1, 7, 1}, nil, "1 1 0 0"},
		{"from 23 to 1 o'clock: residual 4 less one, order 3", hour, row{1}, row{23}, nil, "1 1 110"},
		{"from 1 to 23 o'clock: residual 3 less one", hour, row{23}, row{1}, nil, "1 1 010"},
		{"moving round the clock", hour, row{3}, row{21}, row{15}, "10"},

		// Of two angles at the same speed, the second deviates as the first: by 5 here, and by 1 more.
		{"two wheels: residual 10, order 2; residual 2, order 0", wheels, row{45, 46}, row{20, 20}, row{0, 0}, "0 01 011 01 1"},
		{"backwards, past 0: residual 9, order 4, as len(236) is 8; residual 1", wheels, row{211, 110}, row{236, 136}, row{0, 156}, "0 1 1001 01 0"},
		{"the first is as predicted: residual 2 less one", wheels, row{40, 41}, row{20, 20}, row{0, 0}, "0 1 00 01 0"},
		{"both are", wheels, row{40, 40}, row{20, 20}, row{0, 0}, "10"},
		{"one is slower by 1 of 31: residual 10, order 3, as of any two", wheels, row{67, 65}, row{31, 30}, row{0, 0}, "0 01 011 01 0100"},
		{"one is faster by 1 of 32: residual 0, order 1", wheels, row{67, 69}, row{31, 32}, row{0, 0}, "0 01 011 1 0"},
		{"both turn slowly", wheels, row{35, 35}, row{15, 15}, row{0, 0}, "0 01 011 01 0100"},
		{"hands of a clock, 49 of 100 back: residual 10, order 3; residual 1", hands, row{7, 26}, row{51, 71}, row{0, 20}, "0 01 0100 01 0"},

		{"a counter grows by one, the other does not", kills, row{8, 3}, row{7, 3}, nil, "1 1 1 0"},
		{"a counter grows by 5: 4 in class 2, 1 from its first; the other by 2", kills, row{12, 5}, row{7, 3}, nil, "1 1 001 10 1 01 0"},
		{"a counter shrinks: grown by 1023, less one is 511 from the first of class 9", kills, row{7, 2}, row{7, 3}, nil, "1 0 0000000001 111111111"},

		{"flag 3 changes", keys, row{0b01001}, row{0b00001}, nil, "1 0 110"},
		{"flags 0 and 4 change", keys, row{0b10000}, row{0b00001}, nil, "1 1 10001"},

		{"a text, absolute: length 2 in 4 bits, 7 bits each", name, text("ab"), nil, nil, "0100 0 1000011 0100011"},
		{"no text, absolute", name, text(""), nil, nil, "0000"},
		{"a text beyond ASCII, absolute: 8 bits each", name, text("é"), nil, nil, "0100 1 11000011 10010101"},
		{"a first text: one byte more than none of up to 9", name, text("a"), text(""), nil, "1 0000 0 1000011"},
		{"as long as before: 1 equal of 3, then 1 of 2", name, text("abc"), text("axc"), nil, "1 10 10 0 0 0100011"},
		{"one byte more behind 2 of 2, room for 7", name, text("abc"), text("ab"), nil, "1 01 000 0 1100011"},
		{"one byte less behind 2 of 3, room for 7: 0 of them", name, text("ab"), text("abc"), nil, "1 01 0 1 000"},
		{"none of 2, 3 bytes", name, text("xyz"), text("ab"), nil, "1 00 00 1 1100 0 0001111 1001111 0101111"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRowTest(t, Component{Fields: c.fields})
			want := strings.ReplaceAll(c.want, " ", "")
			require.Equal(t, want, r.bits(c.cur, c.base, c.base2, 1<<16))
			require.Equal(t, len(want), r.check(c.cur, c.base, c.base2, 1<<16))
		})
	}
}

// The sums were taken on amd64; if one changes, the wire format has changed.
func TestRowsAreTheSameOnEveryMachine(t *testing.T) {
	require.Equal(t, "c04455bbd146c8ee", sumOfRows(t, Plain, Linear, Wrap, Quat))
	require.Equal(t, "b60bcf08ee4b6892", sumOfRows(t, Plain, Linear, Wrap, Quat, Counter, Flags, Bytes))
	require.Equal(t, "bbb7a01c10c05666", sumOfRows(t, Plain, Linear, Wrap, Quat, Reference, Counter, Flags, Bytes))
}

// sumOfRows returns a hash of the bits of rows of fields of the given kinds.
func sumOfRows(t *testing.T, kinds ...Kind) string {
	rng := rand.New(rand.NewPCG(3, 4))
	sum := fnv.New64a()
	for range 3000 {
		s := &script{randomBytes(rng, 400)}
		x := newRowTest(t, s.componentOf(kinds...))
		base2 := s.row(x.c, nil)
		base := s.row(x.c, base2)
		for range 3 {
			cur := s.row(x.c, base)
			for _, bits := range []string{
				x.bits(cur, nil, nil, 0), x.bits(cur, base, nil, 0), x.bits(cur, base, base2, int64(s.byte())<<11),
			} {
				_, _ = sum.Write([]byte(bits)) // a hash takes everything
			}
			base2, base = base, cur
		}
	}
	return fmt.Sprintf("%016x", sum.Sum64())
}

// TestNamesOfKnownBits has, before each name, the bit for a pair at the front.
func TestNamesOfKnownBits(t *testing.T) {
	a := Baselines{A1: 0x1203, A2: 0x1200, Two: true}
	b := Baselines{A1: 0x1203}
	c := Baselines{A1: 0x110a}
	d := Baselines{A1: 0x1200, A2: 0x11f0, Two: true}
	w := bitbuf.NewWriter(make([]byte, 64))
	n := NewNames(0x1209)
	for _, step := range []struct {
		b    Baselines
		want string
	}{
		{a, "1 1 011 0"},                        // the list is empty; age 6, order 3; the second on the grid
		{a, "1"},                                // in front
		{b, "0 1 011 10"},                       // the list has one, so this is another one; alone
		{a, "1"},                                // still in front
		{b, "0 0"},                              // the other one of two
		{a, "1"},                                // still in front
		{c, "0 1 00000 11111111 10"},            // a third one; age 255 at full width; at place 2
		{d, "0 1 01 1000 11 11110"},             // age 9 is 1 in class 1; second 1+15 before; before the third
		{c, "0 0 01"},                           // place 1+2 of a b d c
		{b, "0 0 00"},                           // place 1+0 of a b c d: it stays
		{c, "0 0 10"},                           // place 1+1: now before b
		{d, "0 0 01"},                           // place 1+2 of a c b d
		{Baselines{A1: 0x1208}, "0 1 1 100 10"}, // a fifth one, at place 2
		{b, "0 0 11"},                           // place 1+3 of a c e d b
		{Baselines{A1: 0x1207}, "0 1 1 010 10"}, // a sixth one, at place 2
		{d, "0 1 01 1000 11 11110"},             // it was the last one of a c e b d, and left
		{a, "1"},                                // still in front
	} {
		from := w.Len()
		w.WriteBool(n.AtFront(step.b))
		n.Write(&w, step.b)
		require.Equal(t, strings.ReplaceAll(step.want, " ", ""), bitsOf(&w)[from:])
	}
}
