package delta

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCompactRowsOfKnownBytes is the coding by example. All decisions of a new model are
// even, and each of these rows makes each of its decisions for the first time, so the bits
// that come out are the decisions themselves, complemented: a bit that is set takes the lower
// half.
func TestCompactRowsOfKnownBytes(t *testing.T) {
	var (
		x    = []Field{{Kind: Linear, Bits: 8}}
		enum = []Field{{Kind: Plain, Bits: 2}, {Kind: Plain, Bits: 6}}
		ref  = []Field{{Kind: Reference, Bits: ReferenceBits}}
	)
	type row = []uint32
	for _, c := range []struct {
		name   string
		fields []Field
		cur    row
		past   Past
		want   string // first bit first; zeros behind it fill the last byte
	}{
		{"no baseline: another code than before", x, row{5}, Past{}, "1 00000101"},
		{"no baseline: the code as before", x, row{0}, Past{}, ""},
		{"still, equal", x, row{100}, Past{Base: row{100}}, ""},
		{"still, +5: not equal; not 0 then; longer than 1 and 2 bits, not than 3; the second bit, 0; the third, plus", x, row{105}, Past{Base: row{100}}, "1 0 0 1 1 10"},
		{"moving as predicted", x, row{110}, Past{Base: row{100}, Base2: row{90}, Ratio: 1 << 16}, ""},
		{"moving, but stopped", x, row{100}, Past{Base: row{100}, Base2: row{90}, Ratio: 1 << 16}, "1 0"},
		{"moving, +1: not as predicted, not stopped; longer than 0, not than 1; plus", x, row{111}, Past{Base: row{100}, Base2: row{90}, Ratio: 1 << 16}, "1 1 0 1 0"},
		{"the nearer baseline predicts 120 and is trusted at first, so -1", x, row{119}, Past{Base: row{100}, Base2: row{90}, Ratio: 1 << 16, Near: row{90}, NearRatio: 2 << 16}, "1 1 0 1 1"},
		{"110.5 is rounded up, so -1 is on its side", x, row{110}, Past{Base: row{100}, Base2: row{90}, Ratio: 1<<16 + 1<<16/20 + 1}, "1 1 0 1 0"},
		{"the fourth baseline is not trusted at first", x, row{119}, Past{Base: row{100}, Base2: row{90}, Ratio: 1 << 16, Near: row{90}, NearRatio: 2 << 16, Mid: row{70}, MidRatio: 1 << 16}, "1 1 0 1 1"},
		{"counting down by 2, from 20: not equal; steadily", enum[1:], row{18}, Past{Base: row{20}, Base2: row{22}, Ratio: 1 << 16}, "1 0"},
		{"no longer steadily: zigzag 2 less one is longer than 0, not than 1", enum[1:], row{21}, Past{Base: row{20}, Base2: row{22}, Ratio: 1 << 16}, "1 1 0 1"},
		{"the nearer baseline counts faster and is believed", enum[1:], row{16}, Past{Base: row{20}, Base2: row{22}, Ratio: 1 << 16, Near: row{22}, NearRatio: 2 << 16}, "1 0"},
		{"changed, zigzag 2 less one is longer than 0, not than 1; the second not changed", enum, row{2, 9}, Past{Base: row{1, 9}}, "1 0 0 1 1"},
		{"grown by 3: grown; less one has 2 bits, low 0; flags: number 2 alone", []Field{{Kind: Counter, Bits: 8}, {Kind: Flags, Bits: 4}}, row{5, 0b0111}, Past{Base: row{2, 0b0011}}, "1 0 001 0 0 1 10"},
		{"two flags: the row, the bits", []Field{{Kind: Flags, Bits: 4}}, row{0b1100}, Past{Base: row{0}}, "1 0 1100"},
		{"a circle of 10, from 9 to 1: not equal; longer than 1 bit, not than 2; the second bit, 0; plus", []Field{{Kind: Wrap, Bits: 4, Max: 9}}, row{1}, Past{Base: row{9}}, "1 0 1 1 0"},
		{"ab to ac: the row; 1 at the beginning of 2, 0 at the end of 1; as many; not wide; c", []Field{{Kind: Bytes, Max: 3}}, row{2, 'a' | 'c'<<8}, Past{Base: row{2, 'a' | 'b'<<8}}, "1 01 0 1 1 1100011"},
		{"index 6 plus one has 3 bits, low ones 11; counter 1 has 1", ref, row{7, 1}, Past{Base: row{5, 1}}, "1 0001 11 01"},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := newCompactTest(t, Component{Fields: c.fields})
			data := ""
			for _, b := range y.check([]compactRow{{0, true, c.cur, c.past}}) {
				data += fmt.Sprintf("%08b", b)
			}
			require.Equal(t, strings.TrimRight(strings.ReplaceAll(c.want, " ", ""), "0"), strings.TrimRight(data, "0"))
		})
	}
}

// The sum was taken on amd64; if it changes, the wire format has changed.
func TestCompactRowsAreTheSameOnEveryMachine(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	sum := fnv.New64a()
	for range 300 {
		s := &script{randomBytes(rng, 3000)}
		x := newCompactTest(t, s.componentWithReferences(), s.componentWithReferences())
		var last, last2, last3, last4 [2][]uint32
		for i := range 8 {
			var rows []compactRow
			for k := range x.layout.Components {
				row := s.row(&x.layout.Components[k], last[k])
				past := Past{Base: last[k], Base2: last4[k], Ratio: int64(s.byte()) << 11, Near: last2[k], NearRatio: int64(s.byte()) << 11, Mid: last3[k], MidRatio: int64(s.byte()) << 11}
				rows = append(rows, compactRow{k, k == 0, row, past})
			}
			for k := range rows {
				last4[k], last3[k], last2[k], last[k] = last3[k], last2[k], last[k], rows[k].cur
			}
			_, _ = sum.Write(x.check(rows)) // a hash takes everything
			_, _ = sum.Write([]byte{byte(i)})
		}
	}
	require.Equal(t, "4e9e445e82dc4238", fmt.Sprintf("%016x", sum.Sum64()))
}
