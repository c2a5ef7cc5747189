package delta

// This file codes the residuals of a row: its distances from a prediction or a baseline.

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// reference is the row against which residuals are taken: the prediction, with the baselines that
// it was made from, or only a baseline.
type reference struct {
	row         []uint32
	base, base2 []uint32 // nil if row is a baseline
	quats       []quatPrediction
}

// context follows the residuals of one row. Their sizes so far predict the size of the next one.
type context struct {
	moving bool
	same   bool // all residuals so far are zero
	seen   uint // 0 before the first residual, then 1 and the bits of the largest one so far
	shift  Shift
}

// shifted returns what stands for an order in a field.
func (x *context) shifted(f *Field, k uint) uint {
	if len(f.Orders) > 0 {
		return f.order(k)
	}
	return replaced(shiftedOrders[x.shift], k)
}

// order returns the order of the code for the next residual, of a field that moved by a distance of
// m bits between the baselines.
func (x *context) order(m uint) uint {
	switch {
	case x.moving:
		return movingOrder(m, x.seen)
	case x.seen == 0:
		return 3
	}
	return max(x.seen, 2) - 2
}

// movingOrder is context.order for residuals against a prediction. The orders are in a table: the
// processor could not foresee the branches.
func movingOrder(m, seen uint) uint { return uint(movingOrders[m&127][seen&127]) }

// movingOrders has the orders by m and context.seen. A field that did not move between the baselines
// seldom moves because another one in the row does. If others are off by a code at most, the motion
// is as smooth as quantising allows. Else the largest residual counts twice: it shows how far motions
// of this moment change. The last rows are for angles that turn together.
var movingOrders = func() (orders [128][128]uint8) {
	for row := range orders {
		for column := range orders[row] {
			m, seen := row, column
			if row >= besideOrders {
				m, seen = row-besideOrders, 0
			}
			largest := max(seen, 1) - 1
			order := (m/2 + 2*largest) / 3
			switch {
			case seen == 0 && m <= 3:
				order = min(m, 2)
			case m == 0:
				order = largest / 4
			case largest == 0:
				order = m / 2
			case largest <= 2:
				order = min((m/2+largest)/2, 1)
			}
			orders[row][column] = uint8(order)
		}
	}
	return orders
}()

// turn prepares the context for a Quat field whose components moved by distances of these bits between the baselines.
// A rotation seldom deviates by more than it moved, whatever the fields before it did: the joints of a body move at
// speeds of their own.
func (x *context) turn(moved *[3]uint) {
	m := max(moved[0], moved[1], moved[2])
	if m == 0 {
		x.seen = 0
	}
	x.seen = min(x.seen, 1+m)
}

// saw notes a residual.
func (x *context) saw(residual uint64) {
	x.seen = max(x.seen, 1+uint(bits.Len64(residual)))
	x.same = x.same && residual == 0
}

// aim returns what the residual of Linear or Wrap field i is taken against, and its order. row has the fields
// before it.
func (x *context) aim(fields []Field, i int, row []uint32, ref *reference) (at uint64, order uint) {
	f := &fields[i]
	if f.beside && x.moving {
		if at, m, together := ref.together(f, &fields[i-1], row); together {
			return at, x.shifted(f, x.order(m))
		}
	}
	return f.code(ref.row), x.shifted(f, x.order(ref.moved(f)))
}

// plainOrder returns the order of the code for the distance by which a Plain field changed.
func plainOrder(width uint) uint {
	switch {
	case width <= 2:
		return 0
	case width <= 16:
		return 3
	case width <= 32:
		return 6
	}
	return 8
}

// encodeCharts appends the charts of the Quat fields of cur against those of ref: for each field, 0
// if they are the same, or 1 and the chart in two bits. It reports whether all are the same.
func encodeCharts(d bitString, words []uint64, c *Component, cur, ref []uint32) (_ bitString, same bool) {
	same = true
	if c.quats == 0 {
		return d, same
	}
	for i := range c.Fields {
		if f := &c.Fields[i]; f.Kind == Quat {
			code, n := chartBits(cur[f.word], ref[f.word])
			d = d.put(words, code, n)
			same = same && n == 1
		}
	}
	return d, same
}

