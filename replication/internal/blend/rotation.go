package blend

import (
	"math"
	"reflect"
	"unsafe"
)

// rotation returns the functions for unit vectors and quaternions.
func rotation(kind reflect.Kind, n int) (prepareFunc, mixFunc) {
	single := kind == reflect.Float32
	switch {
	case n == 4 && single:
		return prepareQuat[float32], mixQuat[float32]
	case n == 4:
		return prepareQuat[float64], mixQuat[float64]
	case single:
		return prepareUnit[float32], mixUnit[float32]
	}
	return prepareUnit[float64], mixUnit[float64]
}

// A rotation from a to b at constant speed is a*cos(f*angle) + c*sin(f*angle), where c is the unit vector at a right
// angle to a in the plane of both. Prepare stores w = c*angle, which needs no more room than b. With x = (f*angle)^2,
// which is the squared length of f*w, the two coefficients are power series in x: cos(sqrt(x)) for a, and
// sin(sqrt(x))/sqrt(x) for f*w. So neither angles nor roots are computed for a frame, and there is no special case for
// small angles.

// prepareQuat goes the shorter way round: q and -q are the same rotation.
func prepareQuat[T float32 | float64](_ *part, from, second unsafe.Pointer) {
	a, b := (*[4]T)(from), (*[4]T)(second)
	dot := 0.0
	for i := range a {
		dot += float64(float64(a[i]) * float64(b[i]))
	}
	sign := math.Copysign(1, dot)
	var w [4]float64
	square := 0.0
	for i := range w {
		w[i] = sign * (float64(b[i]) - float64(float64(a[i])*dot))
		square += float64(w[i] * w[i])
	}
	scale := angleOverSine(math.Sqrt(square), sign*dot)
	for i := range b {
		b[i] = T(w[i] * scale)
	}
}

func mixQuat[T float32 | float64](_ *part, dst, from, second unsafe.Pointer, f float32) {
	a, w, v := (*[4]T)(from), (*[4]T)(second), (*[4]T)(dst)
	w0, w1, w2, w3 := float64(w[0]), float64(w[1]), float64(w[2]), float64(w[3])
	along, aside := rotate(float64(w0*w0)+float64(w1*w1)+float64(w2*w2)+float64(w3*w3), float64(f))
	v[0] = T(float64(float64(a[0])*along) + float64(w0*aside))
	v[1] = T(float64(float64(a[1])*along) + float64(w1*aside))
	v[2] = T(float64(float64(a[2])*along) + float64(w2*aside))
	v[3] = T(float64(float64(a[3])*along) + float64(w3*aside))
}

func prepareUnit[T float32 | float64](_ *part, from, second unsafe.Pointer) {
	a, b := (*[3]T)(from), (*[3]T)(second)
	dot := 0.0
	for i := range a {
		dot += float64(float64(a[i]) * float64(b[i]))
	}
	var w [3]float64
	square := 0.0
	for i := range w {
		w[i] = float64(b[i]) - float64(float64(a[i])*dot)
		square += float64(w[i] * w[i])
	}
	if dot < 0 && square < 1e-12 { // the opposite direction: any way is as short
		w = besides([3]float64{float64(a[0]), float64(a[1]), float64(a[2])})
		square = float64(w[0]*w[0]) + float64(w[1]*w[1]) + float64(w[2]*w[2])
		scale := math.Pi / math.Sqrt(square)
		b[0], b[1], b[2] = T(w[0]*scale), T(w[1]*scale), T(w[2]*scale)
		return
	}
	scale := angleOverSine(math.Sqrt(square), dot)
	b[0], b[1], b[2] = T(w[0]*scale), T(w[1]*scale), T(w[2]*scale)
}

func mixUnit[T float32 | float64](_ *part, dst, from, second unsafe.Pointer, f float32) {
	a, w, v := (*[3]T)(from), (*[3]T)(second), (*[3]T)(dst)
	w0, w1, w2 := float64(w[0]), float64(w[1]), float64(w[2])
	along, aside := rotate(float64(w0*w0)+float64(w1*w1)+float64(w2*w2), float64(f))
	v[0] = T(float64(float64(a[0])*along) + float64(w0*aside))
	v[1] = T(float64(float64(a[1])*along) + float64(w1*aside))
	v[2] = T(float64(float64(a[2])*along) + float64(w2*aside))
}

// besides returns a vector at a right angle to a unit vector.
func besides(a [3]float64) [3]float64 {
	if math.Abs(a[0]) < 0.7 {
		return [3]float64{0, a[2], -a[1]}
	}
	return [3]float64{-a[2], 0, a[0]}
}

// angleOverSine returns angle/sin(angle) of an angle by its sine, which is not negative, and its cosine.
func angleOverSine(sine, cosine float64) float64 {
	if sine < 1e-9 {
		return 1
	}
	return math.Atan2(sine, cosine) / sine
}

