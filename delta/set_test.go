package delta

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// naiveGolomb is the exp-Golomb code of order 0 as text.
func naiveGolomb(v uint64) string {
	q := uint(bits.Len64(v+1)) - 1
	return strings.Repeat("0", int(q)) + "1" + number(v+1, q)
}

// naiveSet is the code of a set as text, from lists of booleans.
func naiveSet(s, ref []bool) (text string) {
	count, gap := uint64(0), uint64(0)
	for c := range s {
		if s[c] != ref[c] {
			text += naiveGolomb(gap)
			count++
			gap = 0
		} else {
			gap++
		}
	}
	return naiveGolomb(count) + text
}

func randomSet(rng *rand.Rand, n int) (s Set, list []bool) {
	list = make([]bool, MaxComponents)
	share := rng.IntN(n + 1)
	for c := range n {
		if rng.IntN(n) < share {
			s.Add(c)
			list[c] = true
		}
	}
	return s, list
}

func TestSetsListTheirComponents(t *testing.T) {
	rng := randomOf(t)
	for range 300 {
		s, list := randomSet(rng, 1+rng.IntN(MaxComponents))
		var want []int
		for c := range MaxComponents {
			if require.Equal(t, list[c], s.Has(c)); list[c] {
				want = append(want, c)
			}
		}
		require.Equal(t, want, slices.Collect(s.All()))
		for c, has := range list {
			s.Toggle(c)
			require.Equal(t, !has, s.Has(c))
			s.Toggle(c)
			require.Equal(t, has, s.Has(c))
		}
	}
}

func TestAllPairsOfSetsRoundTrip(t *testing.T) {
	rng := randomOf(t)
	buf := make([]byte, 1024)
	for _, n := range []int{1, 2, 5, 63, 64, 65, 200, 256} {
		sets, lists := make([]Set, 20), make([][]bool, 20)
		for i := range sets {
			sets[i], lists[i] = randomSet(rng, n)
		}
		for c := range n {
			sets[1].Add(c) // all of them
			lists[1][c] = true
		}
		sets[2], lists[2] = Set{}, make([]bool, MaxComponents)
		for i := range sets {
			for j := range sets {
				w := bitbuf.NewWriter(buf)
				WriteSet(&w, &sets[i], &sets[j])
				require.NoError(t, w.Err())
				require.Equal(t, naiveSet(lists[i], lists[j]), bitsOf(&w))
				r := bitbuf.NewReader(w.Bytes())
				require.Equal(t, sets[i], ReadSet(&r, &sets[j], n))
				require.NoError(t, r.Finish())
				require.Equal(t, w.Len(), r.Pos())
			}
		}
	}
}

// readSet reads a set from any bits. It is one of n components, or an error.
func readSet(t testing.TB, data []byte, ref *Set, n int) {
	r := bitbuf.NewReader(data)
	s := ReadSet(&r, ref, n)
	for c := range s.All() {
		if c >= n {
			t.Fatalf("component %d of %d from %x", c, n, data)
		}
	}
	if r.Err() == nil {
		w := bitbuf.NewWriter(make([]byte, 1024))
		WriteSet(&w, &s, ref)
		if w.Len() != r.Pos() { // there is no other way to write it
			t.Fatalf("a set of %d bits was read from %d of %x", w.Len(), r.Pos(), data)
		}
	}
}

func TestSetsOfAnyBits(t *testing.T) {
	rng := randomOf(t)
	for range 20_000 {
		n := 1 + rng.IntN(MaxComponents)
		ref, _ := randomSet(rng, n)
		data := randomBytes(rng, rng.IntN(40))
		if len(data) > 1 && rng.IntN(2) == 0 {
			data[0] &= 0xf8 // a large count
			data[1] |= 0x7f
		}
		readSet(t, data, &ref, n)
	}
}

// A count is no reason to go on: the components end it.
func TestAHugeCountOfDifferencesEnds(t *testing.T) {
	w := bitbuf.NewWriter(make([]byte, 200))
	w.WriteExpGolomb(1<<63, 0)
	mark := w.Mark()
	for range 100 {
		w.WriteExpGolomb(0, 0)
	}
	r := bitbuf.NewReader(w.Bytes())
	s := ReadSet(&r, &Set{}, 7)
	require.Equal(t, ErrCode, r.Err())
	require.Equal(t, Set{0x7f}, s)
	w.Rollback(mark)
	w.WriteExpGolomb(0, 0)
	w.WriteExpGolomb(1<<64-1, 0) // back to the first one, if sums may wrap
	r = bitbuf.NewReader(w.Bytes())
	require.Equal(t, Set{1}, ReadSet(&r, &Set{}, 7))
	require.Equal(t, ErrCode, r.Err())
	r = bitbuf.NewReader(w.Bytes()[:16]) // and so does the end of the input
	ReadSet(&r, &Set{}, 7)
	require.Equal(t, bitbuf.ErrOverrun, r.Err())
}
