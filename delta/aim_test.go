package delta

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUsualFieldsAreAimedAtLikeAnyOther compares aimField with aimRound, which takes any field, on rows of usual fields
// of all widths.
func TestUsualFieldsAreAimedAtLikeAnyOther(t *testing.T) {
	rng := randomOf(t)
	usual := 0
	for range 200 {
		f := Field{Name: "F", Kind: Linear, Bits: 1 + rng.UintN(maxAimBits)}
		if rng.IntN(2) == 0 {
			f.Kind = Wrap
		}
		if most := uint64(1) << f.Bits; rng.IntN(3) == 0 {
			f.Max = 1 + rng.Uint64N(most-1)
		}
		l := NewLayout(Component{Name: "C", Fields: []Field{f}})
		comp := &l.Components[0]
		field := &comp.Fields[0]
		c := NewCompact(l)
		c.Begin(c.newModel())
		for part := range shareParts {
			for i := range shareContexts {
				c.model.numbers[0].shares[part][i] = rng.Int32N(2*shareMost+1) - shareMost
			}
		}
		code := func(near uint32) []uint32 {
			v := rng.Uint64N(field.Max + 1)
			if rng.IntN(2) == 0 {
				v = min(uint64(near)+rng.Uint64N(8), field.Max)
			}
			return []uint32{uint32(v)}
		}
		col := &c.columns[0]
		if col.halfCircle != 0 {
			usual++
		}
		for range 100 {
			base := code(0)
			past := Past{Base: base, Base2: code(base[0]), Ratio: 1 + rng.Int64N(MaxExtrapolation<<16)}
			if rng.IntN(2) == 0 {
				past.Near, past.NearRatio = code(base[0]), 1+rng.Int64N(MaxExtrapolation<<16)
			}
			if rng.IntN(2) == 0 {
				past.Mid, past.MidRatio = code(base[0]), 1+rng.Int64N(MaxExtrapolation<<16)
			}
			c.shown = rng.Uint64N(1 << rng.UintN(20))
			first := rng.IntN(2) == 0
			var quick, slow amount
			c.aimField(&quick, c.number(col), col, field, &past, &progress{ref: base, moving: true, first: first})
			c.aimRound(&slow, c.number(col), field, &past, first)
			require.Equal(t, slow, quick, "%+v %+v", field, past)
		}
	}
	require.Greater(t, usual, 100)
}

// slowGet is get in the obvious way.
func slowGet(d *RangeDecoder, x *decision) bool {
	part := d.width >> chanceBits * uint64(x.chance())
	v, n := int64(*x), int64(*x)&mostMet
	rate := 655360 / (10*n + 16)
	bit := d.at < part
	if bit {
		d.width = part
		v += (mostValue - v) * rate >> 16
	} else {
		d.width, d.at = d.width-part, d.at-part
		v += (leastValue - v) * rate >> 16
	}
	if n < mostMet {
		n++
	}
	*x = decision(v&^mostMet | n)
	if d.width < leastRange {
		d.shift()
	}
	return bit
}

// slowGetNumber is getNumber in the obvious way.
func slowGetNumber(d *RangeDecoder, x *amount, m *numberModel, width uint, implied bool) int64 {
	n := uint(0)
	if implied {
		n = 1
	}
	for n < width && slowGet(d, x.length(m, n)) {
		n++
	}
	if n == 0 {
		return 0
	}
	v := int64(1)
	rest := n - 1
	if rest > 0 {
		rest--
		v = 2
		if slowGet(d, &m.top[min(rest, topDecisions-1)]) {
			v = 3
		}
	}
	negative := false
	if side, sign := x.side(m, n); side != nil {
		negative = slowGet(d, side) == (sign < 0)
		v = v<<rest | int64(d.getBits(rest))
	} else {
		low := int64(d.getBits(rest + 1))
		v, negative = v<<rest|low/2, low%2 != 0
	}
	if negative {
		return -v
	}
	return v
}

// TestNumbersAreReadLikeTheSlowTwin reads random bytes as numbers of all widths, in all contexts.
func TestNumbersAreReadLikeTheSlowTwin(t *testing.T) {
	rng := randomOf(t)
	c := NewCompact(NewLayout(Component{Name: "C", Fields: []Field{{Name: "F", Kind: Linear, Bits: 20}}}))
	models := [2]*Model{c.newModel(), c.newModel()}
	for range 200 {
		data := randomBytes(rng, 200)
		if rng.IntN(2) == 0 {
			for i := range data {
				data[i] &= data[rng.IntN(len(data))]
			}
		}
		quick, slow := NewRangeDecoder(data), NewRangeDecoder(data)
		for range 40 {
			x := amount{
				context: rng.UintN(numberContexts), aimed: rng.IntN(3) > 0,
				above: rng.Int64N(1<<fineBits+1) - 1<<(fineBits-1), trend: rng.UintN(trendStates),
			}
			x.parts[0].distance = rng.Int64N(3) - 1
			if x.first = x.context; rng.IntN(4) > 0 {
				x.first = fractions[x.context].at + fractions[x.context].by*x.fraction()
			}
			width, implied := 1+rng.UintN(16), rng.IntN(4) == 0
			var v [2]int64
			c.Begin(models[0])
			v[0] = quick.getNumber(&x, c.number(&c.columns[0]), width, implied)
			c.Begin(models[1])
			v[1] = slowGetNumber(&slow, &x, c.number(&c.columns[0]), width, implied)
			require.Equal(t, v[1], v[0])
			require.Equal(t, slow, quick)
		}
		require.Equal(t, models[1], models[0])
	}
}
