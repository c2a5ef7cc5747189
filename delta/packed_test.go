package delta

import (
	"math/bits"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// mostBits returns the most that a field's residual takes: a jump costs its full width
// and the longest prefix, and the bits that mark the field or chart as changed.
func mostBits(f *Field) int {
	residual := func(width, k uint) int { return int(width + min(width-min(k, width), maxPrefix)) }
	switch {
	case f.Bits == 0:
		return 0
	case f.Kind == Reference:
		return 1 + ReferenceBits
	case f.Kind == Quat:
		return 3 + 3*residual(f.Bits+1, 0)
	case f.Kind == Bytes:
		return 1 + 2*int(f.Bits) + 1 + int(f.Bits) + 1 + 8*int(f.Max)
	case (f.Kind == Plain || f.Kind == Counter || f.Kind == Flags) && f.Bits == 1:
		return 1
	case f.Kind == Plain:
		return 1 + residual(f.Bits, plainOrder(f.Bits))
	case f.Kind == Counter:
		return 1 + residual(f.Bits, 0)
	case f.Kind == Flags:
		return 1 + 1 + int(f.Bits)
	}
	return residual(f.Bits, 0)
}

// A rowTest encodes and decodes rows of one component.
type rowTest struct {
	t      testing.TB
	c      *Component
	packed *Packed // of both ends: it holds no state
	buf    []byte
}

func newRowTest(t testing.TB, c Component) *rowTest {
	l := NewLayout(Component{Fields: make([]Field, 3)}, c) // not the first one of its layout
	return &rowTest{t, &l.Components[1], NewPacked(l), make([]byte, 1024)}
}

// bits returns the bits of a row as text.
func (x *rowTest) bits(cur, base, base2 []uint32, ratio int64) string {
	w := bitbuf.NewWriter(x.buf)
	x.packed.EncodeRow(&w, 1, cur, base, base2, ratio)
	return bitsOf(&w)
}

// check encodes a row behind some bits, checks the bounds on its length, decodes it, and
// returns the length.
func (x *rowTest) check(cur, base, base2 []uint32, ratio int64) int {
	x.t.Helper()
	fail := func(what string, args ...any) {
		x.t.Helper()
		x.t.Errorf("row %v against %v and %v, ratio %d, of %+v", cur, base, base2, ratio, x.c.Fields)
		x.t.Fatalf(what, args...)
	}
	cur0, base0, base20 := slices.Clone(cur), slices.Clone(base), slices.Clone(base2)
	x.packed.Costs = x.packed.Costs[:0]
	w := bitbuf.NewWriter(x.buf)
	skip := uint(len(cur) % 8)
	w.WriteBits(0, skip)
	x.packed.EncodeRow(&w, 1, cur, base, base2, ratio)
	n := w.Len() - int(skip)
	if w.Err() != nil {
		fail("does not fit")
	}
	booked := 0
	for _, cost := range x.packed.Costs {
		booked += int(cost.Bits)
	}
	if booked != n {
		fail("%d bits are booked for %d", booked, n)
	}

	most := 3
	for i := range x.c.Fields {
		most += mostBits(&x.c.Fields[i])
	}
	switch {
	case n > most || most > 3+3*x.c.Width():
		fail("%d bits, the most is %d or %d", n, most, 3+3*x.c.Width())
	case base == nil && (n < x.c.MinWidth() || n > x.c.Width()):
		fail("%d bits without a baseline, want %d to %d", n, x.c.MinWidth(), x.c.Width())
	}

	// A decoder that sees these bits and no other, and a dirty row.
	r := bitbuf.NewReader(w.Bytes())
	r.ReadBits(skip)
	dst := slices.Repeat([]uint32{0xdeadbeef}, len(cur))
	x.packed.DecodeRow(&r, 1, dst, base, base2, ratio)
	switch {
	case r.Finish() != nil || r.Pos() != w.Len():
		fail("read %d of %d bits: %v", r.Pos(), w.Len(), r.Finish())
	case !slices.Equal(dst, cur0):
		fail("came back as %v", dst)
	case !slices.Equal(cur, cur0) || !slices.Equal(base, base0) || !slices.Equal(base2, base20):
		fail("an argument was changed to %v, %v, %v", cur, base, base2)
	}
	return n
}

// checkRows lets a script choose a layout and rows, and checks them against all
// combinations of baselines.
func checkRows(t testing.TB, s *script) {
	checkRowsOf(t, s, s.componentWithReferences())
}

// checkRowsOf is checkRows for a component.
func checkRowsOf(t testing.TB, s *script, c Component) {
	x := newRowTest(t, c)
	base2 := s.row(x.c, nil)
	base := s.row(x.c, base2)
	for range 1 + s.below(4) {
		cur := s.row(x.c, base)
		ratio := int64(s.number() % (MaxExtrapolation<<16 + 1))
		if s.below(2) == 0 && base2 != nil && x.packed.predict(x.c, base, base2, ratio) {
			cur = s.row(x.c, slices.Clone(x.packed.row))
		}
		x.check(cur, nil, nil, 0)
		x.check(base, base, nil, 0)
		x.check(base, base, base2, ratio)
		plain := x.check(cur, base, nil, 0)
		moving := x.check(cur, base, base2, ratio)
		// 110 instead of 0, or 111 instead of 1, is the most that a prediction costs.
		if moving > plain+2 {
			t.Fatalf("%d bits with a second baseline, %d without: row %v against %v and %v, ratio %d, of %+v",
				moving, plain, cur, base, base2, ratio, x.c.Fields)
		}
		if rest := x.check(cur, base, base2, 0); rest != plain {
			t.Fatalf("%d bits against a second baseline that predicts rest, %d without", rest, plain)
		}
		if x.packed.predict(x.c, base, base2, ratio) {
			predicted := slices.Clone(x.packed.row)
			if !x.c.Valid(predicted) {
				t.Fatalf("%v is predicted from %v and %v, ratio %d, of %+v", predicted, base, base2, ratio, x.c.Fields)
			}
			require.Equal(t, 2, x.check(predicted, base, base2, ratio))
			require.Equal(t, 3, x.check(base, base, base2, ratio))
		}
		base2, base = base, cur
	}
}

func TestRowsOfRandomLayoutsRoundTrip(t *testing.T) {
	rng := randomOf(t)
	for range roundsOf(10_000, 4000) {
		checkRows(t, &script{randomBytes(rng, 300)})
	}
}

func TestRowsOfWheelsRoundTrip(t *testing.T) {
	rng := randomOf(t)
	for range roundsOf(4000, 2000) {
		s := &script{randomBytes(rng, 300)}
		checkRowsOf(t, s, s.componentOfWheels())
	}
}

func TestRowsOfEveryWidthRoundTrip(t *testing.T) {
	rng := randomOf(t)
	for kind := Plain; kind < Bytes; kind++ {
		for bits := range uint(65) {
			if kind == Quat && (bits < 2 || bits > maxQuatBits) || kind == Reference && bits != ReferenceBits {
				continue
			}
			x := newRowTest(t, Component{Fields: []Field{{Kind: kind, Bits: bits}}})
			low, high := make([]uint32, x.c.Words()), make([]uint32, x.c.Words())
			if f := &x.c.Fields[0]; kind == Quat {
				copy(high, []uint32{3, uint32(lowBits(bits)), uint32(lowBits(bits)), uint32(lowBits(bits))})
			} else if kind == Reference {
				copy(high, []uint32{maxReferences, 1<<16 - 1})
			} else {
				f.setCode(high, f.Max)
			}
			s := &script{randomBytes(rng, 1000)}
			middle := s.row(x.c, nil)
			rows := [][]uint32{low, high, middle, s.row(x.c, middle)}
			for _, cur := range rows {
				for _, base := range rows {
					for _, base2 := range rows {
						x.check(cur, base, base2, 1<<16)
						x.check(cur, base, base2, MaxExtrapolation<<16)
					}
				}
			}
		}
	}
}

// A jump must not cost more than an absolute value and a prefix, and warns of the next.
func TestAJumpCostsItsWidthAndAPrefix(t *testing.T) {
	x := newRowTest(t, Component{Fields: []Field{{Kind: Linear, Bits: 18}, {Kind: Linear, Bits: 18}, {Kind: Linear, Bits: 18}}})
	still, jump := []uint32{5, 6, 7}, []uint32{5 + 1<<17, 6 + 1<<17, 7 + 1<<17}
	const plain = 1 + (18 + maxPrefix) + 2*(18+1)
	require.Equal(t, plain, x.check(jump, still, nil, 0))
	require.Equal(t, plain+2, x.check(jump, still, []uint32{4, 6, 7}, 1<<16))
}

// A field with one possible value takes no bits, whatever the fields around it do.
func TestFieldsOfNoBitsCostNothing(t *testing.T) {
	some := []Field{{Kind: Plain, Bits: 4}, {Kind: Linear, Bits: 9}, {Kind: Plain, Bits: 1}, {Kind: Wrap, Bits: 8}}
	var mixed []Field
	for i, f := range some {
		mixed = append(mixed, Field{Kind: Kind(i % 3)}, f, Field{Kind: Plain})
	}
	x, y := newRowTest(t, Component{Fields: some}), newRowTest(t, Component{Fields: mixed})
	spread := func(row []uint32) []uint32 {
		if row == nil {
			return nil
		}
		return []uint32{0, row[0], 0, 0, row[1], 0, 0, row[2], 0, 0, row[3], 0}
	}
	rng := randomOf(t)
	for range 300 {
		s := &script{randomBytes(rng, 100)}
		base2 := s.row(x.c, nil)
		base := s.row(x.c, base2)
		cur := s.row(x.c, base)
		for _, rows := range [][3][]uint32{{cur, nil, nil}, {cur, base, nil}, {base, base, nil}, {cur, base, base2}} {
			require.Equal(t, x.bits(rows[0], rows[1], rows[2], 1<<16),
				y.bits(spread(rows[0]), spread(rows[1]), spread(rows[2]), 1<<16))
			y.check(spread(rows[0]), spread(rows[1]), spread(rows[2]), 1<<16)
		}
	}
	y = newRowTest(t, Component{Fields: make([]Field, 3)})
	nothing := make([]uint32, 3)
	require.Zero(t, y.check(nothing, nothing, nil, 0))
	require.Zero(t, y.check(nothing, nothing, nothing, 1<<16))
}

// What moves stops at the largest code, what goes round goes round.
func TestPredictionsStayWithinTheLargestCode(t *testing.T) {
	x := newRowTest(t, Component{Fields: []Field{{Kind: Wrap, Bits: 4, Max: 9}, {Kind: Linear, Bits: 4, Max: 9}}})
	require.True(t, x.packed.predict(x.c, []uint32{8, 8}, []uint32{5, 5}, 1<<16))
	require.Equal(t, []uint32{1, 9}, x.packed.row)
	require.Equal(t, 2, x.check([]uint32{1, 9}, []uint32{8, 8}, []uint32{5, 5}, 1<<16))
	require.True(t, x.packed.predict(x.c, []uint32{1, 1}, []uint32{4, 4}, 1<<16))
	require.Equal(t, []uint32{8, 0}, x.packed.row)
}

// Circles of any number of codes, from all of them to all of them.
func TestCirclesOfEverySize(t *testing.T) {
	rng := randomOf(t)
	for size := uint64(2); size <= 17; size++ {
		f := Field{Kind: Wrap, Bits: uint(bits.Len64(size - 1)), Max: size - 1}
		x := newRowTest(t, Component{Fields: []Field{f}})
		for cur := range uint32(size) {
			for base := range uint32(size) {
				x.check([]uint32{cur}, []uint32{base}, nil, 0)
				for base2 := range uint32(size) {
					x.check([]uint32{cur}, []uint32{base}, []uint32{base2}, 1<<16)
				}
			}
		}
	}
	for range 3000 {
		width := 1 + rng.UintN(64)
		x := newRowTest(t, Component{Fields: []Field{{Kind: Wrap, Bits: width, Max: lowBits(width) - min(lowBits(width)-1, rng.Uint64()>>rng.UintN(64))}}})
		f := &x.c.Fields[0]
		row := func() []uint32 {
			r := make([]uint32, f.Words())
			code := rng.Uint64() >> rng.UintN(64)
			if rng.IntN(2) == 0 {
				code = f.Max - min(code, f.Max)
			}
			if f.Max < 1<<64-1 {
				code %= f.Max + 1
			}
			f.setCode(r, code)
			return r
		}
		base := row()
		x.check(row(), base, row(), int64(rng.IntN(MaxExtrapolation<<16)))
		x.check(row(), base, nil, 0)
	}
}

// What a field's distance times the ratio can be fits into 63 bits, and is used so.
func TestWideFieldsAreExtrapolatedExactlyOrNotAtAll(t *testing.T) {
	for _, kind := range []Kind{Linear, Wrap} {
		for bits := uint(33); bits <= 64; bits++ {
			x := newRowTest(t, Component{Fields: []Field{{Kind: kind, Bits: bits}}})
			f := &x.c.Fields[0]
			row := func(code uint64) []uint32 {
				r := make([]uint32, 2)
				f.setCode(r, code)
				return r
			}
			d := lowBits(bits) / 16
			base2, base := row(3*d), row(4*d)
			require.Equal(t, bits <= maxMovingBits, x.packed.predict(x.c, base, base2, 8<<16), "%v of %d bits", kind, bits)
			if bits <= maxMovingBits {
				require.Equal(t, 12*d, f.code(x.packed.row))
			}
			if bits == maxMovingBits && kind == Linear { // as far as it can go
				require.True(t, x.packed.predict(x.c, row(lowBits(bits)-1), row(0), 8<<16))
				require.Equal(t, lowBits(bits), f.code(x.packed.row))
				require.True(t, x.packed.predict(x.c, row(1), row(lowBits(bits)), 8<<16))
				require.Zero(t, f.code(x.packed.row))
			}
		}
	}
}

// At the end of a buffer a row is written as anywhere else, or not at all.
func TestARowThatDoesNotFitOverflows(t *testing.T) {
	rng := randomOf(t)
	for range 300 {
		s := &script{randomBytes(rng, 300)}
		x := newRowTest(t, s.componentWithReferences())
		base2 := s.row(x.c, nil)
		base := s.row(x.c, base2)
		cur := s.row(x.c, base)
		want := x.bits(cur, base, base2, 1<<16)
		for room := range len(want)/8 + 2 {
			w := bitbuf.NewWriter(make([]byte, room))
			x.packed.EncodeRow(&w, 1, cur, base, base2, 1<<16)
			if len(want) > room*8 {
				require.Equal(t, bitbuf.ErrOverflow, w.Err())
			} else if len(want) > 0 {
				require.NoError(t, w.Err())
				require.Equal(t, want, bitsOf(&w))
			}
		}
		packed := packedBits(want)
		if n := len(packed) - 1; n >= 0 {
			r := bitbuf.NewReader(packed[:n])
			x.packed.DecodeRow(&r, 1, make([]uint32, x.c.Words()), base, base2, 1<<16)
			if r.Err() == nil { // only if the bits that are missing are zeros that need not be there
				t.Fatalf("%s without its last byte is no error", want)
			}
		}
	}
}

func TestCostsAreTheBitsOfEachField(t *testing.T) {
	l := NewLayout(
		Component{Fields: []Field{{Kind: Plain, Bits: 3}}},
		Component{Fields: []Field{{Kind: Linear, Bits: 10}, {Kind: Plain, Bits: 1}}},
	)
	const a, x, b, symbol = 0, 1, 2, 4 // fields of the layout, symbols of the second component
	p := NewPacked(l)
	for _, c := range []struct {
		component        int
		cur, base, base2 []uint32
		want             []Cost
	}{
		{0, []uint32{5}, nil, nil, []Cost{{a, 3}}},
		{1, []uint32{5, 1}, nil, nil, []Cost{{x, 10}, {b, 1}}},
		{1, []uint32{100, 1}, []uint32{100, 1}, nil, []Cost{{symbol, 1}}},                             // 0
		{1, []uint32{101, 1}, []uint32{100, 1}, nil, []Cost{{x, 4}, {b, 1}, {symbol, 1}}},             // 1 1010 0
		{1, []uint32{110, 1}, []uint32{100, 1}, []uint32{90, 1}, []Cost{{symbol, 2}}},                 // 10
		{1, []uint32{100, 1}, []uint32{100, 1}, []uint32{90, 1}, []Cost{{symbol, 3}}},                 // 110
		{1, []uint32{101, 1}, []uint32{100, 1}, []uint32{90, 1}, []Cost{{x, 4}, {b, 1}, {symbol, 3}}}, // 111 1010 0
		{1, []uint32{111, 1}, []uint32{100, 1}, []uint32{90, 1}, []Cost{{x, 3}, {b, 1}, {symbol, 1}}}, // 0 101 0
	} {
		p.Costs = p.Costs[:0]
		w := bitbuf.NewWriter(make([]byte, 64))
		p.EncodeRow(&w, c.component, c.cur, c.base, c.base2, 1<<16)
		require.Equal(t, c.want, p.Costs, bitsOf(&w))
	}
}

// Codes that no encoder sends are errors, not rows.
func TestCodesOutsideTheirRangeAreRefused(t *testing.T) {
	hp := newRowTest(t, Component{Fields: []Field{{Kind: Linear, Bits: 7, Max: 100}}})
	quat := newRowTest(t, Component{Fields: []Field{{Kind: Quat, Bits: 3}}})
	month := newRowTest(t, Component{Fields: []Field{{Kind: Wrap, Bits: 4, Max: 11}}})
	flags := newRowTest(t, Component{Fields: []Field{{Kind: Flags, Bits: 5}}})
	count := newRowTest(t, Component{Fields: []Field{{Kind: Counter, Bits: 4, Max: 9}}})
	text := newRowTest(t, Component{Fields: []Field{{Kind: Bytes, Max: 4}}})
	cd := newRowTest(t, Component{Fields: []Field{{Kind: Bytes, Max: 9}}})
	abc, full := []uint32{3, 0x636261}, []uint32{4, 0x64636261}
	for _, c := range []struct {
		name string
		x    *rowTest
		base []uint32
		bits string
	}{
		{"101 of 100, absolute", hp, nil, "1010011"},
		{"101 of 100, one more than the baseline", hp, []uint32{100}, "1 1 100"},
		{"-1", hp, []uint32{0}, "1 1 000"},
		{"the chart of the baseline as another", quat, []uint32{2, 4, 4, 4}, "1 1 01 1000 1000 1000"},
		{"8 of 7 in a quaternion", quat, []uint32{2, 7, 4, 4}, "1 0 1 010 1 000 1 000"},
		{"-1 in a quaternion", quat, []uint32{2, 0, 4, 4}, "1 0 1 100 1 000 1 000"},
		{"12 of 11, absolute", month, nil, "0011"},
		{"more than once round", month, []uint32{3}, "1 0 1101"}, // residual 11 less one, and one
		{"flag 5 of 0 to 4", flags, []uint32{3}, "1 0 101"},
		{"10 of 9", count, []uint32{9}, "1 1"},
		{"5 bytes of 4, absolute", text, nil, "101 0 1000011 1000011 1000011 1000011 1000011"},
		{"an end that is longer than the rest", text, abc, "1 10 11"},
		{"a beginning that is longer than all", cd, []uint32{4, 0x64636261, 0, 0}, "1 101 00"},
		{"equal to the end, and no room for more", text, full, "1 001"},
		{"5 bytes of 4 against some", text, abc, "1 00 00 1 101 0 1000011 1000011 1000011 1000011 1000011"},
	} {
		r := bitbuf.NewReader(packedBits(c.bits))
		c.x.packed.DecodeRow(&r, 1, make([]uint32, c.x.c.Words()), c.base, nil, 0)
		require.Equal(t, ErrCode, r.Err(), c.name)
	}
}
