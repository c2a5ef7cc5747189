package delta

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

func addScripts(f *testing.F) {
	rng := randomOf(f)
	f.Add([]byte{})
	for n := 8; n <= 512; n *= 2 {
		f.Add(randomBytes(rng, n))
	}
}

// decodeRandomBytes has a check decode short random bytes, with layouts and baselines of
// random choices.
func decodeRandomBytes(t *testing.T, rounds int, check func(t testing.TB, data []byte, s *script)) {
	rng := randomOf(t)
	for range rounds {
		check(t, randomBytes(rng, rng.IntN(60)), &script{randomBytes(rng, 200)})
	}
}

// fuzzDecode is decodeRandomBytes with bytes and choices of the fuzzer.
func fuzzDecode(f *testing.F, check func(t testing.TB, data []byte, s *script)) {
	rng := randomOf(f)
	for n := range 32 {
		f.Add(randomBytes(rng, n), randomBytes(rng, 8*n))
	}
	f.Fuzz(func(t *testing.T, data, choices []byte) {
		check(t, data, &script{choices})
	})
}

// checkDecode decodes any bits as a row of any layout. What comes out is a valid row or an
// error; a row can be written and read again.
func checkDecode(t testing.TB, data []byte, s *script) {
	c := s.componentWithReferences()
	s.replaceOrders(&c)
	x := newRowTest(t, c)
	x.packed.SetShift(Shift(len(data)) % shifts)
	base2 := s.row(x.c, nil)
	base := s.row(x.c, base2)
	ratio := int64(s.number() % (MaxExtrapolation<<16 + 1))
	for i, bases := range [][2][]uint32{{nil, nil}, {base, nil}, {base, base2}, {base, nil}, {base, base2}, {base, nil}, {base, base2}} {
		x.checkDecoders(data, bases[0], bases[1], ratio)
		r := bitbuf.NewReader(data)
		dst := slices.Repeat([]uint32{0xdeadbeef}, x.c.Words())
		if i > 2 {
			symbols := Symbols{omitted: true, odd: int32(i / 5)} // from 5 on, it is not this row
			if !x.packed.DecodeChange(&r, 1, &symbols, dst, bases[0], bases[1], ratio) {
				copy(dst, bases[0])
			}
		} else {
			x.packed.DecodeRow(&r, 1, dst, bases[0], bases[1], ratio)
		}
		if r.Err() != nil {
			continue
		}
		if !x.c.Valid(dst) {
			t.Fatalf("%x gave the row %v of %+v", data, dst, x.c.Fields)
		}
		x.check(dst, bases[0], bases[1], ratio)
	}
}

// checkDecoders decodes any bits in the way of the component and in that of fields of all kinds.
func (x *rowTest) checkDecoders(data []byte, base, base2 []uint32, ratio int64) {
	if base == nil {
		return
	}
	for _, symbols := range []Symbols{{}, {omitted: true, odd: 1}, {omitted: true}} {
		r, slow, form := bitbuf.NewReader(data), bitbuf.NewReader(data), symbols
		dst := slices.Repeat([]uint32{0xdeadbeef}, x.c.Words())
		want := slices.Clone(dst)
		changed := x.packed.DecodeChange(&r, 1, &symbols, dst, base, base2, ratio)
		if x.c.width == 0 {
			require.False(x.t, changed)
			continue
		}
		wantChanged := x.packed.decodeFields(&slow, x.c, form.next(x.c), want, base, base2, ratio)
		require.Equal(x.t, slow.Err(), r.Err())
		if r.Err() == nil {
			require.Equal(x.t, wantChanged, changed)
			require.Equal(x.t, want, dst, "%x of %+v", data, x.c.Fields)
			require.Equal(x.t, slow.Pos(), r.Pos())
		}
	}
}

// TestDecodersOfStepsReadWhatThoseOfFieldsRead: random layouts seldom consist of steps alone.
func TestDecodersOfStepsReadWhatThoseOfFieldsRead(t *testing.T) {
	for _, fields := range [][]Field{
		{{Kind: Linear, Bits: 18}, {Kind: Linear, Bits: 18}, {Kind: Linear, Bits: 18}},
		{{Kind: Linear, Bits: 7, Max: 100}, {Kind: Wrap, Bits: 9}},
		{{Kind: Linear, Bits: 1}},
		{{Kind: Wrap, Bits: 31}, {Kind: Linear, Bits: 31, Max: 1 << 30}},
		{{Kind: Wrap, Bits: 8}, {Kind: Wrap, Bits: 8}, {Kind: Wrap, Bits: 8}},
		{{Kind: Wrap, Bits: 31}, {Kind: Wrap, Bits: 31}},
		{{Kind: Quat, Bits: 2}},
		{{Kind: Quat, Bits: 9}},
		{{Kind: Quat, Bits: maxQuatBits}},
	} {
		x := newRowTest(t, Component{Fields: fields})
		require.NotNil(t, x.packed.steps[1])
		decodeRandomBytes(t, 3000, func(_ testing.TB, data []byte, s *script) {
			base2 := s.row(x.c, nil)
			base := s.row(x.c, base2)
			ratio := int64(s.number() % (MaxExtrapolation<<16 + 1))
			x.checkDecoders(data, base, nil, ratio)
			x.checkDecoders(data, base, base2, ratio)
			x.checkDecoders(data, base, base, ratio)
			x.checkDecoders(data, base, base2, 0)
		})
	}
}

func TestRowsOfAnyBits(t *testing.T) {
	decodeRandomBytes(t, 10_000, checkDecode)
}

// FuzzDecodeRow reads any bits as rows, with any layout and baselines.
func FuzzDecodeRow(f *testing.F) {
	fuzzDecode(f, checkDecode)
}

// FuzzRows writes rows of any layout against any baselines and reads them back.
func FuzzRows(f *testing.F) {
	addScripts(f)
	f.Fuzz(func(t *testing.T, choices []byte) {
		checkRows(t, &script{choices})
	})
}

// FuzzRead reads any bits as names.
func FuzzRead(f *testing.F) {
	addScripts(f)
	f.Fuzz(func(t *testing.T, data []byte) { readNames(t, data) })
}
