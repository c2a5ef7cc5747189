package delta

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// naiveNames lists the pairs used so far, the latest first, and writes text.
type naiveNames []Baselines

func (n *naiveNames) write(b Baselines) (s string) {
	i := slices.Index(*n, b)
	switch {
	case i < 0 || i >= 5:
		s = "11" + number(uint64(b.A1), 8)
		switch {
		case b.Two:
			s += "1" + number(uint64(b.A1-b.A2-1), 5)
		case b.Old:
			s += "01"
		default:
			s += "00"
		}
	case i == 0:
		s = "0"
	default:
		s = "10" + number(uint64(i-1), 2)
	}
	if i >= 0 {
		*n = slices.Delete(*n, i, i+1)
	}
	*n = slices.Insert(*n, 0, b)
	return s
}

func randomBaselines(rng *rand.Rand) (b Baselines) {
	b.A1 = Tick(rng.Uint32N(8)) - 4 // about where ticks wrap
	switch rng.IntN(6) {
	case 0:
		b.A1 -= 1 << NameBits
		b.Old = true
	case 1, 2:
	default:
		b.Two, b.A2 = true, b.A1-1-Tick(rng.Uint32N(3))*15
	}
	return b
}

func TestNamesMatchTheNaiveList(t *testing.T) {
	rng := randomOf(t)
	for range 300 {
		var pool []Baselines
		for range 1 + rng.IntN(9) {
			pool = append(pool, randomBaselines(rng))
		}
		w := bitbuf.NewWriter(make([]byte, 400))
		var names Names
		var naive naiveNames
		var written []Baselines
		want := ""
		for range 150 {
			b := pool[rng.IntN(1+rng.IntN(len(pool)))]
			written = append(written, b)
			want += naive.write(b)
			if !b.Two {
				b.A2 = Tick(rng.Uint32()) // means nothing
			}
			names.Write(&w, b)
		}
		require.NoError(t, w.Err())
		require.Equal(t, want, bitsOf(&w))

		r := bitbuf.NewReader(w.Bytes())
		var back Names
		for i, b := range written {
			name := back.Read(&r)
			got := name.Baselines
			if !name.Known {
				require.Equal(t, uint32(b.A1)&(1<<NameBits-1), name.Low)
				require.Equal(t, b.Old, name.Old)
				got = back.Resolve(name, b.A1)
			}
			require.Equal(t, b, got, "name %d", i)
		}
		require.NoError(t, r.Finish())
		require.Equal(t, w.Len(), r.Pos())
	}
}

// readNames reads names from any bits until they end, and returns how many there were.
func readNames(t testing.TB, data []byte) (count int) {
	r := bitbuf.NewReader(data)
	var n Names
	for {
		name := n.Read(&r)
		if r.Err() != nil {
			return count
		}
		b := name.Baselines
		if !name.Known {
			b = n.Resolve(name, Tick(name.Low)+Tick(count)<<NameBits)
		}
		if d := b.A1 - b.A2; b.Two && (d < 1 || d > MaxSpan) || b.Two && b.Old || !b.Two && b.A2 != 0 {
			t.Fatalf("name %d of %x is %+v", count, data, b)
		}
		count++
	}
}

func TestNamesOfAnyBitsEnd(t *testing.T) {
	rng := randomOf(t)
	names := 0
	for range 5000 {
		data := randomBytes(rng, rng.IntN(40))
		if len(data) > 0 {
			data[0] |= 3 // with a pair of its own, so that later ones may refer to it
		}
		names += readNames(t, data)
	}
	require.Greater(t, names, 5000)
}

func TestANameOfNothingIsRefused(t *testing.T) {
	for _, bits := range []string{"0", "10 00", "11 00000000 0 0  10 00"} {
		r := bitbuf.NewReader(packedBits(bits))
		var n Names
		name := n.Read(&r)
		if r.Err() == nil {
			n.Resolve(name, 0)
			name = n.Read(&r)
		}
		require.Equal(t, ErrCode, r.Err(), bits)
		require.Equal(t, Name{Known: true}, name, bits)
	}
}

func TestNamesRefuseSecondBaselinesOutOfReach(t *testing.T) {
	const want = "delta: a second baseline must be 1 to 32 ticks before the first, and that not old: choose another, or set Two to false"
	for _, b := range []Baselines{
		{A1: 9, A2: 9, Two: true},
		{A1: 9, A2: 10, Two: true},
		{A1: 40, A2: 7, Two: true},
		{A1: 9, A2: 8, Two: true, Old: true},
	} {
		var n Names
		var w bitbuf.Writer
		require.PanicsWithValue(t, want, func() { n.Write(&w, b) })
	}
}
