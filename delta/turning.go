package delta

// This file predicts angles that turn together, such as those of the wheels of a car. What changes
// the speed of one changes that of the others as much. So the deviation of such an angle from its
// prediction, which is coded first, is expected of the next angle as well.

import "math/bits"

const (
	// Two angles turn together if, between the baselines, both moved by this many codes or more, and
	// their ways differ by no more than a fraction of that. What turns slowly, or is as fast as another
	// angle by chance, seldom does both.
	leastTurn = 16
	turnShare = 5 // the fraction, as a power of two

	// besideOrders is the first of the rows of movingOrders for such angles. The number of a row is by
	// the bits by which their ways differ; the residuals before them show nothing.
	besideOrders = 80
)

// turnsWith reports whether two angles turn together, whose ways between the baselines are given. row is the
// row of movingOrders for the second one.
func turnsWith(way, before int64) (row uint, together bool) {
	apart, size := abs(way-before), abs(way)
	return besideOrders + uint(bits.Len64(uint64(apart))), size >= leastTurn && apart<<turnShare <= size
}

// mayTurnWith reports whether f may turn together with the field before it: both are on circles of the same
// number of codes.
func (f *Field) mayTurnWith(before *Field) bool {
	return f.Kind == Wrap && before.Kind == Wrap && f.Max == before.Max && f.Bits > 0 && f.Bits <= maxMovingBits
}

// way returns the distance by which a Wrap field moved between the baselines.
func (ref *reference) way(f *Field) int64 { return f.signed(f.code(ref.base), f.code(ref.base2)) }

// together reports whether f turns together with the field before it, which is in row already. If so, the
// residual of f is taken against at, and m is the row of movingOrders for it.
func (ref *reference) together(f, before *Field, row []uint32) (at uint64, m uint, together bool) {
	if m, together = turnsWith(ref.way(f), ref.way(before)); together {
		deviation := before.signed(before.code(row), before.code(ref.row))
		at = uint64(f.around(int64(f.code(ref.row)) + deviation))
	}
	return at, m, together
}

// way returns the distance by which a step that wraps moved between two codes.
func (s *step) way(to, from uint32) int64 {
	return (int64(to)-int64(from)+s.halfCircle)&(2*s.halfCircle-1) - s.halfCircle
}

// turnTogether finds the steps of a row that turn together with those before them.
func turnTogether(steps []step, base, base2 []uint32) {
	base, base2 = base[:len(steps)], base2[:len(steps)]
	before := int64(0)
	for i := range steps {
		s := &steps[i]
		way := s.way(base[i], base2[i])
		s.with = 0
		if s.beside {
			if row, together := turnsWith(way, before); together {
				s.moved, s.with = uint8(row), ^uint32(0)
			}
		}
		before = way
	}
}

// deviate takes from the residuals against the prediction what is expected of steps that turn together.
func deviate(steps []step) {
	for i := len(steps) - 1; i > 0; i-- {
		if s := &steps[i]; s.with != 0 {
			s.predicted = s.from(unzigzag32(s.predicted), unzigzag32(steps[i-1].predicted))
		}
	}
}

// unzigzag32 returns the distance that a residual stands for.
func unzigzag32(u uint32) uint32 { return u>>1 ^ -(u & 1) }
