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
		x     = []Field{{Kind: Linear, Bits: 8}}
		xy    = []Field{{Kind: Linear, Bits: 10}, {Kind: Linear, Bits: 10}}
		angle = []Field{{Kind: Wrap, Bits: 8}}
		flag  = []Field{{Kind: Plain, Bits: 1}}
		enum  = []Field{{Kind: Plain, Bits: 2}, {Kind: Plain, Bits: 6}}
		quat  = []Field{{Kind: Quat, Bits: 3}}
		ref   = []Field{{Kind: Reference, Bits: ReferenceBits}}
		refs  = []Field{{Kind: Reference, Bits: ReferenceBits}, {Kind: Reference, Bits: ReferenceBits}}
	)
	type row = []uint32
	for _, c := range []struct {
		name             string
		fields           []Field
		cur, base, base2 row
		want             string
	}{
		{"absolute", xy, row{5, 512}, nil, nil, "1010000000 0000000001"},
		{"absolute quaternion: the dropped component, the others", quat, row{2, 1, 4, 7}, nil, nil, "01 100 001 111"},
		{"still, equal", xy, row{5, 6}, row{5, 6}, nil, "0"},

		// The last residual is not zero, as none before it told a difference: one less is sent.
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

		{"a flag that changed says so by being sent", flag, row{0}, row{1}, nil, "1"},
		{"first field +1: same or not, residual 2 less one in order 0; second the same", enum, row{2, 9}, row{1, 9}, nil, "1 1 01 0 0"},
		{"second field +1: its flag is implied, residual 2 less one in order 3", enum, row{1, 10}, row{1, 9}, nil, "1 0 1 100"},

		{"same chart, residuals 2, 0 and 0 in orders 3, 1 and 1", quat, row{2, 4, 4, 4}, row{2, 3, 4, 4}, nil, "1 0 1 010 1 0 1 0"},
		{
			// The baseline's n are -1, 1, sqrt(2*7*7-3) = 9.7, -1. With x positive they are
			// 1, -1, -9.7, 1: the codes 3, 0 (the least there is) and 4.
			"another chart: x dropped instead of z, residuals 0 in orders 3, 0 and 0", quat,
			row{0, 3, 0, 4},
			row{2, 3, 4, 3},
			nil, "1 1 00 1 000 1 1",
		},

		{"absolute references to nothing, and to index 6, counter 1", refs, row{0, 0, 7, 1}, nil, nil, "0 1 1 0110000 1 100"},
		{"index 130 is 2 in class 1, counter 9 is 1 in class 1", ref, row{131, 9}, nil, nil, "1 01 0100000000 01 1000"},
		{"index 600000 and counter 5 at full width", ref, row{600001, 5}, nil, nil, "1 00000 " + number(600000, 30) + number(5, 16)},
		{"a reference that changed says so by being sent: to nothing", ref, row{0, 0}, row{7, 1}, nil, "1 0"},
		{"from nothing to something needs no bit that it is something", ref, row{7, 1}, row{0, 0}, nil, "1 1 0110000 1 100"},
		{"from one to another", ref, row{7, 1}, row{5, 1}, nil, "1 1 1 0110000 1 100"},
		{"the first the same, the second to the next incarnation", refs, row{0, 0, 7, 2}, row{0, 0, 7, 1}, nil, "1 0 1 1 0110000 1 010"},
		{"the first to nothing, the second the same", refs, row{0, 0, 7, 1}, row{3, 1, 7, 1}, nil, "1 1 0 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRowTest(t, Component{Fields: c.fields})
			want := strings.ReplaceAll(c.want, " ", "")
			require.Equal(t, want, r.bits(c.cur, c.base, c.base2, 1<<16))
			require.Equal(t, len(want), r.check(c.cur, c.base, c.base2, 1<<16))
		})
	}
}

// The sum was taken on amd64; if it changes, the wire format has changed.
func TestRowsAreTheSameOnEveryMachine(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	sum := fnv.New64a()
	for range 3000 {
		s := &script{randomBytes(rng, 400)}
		x := newRowTest(t, s.component())
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
	require.Equal(t, "6a278321d9f83b15", fmt.Sprintf("%016x", sum.Sum64()))
}

func TestNamesOfKnownBits(t *testing.T) {
	a := Baselines{A1: 0x1203, A2: 0x11ff, Two: true}
	b := Baselines{A1: 0x1203}
	c := Baselines{A1: 0x0080, Old: true}
	w := bitbuf.NewWriter(make([]byte, 64))
	var n Names
	for _, step := range []struct {
		b    Baselines
		want string
	}{
		{a, "11 11000000 1 11000"}, // low bits 3, second 1+3 before
		{a, "0"},                   // as before
		{b, "11 11000000 0 0"},
		{a, "10 00"},
		{c, "11 00000001 0 1"},
		{b, "10 10"}, // place 1 of those before the entity before: a, b
	} {
		from := w.Len()
		n.Write(&w, step.b)
		require.Equal(t, strings.ReplaceAll(step.want, " ", ""), bitsOf(&w)[from:])
	}
}

func TestSetsOfKnownBits(t *testing.T) {
	set := func(components ...int) (s Set) {
		for _, c := range components {
			s.Add(c)
		}
		return s
	}
	for _, c := range []struct {
		s, ref Set
		want   string
	}{
		{set(), set(), "1"},                     // no difference
		{set(0), set(), "010 1"},                // one, at 0
		{set(), set(2), "010 011"},              // one, at 0+2
		{set(1, 2), set(2, 5), "011 010 00100"}, // two, at 1 and 2+3
	} {
		w := bitbuf.NewWriter(make([]byte, 64))
		WriteSet(&w, &c.s, &c.ref)
		require.Equal(t, strings.ReplaceAll(c.want, " ", ""), bitsOf(&w))
	}
}
