package quantize

import "math"

// quatChart is a QuatCode as signed integers, in steps of 1/S.
//
// Lengths are compared by their squares, doubled, so that all are integers: 2*n², S² for n = ±N, and 2*S² for a unit
// quaternion.
type quatChart struct {
	out int      // the component left out
	n   [3]int64 // the others, in order
}

// quatKept lists the components kept where one is left out.
var quatKept = [4][3]uint8{{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}}

const (
	sqrtHalf = math.Sqrt2 / 2
	// quatMargin is the distance, in steps, below which two components are so close that the choice of the one left
	// out needs care. A reachable chart restores no less than its largest component - 2.5; add the roundings of both,
	// up to 2, and some margin.
	quatMargin = 6
	// quatTiny is the width below which a few steps are so large a part of the range that every case needs care.
	quatTiny = 6
	// quatSame is the largest difference of two components, both of a unit quaternion, that the roundings of float32
	// storage and of normalising can make.
	quatSame = 0x1p-22
)

// square returns the doubled square of the length of a unit quaternion.
func (q Quat) square() int64 {
	length := int64(q.length)
	return 2 * length * length
}

// squareOf returns the doubled square of a component.
func (q Quat) squareOf(n int64) int64 {
	if n = absInt(n); n == int64(q.top) {
		return q.square() / 2
	}
	return 2 * n * n
}

// rest returns the doubled square of the component left out.
func (q Quat) rest(c *quatChart) int64 {
	return q.square() - q.squareOf(c.n[0]) - q.squareOf(c.n[1]) - q.squareOf(c.n[2])
}

// steps returns the component that n stands for, in steps.
func (q Quat) steps(n int64) float64 {
	if absInt(n) == int64(q.top) {
		return math.Copysign(float64(q.length*sqrtHalf), float64(n))
	}
	return float64(n)
}

// edge returns the middle between the two largest components, in steps.
func (q Quat) edge() float64 { return (float64(q.top-1) + float64(q.length*sqrtHalf)) / 2 }

// round returns the n nearest to a component, given in steps.
func (q Quat) round(x float64) int64 {
	if math.Abs(x) > q.edge() {
		return int64(math.Copysign(float64(q.top), x))
	}
	return int64(roundCode(x))
}

// project returns the nearest chart with a given component left out. v is in steps.
func (q Quat) project(v *[4]float64, out int) quatChart {
	chart := quatChart{out: out}
	sign := math.Copysign(1, v[out])
	for k, i := range quatKept[out] {
		chart.n[k] = q.round(float64(v[i] * sign))
	}
	return chart
}

// reachable reports whether rounding can produce a chart: whether its cell contains a quaternion whose largest
// component is the one left out. The one with the smallest kept components decides.
func (q Quat) reachable(c *quatChart) bool {
	// In half steps: the cell of n begins at 2*|n| - 1.
	inner := func(n int64) float64 {
		switch n = absInt(n); n {
		case 0:
			return 0
		case int64(q.top):
			return float64(2*q.edge()) - 0x1p-10 // no integer: the rounding of v may have gone down
		}
		return float64(2*n - 1)
	}
	x, y, z := inner(c.n[0]), inner(c.n[1]), inner(c.n[2])
	largest := max(x, y, z)
	left := float64(2*q.square()) - float64(x*x) - float64(y*y) - float64(z*z)
	return q.rest(c) > 0 && left >= float64(largest*largest)
}

// settle returns the code to use where the choice of the component left out needs care: that of a chart that decodes
// to v itself, if there is one, else of the nearest with the largest component left out. v is in steps.
func (q Quat) settle(v *[4]float64, largest int) QuatCode {
	threshold := math.Abs(v[largest]) - quatMargin
	for out := 3; out >= 0; out-- {
		if math.Abs(v[out]) < threshold && q.bits >= quatTiny {
			continue
		}
		if c := q.project(v, out); q.reproduces(&c, v) {
			return q.pack(q.highest(c))
		}
	}
	nearest := q.project(v, largest)
	// With two bits the kept components can be rounded up to unit length and more. Undo the largest rounding; this ends
	// at the latest when all three are zero.
	for q.rest(&nearest) <= 0 {
		worst, excess := 0, math.Inf(-1)
		for k, i := range quatKept[largest] {
			if e := math.Abs(q.steps(nearest.n[k])) - math.Abs(v[i]); nearest.n[k] != 0 && e > excess {
				worst, excess = k, e
			}
		}
		if nearest.n[worst] > 0 {
			nearest.n[worst]--
		} else {
			nearest.n[worst]++
		}
	}
	return q.pack(q.highest(nearest))
}

// reproduces reports whether the chart decodes to v, but for the rounding of v to float32.
func (q Quat) reproduces(c *quatChart, v *[4]float64) bool {
	sign, same := math.Copysign(1, v[c.out]), q.length*quatSame
	for k, i := range quatKept[c.out] {
		if math.Abs(q.steps(c.n[k])-float64(v[i]*sign)) > same {
			return false
		}
	}
	return q.reachable(c) && math.Abs(math.Sqrt(float64(q.rest(c))/2)-math.Abs(v[c.out])) <= same
}

// highest returns the twin with the highest index left out.
func (q Quat) highest(c quatChart) quatChart {
	for {
		twin, found := q.higherTwin(&c)
		if !found {
			return c
		}
		c = twin
	}
}

// higherTwin returns a chart that decodes to the same values as c, or to float32 values that are nearly the same, and
// leaves out a higher index. It decides by integers, so that Encode and Decode agree.
func (q Quat) higherTwin(c *quatChart) (twin quatChart, found bool) {
	rest := q.rest(c)
	if rest <= 0 {
		return quatChart{}, false
	}
	root := math.Sqrt(float64(rest) / 2)
	// What the component left out is rounded to, while the higher one takes the rest. As a difference of doubled
	// squares, same is a little more than the 2*quatSame*S by which two charts that reproduce the same v can differ.
	n, same := q.round(root), q.square()>>20
	if absInt(rest-q.squareOf(n)) > same {
		return quatChart{}, false
	}
	for higher := 3; higher > c.out; higher-- { // the kept components above the one left out are the last ones
		p := c.n[higher-1]
		if math.Abs(math.Abs(q.steps(p))-root) > quatMargin {
			continue
		}
		twin = quatChart{out: higher}
		k := 0
		for i := range 4 {
			switch {
			case i == higher:
				continue
			case i == c.out:
				twin.n[k] = n
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
		if q.reachable(&twin) {
			return twin, true
		}
	}
	return quatChart{}, false
}

// pack returns the code of a chart.
func (q Quat) pack(c quatChart) QuatCode {
	code := func(n int64) uint32 { return uint32(n + int64(q.top)) }
	return QuatCode{Largest: uint32(c.out), A: code(c.n[0]), B: code(c.n[1]), C: code(c.n[2])}
}

// unpack returns the chart of a code.
func (q Quat) unpack(code QuatCode) quatChart {
	zero := int64(q.top)
	return quatChart{
		out: int(code.Largest),
		n:   [3]int64{int64(code.A) - zero, int64(code.B) - zero, int64(code.C) - zero},
	}
}
