package delta

// This file decodes the components of steps.go and rotation_steps.go: most of what is read. Like there, it does not
// branch on the kind of each field. decodeFields does the same for fields of all kinds.

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// readSteps reads residuals into dst, which has what they are added to. implied is that of plainSteps and
// predictedSteps, moved whether to read what the latter wrote. It returns whether the codes are valid.
func readSteps(r *bitbuf.Reader, steps []step, dst []uint32, moved bool, implied int) (ok bool) {
	dst = dst[:len(steps)]
	ahead, used := r.Peek(), uint(0)
	k, seen := uint(3), uint(0)
	deviation := uint32(0) // of the code before from its prediction
	ok = true
	for i := range steps {
		s := &steps[i]
		width := uint(s.width)
		from := dst[i]
		if moved {
			k = movingOrder(uint(s.moved), seen)
			from += deviation & s.with
		}
		k = s.orders.of(k)
		if used+width+maxPrefix > 64 { // no code is longer
			r.Skip(used)
			ahead, used = r.Peek(), 0
		}
		var v uint32
		if limit, q := prefixLimit(k, width), uint(bits.TrailingZeros64(ahead)); q < limit {
			n := q + k
			v = uint32(ahead>>((q+1)&63))&(1<<(n&31)-1) + (1<<(q&31)-1)<<(k&31)
			ahead, used = ahead>>((q+1+n)&63), used+q+1+n
		} else {
			v = uint32(ahead>>(limit&63)) & (1<<(width&31) - 1)
			ahead, used = ahead>>((limit+width)&63), used+limit+width
		}
		zero := seen <= 1 // so far
		seen = max(seen, 1+uint(bits.Len32(v)))
		k = max(seen, 2) - 2
		if zero && i == implied {
			v++
		}
		code := (from + unzigzag32(v)) & (2*s.halfRange - 1)
		deviation = code - dst[i]
		dst[i] = code
		ok = ok && int64(code) <= s.max
	}
	r.Skip(used)
	return ok
}

// differsFrom returns whether a still row differs from the baseline, by its symbol. alone is the result of
// changesAlone.
func differsFrom(r *bitbuf.Reader, form int, alone bool) bool {
	if form == symbolWritten {
		return r.ReadBool()
	}
	return alone == (form == symbolUsual)
}

// decodeSteps is DecodeChange for a component that consists of steps, with a baseline.
func decodeSteps(
	r *bitbuf.Reader, steps []step, form int, dst, base, base2 []uint32, ratio int64,
) (changed bool) {
	dst, base = dst[:len(steps)], base[:len(steps)]
	last := len(steps) - 1
	two := base2 != nil && ratio != 0
	moves := two && !alike(base, base2)
	moving := false
	if moves {
		base2 = base2[:len(steps)]
		for i := range steps {
			s := &steps[i]
			b, b2 := int64(base[i]), int64(base2[i])
			s.moved = uint8(bits.Len32(uint32(max(b-b2, b2-b))))
			next := s.next(b, b2, ratio)
			dst[i] = next
			moving = moving || next != base[i]
		}
	}
	ok := true
	switch {
	case !moving:
		if !differsFrom(r, form, !two) {
			return moves // the prediction is the baseline
		}
		copy(dst, base)
		ok = readSteps(r, steps, dst, false, last)
	case form == symbolUsual || form == symbolWritten && !r.ReadBool():
		if steps[0].turning {
			turnTogether(steps, base, base2)
		}
		ok = readSteps(r, steps, dst, true, last)
	case !r.ReadBool():
	case !r.ReadBool():
		copy(dst, base)
	default:
		copy(dst, base)
		ok = readSteps(r, steps, dst, false, last)
	}
	if !ok {
		r.Fail(ErrCode)
	}
	return true
}

// decodeRotation is DecodeChange for a component that is one Quat whose components have b bits, with a baseline.
func decodeRotation(
	r *bitbuf.Reader, steps []step, b uint, form int, dst, base, base2 []uint32, ratio int64,
) (changed bool) {
	usual := form == symbolUsual
	dst, base = dst[:4], base[:4]
	two := base2 != nil && ratio != 0
	moves := two && !alike(base, base2)
	if !moves {
		if !differsFrom(r, form, !two) {
			return false
		}
		readRotation(r, steps, b, dst, base, nil, usual)
		return true
	}
	var x rotationPrediction
	x.set(base, base2[:4], ratio, b)
	switch moving := x.differs(base); {
	case !moving && (usual || !r.ReadBool()):
		copy(dst, base)
	case !moving:
		readRotation(r, steps, b, dst, base, &x.base, usual)
	case usual || !r.ReadBool():
		chart := readChart(r, x.chart, usual)
		var from, from2 [3]uint32
		inChartTo(&from, base, &x.base, chart, b)
		inChartTo(&from2, base2, &x.base2, chart, b)
		to := &x.codes
		if chart != x.chart {
			x.next.chartTo(to, chart, b)
		}
		for j := range from {
			steps[j].moved = uint8(magnitude(uint64(from[j]), uint64(from2[j])))
		}
		dst[0], dst[1], dst[2], dst[3] = chart, to[0], to[1], to[2]
		if !readSteps(r, steps, dst[1:], true, impliedIn(chart, x.chart)) {
			r.Fail(ErrCode)
		}
	case !r.ReadBool():
		dst[0], dst[1], dst[2], dst[3] = x.chart, x.codes[0], x.codes[1], x.codes[2]
	case !r.ReadBool():
		copy(dst, base)
	default:
		readRotation(r, steps, b, dst, base, &x.base, false)
	}
	return true
}

// readChart reads a chart against that of a reference, or returns that if it was left out.
func readChart(r *bitbuf.Reader, ref uint32, leftOut bool) (chart uint32) {
	if leftOut || !r.ReadBool() {
		return ref
	}
	if chart = uint32(r.ReadBits(2)); chart == ref {
		r.Fail(ErrCode) // the encoder writes that as the same
	}
	return chart
}

// readRotation reads the chart of a rotation, unless it was left out, and residuals against the baseline, which known
// has if it is restored.
func readRotation(r *bitbuf.Reader, steps []step, b uint, dst, base []uint32, known *rotation, leftOut bool) {
	chart := readChart(r, base[0], leftOut)
	dst[0] = chart
	inChartTo((*[3]uint32)(dst[1:]), base, known, chart, b)
	if !readSteps(r, steps, dst[1:], false, impliedIn(chart, base[0])) {
		r.Fail(ErrCode)
	}
}
