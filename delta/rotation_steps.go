package delta

// This file encodes components that are one Quat field, an orientation. In one chart, what remains
// to code are three steps.

// rotationSteps returns the steps of a component that is one Quat, or nil for others.
func rotationSteps(fields []Field) []step {
	if len(fields) != 1 || fields[0].Kind != Quat {
		return nil
	}
	f := &fields[0]
	// A distance that does not wrap takes a bit more. Codes do not wrap either: see readSteps.
	s := step{width: uint8(f.Bits + 1), max: int64(lowBits(f.Bits)), shifted: ordersOf(f.Bits+1, f.Orders)}
	s.orders = &s.shifted[noShift]
	for i := range s.shifted {
		s.shifted[i] = *s.orders // rotations are not shifted
	}
	return []step{s, s, s}
}

// chartBits returns the code for the chart of cur against that of ref, and its bits.
func chartBits(cur, ref uint32) (code uint64, n uint) {
	if cur == ref {
		return 0, 1
	}
	return 1 | uint64(cur)<<1, 3
}

// impliedIn returns the index of the step that can't be zero if those before it are: the last one,
// unless another chart shows the difference already.
func impliedIn(cur, ref uint32) int {
	if cur == ref {
		return 2
	}
	return -1
}

// addRotation is Add for a component that is one Quat, with a baseline. base2 differs from base, or
// is nil; then cur differs from base. alone is the result of changesAlone.
func (p *Packed) addRotation(component int, alone bool, steps []step, cur, base, base2 []uint32, ratio int64) {
	c := &p.layout.Components[component]
	x := p.codeRotation(steps, c.Fields[0].Bits, alone, cur[:4], base[:4], base2, ratio)
	p.hold(component, x.bitString, p.words[x.way], x.symbol, x.usual)
	if uint(x.symbol) != x.n {
		p.Costs = append(p.Costs, Cost{uint32(c.first), uint32(x.n) - x.symbol})
	}
}

// rotationPrediction is a rotation extrapolated from two baselines. It is filled in place, see
// rotation.set.
type rotationPrediction struct {
	base, base2, next rotation
	chart             uint32    // of next
	codes             [3]uint32 // of next in its chart
}

// set extrapolates the words of a Quat whose components have b bits.
func (x *rotationPrediction) set(base, base2 []uint32, ratio int64, b uint) {
	x.base.set(base, b)
	x.base2.set(base2, b)
	x.next.extrapolate(&x.base, &x.base2, ratio, b)
	x.chart = x.next.largest()
	x.next.chartTo(&x.codes, x.chart, b)
}

// differs reports whether the prediction differs from the words of a Quat.
func (x *rotationPrediction) differs(words []uint32) bool {
	return x.chart != words[0] || x.codes[0] != words[1] || x.codes[1] != words[2] || x.codes[2] != words[3]
}

// codeRotation codes the row of a component that is one Quat whose components have b bits.
func (p *Packed) codeRotation(
	steps []step, b uint, alone bool, cur, base, base2 []uint32, ratio int64,
) codedRow {
	var x rotationPrediction
	var known *rotation // base, if it is restored
	moving, off := false, false
	if base2 != nil {
		x.set(base, base2, ratio, b)
		moving, off, known = x.differs(base), x.differs(cur), &x.base
	}
	switch {
	case !moving && equal(cur, base):
		return codedRow{bitString{0b0, 1}, byBaseline, 1, !alone}
	case moving && !off:
		return codedRow{bitString{0b01, 2}, byPrediction, 2, false}
	case moving && equal(cur, base):
		return codedRow{bitString{0b011, 3}, byBaseline, 3, false}
	}
	chart := cur[0]
	var from, from2 [3]uint32
	inChartTo(&from, base, known, chart, b)
	for j := range from {
		steps[j].plain = uint32(zigzag(int64(cur[j+1]) - int64(from[j])))
	}
	flag, n := chartBits(chart, base[0])
	implied := impliedIn(chart, base[0])
	if !moving {
		d := plainSteps(bitString{0b1 | flag<<1, 1 + n}, p.words[byBaseline], steps, implied)
		return codedRow{d, byBaseline, uint32(1 + n), alone && n == 1}
	}

	inChartTo(&from2, base2, &x.base2, chart, b)
	to := &x.codes
	if x.chart != chart {
		x.next.chartTo(to, chart, b)
	}
	for j := range from {
		steps[j].moved = uint8(magnitude(uint64(from[j]), uint64(from2[j])))
		steps[j].predicted = uint32(zigzag(int64(cur[j+1]) - int64(to[j])))
	}
	flag2, n2 := chartBits(chart, x.chart)
	implied2 := impliedIn(chart, x.chart)
	predicted, least := predictedSteps(bitString{flag2 << 1, 1 + n2}, p.words[byPrediction], steps, implied2)
	if predicted.n > 3+n+least {
		plain := plainSteps(bitString{0b111 | flag<<3, 3 + n}, p.words[byBaseline], steps, implied)
		if plain.n < predicted.n {
			return codedRow{plain, byBaseline, uint32(3 + n), false}
		}
	}
	return codedRow{predicted, byPrediction, uint32(1 + n2), n2 == 1}
}
