package blend

import (
	"math"
	"reflect"
	"unsafe"
)

// Differences of values, for corrections that fade: what was shown less what is, added to what will be. They consist of
// numbers: one for each number that moves, and a rotation vector for each quaternion and unit vector.

// fading has how a field differs. n is how many numbers that takes, 0 if the field steps.
type fading struct {
	n int
	// differ stores what takes b to a.
	differ func(p *part, d []float64, a, b unsafe.Pointer)
	// displace adds a difference to the value at v.
	displace func(p *part, v unsafe.Pointer, d []float64)
}

// Fades returns of how many numbers a difference consists: 0 if all fields of the component step.
func (k *Kernel) Fades() int {
	n := len(k.singles) + len(k.doubles)
	for i := range k.others {
		n += k.others[i].fading.n
	}
	return n
}

// Difference stores in d what [Kernel.Displace] has to add to b to get a: the short way of what goes round, the shorter
// rotation of what rotates. A number differs by 0 if there is no finite difference. Both values are of the component's
// type, and d has room for Fades numbers.
func (k *Kernel) Difference(d []float64, a, b unsafe.Pointer) {
	for _, o := range k.singles {
		d[0] = finite(float64(*(*float32)(unsafe.Add(a, o))) - float64(*(*float32)(unsafe.Add(b, o))))
		d = d[1:]
	}
	for _, o := range k.doubles {
		d[0] = finite(*(*float64)(unsafe.Add(a, o)) - *(*float64)(unsafe.Add(b, o)))
		d = d[1:]
	}
	for i := range k.others {
		if p := &k.others[i]; p.fading.n > 0 {
			p.fading.differ(p, d[:p.fading.n], unsafe.Add(a, p.offset), unsafe.Add(b, p.offset))
			d = d[p.fading.n:]
		}
	}
}

// Displace adds a difference, or a share of one, to a value in place. Integers are rounded and stay in their ranges,
// angles within half a turn of zero, and quaternions and unit vectors become of length one. It leaves alone what is
// displaced by nothing, what has no finite sum, and all fields that step.
func (k *Kernel) Displace(v unsafe.Pointer, d []float64) {
	for _, o := range k.singles {
		displace((*float32)(unsafe.Add(v, o)), d[0])
		d = d[1:]
	}
	for _, o := range k.doubles {
		displace((*float64)(unsafe.Add(v, o)), d[0])
		d = d[1:]
	}
	for i := range k.others {
		if p := &k.others[i]; p.fading.n > 0 {
			p.fading.displace(p, unsafe.Add(v, p.offset), d[:p.fading.n])
			d = d[p.fading.n:]
		}
	}
}

// Far reports whether a difference is longer than the distance of Snap, as [Kernel.Snaps] measures it in one tick.
func (k *Kernel) Far(d []float64) bool {
	squared, n := 0., len(k.singles)+len(k.doubles)
	for _, way := range d[:n] {
		squared += way * way
	}
	for i := range k.others {
		if p := &k.others[i]; p.way != nil {
			squared += d[n] * d[n]
		}
		n += k.others[i].fading.n
	}
	far := k.comp.Shown.Snap
	return far > 0 && squared > far*far
}

// displace adds to a number, unless the sum is none.
func displace[T float32 | float64](v *T, d float64) {
	if sum := T(float64(*v) + d); d != 0 && finite(sum) == sum {
		*v = sum
	}
}

// fadingAngle goes the shorter way round.
func fadingAngle[T float32 | float64]() fading {
	return fading{
		1,
		func(p *part, d []float64, a, b unsafe.Pointer) {
			d[0] = finite(p.reduced(float64(*(*T)(a)) - float64(*(*T)(b))))
		},
		func(p *part, v unsafe.Pointer, d []float64) {
			if sum := p.reduced(float64(*(*T)(v)) + d[0]); d[0] != 0 && finite(sum) == sum {
				*(*T)(v) = T(sum)
			}
		},
	}
}

// fadingLinear rounds to the nearest integer of the range.
func fadingLinear[T integer]() fading {
	return fading{
		1,
		func(_ *part, d []float64, a, b unsafe.Pointer) {
			if to, from := *(*T)(a), *(*T)(b); to >= from {
				d[0] = float64(uint64(to) - uint64(from))
			} else {
				d[0] = -float64(uint64(from) - uint64(to))
			}
		},
		func(p *part, v unsafe.Pointer, d []float64) {
			way := math.RoundToEven(d[0])
			if way == 0 || math.IsNaN(way) {
				return
			}
			low, high := T(p.low), T(p.high)
			sum := min(max(*(*T)(v), low), high) // a game may leave the range
			if way > 0 {
				sum += T(min(saturated(way), uint64(high)-uint64(sum)))
			} else {
				sum -= T(min(saturated(-way), uint64(sum)-uint64(low)))
			}
			*(*T)(v) = sum
		},
	}
}

// fadingRound is for integers that go round in all that their type has.
func fadingRound[T integer]() fading {
	return fading{
		1,
		func(_ *part, d []float64, a, b unsafe.Pointer) {
			way := *(*T)(a) - *(*T)(b)
			unused := 64 - 8*unsafe.Sizeof(way)
			d[0] = float64(int64(uint64(way)<<unused) >> unused)
		},
		func(_ *part, v unsafe.Pointer, d []float64) {
			if way, up := turns(d[0], 0); up {
				*(*T)(v) += T(way)
			} else {
				*(*T)(v) -= T(way)
			}
		},
	}
}

// fadingCircle is for integers that go round in a range.
func fadingCircle[T integer]() fading {
	code := func(p *part, v unsafe.Pointer) uint64 { return p.codec.WrapCode(int64(*(*T)(v)), *(*T)(v) > 0) }
	return fading{
		1,
		func(p *part, d []float64, a, b unsafe.Pointer) {
			way, up := p.shorter(code(p, b), code(p, a))
			if d[0] = float64(way); !up {
				d[0] = -d[0]
			}
		},
		func(p *part, v unsafe.Pointer, d []float64) {
			if way, up := turns(d[0], p.codec.Max+1); way > 0 {
				*(*T)(v) = T(p.codec.IntegerValue(p.shift(code(p, v), way, up), 0))
			}
		},
	}
}

// turns returns a rounded way less all full turns, and its direction. A turn of 0 is one of 2^64.
func turns(d float64, turn uint64) (way uint64, up bool) {
	if finite(d) != d {
		return 0, true
	}
	return within(math.RoundToEven(math.Abs(d)), turn), d > 0
}

// fadingRotation returns the functions for unit vectors and quaternions, of 3 and 4 numbers.
func fadingRotation(kind reflect.Kind, n int) fading {
	single := kind == reflect.Float32
	switch {
	case n == 4 && single:
		return fading{3, differQuat[float32], displaceQuat[float32]}
	case n == 4:
		return fading{3, differQuat[float64], displaceQuat[float64]}
	case single:
		return fading{3, differUnit[float32], displaceUnit[float32]}
	}
	return fading{3, differUnit[float64], displaceUnit[float64]}
}
