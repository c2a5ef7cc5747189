package quantize

import (
	"fmt"
	"math"
)

// Quat codes a rotation as the smallest three components of its unit quaternion (Glenn Fiedler, "Snapshot Compression",
// 2015). The component of largest magnitude is left out and made positive, as q and -q are the same rotation. The
// others lie in ±sqrt(1/2), on this grid:
//
//	value = n / S, but ±sqrt(1/2) for n = ±N;  n = code - N,  code = 0..2*N
//
// S is the largest even number, and N the least whole number above S * sqrt(1/2), with which codes have the given
// width. So the 24 rotations of a cube are exact, except with 2 bits, where S is 1.
//
// Encode keeps what Decode gave: where two components are nearly equal, rounding could change which one is largest, so
// it first looks for a code that decodes to just its input. Of two codes for the same rotation, or for two that a
// float32 cannot distinguish (possible from 11 bits on), the one that leaves out the higher index is valid.
type Quat struct {
	bits   uint32
	top    uint32  // N, which is also the code of 0
	length float64 // S: the length of the quaternion in steps
}

// QuatCode is the code of a rotation: the index of the component left out, x, y, z, w being 0, 1, 2, 3, and the codes
// of the other three in order.
type QuatCode struct {
	Largest uint32 // 0..3, two bits
	A, B, C uint32 // 0..Max each
}

// NewQuat returns the quantiser of rotations with three codes of the given width, 2..20, and two bits for the component
// left out. 9 bits suit a display, 15 a simulation that continues from the decoded values.
func NewQuat(bits uint) (Quat, error) {
	if bits < 2 || bits > 20 {
		return Quat{}, fmt.Errorf("quantize: a quaternion with %d bits per component is not supported: use 2..20 bits",
			bits)
	}
	most := float64(int64(1)<<(bits-1) - 1)
	length := max(math.Floor(math.Sqrt(2*most*most)/2)*2, 1)
	return Quat{bits: uint32(bits), top: uint32(length*sqrtHalf) + 1, length: length}, nil
}

// Bits returns the width of each of A, B and C. A code takes 2 + 3*Bits bits.
func (q Quat) Bits() uint { return uint(q.bits) }

// Max returns the largest value of A, B and C, at most 2^Bits - 2.
func (q Quat) Max() uint64 { return 2 * uint64(q.top) }

// MaxError returns the largest error of any component, after normalising the input and giving it the sign of the
// decoded quaternion. Kept components are off by a third of it.
func (q Quat) MaxError() float64 {
	steps := 0.0
	switch q.bits {
	case 2: // worked out one by one
		steps = 1 / math.Sqrt(3)
	case 3:
		steps = 1.042
	default:
		// Worst if all four are equal and the three kept ones are rounded up by half a step: the restored one falls by
		// one and a half, and a bit.
		equal := q.length / 2
		steps = equal - math.Sqrt(float64(equal*equal)-float64(3*equal)-0.75)
	}
	return steps/q.length + 0x1p-20 // the rounding of float32, and the choice between twins
}

// Encode returns the code of the rotation x, y, z, w, which need not be of unit length.
func (q Quat) Encode(v [4]float64) (code QuatCode, ok bool) {
	ok = q.scale(&v)
	// Magnitudes compare like their bits without the sign, and integers without branches: which component is the
	// largest is as good as random.
	const magnitude = 1<<63 - 1
	m0, m1 := math.Float64bits(v[0])&magnitude, math.Float64bits(v[1])&magnitude
	m2, m3 := math.Float64bits(v[2])&magnitude, math.Float64bits(v[3])&magnitude
	largest, low, pair := 0, max(m0, m1), 2
	if m1 > m0 {
		largest = 1
	}
	if m3 > m2 {
		pair = 3
	}
	high := max(m2, m3)
	if high > low {
		largest = pair
	}
	second := max(min(low, high), min(m0, m1), min(m2, m3))
	gap := math.Float64frombits(max(low, high)) - math.Float64frombits(second)
	if gap < quatMargin || q.bits < quatTiny {
		return q.settle(&v, largest), ok
	}

	// The three kept ones are smaller than N by more than a step, so that nothing needs clamping.
	sign := 1.0
	if v[largest&3] < 0 {
		sign = -1
	}
	kept := &quatKept[largest&3]
	return QuatCode{
		Largest: uint32(largest),
		A:       uint32(roundCode(float64(v[kept[0]&3]*sign))) + q.top,
		B:       uint32(roundCode(float64(v[kept[1]&3]*sign))) + q.top,
		C:       uint32(roundCode(float64(v[kept[2]&3]*sign))) + q.top,
	}, ok
}

