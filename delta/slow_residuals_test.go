package delta

import (
	"math/big"
	"math/bits"
	"slices"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

type slowReference struct {
	row         []uint32
	base, base2 []uint32 // nil for a baseline alone
	quats       []slowQuat
}

type slowContext struct {
	moving  bool
	first   bool
	same    bool // all residuals so far are zero
	largest uint // bits of the largest residual so far
}

func (x *slowContext) order(m uint) uint {
	if !x.moving {
		if x.first {
			return 3
		}
		return max(x.largest, 1) - 1
	}
	switch {
	case x.first && (m == 1 || m == 2 || m == 3):
		return min(m, 2)
	case x.first || x.largest == 0:
		return m / 2
	case m == 0:
		return x.largest / 4
	case x.largest > 2:
		return (m/2 + x.largest + x.largest) / 3
	case m/2+x.largest < 2:
		return 0
	}
	return 1
}

// order returns the order that stands for another one in a Linear or Wrap field.
func (p *slowPacked) order(f *Field, k uint) uint {
	switch {
	case len(f.Orders) > 0:
		return slowOrder(f, k)
	case p.shift == lowerOne:
		return max(k, 1) - 1
	case p.shift == lowerTwo:
		return max(k, 2) - 2
	case p.shift == raiseOne:
		return k + 1
	}
	return k
}

// slowOrder returns the order that replaces another one in a field.
func slowOrder(f *Field, k uint) uint {
	for i, order := range f.Orders {
		if uint(i) == k {
			return uint(order)
		}
	}
	return k
}

func (x *slowContext) saw(residual uint64) {
	x.first = false
	x.largest = max(x.largest, uint(bits.Len64(residual)))
	x.same = x.same && residual == 0
}

// encodeResiduals returns how many bits the charts took.
func (p *slowPacked) encodeResiduals(w *bitbuf.Writer, c *Component, cur []uint32, ref slowReference) (charts int) {
	x := slowContext{moving: ref.base != nil, first: true, same: true}
	quat := 0
	start := w.Len()
	for _, f := range c.Fields {
		if f.Kind != Quat {
			continue
		}
		other := cur[f.word] != ref.row[f.word]
		w.WriteBool(other)
		if other {
			w.WriteBits(uint64(cur[f.word]), 2)
			x.same = false
		}
	}
	charts = w.Len() - start
	for i := range c.Fields {
		f := &c.Fields[i]
		last := i == c.last
		from := w.Len()
		switch {
		case f.Bits == 0:
		case f.Kind == Plain:
			v := zigzag(signed(f.code(cur)-f.code(ref.row), f.Bits))
			if !(last && x.same) {
				w.WriteBool(v != 0)
			}
			if v != 0 && f.Bits > 1 {
				slowResidual(w, v-1, plainOrder(f.Bits), f.Bits)
			}
			x.same = x.same && v == 0
		case f.Kind == Reference:
			differs := f.code(cur) != f.code(ref.row)
			if !(last && x.same) {
				w.WriteBool(differs)
			}
			if differs {
				slowReferenceCode(w, cur[f.word], cur[f.word+1], ref.row[f.word] != 0)
			}
			x.same = x.same && !differs
		case f.Kind == Counter || f.Kind == Flags:
			x.same = slowChanged(w, last, x.same, f.code(cur) != f.code(ref.row)) && x.same
			if f.code(cur) != f.code(ref.row) {
				slowJump(w, f, f.code(cur), f.code(ref.row))
			}
		case f.Kind == Bytes:
			text, was := textOf(f, cur), textOf(f, ref.row)
			x.same = slowChanged(w, last, x.same, text != was) && x.same
			if text != was {
				slowText(w, text, was, int(f.Max))
			}
		case f.Kind == Quat:
			q := cur[f.word : f.word+4]
			to, m := ref.chart(f, quat, q[0])
			quat++
			if x.largest = min(x.largest, slices.Max(m[:])); slices.Max(m[:]) == 0 {
				x.first = true
			}
			for j := range to {
				v := zigzag(int64(q[j+1]) - int64(to[j]))
				k := slowOrder(f, x.order(m[j]))
				if last && j == 2 && x.same {
					v--
				}
				slowResidual(w, v, k, f.Bits+1)
				x.saw(v)
			}
		default:
			at, order := f.code(ref.row), x.order(ref.moved(f))
			if m, together := ref.together(c.Fields, i); together {
				before := &c.Fields[i-1]
				from := new(big.Int).SetUint64(at)
				from.Add(from, big.NewInt(slowDistance(before, before.code(cur), before.code(ref.row))))
				at = from.Mod(from, new(big.Int).SetUint64(f.Max+1)).Uint64()
				order = (&slowContext{moving: true, first: true}).order(m)
			}
			v := zigzag(slowDistance(f, f.code(cur), at))
			k := p.order(f, order)
			if last && x.same {
				v--
			}
			slowResidual(w, v, k, f.Bits)
			x.saw(v)
		}
		p.spent[i] = uint32(w.Len() - from)
	}
	return charts
}

// together reports whether field i is an angle that turns together with the field before it, and the bits by
// which their ways between the baselines differ.
func (ref *slowReference) together(fields []Field, i int) (m uint, together bool) {
	if i == 0 || ref.base == nil {
		return 0, false
	}
	f, before := &fields[i], &fields[i-1]
	if f.Kind != Wrap || before.Kind != Wrap || f.Max != before.Max || f.Bits == 0 || f.Bits > 44 {
		return 0, false
	}
	way := slowDistance(f, f.code(ref.base), f.code(ref.base2))
	other := slowDistance(before, before.code(ref.base), before.code(ref.base2))
	apart := max(way-other, other-way)
	return uint(bits.Len64(uint64(apart))), (way >= 16 || way <= -16) && 32*apart <= max(way, -way)
}

// slowDistance is the way from one code of a Linear or Wrap field to another.
func slowDistance(f *Field, code, from uint64) int64 {
	if f.Kind == Linear {
		return signed(code-from, f.Bits)
	}
	n := new(big.Int).Add(new(big.Int).SetUint64(f.Max), big.NewInt(1))
	d := new(big.Int).Sub(new(big.Int).SetUint64(code), new(big.Int).SetUint64(from))
	d.Mod(d, n)
	if down := new(big.Int).Sub(d, n); d.CmpAbs(down) >= 0 { // as far or farther upwards
		d = down
	}
	return d.Int64()
}

func (ref *slowReference) moved(f *Field) uint {
	if ref.base == nil {
		return 0
	}
	return magnitude(f.code(ref.base), f.code(ref.base2))
}

func (ref *slowReference) chart(f *Field, n int, largest uint32) (codes [3]uint32, moved [3]uint) {
	if ref.base == nil {
		if ref.row[f.word] != largest {
			q := slowRotationOf(ref.row[f.word:f.word+4], f.Bits)
			return q.chart(largest, f.Bits), moved
		}
		return [3]uint32(ref.row[f.word+1:]), moved
	}
	q := &ref.quats[n]
	b1, b2 := slowInChart(f, ref.base, &q.base, largest), slowInChart(f, ref.base2, &q.base2, largest)
	for j := range moved {
		moved[j] = magnitude(uint64(b1[j]), uint64(b2[j]))
	}
	return slowInChart(f, ref.row, &q.next, largest), moved
}

func slowInChart(f *Field, row []uint32, q *slowRotation, largest uint32) [3]uint32 {
	if row[f.word] == largest { // the row has what the rotation would give, and no division
		return [3]uint32(row[f.word+1:])
	}
	return q.chart(largest, f.Bits)
}

func slowResidual(w *bitbuf.Writer, v uint64, k, width uint) {
	k = min(k, width)
	limit := prefixLimit(k, width)
	q := uint(bits.Len64(v>>k+1)) - 1
	if q >= limit {
		w.WriteUnary(limit, limit)
		w.WriteBits(v, width)
		return
	}
	low := v - (1<<q-1)<<k
	if n := 2*q + 1 + k; n <= 64 {
		w.WriteBits(low<<(q+1)|1<<q, n)
		return
	}
	w.WriteUnary(q, limit)
	w.WriteBits(low, k+q)
}
