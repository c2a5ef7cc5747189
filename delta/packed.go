package delta

import (
	"errors"
	"math"
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// ErrCode is the error of a decoder that met a code outside its field's range.
var ErrCode = errors.New("delta: a code outside its field's range")

// Packed is the coding of rows in static codes: the bits of a row depend on the row,
// its baselines and the layout alone, so they can be copied into many packets. It
// holds scratch memory only; use one per goroutine.
//
// A row without a baseline is its codes at fixed width, field after field. With one
// it begins with a symbol. If the prediction from the two baselines differs from the
// first baseline, the component is moving:
//
//	moving   0    residuals against the prediction
//	         10   equal to the prediction
//	         110  equal to the baseline
//	         111  residuals against the baseline
//	still    0    equal to the baseline
//	         1    residuals against the baseline
//
// Residuals follow field by field, in the codes of golomb.go. Of the two ways to code a
// moving row that is neither the prediction nor the baseline, the shorter one is taken.
//
// A row takes at most 2 bits more with a second baseline than without it, and at most 3
// bits and three times its fixed width in all.
type Packed struct {
	layout *Layout
	predictor
	// Costs lists what the rows written since it was last emptied have cost. The user
	// empties it.
	Costs []Cost
	spent []uint32 // by the row being written, per field of the component
}

// A Cost is a number of bits that went to one field, by its index in the layout; the
// symbols of component c count as field [Layout.Fields]+c.
type Cost struct {
	Field, Bits uint32
}

// NewPacked returns the coding for a layout.
func NewPacked(l *Layout) *Packed {
	most := 0
	for i := range l.Components {
		most = max(most, len(l.Components[i].Fields))
	}
	return &Packed{layout: l, spent: make([]uint32, most)}
}

// EncodeRow appends the row cur of component c. base is the row of the first baseline
// or nil, base2 that of the second or nil, ratio the [Ratio] of their ticks. The rows
// are only read. They must be valid, as [Component.Valid] says.
func (p *Packed) EncodeRow(w *bitbuf.Writer, c int, cur, base, base2 []uint32, ratio int64) {
	comp := &p.layout.Components[c]
	if base == nil {
		p.encodeAbsolute(w, comp, cur)
		return
	}
	if comp.width == 0 {
		return
	}
	symbol := func(bits uint32) { p.Costs = append(p.Costs, Cost{uint32(p.layout.fields + c), bits}) }
	if !p.predict(comp, base, base2, ratio) {
		symbol(1)
		if equal(cur, base) {
			w.WriteBits(0b0, 1)
			return
		}
		w.WriteBits(0b1, 1)
		p.encodeResiduals(w, comp, cur, reference{row: base})
		p.commit(comp)
		return
	}
	switch {
	case equal(cur, p.row):
		w.WriteBits(0b01, 2)
		symbol(2)
		return
	case equal(cur, base):
		w.WriteBits(0b011, 3)
		symbol(3)
		return
	}
	start, from := w.Mark(), w.Len()
	w.WriteBits(0b111, 3)
	p.encodeResiduals(w, comp, cur, reference{row: base})
	plain := w.Len() - from
	if w.Err() != nil {
		plain = math.MaxInt // what did not fit is not the shorter one
	}
	w.Rollback(start)
	w.WriteBits(0b0, 1)
	moving := reference{row: p.row, base: base, base2: base2, quats: p.quats}
	p.encodeResiduals(w, comp, cur, moving)
	if w.Err() == nil && w.Len()-from <= plain {
		symbol(1)
	} else {
		w.Rollback(start)
		w.WriteBits(0b111, 3)
		p.encodeResiduals(w, comp, cur, reference{row: base})
		symbol(3)
	}
	p.commit(comp)
}

// commit books the bits that encodeResiduals noted.
func (p *Packed) commit(c *Component) {
	for i := range c.Fields {
		p.Costs = append(p.Costs, Cost{uint32(c.first + i), p.spent[i]})
	}
}

// DecodeRow reads a row of component c into dst, which must not overlap the baselines.
// The other arguments are those of EncodeRow. An error is left in the Reader; dst then
// holds anything.
func (p *Packed) DecodeRow(r *bitbuf.Reader, c int, dst, base, base2 []uint32, ratio int64) {
	comp := &p.layout.Components[c]
	switch {
	case base == nil:
		decodeAbsolute(r, comp, dst)
	case comp.width == 0:
		clear(dst)
		return
	case !p.predict(comp, base, base2, ratio):
		if !r.ReadBool() {
			copy(dst, base)
			return
		}
		decodeResiduals(r, comp, dst, reference{row: base})
	case !r.ReadBool():
		decodeResiduals(r, comp, dst, reference{row: p.row, base: base, base2: base2, quats: p.quats})
	case !r.ReadBool():
		copy(dst, p.row)
		return
	case !r.ReadBool():
		copy(dst, base)
		return
	default:
		decodeResiduals(r, comp, dst, reference{row: base})
	}
	if r.Err() == nil && !comp.Valid(dst) {
		r.Fail(ErrCode)
	}
}

func (p *Packed) encodeAbsolute(w *bitbuf.Writer, c *Component, cur []uint32) {
	for i := range c.Fields {
		f := &c.Fields[i]
		if f.Kind == Quat {
			q := cur[f.word : f.word+4]
			w.WriteBits(uint64(q[0]), 2)
			for _, x := range q[1:] {
				w.WriteBits(uint64(x), f.Bits)
			}
		} else {
			w.WriteBits(f.code(cur), f.Bits)
		}
		p.Costs = append(p.Costs, Cost{uint32(c.first + i), uint32(f.Width())})
	}
}

func decodeAbsolute(r *bitbuf.Reader, c *Component, dst []uint32) {
	for i := range c.Fields {
		f := &c.Fields[i]
		if f.Kind == Quat {
			q := dst[f.word : f.word+4]
			q[0] = uint32(r.ReadBits(2))
			for j := range q[1:] {
				q[j+1] = uint32(r.ReadBits(f.Bits))
			}
		} else {
			f.setCode(dst, r.ReadBits(f.Bits))
		}
	}
}

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

// encodeResiduals appends cur against ref, from which it differs: if no residual before
// the last one tells so, that one is not zero and is written less one.
//
//	Linear, Wrap  the distance from the reference, in the code of order context.order
//	Plain         0 for the same, which is left out if only 1 is possible, or
//	              1 and the distance less one, in the code of order plainOrder
//	Quat          0 for the same chart, or 1 and the chart's two bits; then three
//	              distances from the reference in that chart
//
// Distances are zigzag codes of the field's width; those of a Quat, which does not wrap,
// take a bit more.
func (p *Packed) encodeResiduals(w *bitbuf.Writer, c *Component, cur []uint32, ref reference) {
	x := context{moving: ref.base != nil, first: true, same: true}
	quat := 0
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
				writeResidual(w, v-1, plainOrder(f.Bits), f.Bits)
			}
			x.same = x.same && v == 0
		case f.Kind == Quat:
			q := cur[f.word : f.word+4]
			to, m := ref.chart(f, quat, q[0])
			quat++
			if q[0] == ref.row[f.word] {
				w.WriteBits(0b0, 1)
			} else {
				w.WriteBits(1|uint64(q[0])<<1, 3)
				x.same = false
			}
			for j := range to {
				v := zigzag(int64(q[j+1]) - int64(to[j]))
				k := x.order(m[j])
				if last && j == 2 && x.same {
					v--
				}
				writeResidual(w, v, k, f.Bits+1)
				x.saw(v)
			}
		default:
			v := zigzag(signed(f.code(cur)-f.code(ref.row), f.Bits))
			k := x.order(ref.moved(f))
			if last && x.same {
				v--
			}
			writeResidual(w, v, k, f.Bits)
			x.saw(v)
		}
		p.spent[i] = uint32(w.Len() - from)
	}
}

