package wire

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// bitsOf returns what was written, first bit first.
func bitsOf(w *bitbuf.Writer) string {
	var s strings.Builder
	packed := w.Bytes()
	for i := range w.Len() {
		s.WriteByte('0' + packed[i/8]>>(i%8)&1)
	}
	return s.String()
}

// number returns the n low bits of v as text, low bit first.
func number(v uint64, n uint) string {
	var s strings.Builder
	for i := range n {
		s.WriteByte('0' + byte(v>>i&1))
	}
	return s.String()
}

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

func randomSet(rng *rand.Rand, n int) (s ComponentSet, list []bool) {
	list = make([]bool, delta.MaxComponents)
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
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 0))
	for range 300 {
		s, list := randomSet(rng, 1+rng.IntN(delta.MaxComponents))
		var want []int
		for c := range delta.MaxComponents {
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
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 0))
	buf := make([]byte, 1024)
	for _, n := range []int{1, 2, 5, 63, 64, 65, 200, 256} {
		sets, lists := make([]ComponentSet, 20), make([][]bool, 20)
		for i := range sets {
			sets[i], lists[i] = randomSet(rng, n)
		}
		for c := range n {
			sets[1].Add(c) // all of them
			lists[1][c] = true
		}
		sets[2], lists[2] = ComponentSet{}, make([]bool, delta.MaxComponents)
		for i := range sets {
			for j := range sets {
				w := bitbuf.NewWriter(buf)
				WriteComponentSet(&w, &sets[i], &sets[j])
				require.NoError(t, w.Err())
				require.Equal(t, naiveSet(lists[i], lists[j]), bitsOf(&w))
				r := bitbuf.NewReader(w.Bytes())
				require.Equal(t, sets[i], ReadComponentSet(&r, &sets[j], n))
				require.NoError(t, r.Finish())
				require.Equal(t, w.Len(), r.Pos())
			}
		}
	}
}

// readSet reads a set from any bits. It is one of n components, or an error.
func readSet(t testing.TB, data []byte, ref *ComponentSet, n int) {
	r := bitbuf.NewReader(data)
	s := ReadComponentSet(&r, ref, n)
	for c := range s.All() {
		if c >= n {
			t.Fatalf("component %d of %d from %x", c, n, data)
		}
	}
	if r.Err() == nil {
		w := bitbuf.NewWriter(make([]byte, 1024))
		WriteComponentSet(&w, &s, ref)
		if w.Len() != r.Pos() { // there is no other way to write it
			t.Fatalf("a set of %d bits was read from %d of %x", w.Len(), r.Pos(), data)
		}
	}
}

func TestSetsOfAnyBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 0))
	for range 20_000 {
		n := 1 + rng.IntN(delta.MaxComponents)
		ref, _ := randomSet(rng, n)
		data := make([]byte, rng.IntN(40))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
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
	s := ReadComponentSet(&r, &ComponentSet{}, 7)
	require.Equal(t, delta.ErrCode, r.Err())
	require.Equal(t, ComponentSet{0x7f}, s)
	w.Rollback(mark)
	w.WriteExpGolomb(0, 0)
	w.WriteExpGolomb(1<<64-1, 0) // back to the first one, if sums may wrap
	r = bitbuf.NewReader(w.Bytes())
	require.Equal(t, ComponentSet{1}, ReadComponentSet(&r, &ComponentSet{}, 7))
	require.Equal(t, delta.ErrCode, r.Err())
	r = bitbuf.NewReader(w.Bytes()[:16]) // and so does the end of the input
	ReadComponentSet(&r, &ComponentSet{}, 7)
	require.Equal(t, bitbuf.ErrOverrun, r.Err())
}

func TestSetsOfKnownBits(t *testing.T) {
	set := func(components ...int) (s ComponentSet) {
		for _, c := range components {
			s.Add(c)
		}
		return s
	}
	for _, c := range []struct {
		s, ref ComponentSet
		want   string
	}{
		{set(), set(), "1"},                     // no difference
		{set(0), set(), "010 1"},                // one, at 0
		{set(), set(2), "010 011"},              // one, at 0+2
		{set(1, 2), set(2, 5), "011 010 00100"}, // two, at 1 and 2+3
	} {
		w := bitbuf.NewWriter(make([]byte, 64))
		WriteComponentSet(&w, &c.s, &c.ref)
		require.Equal(t, strings.ReplaceAll(c.want, " ", ""), bitsOf(&w))
	}
}

// FuzzComponentSet reads any bits as a set.
func FuzzComponentSet(f *testing.F) {
	f.Add(uint8(7), uint64(3), []byte{0x12, 0x34})
	f.Fuzz(func(t *testing.T, last uint8, in uint64, data []byte) {
		n := 1 + int(last)
		ref := ComponentSet{in, in}
		for c := range ref.All() {
			if c >= n {
				ref.Toggle(c)
			}
		}
		readSet(t, data, &ref, n)
	})
}
