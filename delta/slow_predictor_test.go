package delta

import "math"

type slowPredictor struct {
	row   []uint32 // predicted codes
	quats []slowQuat
}

type slowQuat struct {
	base, base2, next slowRotation
}

func (p *slowPredictor) predict(c *Component, base, base2 []uint32, ratio int64) (moving bool) {
	if base2 == nil || ratio == 0 || equal(base, base2) {
		return false
	}
	p.row = append(p.row[:0], base...)
	p.quats = p.quats[:0]
	for i := range c.Fields {
		f := &c.Fields[i]
		switch f.Kind {
		case Linear, Wrap:
			if f.Bits > maxMovingBits {
				continue // rest
			}
			b := f.code(base)
			d := int64(b - f.code(base2))
			if f.Kind == Wrap {
				d = slowDistance(f, b, f.code(base2))
			}
			next := int64(b) + (d*ratio+1<<15)>>16
			if n := int64(f.Max) + 1; f.Kind == Wrap {
				next = (next%n + n) % n
			}
			f.setCode(p.row, uint64(min(max(next, 0), int64(f.Max))))
		case Quat:
			w := f.word
			q := slowQuat{base: slowRotationOf(base[w:w+4], f.Bits), base2: slowRotationOf(base2[w:w+4], f.Bits)}
			q.next = q.base
			if !equal(base[w:w+4], base2[w:w+4]) {
				q.next = slowExtrapolate(&q.base, &q.base2, ratio, f.Bits)
				l := q.next.largest()
				p.row[w] = l
				codes := q.next.chart(l, f.Bits)
				copy(p.row[w+1:], codes[:])
			}
			p.quats = append(p.quats, q)
		}
	}
	return !equal(p.row, base)
}

// A slowRotation is a rotation.
type slowRotation [4]int64

// slowGrid returns the code of zero, the scale of a step, and the length of a rotation.
func slowGrid(b uint) (zero, scale, length int64) {
	const sqrtHalf = math.Sqrt2 / 2
	for steps := int64(sqrtHalf * float64(int64(1)<<b)); zero == 0; steps-- {
		if top := int64(math.Ceil(float64(steps) * sqrtHalf)); top < 1<<(b-1) && (steps%2 == 0 || steps == 1) {
			zero, length = top, steps
		}
	}
	scale = maxQuatLength / length
	return zero, scale, length * scale
}

func slowRotationOf(words []uint32, b uint) slowRotation {
	var q slowRotation
	zero, scale, length := slowGrid(b)
	largest, j, sum := words[0]&3, 1, int64(0)
	for i := range q {
		if i != int(largest) {
			x := (int64(words[j]) - zero) * scale
			q[i] = x
			sum += x * x
			j++
		}
	}
	q[largest] = isqrt(length*length - sum)
	return q
}

func (q *slowRotation) chart(largest uint32, b uint) (codes [3]uint32) {
	zero, scale, _ := slowGrid(b)
	sign := int64(1)
	if q[largest&3] < 0 {
		sign = -1
	}
	j := 0
	for i, x := range q {
		if i != int(largest&3) {
			c := floorDiv(sign*x+scale/2, scale) + zero
			codes[j] = uint32(min(max(c, 0), int64(lowBits(b))))
			j++
		}
	}
	return codes
}

func (q *slowRotation) largest() uint32 {
	l := 0
	for i := 1; i < 4; i++ {
		if abs(q[i]) > abs(q[l]) {
			l = i
		}
	}
	return uint32(l)
}

func slowExtrapolate(q1, q2 *slowRotation, t int64, b uint) slowRotation {
	dot := q1[0]*q2[0] + q1[1]*q2[1] + q1[2]*q2[2] + q1[3]*q2[3]
	sign := int64(1)
	if dot < 0 { // q and -q are the same rotation: take the nearer one
		dot, sign = -dot, -1
	}
	_, _, length := slowGrid(b)
	length2 := length * length               // of q1 and q2
	x := min((dot-length2)/(length2>>30), 0) // cos(a)-1 in 34.30 fixed point
	f1, f2 := sineRatio(t+1<<16, x), sineRatio(t, x)*sign
	var q slowRotation
	for i := range q {
		q[i] = (f1*q1[i] - f2*q2[i]) >> 20
	}
	return q
}

// floorDiv returns a/b rounded down, b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
