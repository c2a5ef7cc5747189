package delta

// This file does arithmetic on the circles of Wrap fields. Most circles have 2^Bits codes, and
// integers of that width wrap by themselves. Others, such as that of 360 degrees, need a
// comparison.

// signed returns the distance of a Linear or Wrap code from another one: on a circle the shorter
// way round, and downwards if both ways are equally long.
func (f *Field) signed(code, from uint64) int64 {
	if f.circle == 0 {
		return signed(code-from, f.Bits)
	}
	return shorterWay(code, from, f.circle)
}

// shorterWay is signed for a circle of any number of codes.
func shorterWay(code, from, circle uint64) int64 {
	d := code - from
	if code < from {
		d += circle
	}
	if d >= circle-circle/2 {
		d -= circle
	}
	return int64(d)
}

// plus returns the code of a Linear or Wrap field at the signed distance d from another one, or
// false if no code is that far away.
func (f *Field) plus(from uint64, d int64) (code uint64, ok bool) {
	if f.circle == 0 {
		return (from + uint64(d)) & lowBits(f.Bits), true
	}
	return goRound(from, d, f.circle)
}

// goRound is plus for a circle of any number of codes.
func goRound(from uint64, d int64, circle uint64) (code uint64, ok bool) {
	code = from + uint64(d)
	switch {
	case zigzag(d) >= circle:
		return 0, false
	case d < 0 && code > from:
		code += circle
	case d >= 0 && (code < from || code >= circle):
		code -= circle
	}
	return code, true
}

// around returns the code of a Wrap field for a number of any size. The code has at most
// maxMovingBits bits.
func (f *Field) around(x int64) int64 {
	if f.circle == 0 {
		return x & int64(lowBits(f.Bits))
	}
	if x %= int64(f.circle); x < 0 {
		x += int64(f.circle)
	}
	return x
}
