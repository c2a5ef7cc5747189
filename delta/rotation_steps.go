package delta

// A component that is one Quat field, an orientation, has an encoder of its own as well.
// What it has to code once it is in one chart are three steps.

// rotationSteps returns the steps of a component that is one Quat, or nil for others.
func rotationSteps(fields []Field) []step {
	if len(fields) != 1 || fields[0].Kind != Quat {
		return nil
	}
	s := step{width: uint8(fields[0].Bits + 1)} // a distance that does not wrap takes a bit more
	return []step{s, s, s}
}

// chartBits returns the code that tells in which chart the steps are, and its bits.
func chartBits(cur, ref uint32) (code uint64, n uint) {
	if cur == ref {
		return 0, 1
	}
	return 1 | uint64(cur)<<1, 3
}

// impliedIn returns the index of the step that is not zero if those before are: the last
// one, unless another chart tells the difference already.
func impliedIn(cur, ref uint32) int {
	if cur == ref {
		return 2
	}
	return -1
}

// addRotation is Add for a component that is one Quat, against a baseline at least. base2
// differs from base, or is nil; then cur differs from base. alone is what changesAlone says.
func (p *Packed) addRotation(component int, alone bool, steps []step, cur, base, base2 []uint32, ratio int64) {
	c := &p.layout.Components[component]
	cur, base = cur[:4], base[:4]
	b, chart := c.Fields[0].Bits, cur[0]
	moving, off := base2 != nil, false
	var q1, q2, next rotation
	var nextChart uint32
	var to [3]uint32
	if moving {
		q1.set(base, b)
		q2.set(base2, b)
		next.extrapolate(&q1, &q2, ratio, b)
		nextChart = next.largest()
		to = next.chart(nextChart, b)
		moving = nextChart != base[0] || to[0] != base[1] || to[1] != base[2] || to[2] != base[3]
		off = nextChart != chart || to[0] != cur[1] || to[1] != cur[2] || to[2] != cur[3]
	}

	switch {
	case !moving && equal(cur, base):
		p.holdSymbol(component, 0b0, 1, !alone)
		return
	case moving && !off:
		p.holdSymbol(component, 0b01, 2, false)
		return
	case moving && equal(cur, base):
		p.holdSymbol(component, 0b011, 3, false)
		return
	}

	var known *rotation
	if base2 != nil {
		known = &q1
	}
	from := inChart(base, known, chart, b)
	for j := range from {
		steps[j].plain = uint32(zigzag(int64(cur[j+1]) - int64(from[j])))
	}
	flag, n := chartBits(chart, base[0])
	implied := impliedIn(chart, base[0])
	var d draft
	way, symbol, usual := byBaseline, uint32(1+n), alone && n == 1
	if moving {
		from2 := inChart(base2, &q2, chart, b)
		if nextChart != chart {
			to = next.chart(chart, b)
		}
		for j := range from {
			steps[j].moved = uint8(magnitude(uint64(from[j]), uint64(from2[j])))
			steps[j].predicted = uint32(zigzag(int64(cur[j+1]) - int64(to[j])))
		}
		flag2, n2 := chartBits(chart, nextChart)
		var least uint
		d, least = predictedSteps(draft{flag2 << 1, 1 + n2}, p.words[byPrediction], steps, impliedIn(chart, nextChart))
		way, symbol, usual = byPrediction, uint32(1+n2), n2 == 1
		if d.n > 3+n+least {
			if plain := plainSteps(draft{0b111 | flag<<3, 3 + n}, p.words[byBaseline], steps, implied); plain.n < d.n {
				d, way, symbol, usual = plain, byBaseline, uint32(3+n), false
			}
		}
	} else {
		d = plainSteps(draft{0b1 | flag<<1, 1 + n}, p.words[byBaseline], steps, implied)
	}
	p.hold(component, d, p.words[way], symbol, usual)
	p.Costs = append(p.Costs, Cost{uint32(c.first), uint32(d.n) - symbol})
}