// decodeResiduals reads into dst what encodeResiduals wrote against ref.
func decodeResiduals(r *bitbuf.Reader, c *Component, dst []uint32, ref reference) {
	x := context{moving: ref.base != nil, first: true, same: true}
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
		case f.Kind == Quat:
			q := dst[f.word : f.word+4]
			q[0] = ref.row[f.word]
			if r.ReadBool() {
				l := uint32(r.ReadBits(2))
				if l == q[0] { // would have been written as the same
					r.Fail(ErrCode)
					return
				}
				q[0] = l
				x.same = false
			}
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
		default:
			implied := last && x.same
			v := readResidual(r, x.order(ref.moved(f)), f.Bits)
			x.saw(v)
			if implied {
				v++
			}
			f.setCode(dst, (f.code(ref.row)+uint64(unzigzag(v)))&lowBits(f.Bits))
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
	if ref.base == nil {
		if ref.row[f.word] != largest {
			q := rotationOf(ref.row[f.word:f.word+4], f.Bits)
			return q.chart(largest, f.Bits), moved
		}
		return [3]uint32(ref.row[f.word+1:]), moved
	}
	q := &ref.quats[n]
	b1, b2 := f.inChart(ref.base, &q.base, largest), f.inChart(ref.base2, &q.base2, largest)
	for j := range moved {
		moved[j] = magnitude(uint64(b1[j]), uint64(b2[j]))
	}
	return f.inChart(ref.row, &q.next, largest), moved
}

// inChart returns the codes of a Quat field of the row, whose rotation is q, in the chart
// that drops the given component.
func (f *Field) inChart(row []uint32, q *rotation, largest uint32) [3]uint32 {
	if row[f.word] == largest { // the row has what the rotation would give, and no division
		return [3]uint32(row[f.word+1:])
	}
	return q.chart(largest, f.Bits)
}