// rotate returns the coefficients of a and w for a fraction f of the way, from the square of the angle. Beyond the
// second value it goes on to half a turn at most, which is as far as the series are good.
func rotate(square, f float64) (along, aside float64) {
	x := float64(square * f * f)
	if x > math.Pi*math.Pi {
		x = math.Pi * math.Pi
		f = math.Pi / math.Sqrt(square)
	}
	along, aside = cosSeries[len(cosSeries)-1], sincSeries[len(sincSeries)-1]
	for i := len(cosSeries) - 2; i >= 0; i-- {
		along, aside = float64(along*x)+cosSeries[i], float64(aside*x)+sincSeries[i]
	}
	return along, float64(aside * f)
}

// The Taylor series of cos(sqrt(x)) and sin(sqrt(x))/sqrt(x). Up to x = pi^2 they are off by less than 4e-9.
var (
	cosSeries = [10]float64{
		1, -1. / 2, 1. / 24, -1. / 720, 1. / 40320, -1. / 3628800, 1. / 479001600, -1. / 87178291200,
		1. / 20922789888000, -1. / 6402373705728000,
	}
	sincSeries = [10]float64{
		1, -1. / 6, 1. / 120, -1. / 5040, 1. / 362880, -1. / 39916800, 1. / 6227020800, -1. / 1307674368000,
		1. / 355687428096000, -1. / 121645100408832000,
	}
)

// Differences of rotations are rotation vectors: their direction is the axis, their length the angle. That of
// quaternions is of a times the conjugate of b.

func differQuat[T float32 | float64](_ *part, d []float64, a, b unsafe.Pointer) {
	p, q := (*[4]T)(a), (*[4]T)(b)
	v, w := [3]float64{float64(p[0]), float64(p[1]), float64(p[2])}, float64(p[3])
	o, u := [3]float64{float64(q[0]), float64(q[1]), float64(q[2])}, float64(q[3])
	across := cross(o, v)
	var axis [3]float64
	for i := range axis {
		axis[i] = u*v[i] - w*o[i] + across[i]
	}
	cosine := w*u + dot(v, o)
	sign := math.Copysign(1, cosine) // q and -q are the same rotation
	angle, sine := 0., math.Sqrt(dot(axis, axis))
	if sine > 0 {
		angle = 2 * math.Atan2(sine, sign*cosine) / sine
	}
	setVector(d, axis, sign*angle)
}

func displaceQuat[T float32 | float64](_ *part, v unsafe.Pointer, d []float64) {
	q := (*[4]T)(v)
	axis := [3]float64{d[0], d[1], d[2]}
	angle := math.Sqrt(dot(axis, axis))
	if angle == 0 {
		return
	}
	sine, cosine := math.Sincos(angle / 2)
	o, w := [3]float64{float64(q[0]), float64(q[1]), float64(q[2])}, float64(q[3])
	across, share := cross(axis, o), sine/angle
	var r [4]float64
	for i := range o {
		r[i] = cosine*o[i] + share*(w*axis[i]+across[i])
	}
	r[3] = cosine*w - share*dot(axis, o)
	length := math.Sqrt(r[0]*r[0] + r[1]*r[1] + r[2]*r[2] + r[3]*r[3])
	if length == 0 || finite(length) != length {
		return
	}
	for i := range q {
		q[i] = T(r[i] / length)
	}
}

func differUnit[T float32 | float64](_ *part, d []float64, a, b unsafe.Pointer) {
	p, q := (*[3]T)(a), (*[3]T)(b)
	to := [3]float64{float64(p[0]), float64(p[1]), float64(p[2])}
	from := [3]float64{float64(q[0]), float64(q[1]), float64(q[2])}
	axis, cosine := cross(from, to), dot(from, to)
	angle, sine := 0., math.Sqrt(dot(axis, axis))
	switch {
	case cosine < 0 && sine < 1e-8: // the opposite direction: any way is as short
		axis = besides(from)
		angle = math.Pi / math.Sqrt(dot(axis, axis))
	case sine > 0:
		angle = math.Atan2(sine, cosine) / sine
	}
	setVector(d, axis, angle)
}

func displaceUnit[T float32 | float64](_ *part, v unsafe.Pointer, d []float64) {
	u := (*[3]T)(v)
	axis := [3]float64{d[0], d[1], d[2]}
	angle := math.Sqrt(dot(axis, axis))
	if angle == 0 {
		return
	}
	for i := range axis {
		axis[i] /= angle
	}
	from := [3]float64{float64(u[0]), float64(u[1]), float64(u[2])}
	sine, cosine := math.Sincos(angle)
	across, along := cross(axis, from), dot(axis, from)*(1-cosine)
	var r [3]float64
	for i := range r {
		r[i] = cosine*from[i] + sine*across[i] + along*axis[i]
	}
	length := math.Sqrt(dot(r, r))
	if length == 0 || finite(length) != length {
		return
	}
	for i := range u {
		u[i] = T(r[i] / length)
	}
}

// setVector stores a scaled vector, or zeros if that is not finite.
func setVector(d []float64, v [3]float64, scale float64) {
	for i := range v {
		d[i] = v[i] * scale
	}
	if finite(d[0]) != d[0] || finite(d[1]) != d[1] || finite(d[2]) != d[2] {
		clear(d)
	}
}

func dot(a, b [3]float64) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

func cross(a, b [3]float64) [3]float64 {
	return [3]float64{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}
