package quantize

import (
	"fmt"
	"math"
)

// UnitVector codes a direction as two codes of equal width by the octahedral mapping: the sphere is projected to an
// octahedron, whose lower half is folded out to make a square, and the square has a grid (Cigolle and others, "A Survey
// of Efficient Representations for Independent Unit Vectors", JCGT 2014). The six axes are exact, and from 4 bits on
// the twelve diagonals half-way between two of them.
type UnitVector struct {
	half float64 // the grid is -half..half in both directions
	bits uint32
}

// NewUnitVector returns the quantiser of directions with two codes of the given width, 2..20. With 8 bits a vector is
// off by at most 0.017 (one degree), with 12 bits by 0.0011.
func NewUnitVector(bits uint) (UnitVector, error) {
	if bits < 2 || bits > 20 {
		return UnitVector{}, fmt.Errorf("quantize: a unit vector of two %d-bit codes is not supported: use 2..20 bits",
			bits)
	}
	half := int64(1)<<(bits-1) - 1
	if bits >= 4 {
		half-- // even, so that 1/2 is on the grid
	}
	return UnitVector{half: float64(half), bits: uint32(bits)}, nil
}

// Bits returns the width of each of the two codes.
func (q UnitVector) Bits() uint { return uint(q.bits) }

// Max returns the largest value of each code, 2^Bits - 4, or 2^Bits - 2 below 4 bits.
func (q UnitVector) Max() uint64 { return 2 * uint64(q.half) }

// MaxError returns the largest distance between a unit vector and its decoded twin, nearly the angle in radians.
func (q UnitVector) MaxError() float64 {
	// Half a grid step in both directions moves a point of the octahedron by at most sqrt(1+1+4) times as much.
	// Projecting it to the sphere enlarges that by at most sqrt(3), in the middle of a face, which is sqrt(1/3) from
	// the centre.
	return math.Sqrt(18)*0.5/q.half + 0x1p-22
}

// Encode returns the codes of the direction of a vector, whose length does not matter.
func (q UnitVector) Encode(vector [3]float64) (u, v uint64, ok bool) {
	x, y, ok := q.place(&vector)
	i, j := int64(roundCode(x)), int64(roundCode(y))
	// The edges of the square are folded on themselves: (half, j) and (half, -j) are one direction. The positive one
	// counts.
	edge := int64(q.half)
	if i == edge || i == -edge {
		j = absInt(j)
	}
	if j == edge || j == -edge {
		i = absInt(i)
	}
	return uint64(i + edge), uint64(j + edge), ok
}

// place returns where a direction is on the square -half..half. For what is no direction, it returns +Z and false.
func (q UnitVector) place(vector *[3]float64) (x, y float64, ok bool) {
	x, y, z := vector[0], vector[1], vector[2]
	sum := math.Abs(x) + math.Abs(y) + math.Abs(z)
	if !(sum >= 0x1p-1000 && sum <= math.MaxFloat64) {
		largest := math.Max(math.Max(math.Abs(x), math.Abs(y)), math.Abs(z))
		if !(largest > 0 && largest <= math.MaxFloat64) {
			return 0, 0, false
		}
		x, y, z = x/largest, y/largest, z/largest
		sum = math.Abs(x) + math.Abs(y) + math.Abs(z)
	}
	x, y = x/sum, y/sum
	if z < 0 {
		x, y = foldOut(x, y, 1)
	}
	return float64(x * q.half), float64(y * q.half), true
}

// Holds reports whether valid codes can be kept for a direction: whether it is no farther from theirs than reach steps
// of the grid both ways, 0.5 to 0.9. Half a step is as far as Encode rounds. The error of codes that are kept is at
// most 2*reach times MaxError.
func (q UnitVector) Holds(vector [3]float64, u, v uint64, reach float64) bool {
	x, y, ok := q.place(&vector)
	if !ok {
		return false
	}
	i, j := float64(u)-q.half, float64(v)-q.half
	near := math.Abs(x-i) <= reach && math.Abs(y-j) <= reach
	// On an edge, the codes stand for two points, in a corner for four.
	if math.Abs(i) == q.half {
		near = near || math.Abs(x-i) <= reach && math.Abs(y+j) <= reach
	}
	if math.Abs(j) == q.half {
		near = near || math.Abs(x+i) <= reach && math.Abs(y-j) <= reach
	}
	if math.Abs(i) == q.half && math.Abs(j) == q.half {
		near = near || math.Abs(x+i) <= reach && math.Abs(y+j) <= reach
	}
	return near
}

// Encode32 is Encode for a float32 field.
func (q UnitVector) Encode32(vector [3]float32) (u, v uint64, ok bool) {
	return q.Encode([3]float64{float64(vector[0]), float64(vector[1]), float64(vector[2])})
}

// Decode returns the unit vector of two codes. Points of the square's edges that have a twin with larger codes are not
// valid.
func (q UnitVector) Decode(u, v uint64) (vector [3]float64, ok bool) {
	if u > q.Max() || v > q.Max() {
		return [3]float64{}, false
	}
	x, y := float64(u)-q.half, float64(v)-q.half
	if (math.Abs(x) == q.half && y < 0) || (math.Abs(y) == q.half && x < 0) {
		return [3]float64{}, false
	}
	// Integers up to here: the vector is exact, but for its length.
	z := q.half - math.Abs(x) - math.Abs(y)
	if z < 0 {
		x, y = foldOut(x, y, q.half)
	}
	length := math.Sqrt(x*x + y*y + z*z)
	return [3]float64{x / length, y / length, z / length}, true
}

// Decode32 is Decode rounded to float32.
func (q UnitVector) Decode32(u, v uint64) (vector [3]float32, ok bool) {
	w, ok := q.Decode(u, v)
	return [3]float32{float32(w[0]), float32(w[1]), float32(w[2])}, ok
}

// foldOut mirrors a point of the square -size..size at the nearest side of the inscribed diamond: the inside becomes
// the lower half of the octahedron and back. Zero counts as positive.
func foldOut(x, y, size float64) (foldedX, foldedY float64) {
	foldedX, foldedY = size-math.Abs(y), size-math.Abs(x)
	if x < 0 {
		foldedX = -foldedX
	}
	if y < 0 {
		foldedY = -foldedY
	}
	return foldedX, foldedY
}

func absInt(x int64) int64 {
	if x < 0 {
		return -x
	}
	return x
}
