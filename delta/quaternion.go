package delta

import "math"

// A rotation as four integers x, y, z, w, the form in which quaternions are predicted.
// Its unit, see [quatGrid], stands for 1/sqrt(2). All of it is integer arithmetic (the
// square root is checked in integers), so both ends get the same bits on any machine.
type rotation [4]int64

// maxQuatUnit bounds the unit of rotations: their squared lengths are at most 2^53, which
// a float64 holds exactly, and ten bits are left for extrapolating them.
const maxQuatUnit = 1 << 26

// quatGrid returns the largest code m of a smallest-three component of b bits, and the
// scale of the rotations made from them: code c becomes (2c-m)*scale, and the unit
// m*scale is the largest multiple of m up to maxQuatUnit.
func quatGrid(b uint) (m, scale int64) {
	m = int64(lowBits(b))
	return m, maxQuatUnit / m
}

// rotationOf restores a rotation from the four words of a Quat field whose
// components have b bits: component c stands for (2c-m)/m/sqrt(2), m = 2^b-1.
func rotationOf(words []uint32, b uint) rotation {
	var q rotation
	m, scale := quatGrid(b)
	largest, j, sum := words[0]&3, 1, int64(0)
	for i := range q {
		if i != int(largest) {
			x := (2*int64(words[j]) - m) * scale
			q[i] = x
			sum += x * x
			j++
		}
	}
	unit := m * scale
	q[largest] = isqrt(2*unit*unit - sum)
	return q
}

// chart returns the three components of the smallest-three form in which component
// largest is dropped, as codes of b bits.
func (q *rotation) chart(largest uint32, b uint) (codes [3]uint32) {
	m, scale := quatGrid(b)
	sign := int64(1)
	if q[largest&3] < 0 {
		sign = -1
	}
	j := 0
	for i, x := range q {
		if i != int(largest&3) {
			c := (floorDiv(sign*x, scale) + m + 1) >> 1
			codes[j] = uint32(min(max(c, 0), m))
			j++
		}
	}
	return codes
}

// largest returns the index of the component of largest magnitude.
func (q *rotation) largest() uint32 {
	l := 0
	for i := 1; i < 4; i++ {
		if abs(q[i]) > abs(q[l]) {
			l = i
		}
	}
	return uint32(l)
}

// extrapolate goes on from q2 over q1 as far again as t says, in units of 1/65536
// of the step from q2 to q1: the great circle through both, q1*sin((1+t)a)/sin(a) -
// q2*sin(ta)/sin(a), a being the angle between them. The two factors are polynomials
// in cos(a) (after Eberly, "A Fast and Accurate Algorithm for Computing SLERP", 2011).
// b is the width that the rotations were made from.
func extrapolate(q1, q2 *rotation, t int64, b uint) rotation {
	dot := q1[0]*q2[0] + q1[1]*q2[1] + q1[2]*q2[2] + q1[3]*q2[3]
	sign := int64(1)
	if dot < 0 { // q and -q are the same rotation: take the nearer one
		dot, sign = -dot, -1
	}
	m, scale := quatGrid(b)
	length2 := 2 * (m * scale) * (m * scale) // the length of q1 and q2, squared
	x := min((dot-length2)/(length2>>30), 0) // cos(a)-1 in 34.30 fixed point
	f1, f2 := sineRatio(t+1<<16, x), sineRatio(t, x)*sign
	var q rotation
	for i := range q {
		q[i] = (f1*q1[i] - f2*q2[i]) >> 20
	}
	return q
}

// sineRatio returns sin(t*a)/sin(a) in 44.20 fixed point for t in 48.16, up to
// MaxExtrapolation+1, and x = cos(a)-1 in 34.30 fixed point, -1 to 0. Six terms of the
// series are too few for large angles far ahead; what comes out then is at most 2^11.
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

// sineTerm puts term i before the later ones, in 40.24 fixed point. It is inlined, so that
// the division is one by a constant.
func sineTerm(later, t2, x, i int64) int64 {
	return 1<<24 + ((t2-i*i<<16)*x>>22/(i*(2*i+1)))*later>>24
}

// isqrt returns the largest integer whose square is not above n, 0 for n < 0.
func isqrt(n int64) int64 {
	if n <= 0 {
		return 0
	}
	x := uint64(math.Sqrt(float64(n)))
	if x*x > uint64(n) { // n was rounded up to what a float64 can hold
		x--
	}
	return int64(x)
}

func abs(x int64) int64 {
	if x < 0 {
		return -x
	}
	return x
}

// floorDiv returns a/b rounded down, b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
