package delta

// This file encodes components that have only Linear and Wrap fields, such as positions, velocities
// and angles: most of what moves. It makes the same bits as the encoder for all kinds, but does not
// branch on the kind of each field and does not store a prediction.

import (
	"math/bits"
)

// maxStepBits is the largest width of a step: its residual, and the largest power of two that is
// added to that, fit into 32 bits.
const maxStepBits = 31

// step is one field of such a component, with the residuals of the present row.
type step struct {
	max, mask  int64  // the largest code, and the bits of codes that wrap
	halfCircle int64  // half of the circle of codes that wrap; for others, too large to matter
	halfRange  uint32 // half of the range of residuals
	width      uint8
	orders     *stepOrders // of the present shift
	shifted    *[shifts]stepOrders
	beside     bool // it may turn together with the step before it, see turning.go
	turning    bool // of the first step of a row: this holds for some

	moved     uint8    // bits of the distance between the baselines, or another row of movingOrders
	with      uint32   // all bits are set if it turns together with the step before it
	bits      [2]uint8 // of the codes of the two residuals
	predicted uint32   // residual against the prediction
	plain     uint32   // residual against the baseline

	total uint32 // bits of the codes of several rows
}

// stepOrders has, for each order, the one that a step has instead: see Field.Orders and Packed.SetShift. None is
// above the step's width.
type stepOrders [64]uint8

// of returns what stands for order k.
func (o *stepOrders) of(k uint) uint { return uint(o[k%uint(len(o))]) }

// ordersOf returns the orders of steps of a width, by shift. If given orders replace them, no shift does.
func ordersOf(width uint, given []uint8) *[shifts]stepOrders {
	var all [shifts]stepOrders
	for s := range all {
		orders := given
		if len(given) == 0 {
			orders = shiftedOrders[s]
		}
		for k := range all[s] {
			all[s][k] = uint8(min(replaced(orders, uint(k)), width))
		}
	}
	return &all
}

// Ways to code a row's steps, as indices of step.bits and Packed.words.
const (
	byPrediction = iota
	byBaseline
)

// stepsOf returns the fields as steps, or nil if one of them can't be a step.
func stepsOf(fields []Field) (steps []step) {
	for i := range fields {
		f := &fields[i]
		if f.Kind != Linear && f.Kind != Wrap || f.circle != 0 || f.Bits == 0 || f.Bits > maxStepBits {
			return nil
		}
		s := step{max: int64(f.Max), mask: -1, halfCircle: 1 << 62, halfRange: 1 << (f.Bits - 1)}
		s.width, s.beside = uint8(f.Bits), f.beside
		s.shifted = ordersOf(f.Bits, f.Orders)
		s.orders = &s.shifted[noShift]
		if f.Kind == Wrap {
			s.mask, s.halfCircle = int64(lowBits(f.Bits)), int64(s.halfRange)
		}
		steps = append(steps, s)
		steps[0].turning = steps[0].turning || s.beside
	}
	return steps
}

// from returns the residual of a code against another one.
func (s *step) from(cur, ref uint32) uint32 {
	d := int32((cur-ref+s.halfRange)&(2*s.halfRange-1) - s.halfRange)
	return uint32(d<<1 ^ d>>31)
}

// next returns the code extrapolated from base2 and base.
func (s *step) next(base, base2, ratio int64) uint32 {
	d := (base-base2+s.halfCircle)&(2*s.halfCircle-1) - s.halfCircle
	return uint32(min(max((base+(d*ratio+1<<15)>>16)&s.mask, 0), s.max))
}

// compare computes the residuals of cur against base. It returns 0 if all of them are 0.
func compare(steps []step, cur, base []uint32) (changed uint32) {
	cur, base = cur[:len(steps)], base[:len(steps)]
	for i := range steps {
		s := &steps[i]
		s.plain = s.from(cur[i], base[i])
		changed |= s.plain
	}
	return changed
}

// extrapolateSteps computes the residuals of cur against base and against the prediction. moving is
// 0 if the prediction equals base, off is 0 if cur equals the prediction, and changed is 0 if cur
// equals base.
func extrapolateSteps(steps []step, cur, base, base2 []uint32, ratio int64) (moving, off, changed uint32) {
	cur, base, base2 = cur[:len(steps)], base[:len(steps)], base2[:len(steps)]
	for i := range steps {
		s := &steps[i]
		b, b2 := int64(base[i]), int64(base2[i])
		s.moved = uint8(bits.Len32(uint32(max(b-b2, b2-b))))
		next := s.next(b, b2, ratio)
		v, plain := s.from(cur[i], next), s.from(cur[i], uint32(b))
		s.predicted, s.plain = v, plain
		moving |= v ^ plain
		off |= v
		changed |= plain
	}
	return moving, off, changed
}

