package delta

// This file estimates how badly a row is predicted.

import "math/bits"

// DeviationBits returns the number of bits of the distances between a row's numbers and a straight motion, added up;
// close numbers count 0. It is a quick estimate of whether an update may be longer than the state without a baseline,
// since an adaptive coding spends several bits on each bit of a rare distance. The arguments are those of
// [Packed.EncodeRow], with a baseline.
func (c *Component) DeviationBits(cur, base, base2 []uint32, ratio int64) (n int) {
	for i := range c.numbers {
		x := &c.numbers[i]
		if cur[x.word]-base[x.word]+x.near <= 2*x.near && x.high == 0 { // the usual case
			continue
		}
		f := x.field
		now, was := x.code(cur), x.code(base)
		if f.Kind == Quat && cur[f.word] != base[f.word] {
			n += int(f.Bits) // in another chart: the distance is not known
			continue
		}
		off := f.between(now, was)
		if base2 != nil && ratio != 0 && f.Bits <= maxMovingBits && (f.Kind != Quat || base[f.word] == base2[f.word]) {
			off -= f.between(was, x.code(base2)) * ratio >> 16
		}
		if a := uint64(abs(off)); a > uint64(x.near) {
			n += bits.Len64(a)
		}
	}
	return n
}

// numberWord is a Linear or Wrap field of a row, or a component of a Quat.
type numberWord struct {
	field *Field
	word  int
	high  int    // second word, 0 if there is none
	near  uint32 // distances below this are close
}

func (x *numberWord) code(row []uint32) uint64 {
	if x.high != 0 {
		return uint64(row[x.word]) | uint64(row[x.high])<<32
	}
	return uint64(row[x.word])
}

// between returns the distance of two codes, the shorter one on a circle.
func (f *Field) between(a, b uint64) int64 {
	if f.Kind == Wrap {
		return f.signed(a, b)
	}
	return int64(a - b)
}

// addNumbers lists the numbers of a field.
func (c *Component) addNumbers(f *Field) {
	x := numberWord{field: f, word: f.word, near: 1 << min(f.Bits*2/5, 16)}
	switch {
	case f.Bits == 0:
	case f.Kind == Quat:
		for j := range 3 {
			x.word = f.word + 1 + j
			c.numbers = append(c.numbers, x)
		}
	case f.Kind == Linear || f.Kind == Wrap:
		if f.Bits > 32 {
			x.high = f.word + 1
		}
		c.numbers = append(c.numbers, x)
	}
}
