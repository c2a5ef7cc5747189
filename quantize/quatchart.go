package quantize

import "math"

// quatChart is a QuatCode as signed odd integers, in units of 1/(M*sqrt(2)): a unit quaternion has the squared length
// 2*M².
type quatChart struct {
	out int      // the component left out
	n   [3]int64 // the others, in order
}

// quatKept lists the components kept where one is left out.
var quatKept = [4][3]uint8{{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}}

const (
	// quatMargin is the distance, in units, below which two components are so close that the choice of the one left
	// out needs care. A reachable chart restores no less than its largest component - 5; add the roundings of both,
	// up to 4, and some margin.
	quatMargin = 12
	// quatTiny is the width below which a few units are so large a part of the range that every case needs care.
	quatTiny = 6
	// quatTwins is the width from which two charts can decode to the same float32 values.
	quatTwins = 11
	// quatSame is the largest difference of two components, both of a unit quaternion, that the roundings of float32
	// storage and of normalising can make.
	quatSame = 0x1p-22
)

// project returns the nearest chart with a given component left out. v is in units.
func (q Quat) project(v *[4]float64, out int) quatChart {
	m := float64(q.Max())
	chart := quatChart{out: out}
	sign := math.Copysign(1, v[out])
	for k, i := range quatKept[out] {
		code := int64(roundCode(float64((float64(v[i]*sign) + m) * 0.5)))
		code = min(max(code, 0), int64(q.Max()))
		chart.n[k] = 2*code - int64(q.Max())
	}
	return chart
}

// rest returns the square of the component left out. It is 7 modulo 8 (M is odd, and so are the three n), hence never
// zero and never equal to the square of a kept component: there are no exact ties.
func (q Quat) rest(c quatChart) int64 {
	m := int64(q.Max())
	return 2*m*m - c.n[0]*c.n[0] - c.n[1]*c.n[1] - c.n[2]*c.n[2]
}

// quatReachable reports whether rounding can produce the kept components a, b, c: whether some quaternion within one
// unit of each has its largest component left out. The one with the smallest kept components decides, which are |a| - 1
// and so on; their squares leave rest + 2*(|a|+|b|+|c|) - 3 for the one left out.
func quatReachable(a, b, c, rest int64) bool {
	a, b, c = absInt(a), absInt(b), absInt(c)
	inner := max(a, b, c) - 1
	return rest > 0 && rest+2*(a+b+c)-3 >= inner*inner
}

// reachable is quatReachable of the chart.
func (q Quat) reachable(c quatChart) bool {
	return quatReachable(c.n[0], c.n[1], c.n[2], q.rest(c))
}

// settle returns the code to use where the choice of the component left out needs care: that of the first chart that
// decodes to v itself, if there is one, else of the nearest with the largest component left out. v is in units.
func (q Quat) settle(v *[4]float64, largest int) QuatCode {
	threshold := math.Abs(v[largest]) - quatMargin
	for out, x := range v {
		if math.Abs(x) < threshold && q.bits >= quatTiny {
			continue
		}
		if c := q.project(v, out); q.reproduces(c, v) {
			return q.pack(q.lowest(c))
		}
	}
	nearest := q.project(v, largest)
	// With two bits the kept components can be rounded up to more than unit length. Undo the largest rounding; this
	// ends at the latest when all three are ±1, which is less than unit length.
	for q.rest(nearest) < 0 {
		worst, excess := 0, math.Inf(-1)
		for k, i := range quatKept[largest] {
			n := absInt(nearest.n[k])
			if e := float64(n) - math.Abs(v[i]); n > 1 && e > excess {
				worst, excess = k, e
			}
		}
		if nearest.n[worst] > 0 {
			nearest.n[worst] -= 2
		} else {
			nearest.n[worst] += 2
		}
	}
	return q.pack(q.lowest(nearest))
}

// reproduces reports whether the chart decodes to v, but for the rounding of v to float32.
func (q Quat) reproduces(c quatChart, v *[4]float64) bool {
	sign, same := math.Copysign(1, v[c.out]), q.scale*quatSame
	for k, i := range quatKept[c.out] {
		if math.Abs(float64(c.n[k])-float64(v[i]*sign)) > same {
			return false
		}
	}
	return q.reachable(c) && math.Abs(math.Sqrt(float64(q.rest(c)))-math.Abs(v[c.out])) <= same
}

// lowest returns the twin with the lowest index left out.
func (q Quat) lowest(c quatChart) quatChart {
	for q.bits >= quatTwins {
		twin, found := q.lowerTwin(c)
		if !found {
			break
		}
		c = twin
	}
	return c
}

// hasLowerTwin reports whether lowerTwin finds one, so that the code is not the one to use.
func (q Quat) hasLowerTwin(code QuatCode) bool {
	_, found := q.lowerTwin(q.unpack(code))
	return found
}

// lowerTwin returns a chart that decodes to the same float32 values as c, or nearly, and leaves out a lower index. It
// decides by integers, so that Encode and Decode agree. A twin differs from c in that the component left out is rounded
// to an odd integer, while the lower one takes the rest.
func (q Quat) lowerTwin(c quatChart) (twin quatChart, found bool) {
	m, rest := int64(q.Max()), q.rest(c)
	// As a difference of squares, a little more than the 2*quatSame*scale * 2*M by which two charts that reproduce the
	// same v can differ.
	same := m * m >> 19
	root := math.Sqrt(float64(rest))
	odd := int64(root/2)*2 + 1
	if odd > m || absInt(rest-odd*odd) > same {
		return quatChart{}, false
	}
	for lower := range c.out { // the kept components below the one left out are the first ones
		p := c.n[lower]
		if math.Abs(float64(absInt(p))-root) > quatMargin {
			continue
		}
		twin = quatChart{out: lower}
		k := 0
		for i := range 4 {
			switch {
			case i == lower:
				continue
			case i == c.out:
				twin.n[k] = odd
			case i < c.out:
				twin.n[k] = c.n[i]
			default:
				twin.n[k] = c.n[i-1]
			}
			if p < 0 { // the component left out is positive: negate all
				twin.n[k] = -twin.n[k]
			}
			k++
		}
		if q.reachable(twin) {
			return twin, true
		}
	}
	return quatChart{}, false
}

// pack returns the code of a chart.
func (q Quat) pack(c quatChart) QuatCode {
	m := int64(q.Max())
	code := func(n int64) uint32 { return uint32((n + m) >> 1) }
	return QuatCode{Largest: uint32(c.out), A: code(c.n[0]), B: code(c.n[1]), C: code(c.n[2])}
}

// unpack returns the chart of a code.
func (q Quat) unpack(code QuatCode) quatChart {
	m := int64(q.Max())
	return quatChart{out: int(code.Largest), n: [3]int64{2*int64(code.A) - m, 2*int64(code.B) - m, 2*int64(code.C) - m}}
}
