package delta

// This file extrapolates rows from two baselines.

import (
	"math/bits"
	"slices"
)

// MaxExtrapolation bounds how far prediction goes beyond the first baseline, in units of
// the distance between the two. Beyond that an old motion predicts nothing: the prediction
// is rest.
const MaxExtrapolation = 8

// maxMovingBits is the largest width of a Linear or Wrap code that is extrapolated: a
// difference times the largest ratio has to fit into 63 bits.
const maxMovingBits = 44

// Ratio returns the distance of tick now from baseline tick a1, in units of 1/65536 of the distance from the second
// baseline a2 to a1. It is 0, which predicts rest, beyond [MaxExtrapolation] and if the ticks are not in order.
func Ratio(now, a1, a2 Tick) int64 {
	ahead, span := int64(now-a1), int64(a1-a2)
	if !now.After(a1) || !a1.After(a2) || ahead > MaxExtrapolation*span {
		return 0
	}
	return ahead << 16 / span
}

// predictor extrapolates one component from two baselines. It is scratch memory, valid until the
// next call of predict.
type predictor struct {
	row   []uint32 // predicted codes
	quats []quatPrediction
	moved uint64 // the distances between the baselines, all bits of them together; all ones if a chart changed
}

// quatPrediction keeps the rotations of a Quat field, so that they can be expressed in the chart of
// the value to be coded. A field that did not rotate between the baselines has only its row.
type quatPrediction struct {
	rotated           bool
	base, base2, next rotation
}

// predict fills p with the prediction for component c and reports whether it differs
// from base. base2 may be nil. Valid rows give a valid prediction.
func (p *predictor) predict(c *Component, base, base2 []uint32, ratio int64) (moving bool) {
	return !rests(c, base, base2, ratio) && p.extrapolate(c, base, base2, ratio)
}

// rests reports whether there is nothing to extrapolate: no second baseline, or the same row at
// both.
func rests(c *Component, base, base2 []uint32, ratio int64) bool {
	return base2 == nil || ratio == 0 || !c.moves || alike(base, base2)
}

// alike is equal for rows that are not empty and may be the same memory. It does not read that
// then.
func alike(a, b []uint32) bool { return &a[0] == &b[0] || equal(a, b) }

// extrapolate is predict for rows that differ.
func (p *predictor) extrapolate(c *Component, base, base2 []uint32, ratio int64) (moving bool) {
	p.row = slices.Grow(p.row[:0], len(base))[:len(base)]
	p.quats, p.moved = p.quats[:0], 0
	differ := uint64(0)
	for i := range c.Fields {
		f := &c.Fields[i]
		switch f.Kind {
		case Linear, Wrap:
			b := f.code(base)
			next, moved := f.extrapolate(b, f.code(base2), ratio)
			f.setCode(p.row, next)
			p.moved |= moved
			differ |= next ^ b
		case Quat:
			moving = p.rotate(f, base, base2, ratio) || moving
		default:
			copy(p.row[f.word:][:f.Words()], base[f.word:])
		}
	}
	return moving || differ != 0
}

// extrapolate returns the code of a Linear or Wrap field that is expected after two others, and their distance.
func (f *Field) extrapolate(b, b2 uint64, ratio int64) (next, moved uint64) {
	moved = max(b, b2) - min(b, b2)
	if f.Bits > maxMovingBits {
		return b, moved // rest
	}
	if f.Kind == Wrap {
		return uint64(f.around(int64(b) + (f.signed(b, b2)*ratio+1<<15)>>16)), moved
	}
	return uint64(min(max(int64(b)+(int64(b-b2)*ratio+1<<15)>>16, 0), int64(f.Max))), moved
}

// rotate is extrapolate for a Quat field.
func (p *predictor) rotate(f *Field, base1, base2 []uint32, ratio int64) (moving bool) {
	w, b := f.word, f.Bits
	row, base, before := (*[4]uint32)(p.row[w:]), (*[4]uint32)(base1[w:]), (*[4]uint32)(base2[w:])
	*row = *base
	p.quats = append(p.quats, quatPrediction{})
	if *base == *before {
		return false
	}
	q := &p.quats[len(p.quats)-1]
	q.rotated = true
	p.moved |= quatMoved(base[:], before[:])
	q.base.set(base[:], b)
	q.base2.set(before[:], b)
	q.next.extrapolate(&q.base, &q.base2, ratio, b)
	row[0] = q.next.largest()
	q.next.chartTo((*[3]uint32)(row[1:]), row[0], b)
	return *row != *base
}

// signed reads the low n bits of v as a number in two's complement; v is 0 for n = 0.
func signed(v uint64, n uint) int64 {
	s := (64 - n) & 63
	return int64(v<<s) >> s
}

// zigzag maps numbers of small magnitude to small ones: 0, -1, 1, -2 to 0, 1, 2, 3.
func zigzag(v int64) uint64 { return uint64(v<<1) ^ uint64(v>>63) }

// unzigzag undoes zigzag.
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// magnitude returns the number of bits of |a-b|.
func magnitude(a, b uint64) uint {
	if a < b {
		a, b = b, a
	}
	return uint(bits.Len64(a - b))
}