// decodeCharts reads into dst the charts that encodeCharts wrote, if written, or copies those of
// ref. It reports whether all are the same.
func decodeCharts(r *bitbuf.Reader, c *Component, dst, ref []uint32, written bool) (same bool) {
	same = true
	for i := range c.Fields {
		f := &c.Fields[i]
		if f.Kind != Quat {
			continue
		}
		l := ref[f.word]
		if written && r.ReadBool() {
			if l = uint32(r.ReadBits(2)); l == ref[f.word] { // encodeCharts writes that as the same
				r.Fail(ErrCode)
			}
			same = false
		}
		dst[f.word] = l
	}
	return same
}

// encodeResiduals appends cur against ref, from which it differs. If all residuals before the last
// one are zero, the last one can't be, and is written less one.
//
//	Linear, Wrap  the distance from the reference, in the code of order context.order; see also turning.go
//	Plain         0 if unchanged, or 1 and the distance less one, in the code of order plainOrder
//	Quat          three distances from the reference, in the chart of cur, which encodeCharts has written
//	others        0 if unchanged, or 1 and the change, see changes.go
//
// Where only 1 is possible, it is left out. Distances are zigzag codes of the field's width; those
// of a Quat, which does not wrap, take a bit more. The bits of each field go to costs. same is the
// result of encodeCharts.
func (p *Packed) encodeResiduals(
	d bitString, words []uint64, costs []Cost, c *Component, cur []uint32, ref *reference, same bool,
) bitString {
	x := context{moving: ref.base != nil, same: same, shift: p.shift}
	quat := 0
	for i := range c.Fields {
		f := &c.Fields[i]
		from := d.n
		implied := i == c.last && x.same
		switch {
		case f.Bits == 0:
		case f.Kind == Plain:
			v := zigzag(signed(f.code(cur)-f.code(ref.row), f.Bits))
			if !implied {
				d = d.putFlag(words, v != 0)
			}
			if v != 0 && f.Bits > 1 {
				d = d.residual(words, v-1, plainOrder(f.Bits), f.Bits)
			}
			x.same = x.same && v == 0
		case f.Kind == Quat:
			to, moved := ref.chart(f, quat, cur[f.word])
			quat++
			d, x = encodeQuat(d, words, x, f, cur[f.word+1:], &to, &moved, i == c.last)
		case f.Kind <= Wrap:
			at, k := x.aim(c.Fields, i, cur, ref)
			v := zigzag(f.signed(f.code(cur), at))
			if implied {
				v--
			}
			d = d.residual(words, v, k, f.Bits)
			x.saw(v)
		default:
			changed := f.differs(cur, ref.row)
			if !implied {
				d = d.putFlag(words, changed)
			}
			if changed {
				d = f.encodeChange(d, words, cur, ref.row)
			}
			x.same = x.same && !changed
		}
		costs[i] = Cost{uint32(c.first + i), uint32(d.n - from)}
	}
	return d
}

// encodeQuat appends the three distances of a Quat field. last reports whether the field is the
// last one of its row.
func encodeQuat(
	d bitString, words []uint64, x context, f *Field, codes []uint32, to *[3]uint32, moved *[3]uint, last bool,
) (bitString, context) {
	x.turn(moved)
	for j := range to {
		v := zigzag(int64(codes[j]) - int64(to[j]))
		k := f.order(x.order(moved[j]))
		if last && j == 2 && x.same {
			v--
		}
		d = d.residual(words, v, k, f.Bits+1)
		x.saw(v)
	}
	return d, x
}

