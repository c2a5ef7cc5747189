package quantize_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/quantize"
)

// exact has the values that people meet all the time and that a quantiser promises to keep.
type exact struct {
	name   string
	q      scalar
	single bool // for a float32 field
	values []float64
}

// exactScalars are the quantisers of one float, of float64 and float32 fields, with many ranges and precisions.
func exactScalars() (cases []exact) {
	add := func(name string, q scalar, values ...float64) { cases = append(cases, exact{name, q, false, values}) }
	add32 := func(name string, q scalar, values ...float64) { cases = append(cases, exact{name, q, true, values}) }
	fixed := func(low, high, step float64) scalar {
		q := must(quantize.NewFixed(low, high, step))
		return &q
	}
	for _, step := range []float64{1, 0.5, 0.25, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001, 1.0 / 256, 1.0 / 512} {
		for _, bound := range []float64{1, 10, 32, 100, 1000} {
			if bound/step > 1<<22 {
				continue
			}
			values := []float64{-bound, bound, 0, 1}
			if step < 1 {
				values = append(values, 0.5, -0.5)
			}
			name := fmt.Sprintf("Fixed(%v, %v)", bound, step)
			add(name, fixed(-bound, bound, step), values...)
			add(name+" from 0", fixed(0, bound, step), 0, 1, bound)
			add(name+" to a bound off the grid", fixed(-bound, bound*0.77, step), 0, -bound, bound*0.77)
			q32 := must(quantize.NewFixed32(-bound, bound, step))
			add32(name+" of float32", &q32, values...)
		}
	}
	for _, c := range floatCases {
		q := must(quantize.NewFloat(c[0], c[1], c[2]))
		values := []float64{c[0], c[1]}
		for _, v := range []float64{0, 0.5, 1, -0.5, -1, 2, 64} {
			if v >= c[0] && v <= c[1] && (v == 0 || math.Abs(v) >= 2*c[2]) {
				values = append(values, v)
			}
		}
		add(fmt.Sprintf("Float(%v)", c), &q, values...)
	}
	add32("Half", quantize.Half{}, 0, 1, 0.5, -1, -0.5, 2, 65504, -65504, 0.25, 100, 360)
	for bits := uint(2); bits <= 23; bits++ {
		for _, period := range []float64{360, 2 * math.Pi, 24, 1} {
			values := []float64{0, period / 4, -period / 4, -period / 2}
			if bits >= 3 {
				values = append(values, period/8, -period/8, 3*period/8)
			}
			q, q32 := must(quantize.NewAngle(period, bits)), must(quantize.NewAngle32(period, bits))
			add(fmt.Sprintf("Angle(%v, %d)", period, bits), q, values...)
			add32(fmt.Sprintf("Angle32(%v, %d)", period, bits), q32, values...)
		}
	}
	return cases
}

func TestCommonNumbersAreExact(t *testing.T) {
	for _, c := range exactScalars() {
		for _, v := range c.values {
			code, ok := c.q.Encode(v)
			require.True(t, ok, "%s: %v", c.name, v)
			got, _ := c.q.Decode(code)
			require.Equal(t, v, got, "%s: %v arrives as %v", c.name, v, got)
			if !c.single {
				continue
			}
			code, ok = c.q.Encode(float64(float32(v)))
			require.True(t, ok, "%s: float32 %v", c.name, v)
			decoded, _ := c.q.Decode(code)
			narrow := float32(decoded)
			require.Equal(t, float32(v), narrow, "%s: float32 %v arrives as %v", c.name, v, narrow)
		}
	}
}

// cubeRotations returns the 24 rotations that turn a cube into itself. Of the two quaternions of each, it is the one
// whose last component of the largest magnitude is positive.
func cubeRotations() (all [][4]float64) {
	s := math.Sqrt(0.5)
	for i := range 4 {
		one := [4]float64{}
		one[i] = 1
		all = append(all, one)
		for j := range i {
			for _, sign := range []float64{1, -1} {
				two := [4]float64{}
				two[j], two[i] = sign*s, s
				all = append(all, two)
			}
		}
	}
	for signs := range 8 {
		four := [4]float64{0.5, 0.5, 0.5, 0.5}
		for i := range 3 {
			if signs>>i&1 == 1 {
				four[i] = -0.5
			}
		}
		all = append(all, four)
	}
	return all
}

func TestRightAngledRotationsAreExact(t *testing.T) {
	require.Len(t, cubeRotations(), 24)
	for bits := uint(2); bits <= 20; bits++ {
		q := newQuat(t, bits)
		for _, v := range cubeRotations() {
			if bits == 2 && math.Abs(v[0]) == 0.5 {
				continue // the grid of two bits is too coarse for 1/2
			}
			narrow, negative := [4]float32{}, [4]float64{}
			for i := range v {
				narrow[i], negative[i] = float32(v[i]), -v[i]
			}
			code, ok := q.Encode(v)
			require.True(t, ok)
			got, _ := q.Decode(code)
			require.Equal(t, v, got, "%d bits: %v arrives as %v", bits, v, got)
			got32, _ := q.Decode32(code)
			require.Equal(t, narrow, got32, "%d bits", bits)
			again, _ := q.Encode(negative)
			require.Equal(t, code, again, "%d bits: the negative of %v", bits, v)
			again, _ = q.Encode32(narrow)
			require.Equal(t, code, again, "%d bits: float32 %v", bits, v)
		}
	}
}

func TestAxesAndDiagonalsAreExact(t *testing.T) {
	for bits := uint(2); bits <= 20; bits++ {
		q := must(quantize.NewUnitVector(bits))
		for direction := range 27 {
			x, y, z := float64(direction%3-1), float64(direction/3%3-1), float64(direction/9-1)
			axes := math.Abs(x) + math.Abs(y) + math.Abs(z)
			if axes == 0 || axes == 3 || axes == 2 && bits < 4 {
				continue
			}
			want := [3]float64{x / math.Sqrt(axes), y / math.Sqrt(axes), z / math.Sqrt(axes)}
			u, v, ok := q.Encode(want)
			require.True(t, ok)
			got, _ := q.Decode(u, v)
			for i := range want {
				require.InDelta(t, want[i], got[i], 1e-15, "%d bits: %v arrives as %v", bits, want, got)
			}
			narrow, _ := q.Decode32(u, v)
			for i := range want {
				require.Equal(t, float32(want[i]), narrow[i], "%d bits: %v arrives as %v", bits, want, narrow)
			}
			u32, v32, _ := q.Encode32(narrow)
			require.Equal(t, [2]uint64{u, v}, [2]uint64{u32, v32})
		}
	}
}
