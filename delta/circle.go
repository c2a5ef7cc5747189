package delta

// Most circles of Wrap fields have 2^Bits codes, and going round them is what integers of
// that width do anyway. On others, such as that of 360 degrees, it takes a comparison.

// signed returns how far a Linear or Wrap code is from another one, the shorter way round
// on a circle, and downwards if both are as long.
func (f *Field) signed(code, from uint64) int64 {
	if f.turn == 0 {
		return signed(code-from, f.Bits)
	}
	return shorterWay(code, from, f.turn)
}

// shorterWay is signed for a circle of any number of codes.
func shorterWay(code, from, turn uint64) int64 {
	d := code - from
	if code < from {
		d += turn
	}
	if d >= turn-turn/2 {
		d -= turn
	}
	return int64(d)
}

// plus returns the code of a Linear or Wrap field at the signed distance d from another
// one, or false if no code is that far away.
func (f *Field) plus(from uint64, d int64) (code uint64, ok bool) {
	if f.turn == 0 {
		return (from + uint64(d)) & lowBits(f.Bits), true
	}
	return goRound(from, d, f.turn)
}

// goRound is plus for a circle of any number of codes.
func goRound(from uint64, d int64, turn uint64) (code uint64, ok bool) {
	code = from + uint64(d)
	switch {
	case zigzag(d) >= turn:
		return 0, false
	case d < 0 && code > from:
		code += turn
	case d >= 0 && (code < from || code >= turn):
		code -= turn
	}
	return code, true
}

// around returns the code that a Wrap's number of any size stands for. The code has at
// most maxMovingBits bits.
func (f *Field) around(x int64) int64 {
	if f.turn == 0 {
		return x & int64(lowBits(f.Bits))
	}
	if x %= int64(f.turn); x < 0 {
		x += int64(f.turn)
	}
	return x
}
