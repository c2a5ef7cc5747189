package delta

import "math/bits"

// Leap returns how many bits the distances have, together, by which the numbers of a row are not
// where a straight motion would have taken them: 0 where none is far off. It is a guess, quickly
// made, for who wants to know which updates may be longer than the state without baseline: in an
// adaptive coding a length that was never seen may take several bits for each of its own.
//
// The arguments are those of [Packed.EncodeRow], with a baseline; base2 may be nil.
func (c *Component) Leap(cur, base, base2 []uint32, ratio int64) (n int) {
	for i := range c.numbers {
		x := &c.numbers[i]
		if cur[x.word]-base[x.word]+x.near <= 2*x.near && x.high == 0 { // mostly so
			continue
		}
		f := x.field
		now, was := x.code(cur), x.code(base)
		if f.Kind == Quat && cur[f.word] != base[f.word] {
			n += int(f.Bits) // of another chart: it is not known how far that is
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

// A numberWord is a Linear or Wrap field of a row, or a component of a Quat.
type numberWord struct {
	field *Field
	word  int
	high  int    // second word, 0: none
	near  uint32 // less than this is not far
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
