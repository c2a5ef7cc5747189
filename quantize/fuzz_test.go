package quantize_test

import (
	"math"
	"testing"

	"github.com/arche-replicate/arche-replicate/quantize"
)

// FuzzIdempotence builds every quantiser that arbitrary parameters allow and checks the contract for arbitrary input: no
// panic, errors within MaxError, and Encode(Decode(Encode(v))) == Encode(v).
func FuzzIdempotence(f *testing.F) {
	f.Add(-1000.0, 1000.0, 0.01, 1.0, 2.0, 3.0, 4.0, uint64(5), uint8(9))
	f.Add(0.1, 0.7, 0.1, 0.0, math.Copysign(0, -1), math.Inf(1), math.NaN(), uint64(1<<63), uint8(2))
	f.Add(-math.Pi, math.Pi, 0.001, 0.5, -0.5, 0.5, 0.5, uint64(math.MaxUint64), uint8(20))
	f.Add(0.0, 1e-290, 1e-299, 5e-324, 1e308, 65519.0, -65520.0, uint64(0x8000), uint8(1))
	f.Fuzz(func(t *testing.T, low, high, step, x, y, z, w float64, code uint64, bits uint8) {
		values := []float64{x, y, z, w, low, high, (low + high) / 2, low + step, high - step}
		check := func(c *contract) {
			for _, v := range values {
				c.value(v)
			}
			for _, k := range []uint64{code, code % (c.q.Max() + 1), code%(c.q.Max()+1) + 1} {
				c.near(k)
			}
		}
		check(&contract{t: t, name: "Half", q: quantize.Half{}, min: math.Nextafter(-65520, 0), max: math.Nextafter(65520, 0), float32s: true})
		low32, high32 := min(low, float64(float32(low))), max(high, float64(float32(high)))
		if q, err := quantize.NewFixed(low, high, step); err == nil {
			check(&contract{t: t, name: "Fixed", q: &q, min: low, max: high, nanLow: true})
		}
		if q, err := quantize.NewFixed32(low, high, step); err == nil {
			check(&contract{t: t, name: "Fixed32", q: &q, min: low32, max: high32, float32s: true, nanLow: true})
		}
		if q, err := quantize.NewFloat(low, high, step); err == nil {
			check(&contract{t: t, name: "Float", q: &q, min: low, max: high})
		}
		if q, err := quantize.NewFloat32(low, high, step); err == nil {
			check(&contract{t: t, name: "Float32", q: &q, min: low32, max: high32, float32s: true})
		}
		if q, err := quantize.NewAngle(high, uint(bits)); err == nil {
			check(&contract{t: t, name: "Angle", q: q, period: high})
		}
		if q, err := quantize.NewAngle32(high, uint(bits)); err == nil {
			check(&contract{t: t, name: "Angle32", q: q, period: high, float32s: true})
		}
		if q, err := quantize.NewUnitVector(uint(bits)); err == nil {
			u, v, _ := q.Encode([3]float64{x, y, z})
			if !checkDirectionCode(t, q, u, v) {
				t.Fatalf("%d bits: %v encodes to %d, %d, which Decode refuses", bits, []float64{x, y, z}, u, v)
			}
			checkDirectionCode(t, q, code, code>>32)
			checkDirectionCode(t, q, code&q.Max(), code>>32&q.Max())
		}
		if q, err := quantize.NewQuat(uint(bits)); err == nil {
			c, _ := q.Encode([4]float64{x, y, z, w})
			if !checkQuatCode(t, q, c) {
				t.Fatalf("%d bits: %v encodes to %v, which Decode refuses", bits, []float64{x, y, z, w}, c)
			}
			mask := uint32(q.Max())
			checkQuatCode(t, q, quantize.QuatCode{Largest: uint32(code >> 62), A: uint32(code) & mask, B: uint32(code>>20) & mask, C: uint32(code>>40) & mask})
			checkQuatCode(t, q, quantize.QuatCode{Largest: uint32(code), A: uint32(code >> 16), B: uint32(code >> 32), C: uint32(code >> 48)})
		}
	})
}