// decodeResiduals reads into dst what encodeResiduals wrote against ref, and what encodeCharts
// wrote before it, if charts.
func (p *Packed) decodeResiduals(r *bitbuf.Reader, c *Component, dst []uint32, ref reference, charts bool) {
	x := context{moving: ref.base != nil, same: true, shift: p.shift}
	if c.quats > 0 {
		x.same = decodeCharts(r, c, dst, ref.row, charts)
	}
	quat := 0
	for i := range c.Fields {
		f := &c.Fields[i]
		implied := i == c.last && x.same
		switch {
		case f.Bits == 0:
			f.setCode(dst, 0)
		case f.Kind == Plain:
			var v uint64
			if implied || r.ReadBool() {
				v = 1
				if f.Bits > 1 {
					v += readResidual(r, plainOrder(f.Bits), f.Bits)
				}
			}
			f.setCode(dst, (f.code(ref.row)+uint64(unzigzag(v)))&lowBits(f.Bits))
			x.same = x.same && v == 0
		case f.Kind == Quat:
			to, moved := ref.chart(f, quat, dst[f.word])
			quat++
			x = decodeQuat(r, x, f, dst[f.word+1:], &to, &moved, i == c.last)
		case f.Kind <= Wrap:
			at, k := x.aim(c.Fields, i, dst, &ref)
			v := readResidual(r, k, f.Bits)
			x.saw(v)
			if implied {
				v++
			}
			code, ok := f.plus(at, unzigzag(v))
			if !ok {
				r.Fail(ErrCode)
				return
			}
			f.setCode(dst, code)
		case implied || r.ReadBool():
			f.decodeChange(r, dst, ref.row)
			x.same = false
		default:
			copy(dst[f.word:][:f.Words()], ref.row[f.word:])
		}
	}
}

// decodeQuat reads what encodeQuat wrote.
func decodeQuat(
	r *bitbuf.Reader, x context, f *Field, codes []uint32, to *[3]uint32, moved *[3]uint, last bool,
) context {
	x.turn(moved)
	for j := range to {
		implied := last && j == 2 && x.same
		v := readResidual(r, f.order(x.order(moved[j])), f.Bits+1)
		x.saw(v)
		if implied {
			v++
		}
		codes[j] = uint32(int64(to[j]) + unzigzag(v)) // DecodeRow checks whether it is valid
	}
	return x
}

// moved returns the bits of the distance by which a Linear or Wrap field moved between the
// baselines.
func (ref *reference) moved(f *Field) uint {
	if ref.base == nil {
		return 0
	}
	return magnitude(f.code(ref.base), f.code(ref.base2))
}

// chart expresses the reference of a Quat field, the n-th of its row, in the chart that drops
// component largest. It also returns the bits of the distances by which the components moved
// between the baselines.
func (ref *reference) chart(f *Field, n int, largest uint32) (codes [3]uint32, moved [3]uint) {
	if ref.base == nil || !ref.quats[n].rotated {
		return inChart(ref.row[f.word:f.word+4], nil, largest, f.Bits), moved
	}
	q := &ref.quats[n]
	b1 := inChart(ref.base[f.word:f.word+4], &q.base, largest, f.Bits)
	b2 := inChart(ref.base2[f.word:f.word+4], &q.base2, largest, f.Bits)
	for j := range moved {
		moved[j] = magnitude(uint64(b1[j]), uint64(b2[j]))
	}
	return inChart(ref.row[f.word:f.word+4], &q.next, largest, f.Bits), moved
}

// inChart returns the codes of a rotation in the chart that drops component largest. words are its
// codes in its own chart. If q is nil, inChart restores the rotation from them when it needs to.
func inChart(words []uint32, q *rotation, largest uint32, b uint) (codes [3]uint32) {
	inChartTo(&codes, words, q, largest, b)
	return codes
}

// inChartTo is inChart, filled in place like rotations.
func inChartTo(codes *[3]uint32, words []uint32, q *rotation, largest uint32, b uint) {
	if words[0] == largest { // the rotation would give the same
		codes[0], codes[1], codes[2] = words[1], words[2], words[3]
		return
	}
	if q == nil {
		q = new(rotation)
		q.set(words, b)
	}
	q.chartTo(codes, largest, b)
}
