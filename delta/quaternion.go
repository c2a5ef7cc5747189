package delta

// This file extrapolates quaternions.

import (
	"math"
	"math/bits"
)

// rotation is a quaternion as four integers x, y, z, w. Its length is that of quatGrid. All arithmetic is in integers
// (the square root is checked in integers), so both ends get the same bits on any machine.
type rotation [4]int64

// maxQuatLength bounds the length of rotations. Its square is at most 2^53, which a float64 holds exactly, and ten bits
// remain for extrapolation.
const maxQuatLength = 94906265

// quatGrid maps the smallest-three codes of one width to rotations. Code c becomes the component c*scale - below. That
// of the largest code and the smallest is up to a step beyond sqrt(1/2), for which they stand: predictions do without
// that.
type quatGrid struct {
	scale   int64
	below   int64 // the component of code 0 is as much below zero
	most    int64 // the component of the largest number with the width of codes is as much above that
	length2 int64 // the length of the rotations, squared

	// Reciprocals: multiplying is faster than dividing. The quotients are exact, since a
	// dividend times the error of a reciprocal is less than 1.
	perStep uint64 // 2^64 / scale, rounded up
	perCos  uint64 // 2^84 / (length2>>30), rounded up
}

// quatGrids holds the grid of each width. The steps in the length, and the code of zero, are those of quantize.Quat.
var quatGrids = func() (grids [maxQuatBits + 1]quatGrid) {
	for b := uint(2); b <= maxQuatBits; b++ {
		g := &grids[b]
		most := int64(lowBits(b - 1))
		steps := max(isqrt(2*most*most)&^1, 1)
		g.scale = maxQuatLength / steps
		g.below = (isqrt(steps*steps/2) + 1) * g.scale
		g.most = int64(lowBits(b)) * g.scale
		length := steps * g.scale
		g.length2 = length * length
		g.perStep, _ = bits.Div64(1, 0, uint64(g.scale))
		g.perCos, _ = bits.Div64(1<<20, 0, uint64(g.length2>>30))
		g.perStep++
		g.perCos++
	}
	return grids
}()

// others lists the components that remain when one is dropped.
var others = [4][3]uint8{{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}}

// set restores a rotation from the four words of a Quat field whose components have b bits.
//
// Rotations are filled in place: reading a copy that was stored a moment ago in pieces of another
// size would stall.
func (q *rotation) set(words []uint32, b uint) {
	g := &quatGrids[b]
	words = words[:4]
	others := &others[words[0]&3]
	x0 := int64(words[1])*g.scale - g.below
	x1 := int64(words[2])*g.scale - g.below
	x2 := int64(words[3])*g.scale - g.below
	q[others[0]&3], q[others[1]&3], q[others[2]&3] = x0, x1, x2
	q[words[0]&3] = isqrt(g.length2 - x0*x0 - x1*x1 - x2*x2)
}

// chart returns the three other components as codes of b bits: the smallest-three form in which
// component largest is dropped.
func (q *rotation) chart(largest uint32, b uint) (codes [3]uint32) {
	q.chartTo(&codes, largest, b)
	return codes
}

// chartTo is chart, filled in place like rotations.
func (q *rotation) chartTo(codes *[3]uint32, largest uint32, b uint) {
	g := &quatGrids[b]
	others := &others[largest&3]
	sign := q[largest&3] >> 63 // -1 or 0
	codes[0] = g.code((q[others[0]&3] ^ sign) - sign)
	codes[1] = g.code((q[others[1]&3] ^ sign) - sign)
	codes[2] = g.code((q[others[2]&3] ^ sign) - sign)
}

// code returns the code nearest to x, the larger one of two.
func (g *quatGrid) code(x int64) uint32 {
	steps := min(max(x+g.below+g.scale/2, 0), g.most)
	c, _ := bits.Mul64(uint64(steps), g.perStep)
	return uint32(c)
}

// fine returns the position of x between the codes, in units of 1/2^fineBits codes.
func (g *quatGrid) fine(x int64) int64 {
	steps := min(max(x+g.below, 0), g.most)
	c, _ := bits.Mul64(uint64(steps)<<fineBits, g.perStep)
	return int64(c)
}

// largest returns the index of the component of largest magnitude, the first of equals.
func (q *rotation) largest() (l uint32) {
	most := abs(q[0])
	for i := 1; i < 4; i++ {
		x := abs(q[i])
		if x > most {
			l = uint32(i)
		}
		most = max(most, x)
	}
	return l
}

// quatMoved returns the distances between the codes of two rotations, all bits of them together; all ones if their
// charts differ.
func quatMoved(a, b []uint32) (moved uint64) {
	a, b = a[:4], b[:4]
	if a[0] != b[0] {
		return math.MaxUint64
	}
	for i := 1; i < 4; i++ {
		moved |= uint64(max(a[i], b[i]) - min(a[i], b[i]))
	}
	return moved
}

// extrapolate continues the rotation from q2 to q1 by t, in units of 1/65536 of that step. It
// follows the great circle through both, q1*sin((1+t)a)/sin(a) - q2*sin(ta)/sin(a), where a is the
// angle between them. The two factors are polynomials in cos(a) (after Eberly, "A Fast and Accurate
// Algorithm for Computing SLERP", 2011). b is the width of the codes that the rotations were made
// from.
func (q *rotation) extrapolate(q1, q2 *rotation, t int64, b uint) {
	g := &quatGrids[b]
	dot := q1[0]*q2[0] + q1[1]*q2[1] + q1[2]*q2[2] + q1[3]*q2[3]
	sign := dot >> 63 // -1 or 0: q and -q are the same rotation; take the nearer one
	dot = (dot ^ sign) - sign
	// cos(a)-1 in 34.30 fixed point, which is (dot-length2) / (length2>>30)
	cos, _ := bits.Mul64(uint64(max(g.length2-dot, 0)), g.perCos)
	x := -int64(cos >> 20)
	f1, f2 := sineRatio(t+1<<16, x), (sineRatio(t, x)^sign)-sign
	for i := range q {
		q[i] = (f1*q1[i] - f2*q2[i]) >> 20
	}
}

// sineRatio returns sin(t*a)/sin(a) in 44.20 fixed point, for t in 48.16 up to MaxExtrapolation+1
// and x = cos(a)-1 in 34.30 fixed point, -1 to 0. Six terms of the series are too few for large
// angles far ahead; the result is at most 2^11 then.
func sineRatio(t, x int64) int64 {
	t2 := t * t >> 16
	acc := sineTerm(1<<24, t2, x, 6)
	acc = sineTerm(acc, t2, x, 5)
	acc = sineTerm(acc, t2, x, 4)
	acc = sineTerm(acc, t2, x, 3)
	acc = sineTerm(acc, t2, x, 2)
	acc = sineTerm(acc, t2, x, 1)
	return t * acc >> 20
}

// sineTerm puts term i before the later ones, in 40.24 fixed point. It is inlined, so that the
// divisor is a constant.
func sineTerm(later, t2, x, i int64) int64 {
	return 1<<24 + ((t2-i*i<<16)*x>>22/(i*(2*i+1)))*later>>24
}

// isqrt returns the largest integer whose square is not above n, and 0 for n < 0.
func isqrt(n int64) int64 {
	if n <= 0 {
		return 0
	}
	x := int64(math.Sqrt(float64(n)))
	if uint64(x*x) > uint64(n) { // converting n to a float64 rounded it up
		x--
	}
	return x
}

// abs returns the magnitude of x, without a branch: signs are hard to predict.
func abs(x int64) int64 {
	sign := x >> 63 // -1 or 0
	return (x ^ sign) - sign
}
