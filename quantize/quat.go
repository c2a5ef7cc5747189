package quantize

import (
	"fmt"
	"math"
)

// Quat codes a rotation as the smallest three components of its unit quaternion (Glenn Fiedler, "Snapshot Compression",
// 2015). The component of largest magnitude is left out and made positive, as q and -q are the same rotation; the
// receiver restores it from the length of one. The others lie in ±1/sqrt(2), on this grid:
//
//	value = n / (M * sqrt(2)),  n = 2*code - M,  M = 2^bits - 1,  code = 0..M
//
// All n are odd: the grid has no zero, and the rotation nearest to a component of zero is 1/(M*sqrt(2)) off.
//
// Encode keeps what Decode gave, also if stored as float32. Rounding can lift a kept component above the restored one,
// so "leave out the largest" alone would code the decoded value anew, with another component left out and another
// error. So where two components are nearly equal, Encode first looks for a code that decodes to just its input. Decode
// accepts the codes whose cell contains a rotation with the stated component largest, which is what any encoder on this
// grid sends; of two codes that a float32 cannot distinguish (possible from 11 bits on), it accepts the one with the
// lower index left out.
type Quat struct {
	bits  uint32
	scale float64 // M * sqrt(2): the length of the quaternion in units of n
	unit  float64 // 1 / scale
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
	scale := float64(int64(1)<<bits-1) * math.Sqrt2
	return Quat{bits: uint32(bits), scale: scale, unit: 1 / scale}, nil
}

// Bits returns the width of each of A, B and C. A code takes 2 + 3*Bits bits.
func (q Quat) Bits() uint { return uint(q.bits) }

// Max returns the largest value of A, B and C.
func (q Quat) Max() uint64 { return 1<<q.bits - 1 }

// MaxError returns the largest error of any component, after normalising the input and giving it the sign of the
// decoded quaternion. Kept components are off by a third of it; the one left out gathers the errors of all three.
func (q Quat) MaxError() float64 {
	units := 0.0
	switch q.bits {
	case 2: // worked out one by one
		units = math.Sqrt(6) - 1
	case 3:
		units = 2.61
	default:
		// Worst if all four are equal and the three kept ones are rounded up by one unit: the restored one falls by
		// three and a bit.
		equal := q.scale / 2
		units = equal - math.Sqrt(float64(equal*equal)-float64(6*equal)-3)
	}
	return units/q.scale + 0x1p-20 // the rounding of float32, and the choice between twins
}

// Encode returns the code of the rotation x, y, z, w, which need not be of unit length. The zero quaternion, NaN and
// infinities give the code of the identity and false.
func (q Quat) Encode(v [4]float64) (code QuatCode, ok bool) {
	length := squareSum(&v)
	ok = length >= 0x1p-500 && length <= 0x1p500
	if !ok {
		if v, ok = rescale(v); !ok {
			v = [4]float64{3: 1}
		}
		length = squareSum(&v)
	}
	toUnits := q.scale / math.Sqrt(length)
	for i := range v {
		v[i] *= toUnits
	}

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

	// The three kept ones are at most M in magnitude, so that nothing needs clamping.
	half := 0.5
	if v[largest&3] < 0 {
		half = -0.5
	}
	kept, middle := &quatKept[largest&3], 0.5*float64(q.Max())
	return QuatCode{
		Largest: uint32(largest),
		A:       uint32(roundCode(float64(v[kept[0]&3]*half) + middle)),
		B:       uint32(roundCode(float64(v[kept[1]&3]*half) + middle)),
		C:       uint32(roundCode(float64(v[kept[2]&3]*half) + middle)),
	}, ok
}

// Encode32 is Encode for a float32 field.
func (q Quat) Encode32(v [4]float32) (code QuatCode, ok bool) {
	return q.Encode([4]float64{float64(v[0]), float64(v[1]), float64(v[2]), float64(v[3])})
}

// Decode returns the unit quaternion x, y, z, w of a code; the component left out is positive. It gives zeros and false
// for a code that Encode never produces.
func (q Quat) Decode(code QuatCode) (v [4]float64, ok bool) {
	a, b, c, rest, ok := q.squares(code)
	if !ok {
		return v, false
	}
	kept := &quatKept[code.Largest&3]
	v[kept[0]&3] = float64(a) * q.unit
	v[kept[1]&3] = float64(b) * q.unit
	v[kept[2]&3] = float64(c) * q.unit
	v[code.Largest&3] = math.Sqrt(float64(rest)) * q.unit
	return v, true
}

// Valid reports whether Encode can produce a code.
func (q Quat) Valid(code QuatCode) bool {
	_, _, _, _, ok := q.squares(code)
	return ok
}

// squares returns the three kept components of a code in units, and the square of the one left out. It returns false
// for a code that Encode never produces.
func (q Quat) squares(code QuatCode) (a, b, c, rest int64, ok bool) {
	m := int64(q.Max())
	if code.Largest > 3 || int64(max(code.A, code.B, code.C)) > m {
		return 0, 0, 0, 0, false
	}
	a, b, c = 2*int64(code.A)-m, 2*int64(code.B)-m, 2*int64(code.C)-m
	rest = 2*m*m - a*a - b*b - c*c
	return a, b, c, rest, quatReachable(a, b, c, rest) && (q.bits < quatTwins || !q.hasLowerTwin(code))
}

// Decode32 is Decode rounded to float32.
func (q Quat) Decode32(code QuatCode) (v [4]float32, ok bool) {
	w, ok := q.Decode(code)
	return [4]float32{float32(w[0]), float32(w[1]), float32(w[2]), float32(w[3])}, ok
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
