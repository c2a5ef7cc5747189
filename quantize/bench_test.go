package quantize_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/quantize"
)

const benchLen = 1024

// report turns ns per pass over benchLen values into ns per value.
func report(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchLen, "ns/value")
	b.ReportMetric(0, "ns/op")
}

func must[T any](q T, err error) T {
	if err != nil {
		panic(err)
	}
	return q
}

func benchColumn(low, high float64) (column []float32, codes []uint32) {
	rng := rand.New(rand.NewPCG(1, 2))
	column, codes = make([]float32, benchLen), make([]uint32, benchLen)
	for i := range column {
		column[i] = float32(low + rng.Float64()*(high-low))
	}
	return column, codes
}

var clamped int

func BenchmarkFixedEncode(b *testing.B) {
	q := must(quantize.NewFixed32(-1000, 1000, 0.01))
	column, codes := benchColumn(-1000, 1000)
	for b.Loop() {
		for i, v := range column {
			code, ok := q.Encode(float64(v))
			if !ok {
				clamped++
			}
			codes[i] = uint32(code)
		}
	}
	report(b)
}

func BenchmarkFixedDecode(b *testing.B) {
	q := must(quantize.NewFixed32(-1000, 1000, 0.01))
	column, codes := benchColumn(-1000, 1000)
	for i, v := range column {
		code, _ := q.Encode(float64(v))
		codes[i] = uint32(code)
	}
	for b.Loop() {
		for i, code := range codes {
			v, _ := q.Decode(uint64(code))
			column[i] = float32(v)
		}
	}
	report(b)
}

func BenchmarkIntEncode(b *testing.B) {
	q := must(quantize.NewInt[int64](0, 1000, 1))
	column, codes := benchColumn(0, 1000)
	ints := make([]int16, benchLen)
	for i, v := range column {
		ints[i] = int16(v)
	}
	for b.Loop() {
		for i, v := range ints {
			code, ok := q.Encode(int64(v))
			if !ok {
				clamped++
			}
			codes[i] = uint32(code)
		}
	}
	report(b)
}

func BenchmarkFloatEncode(b *testing.B) {
	q := must(quantize.NewFloat32(-1000, 1000, 0.01))
	column, codes := benchColumn(-1000, 1000)
	for b.Loop() {
		for i, v := range column {
			code, ok := q.Encode(float64(v))
			if !ok {
				clamped++
			}
			codes[i] = uint32(code)
		}
	}
	report(b)
}

func BenchmarkAngleEncode(b *testing.B) {
	q := must(quantize.NewAngle32(2*math.Pi, 12))
	column, codes := benchColumn(-math.Pi, math.Pi)
	for b.Loop() {
		for i, v := range column {
			code, ok := q.Encode(float64(v))
			if !ok {
				clamped++
			}
			codes[i] = uint32(code)
		}
	}
	report(b)
}

func BenchmarkHalfEncode(b *testing.B) {
	var q quantize.Half
	column, codes := benchColumn(-1000, 1000)
	for b.Loop() {
		for i, v := range column {
			code, ok := q.Encode(float64(v))
			if !ok {
				clamped++
			}
			codes[i] = uint32(code)
		}
	}
	report(b)
}

func benchRotations() (rotations [][4]float32, codes []quantize.QuatCode) {
	rng := rand.New(rand.NewPCG(1, 2))
	rotations, codes = make([][4]float32, benchLen), make([]quantize.QuatCode, benchLen)
	for i := range rotations {
		for k := range 4 {
			rotations[i][k] = float32(rng.NormFloat64())
		}
	}
	return rotations, codes
}

func BenchmarkQuatEncode(b *testing.B) {
	q := must(quantize.NewQuat(9))
	rotations, codes := benchRotations()
	for b.Loop() {
		for i, v := range rotations {
			codes[i], _ = q.Encode32(v)
		}
	}
	report(b)
}

func BenchmarkQuatDecode(b *testing.B) {
	q := must(quantize.NewQuat(9))
	rotations, codes := benchRotations()
	for i, v := range rotations {
		codes[i], _ = q.Encode32(v)
	}
	for b.Loop() {
		for i, code := range codes {
			rotations[i], _ = q.Decode32(code)
		}
	}
	report(b)
}

func BenchmarkUnitVectorEncode(b *testing.B) {
	q := must(quantize.NewUnitVector(10))
	rotations, codes := benchRotations()
	for b.Loop() {
		for i, v := range rotations {
			u, w, _ := q.Encode32([3]float32(v[:3]))
			codes[i].A, codes[i].B = uint32(u), uint32(w)
		}
	}
	report(b)
}

func BenchmarkUnitVectorDecode(b *testing.B) {
	q := must(quantize.NewUnitVector(10))
	rotations, codes := benchRotations()
	for i, v := range rotations {
		u, w, _ := q.Encode32([3]float32(v[:3]))
		codes[i].A, codes[i].B = uint32(u), uint32(w)
	}
	for b.Loop() {
		for i, code := range codes {
			v, _ := q.Decode32(uint64(code.A), uint64(code.B))
			copy(rotations[i][:], v[:])
		}
	}
	report(b)
}
