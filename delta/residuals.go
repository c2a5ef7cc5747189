package delta

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// A reference is what residuals are taken against: the prediction with the baselines
// that it came from, or a baseline alone.
type reference struct {
	row         []uint32
	base, base2 []uint32 // nil for a baseline alone
	quats       []quatPrediction
}

// context follows the residuals of one row: what was seen of them tells how large
// the next one may be.
type context struct {
	moving  bool
	first   bool
	same    bool // all residuals so far are zero
	largest uint // bits of the largest residual so far
}

// order returns the order of the code for the next residual of a field that moved by
// a distance of m bits between the baselines.
func (x *context) order(m uint) uint {
	k := m / 2
	if !x.moving {
		k = 3
	}
	switch {
	case x.first:
	case x.moving && x.largest > 0:
		k = (k + x.largest) / 2
	case !x.moving:
		k = x.largest - min(x.largest, 1)
	}
	return k
}

func (x *context) saw(residual uint64) {
	x.first = false
	x.largest = max(x.largest, uint(bits.Len64(residual)))
	x.same = x.same && residual == 0
}

// plainOrder is the order of the code for what a Plain field changed by.
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

// encodeCharts appends the charts of the Quat fields of cur against ref, and reports whether
// they are the same: for each, 0 for the same, or 1 and the chart's two bits.
func encodeCharts(d draft, words []uint64, c *Component, cur, ref []uint32) (_ draft, same bool) {
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

// decodeCharts reads into dst the charts that encodeCharts wrote, if they were written, and
// reports whether they are the same.
func decodeCharts(r *bitbuf.Reader, c *Component, dst, ref []uint32, written bool) (same bool) {
	same = true
	for i := range c.Fields {
		f := &c.Fields[i]
		if f.Kind != Quat {
			continue
		}
		l := ref[f.word]
		if written && r.ReadBool() {
			if l = uint32(r.ReadBits(2)); l == ref[f.word] { // would have been written as the same
				r.Fail(ErrCode)
			}
			same = false
		}
		dst[f.word] = l
	}
	return same
}

// encodeResiduals appends cur against ref, from which it differs: if no residual before
// the last one tells so, that one is not zero and is written less one.
//
//	Linear, Wrap  the distance from the reference, in the code of order context.order
//	Plain         0 for the same, which is left out if only 1 is possible, or
//	              1 and the distance less one, in the code of order plainOrder
//	Counter,      0 or 1 as for Plain, then what jumps.go says
//	Flags, Bytes
//	Quat          three distances from the reference, in the chart of cur, which
//	              encodeCharts has written
//	Reference     0 or 1 as for Plain, and draft.changedReference
//
// Distances are zigzag codes of the field's width; those of a Quat, which does not wrap,
// take a bit more. The bits of each field go to costs. same is what encodeCharts says.
func (p *Packed) encodeResiduals(d draft, words []uint64, costs []Cost, c *Component, cur []uint32, ref *reference, same bool) draft {
	x := context{moving: ref.base != nil, first: true, same: same}
	quat := 0
	for i := range c.Fields {
		f := &c.Fields[i]
		last := i == c.last
		from := d.n
		switch {
		case f.Bits == 0:
		case f.Kind == Plain:
			v := zigzag(signed(f.code(cur)-f.code(ref.row), f.Bits))
			changed := v != 0
			if !(last && x.same) {
				var bit uint64
				if changed {
					bit = 1
				}
				d = d.put(words, bit, 1)
			}
			if changed && f.Bits > 1 {
				d = d.residual(words, v-1, plainOrder(f.Bits), f.Bits)
			}
			x.same = x.same && !changed
		case f.Kind == Reference:
			now, was := cur[f.word:f.word+2], ref.row[f.word:f.word+2]
			changed := now[0] != was[0] || now[1] != was[1]
			if !(last && x.same) {
				var bit uint64
				if changed {
					bit = 1
				}
				d = d.put(words, bit, 1)
			}
			if changed {
				d = d.changedReference(words, now, was)
			}
			x.same = x.same && !changed
		case f.Kind == Quat:
			q := cur[f.word : f.word+4]
			to, m := ref.chart(f, quat, q[0])
			quat++
			for j := range to {
				v := zigzag(int64(q[j+1]) - int64(to[j]))
				k := x.order(m[j])
				if last && j == 2 && x.same {
					v--
				}
				d = d.residual(words, v, k, f.Bits+1)
				x.saw(v)
			}
		case f.Kind <= Wrap:
			v := zigzag(f.signed(f.code(cur), f.code(ref.row)))
			k := x.order(ref.moved(f))
			if last && x.same {
				v--
			}
			d = d.residual(words, v, k, f.Bits)
			x.saw(v)
		default:
			changed := f.differs(cur, ref.row)
			if !(last && x.same) {
				var bit uint64
				if changed {
					bit = 1
				}
				d = d.put(words, bit, 1)
			}
			if changed {
				d = f.encodeJump(d, words, cur, ref.row)
			}
			x.same = x.same && !changed
		}
		costs[i] = Cost{uint32(c.first + i), uint32(d.n - from)}
	}
	return d
}

// decodeResiduals reads into dst what encodeCharts, if charts were written, and
// encodeResiduals wrote against ref.
func decodeResiduals(r *bitbuf.Reader, c *Component, dst []uint32, ref reference, charts bool) {
	x := context{moving: ref.base != nil, first: true, same: true}
	if c.quats > 0 {
		x.same = decodeCharts(r, c, dst, ref.row, charts)
	}
	quat := 0
	for i := range c.Fields {
		f := &c.Fields[i]
		last := i == c.last
		switch {
		case f.Bits == 0:
			f.setCode(dst, 0)
		case f.Kind == Plain:
			var v uint64
			if last && x.same || r.ReadBool() {
				v = 1
				if f.Bits > 1 {
					v += readResidual(r, plainOrder(f.Bits), f.Bits)
				}
			}
			f.setCode(dst, (f.code(ref.row)+uint64(unzigzag(v)))&lowBits(f.Bits))
			x.same = x.same && v == 0
		case f.Kind == Reference:
			now, was := dst[f.word:f.word+2], ref.row[f.word:f.word+2]
			if last && x.same || r.ReadBool() {
				readChangedReference(r, now, was)
				x.same = false
			} else {
				copy(now, was)
			}
		case f.Kind == Quat:
			q := dst[f.word : f.word+4]
			to, m := ref.chart(f, quat, q[0])
			quat++
			for j := range to {
				implied := last && j == 2 && x.same
				v := readResidual(r, x.order(m[j]), f.Bits+1)
				x.saw(v)
				if implied {
					v++
				}
				q[j+1] = uint32(int64(to[j]) + unzigzag(v)) // DecodeRow looks if it is valid
			}
		case f.Kind <= Wrap:
			implied := last && x.same
			v := readResidual(r, x.order(ref.moved(f)), f.Bits)
			x.saw(v)
			if implied {
				v++
			}
			code, ok := f.plus(f.code(ref.row), unzigzag(v))
			if !ok {
				r.Fail(ErrCode)
				return
			}
			f.setCode(dst, code)
		default:
			if last && x.same || r.ReadBool() {
				f.decodeJump(r, dst, ref.row)
				x.same = false
			} else {
				copy(dst[f.word:][:f.Words()], ref.row[f.word:])
			}
		}
	}
}

// moved returns the bits of the distance that a Linear or Wrap field went between
// the baselines.
func (ref *reference) moved(f *Field) uint {
	if ref.base == nil {
		return 0
	}
	return magnitude(f.code(ref.base), f.code(ref.base2))
}

// chart expresses the reference of a Quat field, the n-th of its row, in the chart
// that drops the given component, with the bits of the distances that its
// components went between the baselines.
func (ref *reference) chart(f *Field, n int, largest uint32) (codes [3]uint32, moved [3]uint) {
	if ref.base == nil || !ref.quats[n].turned {
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

// inChart returns the codes of a rotation, q, in the chart that drops the given component.
// words are its codes; if q is nil, it is to be made from them.
func inChart(words []uint32, q *rotation, largest uint32, b uint) [3]uint32 {
	if words[0] == largest { // they are what the rotation would give
		return [3]uint32(words[1:])
	}
	if q == nil {
		q = new(rotation)
		q.set(words, b)
	}
	return q.chart(largest, b)
}
