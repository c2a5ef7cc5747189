package delta

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// A twins encodes the same rows with Packed and with its slow twin.
type twins struct {
	t          testing.TB
	layout     *Layout
	fast       *Packed
	slow       *slowPacked
	buf1, buf2 []byte
	checks     int
}

func newTwins(t testing.TB, l *Layout) *twins {
	return &twins{t, l, NewPacked(l), newSlowPacked(l), make([]byte, 1024), make([]byte, 1024), 0}
}

// check compares bits and costs, with one shift after the other. The Packed has been used before, as in a game.
func (x *twins) check(c int, cur, base, base2 []uint32, ratio int64) {
	x.checks++
	x.slow.shift = Shift(x.checks) % shifts
	x.fast.SetShift(x.slow.shift)
	x.fast.Costs, x.slow.costs = x.fast.Costs[:0], x.slow.costs[:0]
	v, w := bitbuf.NewWriter(x.buf1), bitbuf.NewWriter(x.buf2)
	x.fast.EncodeRow(&v, c, cur, base, base2, ratio)
	x.slow.encodeRow(&w, c, cur, base, base2, ratio)
	if got, want := bitsOf(&v), bitsOf(&w); got != want {
		x.t.Fatalf("%s, want %s: row %v against %v and %v, ratio %d, of %+v",
			got, want, cur, base, base2, ratio, x.layout.Components[c].Fields)
	}
	if len(x.slow.costs) > 0 || len(x.fast.Costs) > 0 {
		require.Equal(x.t, x.slow.costs, x.fast.Costs, "costs of %s", bitsOf(&w))
	}
}

// checkHistoryOf lets a script move a row about, and checks it against all its past.
func (x *twins) checkHistoryOf(c int, s *script) {
	comp := &x.layout.Components[c]
	history := [][]uint32{s.row(comp, nil)}
	for range 5 {
		last := history[len(history)-1]
		switch s.below(4) {
		case 0:
			history = append(history, last) // at rest
		case 1:
			if n := len(history); n > 1 && x.slow.predict(comp, last, history[n-2], int64(s.below(4))<<15) {
				history = append(history, s.row(comp, append([]uint32(nil), x.slow.row...)))
				continue
			}
			fallthrough
		default:
			history = append(history, s.row(comp, last))
		}
	}
	for i, cur := range history {
		x.check(c, cur, nil, nil, 0)
		for j, base := range history[:i] {
			x.check(c, cur, base, nil, 0)
			for k, base2 := range history[:j] {
				x.check(c, cur, base, base2, Ratio(Tick(i), Tick(j), Tick(k)))
				x.check(c, cur, base, base2, int64(s.number()%(MaxExtrapolation<<16+1)))
			}
		}
	}
}

func TestRowsAreThoseOfTheSlowTwin(t *testing.T) {
	rng := randomOf(t)
	some := func(kinds ...Kind) (c Component) { // of one kind, as most components are
		kind := kinds[rng.IntN(len(kinds))]
		bits := 2 + rng.UintN(maxQuatBits-1)
		for range 1 + rng.IntN(5) {
			if kind != Quat {
				if rng.IntN(3) == 0 {
					bits = 1 + rng.UintN(maxStepBits+2)
				}
				kind = kinds[rng.IntN(len(kinds))]
			}
			c.Fields = append(c.Fields, Field{Kind: kind, Bits: bits, Max: rng.Uint64() & lowBits(bits)})
			if kind == Quat || rng.IntN(2) == 0 {
				c.Fields[len(c.Fields)-1].Max = 0
			}
			if kind == Quat && rng.IntN(4) > 0 {
				break
			}
		}
		(&script{randomBytes(rng, 200)}).replaceOrders(&c)
		return c
	}
	wheels := func(s *script) Component {
		c := s.componentOfWheels()
		s.replaceOrders(&c)
		return c
	}
	for range roundsOf(400, 150) {
		s := &script{randomBytes(rng, 200)}
		x := newTwins(t, NewLayout(some(Linear, Wrap), some(Quat), some(Plain, Linear), s.componentWithReferences(), some(Linear), wheels(s)))
		for c := range x.layout.Components {
			x.checkHistoryOf(c, &script{randomBytes(rng, 400)})
		}
	}
}

func TestRowsOfACrowdAreThoseOfTheSlowTwin(t *testing.T) {
	crowd := newCrowd(t)
	x := newTwins(t, crowd.layout)
	for i := range crowd.rows {
		r := &crowd.rows[i]
		x.check(r.component, r.cur, r.base, r.base2, r.ratio)
	}
}

// Quotients by multiplication are those of a division.
func TestRotationsAreThoseOfTheSlowTwin(t *testing.T) {
	rng := randomOf(t)
	for bits := uint(2); bits <= maxQuatBits; bits++ {
		g, n := &quatGrids[bits], uint32(1)<<bits
		check := func(q rotation) {
			slow := slowRotation(q)
			require.Equal(t, slow.largest(), q.largest(), "%v", q)
			for l := range uint32(4) {
				require.Equal(t, slow.chart(l, bits), q.chart(l, bits), "%v of %d bits in chart %d", q, bits, l)
			}
		}
		near := func() int64 { // the borders between codes, and far beyond the last one
			x := (rng.Int64N(2*int64(n)+7)-3)*g.scale/2 - g.below + rng.Int64N(3) - 1
			if rng.IntN(8) == 0 {
				x = rng.Int64N(1<<40) - 1<<39
			}
			return x
		}
		for range 1000 {
			check(rotation{near(), near(), near(), near()})
			a := []uint32{rng.Uint32N(4), rng.Uint32N(n), rng.Uint32N(n), rng.Uint32N(n)}
			b := []uint32{a[0], a[1], a[2] ^ rng.Uint32N(2), a[3] ^ rng.Uint32N(n)>>(bits/2)}
			if rng.IntN(3) == 0 {
				b = []uint32{rng.Uint32N(4), rng.Uint32N(n), rng.Uint32N(n), rng.Uint32N(n)}
			}
			var q1, q2, q rotation
			q1.set(a, bits)
			q2.set(b, bits)
			s1, s2 := slowRotationOf(a, bits), slowRotationOf(b, bits)
			require.Equal(t, [4]int64(s1), [4]int64(q1))
			ratio := rng.Int64N(MaxExtrapolation<<16 + 1)
			q.extrapolate(&q1, &q2, ratio, bits)
			require.Equal(t, [4]int64(slowExtrapolate(&s1, &s2, ratio, bits)), [4]int64(q))
			check(q)
		}
	}
}

// BenchmarkRotations measures the parts of a rotation's prediction.
func BenchmarkRotations(b *testing.B) {
	rng := rand.New(rand.NewPCG(21, 22))
	var rows [512][]uint32
	for i := range rows {
		rows[i] = []uint32{rng.Uint32N(4), rng.Uint32N(512), rng.Uint32N(512), rng.Uint32N(512)}
	}
	b.Run("fast", func(b *testing.B) {
		i := 0
		for b.Loop() {
			var q1, q2, q rotation
			q1.set(rows[i&511], 9)
			q2.set(rows[(i+1)&511], 9)
			q.extrapolate(&q1, &q2, 1<<16, 9)
			q.chart(q.largest(), 9)
			i++
		}
	})
	b.Run("slow", func(b *testing.B) {
		i := 0
		for b.Loop() {
			q1, q2 := slowRotationOf(rows[i&511], 9), slowRotationOf(rows[(i+1)&511], 9)
			q := slowExtrapolate(&q1, &q2, 1<<16, 9)
			q.chart(q.largest(), 9)
			i++
		}
	})
}
