package delta

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// TestOldBaselinesPredictRest: what has stood still for long is not expected to go on as
// it did before, and a wrong prediction never costs more than two bits.
func TestOldBaselinesPredictRest(t *testing.T) {
	p := NewPacked(NewLayout(Component{Fields: []Field{{Kind: Linear, Bits: 18}}}))
	cost := func(base2 []uint32, now Tick) int {
		w := bitbuf.NewWriter(make([]byte, 64))
		p.EncodeRow(&w, 0, []uint32{1003}, []uint32{1000}, base2, Ratio(now, 1000, 990))
		return w.Len()
	}
	rest := cost(nil, 1000)
	for _, now := range []Tick{1000 + MaxExtrapolation*10 + 1, 1200, 5000, 1000 + 1<<31} {
		require.Equal(t, rest, cost([]uint32{500}, now), "tick %d", now)
	}
	for now := Tick(1001); now <= 1000+MaxExtrapolation*10; now++ {
		require.LessOrEqual(t, cost([]uint32{500}, now), rest+2, "tick %d", now)
	}
}

// TestATeleportCostsLittleMoreThanAnAbsoluteState: an entity that moves and turns and is
// put somewhere else. In numbers: 83 bits without baseline, about 20 more as an update.
func TestATeleportCostsLittleMoreThanAnAbsoluteState(t *testing.T) {
	x := newEntityTest(t,
		Component{Fields: []Field{{Kind: Linear, Bits: 18}, {Kind: Linear, Bits: 18}, {Kind: Linear, Bits: 18}}},
		Component{Fields: []Field{{Kind: Quat, Bits: 9}}})
	rng := randomOf(t)
	const absolute = 54 + 29
	sum, most := 0, 0
	const n = 1000
	for range n {
		at := func(r *[3]uint32, by uint32) []uint32 { return []uint32{r[0] + by, r[1] - by, r[2] + 2*by} }
		rotated := func(chart uint32, r *[3]uint32, by uint32) []uint32 { return append([]uint32{chart}, at(r, by)...) }
		place := func(bits uint) (r [3]uint32) {
			for i := range r {
				r[i] = 1<<(bits-2) + rng.Uint32N(1<<(bits-1))
			}
			return r
		}
		was, is, turn, now := place(18), place(18), place(9), place(9)
		n := len(x.bits(1<<16,
			slowRow{0, at(&is, 0), at(&was, 20), at(&was, 0)},
			slowRow{1, rotated(rng.Uint32N(4), &now, 0), rotated(2, &turn, 4), rotated(2, &turn, 0)}))
		sum, most = sum+n, max(most, n)
	}
	t.Logf("%d bits without baseline, %.1f as an update, %d at most", absolute, float64(sum)/n, most)
	require.Less(t, float64(sum)/n, absolute+25.)
	require.Less(t, most, absolute+36)
}
