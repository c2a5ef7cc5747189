package delta

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// naiveNames lists the pairs, the one in front first, and writes text.
type naiveNames struct {
	now  Tick
	list []Baselines
}

// write writes the bit for a pair at the front, and the name of b.
func (n *naiveNames) write(b Baselines) (s string) {
	i := slices.Index(n.list, b)
	if i == 0 {
		return "1"
	}
	s = "0"
	if len(n.list) == 0 {
		s = "1"
	}
	if i > 0 {
		if len(n.list) > 1 {
			s += "0"
		}
		s += number(uint64(i-1), []uint{2: 0, 3: 1, 4: 2, 5: 2}[len(n.list)])
		if i > 1 {
			n.list[i], n.list[i-1] = n.list[i-1], n.list[i]
		}
		return s
	}
	if len(n.list) > 1 {
		s += "1"
	}
	w := bitbuf.NewWriter(make([]byte, 8))
	slowResidual(&w, uint64(n.now-b.A1), 3, 8)
	s += bitsOf(&w)
	switch on := b.A1 / 2 * 2; {
	case !b.Two:
		s += "10"
	case b.A2 == on-2:
		s += "0"
	default:
		s += "11" + number(uint64(b.A1-b.A2-1), 5)
	}
	if len(n.list) == 5 {
		n.list = n.list[:4]
	}
	n.list = slices.Insert(n.list, min(2, len(n.list)), b)
	return s
}

// namesNow is a tick soon after ticks wrap.
const namesNow = 9

// randomBaselines are for names in a packet of tick namesNow.
func randomBaselines(rng *rand.Rand) (b Baselines) {
	b.A1 = namesNow - 1 - Tick(rng.Uint32N(16))
	switch rng.IntN(8) {
	case 0:
		b.A1 = namesNow
		b.A1 -= MaxAge
	case 1:
		b.A1 -= Tick(rng.Uint32N(240))
	case 2, 3:
	case 4, 5:
		b.Two, b.A2 = true, b.A1/2*2-2
	default:
		b.Two, b.A2 = true, b.A1-1-Tick(rng.Uint32N(32))
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
		names, naive := NewNames(namesNow), naiveNames{now: namesNow}
		var written []Baselines
		want := ""
		for range 150 {
			b := pool[rng.IntN(1+rng.IntN(len(pool)))]
			written = append(written, b)
			want += naive.write(b)
			w.WriteBool(names.AtFront(b))
			names.Write(&w, b)
		}
		require.NoError(t, w.Err())
		require.Equal(t, want, bitsOf(&w))

		r := bitbuf.NewReader(w.Bytes())
		back := NewNames(namesNow)
		for i, b := range written {
			require.Equal(t, b, back.Read(&r, r.ReadBool()), "name %d", i)
		}
		require.NoError(t, r.Finish())
		require.Equal(t, w.Len(), r.Pos())
	}
}

// readNames reads names from any bits until they end, and returns how many there were.
func readNames(t testing.TB, data []byte) (count int) {
	r := bitbuf.NewReader(data)
	n := NewNames(namesNow)
	for {
		b := n.Read(&r, r.ReadBool())
		if r.Err() != nil {
			return count
		}
		age, span := Tick(namesNow)-b.A1, b.A1-b.A2
		if age < 1 || age > MaxAge || b.Two && (span < 1 || span > MaxSpan) || !b.Two && b.A2 != 0 {
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
			data[0] |= 1 // with a pair of its own, so that later ones may refer to it
		}
		names += readNames(t, data)
	}
	require.Greater(t, names, 5000)
}

func TestANameOfNothingIsRefused(t *testing.T) {
	const (
		first  = "1 1 100 10" // age 1, alone
		second = "0 1 010 10"
		third  = "0 1 1 110 10"
		fourth = "0 1 1 001 10"
		none   = "1 000 10" // age 0
	)
	for _, c := range []struct {
		bits string
		good int // names
	}{
		{"0", 0},
		{"1" + none, 0},
		{first + "0" + none, 1},
		{first + second + "0 1" + none, 2},
		{first + second + third + fourth + "0 0 11", 4},
	} {
		r := bitbuf.NewReader(packedBits(c.bits))
		n := NewNames(0x1000)
		for range c.good {
			n.Read(&r, r.ReadBool())
			require.NoError(t, r.Err(), c.bits)
		}
		require.Equal(t, Baselines{}, n.Read(&r, r.ReadBool()), c.bits)
		require.Equal(t, ErrCode, r.Err(), c.bits)
	}
}

func TestNamesRefuseBaselinesOutOfReach(t *testing.T) {
	const (
		second = "delta: a second baseline must be 1 to 32 ticks before the first: choose another, or set Two to false"
		first  = "delta: a baseline must be 1 to 255 ticks before the packet: choose a newer tick at which it was valid, or send the full state"
	)
	for _, c := range []struct {
		b    Baselines
		want string
	}{
		{Baselines{A1: 9, A2: 9, Two: true}, second},
		{Baselines{A1: 9, A2: 10, Two: true}, second},
		{Baselines{A1: 40, A2: 7, Two: true}, second},
		{Baselines{A1: 50}, first},
		{Baselines{A1: 51}, first},
		{Baselines{A1: 1<<32 + 50 - MaxAge - 1}, first},
		{Baselines{A1: 50 + 1<<31}, first},
	} {
		n := NewNames(50)
		var w bitbuf.Writer
		require.PanicsWithValue(t, c.want, func() { n.Write(&w, c.b) })
		if c.b.Two { // nor does it count as the first one alone
			n = NewNames(50, Baselines{A1: c.b.A1})
			require.PanicsWithValue(t, c.want, func() { n.Write(&w, c.b) })
		}
	}
}

// TestThePairThatIsNamedFirstStaysInFront: whoever writes the packet begins with the pair that
// most entities have.
func TestThePairThatIsNamedFirstStaysInFront(t *testing.T) {
	most := Baselines{A1: 994, A2: Second(994), Two: true}
	w := bitbuf.NewWriter(make([]byte, 1000))
	n := NewNames(1000)
	n.Write(&w, most)
	for i := range Tick(100) {
		n.Write(&w, Baselines{A1: 800 + i})
		require.True(t, n.AtFront(most))
	}
	for range 10 {
		n.Write(&w, Baselines{A1: 990})
		require.True(t, n.AtFront(most), "however often another one is used")
	}
	length := w.Len()
	n.Write(&w, most)
	require.Equal(t, length, w.Len())
}