// Encode32 is Encode for a float32 field.
func (q Quat) Encode32(v [4]float32) (code QuatCode, ok bool) {
	return q.Encode([4]float64{float64(v[0]), float64(v[1]), float64(v[2]), float64(v[3])})
}

// Decode returns the unit quaternion x, y, z, w of a code; the component left out is positive.
func (q Quat) Decode(code QuatCode) (v [4]float64, ok bool) {
	c := q.unpack(code)
	rest := q.rest(&c)
	if !q.valid(code, &c, rest) {
		return v, false
	}
	// Quotients, since products would not give exactly 1/2.
	kept := &quatKept[code.Largest&3]
	v[kept[0]&3] = q.value(c.n[0])
	v[kept[1]&3] = q.value(c.n[1])
	v[kept[2]&3] = q.value(c.n[2])
	v[code.Largest&3] = math.Sqrt(float64(rest) / float64(q.square()))
	return v, true
}

// value returns the component that n stands for.
func (q Quat) value(n int64) float64 {
	if absInt(n) == int64(q.top) {
		return math.Copysign(sqrtHalf, float64(n))
	}
	return float64(n) / q.length
}

// Valid reports whether Encode can produce a code.
func (q Quat) Valid(code QuatCode) bool {
	c := q.unpack(code)
	return q.valid(code, &c, q.rest(&c))
}

// valid is Valid for the chart of a code and its rest.
func (q Quat) valid(code QuatCode, c *quatChart, rest int64) bool {
	if code.Largest > 3 || uint64(max(code.A, code.B, code.C)) > q.Max() {
		return false
	}
	largest := max(absInt(c.n[0]), absInt(c.n[1]), absInt(c.n[2])) + quatMargin
	if rest > 2*largest*largest { // far from equal
		return true
	}
	_, found := q.higherTwin(c)
	return q.reachable(c) && !found
}

// Decode32 is Decode rounded to float32.
func (q Quat) Decode32(code QuatCode) (v [4]float32, ok bool) {
	w, ok := q.Decode(code)
	return [4]float32{float32(w[0]), float32(w[1]), float32(w[2]), float32(w[3])}, ok
}

// scale brings a quaternion to the length of S. One without a direction becomes the identity, and scale returns false.
func (q Quat) scale(v *[4]float64) (ok bool) {
	length := squareSum(v)
	ok = length >= 0x1p-500 && length <= 0x1p500
	if !ok {
		if *v, ok = rescale(*v); !ok {
			*v = [4]float64{3: 1}
		}
		length = squareSum(v)
	}
	toSteps := q.length / math.Sqrt(length)
	for i := range v {
		v[i] *= toSteps
	}
	return ok
}

// Holds reports whether a valid code can be kept for the rotation v: whether no component that the code has is farther
// from its value, on the way to the next one, than reach of their distance, 0.5 to 0.9. Half of it is as far as Encode
// rounds. A rotation that is itself the value of another code does not hold. The error of a code that is kept is at
// most 2*reach times MaxError.
func (q Quat) Holds(v [4]float64, code QuatCode, reach float64) bool {
	c := q.unpack(code)
	if !q.scale(&v) || c.out > 3 {
		return false
	}
	sign := math.Copysign(1, v[c.out])
	for k, i := range quatKept[c.out] {
		x := float64(v[i] * sign)
		next := q.round(x)
		if next == c.n[k] && absInt(next) == int64(q.top) { // x may be larger than the component left out
			next -= next / int64(q.top)
		}
		if d := absInt(next - c.n[k]); d > 1 || d == 1 &&
			math.Abs(x-q.steps(c.n[k])) > reach*math.Abs(q.steps(next)-q.steps(c.n[k])) {
			return false
		}
	}
	// Charts have different grids.
	own, _ := q.Encode(v)
	other := q.unpack(own)
	return other.out == c.out || !q.reproduces(&other, &v)
}

// rescale brings a quaternion whose squares would overflow or vanish to a harmless size; false if it has no direction.
func rescale(v [4]float64) (scaled [4]float64, ok bool) {
	largest := 0.0
	for _, x := range v {
		largest = math.Max(largest, math.Abs(x))
	}
	if !(largest > 0 && largest <= math.MaxFloat64) {
		return v, false
	}
	for i, x := range v {
		scaled[i] = x / largest
	}
	return scaled, true
}

// squareSum returns the squared length; the conversions keep any machine from fusing, and so from rounding otherwise.
func squareSum(v *[4]float64) float64 {
	return float64(v[0]*v[0]) + float64(v[1]*v[1]) + float64(v[2]*v[2]) + float64(v[3]*v[3])
}