// plainSteps appends the residuals against the baseline. If all residuals before index implied are
// zero, the one at implied can't be, and is written less one.
func plainSteps(d bitString, words []uint64, steps []step, implied int) bitString {
	k, largest := uint(3), uint(0)
	for i := range steps {
		s := &steps[i]
		v, width := s.plain, uint(s.width)
		if largest == 0 && i == implied {
			v--
		}
		code, n := shortResidual(v, s.orders.of(k), width)
		s.bits[byBaseline] = uint8(n)
		d = d.put(words, code, n)
		largest = max(largest, uint(bits.Len32(v)))
		k = largest - min(largest, 1)
	}
	return d
}

// predictedSteps appends the residuals against the prediction. It also returns a lower bound of the
// bits that plainSteps takes, which often makes it unnecessary to try: no code is shorter than its
// residual, nor is the code of a residual less one.
func predictedSteps(d bitString, words []uint64, steps []step, implied int) (_ bitString, plain uint) {
	seen := uint(0)
	for i := range steps {
		s := &steps[i]
		v, width, k := s.predicted, uint(s.width), movingOrder(uint(s.moved), seen)
		if seen <= 1 && i == implied {
			v--
		}
		code, n := shortResidual(v, s.orders.of(k), width)
		s.bits[byPrediction] = uint8(n)
		d = d.put(words, code, n)
		seen = max(seen, 1+uint(bits.Len32(v)))
		plain += uint(bits.Len32(s.plain))
	}
	return d, plain
}

// movingSteps returns the steps of a component that consists of steps and moves, or nil.
func (p *Packed) movingSteps(component int) []step {
	c := &p.layout.Components[component]
	if c.width == 0 || !c.moves || c.Fields[0].Kind == Quat {
		return nil
	}
	return p.steps[component]
}

// codedRow is a row of steps in bits.
type codedRow struct {
	bitString        // with the symbol
	way       int    // index of its words
	symbol    uint32 // bits of the symbol; if there are no others, step.bits has no meaning
	usual     bool
}

// codeSteps encodes a row with a baseline. base2 is nil if there is nothing to extrapolate; alone
// is the result of changesAlone.
func (p *Packed) codeSteps(steps []step, alone bool, cur, base, base2 []uint32, ratio int64) codedRow {
	var moving, off, changed uint32
	if base2 == nil || alike(base, base2) {
		changed = compare(steps, cur, base)
	} else {
		moving, off, changed = extrapolateSteps(steps, cur, base, base2, ratio)
	}
	last := len(steps) - 1
	switch {
	case moving == 0 && changed == 0:
		return codedRow{bitString{0b0, 1}, byBaseline, 1, !alone}
	case moving == 0:
		return codedRow{plainSteps(bitString{0b1, 1}, p.words[byBaseline], steps, last), byBaseline, 1, alone}
	case off == 0:
		return codedRow{bitString{0b01, 2}, byPrediction, 2, false}
	case changed == 0:
		return codedRow{bitString{0b011, 3}, byBaseline, 3, false}
	}
	if steps[0].turning {
		turnTogether(steps, base, base2)
		deviate(steps)
	}
	predicted, least := predictedSteps(bitString{0b0, 1}, p.words[byPrediction], steps, last)
	if predicted.n > 3+least {
		if plain := plainSteps(bitString{0b111, 3}, p.words[byBaseline], steps, last); plain.n < predicted.n {
			return codedRow{plain, byBaseline, 3, false}
		}
	}
	return codedRow{predicted, byPrediction, 1, true}
}

// addSteps is Add for a component that consists of steps.
func (p *Packed) addSteps(component int, alone bool, steps []step, cur, base, base2 []uint32, ratio int64) {
	x := p.codeSteps(steps, alone, cur, base, base2, ratio)
	p.hold(component, x.bitString, p.words[x.way], x.symbol, x.usual)
	if uint(x.symbol) == x.n {
		return
	}
	first := uint32(p.layout.Components[component].first)
	costs := p.book(len(steps))
	for i := range steps {
		costs[i] = Cost{first + uint32(i), uint32(steps[i].bits[x.way])}
	}
}
