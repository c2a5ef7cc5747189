package soak

import (
	"fmt"
	"math"
	"unsafe"
)

func ptr[T any](v *T) unsafe.Pointer { return unsafe.Pointer(v) }

type (
	vector[T float]   struct{ X, Y, Z T }
	rotation[T float] struct{ X, Y, Z, W T }
)

// numbersAt returns the n numbers of a direction or a rotation.
func numbersAt[T float](p unsafe.Pointer, n int) []T { return unsafe.Slice((*T)(p), n) }

func readNumbers[T float](v []T, out []cell) {
	for i := range v {
		out[i] = cell{u: bitsOf(&v[i])}
	}
}

// unitOf returns the unit vector of cells, and false if there is none.
func unitOf[T float](of []cell) ([4]float64, bool) {
	var v [4]float64
	sum := 0.0
	for i, c := range of {
		v[i] = valueOf[T](c)
		sum += v[i] * v[i]
	}
	if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return v, false
	}
	for i := range v {
		v[i] /= math.Sqrt(sum)
	}
	return v, true
}

// turn changes numbers steadily.
func turn[T float](v []T) {
	v[0], v[1] = v[0]*0.995-v[1]*0.1, v[0]*0.1+v[1]*0.995
	if v[0] == 0 {
		v[0] = 1
	}
}

func spin[T float](g *chance, v []T) {
	for i := range v {
		v[i] = T(g.NormFloat64())
	}
	switch g.IntN(12) {
	case 0:
		v[g.IntN(len(v))] = T(pick(g, math.NaN(), math.Inf(1), math.Inf(-1)))
	case 1:
		clear(v)
	case 2:
		clear(v)
		v[g.IntN(len(v))] = pick[T](g, 1, -1, 100)
	}
}

// lengthIsOne allows for the rounding of the type.
func lengthIsOne[T float](of []cell) bool {
	sum := 0.0
	for _, c := range of {
		sum += valueOf[T](c) * valueOf[T](c)
	}
	return math.Abs(sum-1) < 1e-5
}

// vectorField is a direction or rotation of type V with n numbers of type T.
func vectorField[V any, T float](n int, tag string, fits func(want, got []cell) bool) fieldSpec {
	return simple(tag, n,
		func(v *V, out []cell) { readNumbers(numbersAt[T](ptr(v), n), out) },
		func(v *V) { turn(numbersAt[T](ptr(v), n)) },
		func(g *chance, v *V) { spin(g, numbersAt[T](ptr(v), n)) }, fits)
}

func directionField[T float](g *chance) fieldSpec {
	bits := uint(2 + g.IntN(16))
	limit := withMargin*2.13/(math.Ldexp(1, int(bits)-1)-float64(min(2, bits/2))) + 1e-5
	fits := func(want, got []cell) bool {
		w, ok := unitOf[T](want)
		if !ok {
			return valueOf[T](got[0]) == 0 && valueOf[T](got[1]) == 0 && valueOf[T](got[2]) == 1
		}
		sum := 0.0
		for i := range got {
			d := valueOf[T](got[i]) - w[i]
			sum += d * d
		}
		return math.Sqrt(sum) <= limit && lengthIsOne[T](got)
	}
	tag := fmt.Sprintf("unit,bits=%d", bits)
	if g.one(2) {
		return vectorField[vector[T], T](3, tag, fits)
	}
	return vectorField[[3]T, T](3, tag, fits)
}

func rotationField[T float](g *chance) fieldSpec {
	bits := uint(8 + g.IntN(9))
	limit := withMargin*2.2/math.Ldexp(1, int(bits)) + 1e-5
	fits := func(want, got []cell) bool {
		w, ok := unitOf[T](want)
		if !ok {
			w = [4]float64{0, 0, 0, 1}
		}
		plus, minus := 0.0, 0.0
		for i := range got {
			v := valueOf[T](got[i])
			plus, minus = math.Max(plus, math.Abs(v-w[i])), math.Max(minus, math.Abs(v+w[i]))
		}
		return math.Min(plus, minus) <= limit && lengthIsOne[T](got)
	}
	tag := fmt.Sprintf("quat,bits=%d", bits)
	if g.one(2) {
		return vectorField[rotation[T], T](4, tag, fits)
	}
	return vectorField[[4]T, T](4, tag, fits)
}
