package delta

import (
	"math"
	"math/bits"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// naiveResidual is the code as text, found by walking through the classes.
func naiveResidual(v uint64, k, width uint) string {
	k = min(k, width)
	limit := prefixLimit(k, width)
	first := uint64(0) // of the class; class q has 2^(k+q) values
	for q := uint(0); q < limit; q++ {
		if v-first < 1<<(k+q) {
			return strings.Repeat("0", int(q)) + "1" + number(v-first, k+q)
		}
		first += 1 << (k + q)
	}
	return strings.Repeat("0", int(limit)) + number(v, width)
}

func checkResidual(t *testing.T, v uint64, k, width uint) {
	t.Helper()
	var buf [16]byte
	w := bitbuf.NewWriter(buf[:])
	var words [2]uint64
	bitString{}.residual(words[:], v, k, width).write(&w, words[:])
	if got, want := bitsOf(&w), naiveResidual(v, k, width); got != want {
		t.Fatalf("%d of %d bits, order %d: %s, want %s", v, width, k, got, want)
	}
	if width <= maxStepBits {
		code, n := shortResidual(uint32(v), min(k, width), width)
		if got, want := number(code, n), naiveResidual(v, k, width); got != want || code>>n != 0 {
			t.Fatalf("%d of %d bits, order %d: %s in a word, want %s", v, width, k, got, want)
		}
		if int(n) < bits.Len64(v) { // predictedSteps relies on it
			t.Fatalf("%d of %d bits, order %d, takes %d bits", v, width, k, n)
		}
	}
	// The bound that the limit on a row's bits comes from.
	if most := int(width + min(width, maxPrefix)); w.Len() > most {
		t.Fatalf("%d of %d bits, order %d: %d bits, the most is %d", v, width, k, w.Len(), most)
	}
	r := bitbuf.NewReader(w.Bytes())
	if got := readResidual(&r, k, width); got != v || r.Finish() != nil || r.Pos() != w.Len() {
		t.Fatalf("%d of %d bits, order %d, came back as %d after %d of %d bits (%v)", v, width, k, got, r.Pos(), w.Len(), r.Finish())
	}
}

func TestResidualsOfSmallWidths(t *testing.T) {
	for width := range uint(10) {
		for k := range width + 3 {
			for v := range uint64(1) << width {
				checkResidual(t, v, k, width)
			}
		}
	}
}

func TestResidualsOfEveryWidthAndOrder(t *testing.T) {
	rng := randomOf(t)
	for width := range uint(65) {
		for k := range uint(66) {
			for q := range uint(maxPrefix + 2) { // the neighbours of each class border
				border := uint64(1)<<(min(k, width)+q) - 1<<min(k, width)
				for d := range uint64(3) {
					checkResidual(t, (border+d-1)&lowBits(width), k, width)
				}
			}
			checkResidual(t, lowBits(width), k, width)
			checkResidual(t, rng.Uint64()&lowBits(width)>>rng.IntN(64), k, width)
		}
	}
}

func TestResidualsOfAnyBitsAreInRange(t *testing.T) {
	rng := randomOf(t)
	for range 20_000 {
		width, k := uint(rng.IntN(65)), uint(rng.IntN(66))
		r := bitbuf.NewReader(randomBytes(rng, rng.IntN(16)))
		require.LessOrEqual(t, readResidual(&r, k, width), lowBits(width))
	}
}

func TestZigzag(t *testing.T) {
	for v, want := range map[int64]uint64{
		0: 0, -1: 1, 1: 2, -2: 3, 2: 4,
		math.MaxInt64: math.MaxUint64 - 1, math.MinInt64: math.MaxUint64,
	} {
		require.Equal(t, want, zigzag(v))
		require.Equal(t, v, unzigzag(want))
	}
	for n := uint(1); n <= 64; n++ { // numbers of n bits have codes of n bits
		lowest := signed(1<<(n-1), n)
		require.Equal(t, int64(-1)<<(n-1), lowest)
		require.Equal(t, lowBits(n), zigzag(lowest))
		require.Equal(t, lowBits(n)-1, zigzag(signed(lowBits(n-1), n)))
		require.Equal(t, int64(-1), signed(math.MaxUint64, n))
	}
}

// TestAResidualHasRoom: the longest code of a residual, whatever it is of, takes no more than twice the width. Rows have room for that.
func TestAResidualHasRoom(t *testing.T) {
	for width := uint(1); width <= maxStepBits; width++ {
		for k := range width + 1 {
			if _, n := shortResidual(^uint32(0), k, width); n != prefixLimit(k, width)+width || n > 2*width {
				t.Fatalf("%d bits of width %d, order %d", n, width, k)
			}
		}
	}
}

// TestReplacedOrders: the field's orders stand for the usual ones, and those behind their end stay.
func TestReplacedOrders(t *testing.T) {
	at := func(orders ...uint8) *rowTest {
		return newRowTest(t, Component{Fields: []Field{{Kind: Linear, Bits: 12, Orders: orders}, {Kind: Linear, Bits: 12}}})
	}
	cur, base, base2 := []uint32{111, 100}, []uint32{100, 100}, []uint32{90, 100} // residuals of 2 and 0; orders 2 and 0
	for _, c := range []struct {
		orders []uint8
		want   string
	}{
		{nil, "0 1 01 1"},
		{[]uint8{}, "0 1 01 1"},
		{[]uint8{7, 7}, "0 1 01 1"},
		{[]uint8{7, 7, 0}, "0 01 1 1"},
		{[]uint8{7, 7, 4, 9}, "0 1 0100 1"},
	} {
		want := strings.ReplaceAll(c.want, " ", "")
		require.Equal(t, want, at(c.orders...).bits(cur, base, base2, 1<<16), "%v", c.orders)
	}
	for message, f := range map[string]Field{
		"c.f has replaced orders: only Linear, Wrap and Quat fields have residuals": {Name: "f", Bits: 3, Orders: []uint8{1}},
		"c.f has the orders [16]: use up to 16, each below that":                    {Name: "f", Kind: Wrap, Bits: 3, Orders: []uint8{16}},
	} {
		require.PanicsWithValue(t, "delta: "+message, func() { NewLayout(Component{Name: "c", Fields: []Field{f}}) })
	}
}
