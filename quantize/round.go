package quantize

import "math"

// Adding roundMagic to a float64 x with |x| < 2^51 leaves no room for a fraction: the sum is x rounded to the nearest
// integer (half to even) and that integer, in two's complement, fills the low bits of the sum. This is the only
// rounding that is fast without a CPU feature flag; math.RoundToEven is slow on plain amd64. The constant is best known
// from Lua 5.2, whose llimits.h converts numbers to integers with it.
const (
	roundMagic     = 3 << 51
	roundMagicBits = 0x4338000000000000 // math.Float64bits(roundMagic)
)

// roundCode returns x rounded to the nearest integer, half to even, as a two's complement integer.
// Precondition: |x| < 2^51. A product passed in must be wrapped in float64(), so that it is not
// fused with the addition.
func roundCode(x float64) uint64 {
	return math.Float64bits(x+roundMagic) - roundMagicBits
}

// roundMantissa shortens the bits of a positive float64 by shift bits, rounding half to even; a carry out of the
// mantissa enters the exponent, which is just what the next binade's first value needs. Precondition: 1 <= shift <= 52.
func roundMantissa(b uint64, shift uint) uint64 {
	return (b + (1<<(shift-1) - 1) + (b>>shift)&1) >> shift
}

// storage is the type of the field that holds the decoded value: how finely it resolves numbers.
type storage uint8

const (
	float64Storage storage = iota
	float32Storage
)

func (s storage) String() string {
	if s == float32Storage {
		return "float32"
	}
	return "float64"
}

// largest returns the largest finite number the field can hold.
func (s storage) largest() float64 {
	if s == float32Storage {
		return math.MaxFloat32
	}
	return math.MaxFloat64
}

// round returns x as the field would hold it.
func (s storage) round(x float64) float64 {
	if s == float32Storage {
		return float64(float32(x))
	}
	return x
}

// spacing returns the widest gap between neighbouring numbers of the field in [-x, x]. Precondition: x >= 0, not too
// large.
func (s storage) spacing(x float64) float64 {
	if s == float32Storage {
		y := float32(x)
		return math.Max(float64(y)-float64(math.Nextafter32(y, 0)), math.SmallestNonzeroFloat32)
	}
	return x - math.Nextafter(x, 0)
}
