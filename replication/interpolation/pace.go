package interpolation

import (
	"math"
	"slices"
)

// A pace follows how fast the server really ticks. A loop that drops ticks when it is late, or that sleeps for full
// milliseconds, is slower than its rate by a few hundredths for good. The client's clock runs at the server's pace, so
// that offsets do not grow without end.
//
// The sign of another pace is that the least offset of a period is larger than that of the period before, by about as
// much each time. Jitter and loss hardly change the least offset, and a change of the path changes it once.
type pace struct {
	ahead float64 // by how much the server is faster than its rate, as a share of it, as far as known

	low    float64 // the least offset in the present period
	states int     // in it
	length float64 // of it so far

	before  float64 // the least offset of the period before
	any     bool    // there is one
	periods []period
	seen    int // periods
}

// A period is the least offset in it, by how much that is more than before, and its length, in ticks.
type period struct{ low, growth, length float64 }

const (
	leastPeriod = 1.     // seconds
	leastStates = 8      // of a period
	fewPeriods  = 6      // show a pace that is very different, when the session begins
	morePeriods = 16     // are needed later, since paths become longer and shorter in slow waves
	begins      = 24     // periods
	mostPeriods = 128    // show it better; older ones are forgotten
	leastSlope  = 0.0005 // smaller differences do no harm
	steep       = 0.1    // larger differences are those of a network that catches up,
	manyPeriods = 32     // unless they last
	mostFactor  = 4      // nobody's rate is more wrong than this
	oddGrowth   = 1.     // ticks: of a growth that differs from the usual one, not more than this counts
	leastOdd    = 0.02   // seconds: the same for slow servers
	chance      = 1.5    // times that: a growth that may be a single change. Each odd one makes that more likely
)

// pass makes time pass.
func (p *pace) pass(ticks float64) { p.length += ticks }

// add notes the offset of a state. It returns by how much offsets have grown per tick, and for how long at least, if
// the pace was taken for another until now.
func (p *pace) add(offset, rate float64) (slope, lasted float64) {
	if p.states == 0 {
		p.low = offset
	}
	p.low = min(p.low, offset)
	if p.states++; p.states < leastStates || p.length < leastPeriod*rate {
		return 0, 0
	}
	if p.any {
		switch len(p.periods) {
		case mostPeriods:
			p.periods = slices.Delete(p.periods, 0, 1)
		case 0:
			p.periods = slices.Grow(p.periods, mostPeriods)
		}
		p.periods = append(p.periods, period{p.low, p.low - p.before, p.length})
	}
	p.before, p.any = p.low, true
	p.states, p.length = 0, 0
	n := fewPeriods
	if p.seen++; p.seen > begins {
		n = morePeriods
	}
	for ; n <= len(p.periods) && slope == 0; n = longer(n, len(p.periods)) {
		slope, lasted = p.slope(n, rate)
	}
	if slope == 0 {
		return 0, 0
	}
	p.ahead = min(max((1+p.ahead)*(1-slope), 1./mostFactor), mostFactor) - 1
	if math.Abs(p.ahead) < leastSlope {
		p.ahead = 0
	}
	p.any, p.periods = false, p.periods[:0]
	return slope, lasted
}

// begin starts to measure a pace that has become another one.
func (p *pace) begin(ahead float64) {
	p.ahead = min(max(1+ahead, 1./mostFactor), mostFactor) - 1
	p.any, p.periods, p.states, p.length = false, p.periods[:0], 0, 0
}

// longer returns how many periods to look at next: twice as many, all of them, or more than there are.
func longer(n, all int) int {
	if n == all {
		return all + 1
	}
	return min(2*n, all)
}

// slope returns the usual growth per tick in the latest n periods, and how long they are together, or 0 if there may be
// none.
func (p *pace) slope(n int, rate float64) (slope, length float64) {
	first := len(p.periods) - n
	var slopes [mostPeriods]float64
	for i, k := range p.periods[first:] {
		slopes[i] = k.growth / k.length
	}
	slices.Sort(slopes[:n])
	usual, odd := slopes[n/2], max(oddGrowth, leastOdd*rate)
	grown, least := 0., chance*odd
	for _, k := range p.periods[first:] {
		expected := usual * k.length
		if math.Abs(k.growth-expected) > odd {
			least += 2 * odd
		}
		grown += min(max(k.growth, expected-odd), expected+odd)
		length += k.length
	}
	slope = grown / length
	if math.Abs(slope) < max(leastSlope, least/length) || math.Abs(slope) > steep && n < manyPeriods {
		return 0, 0
	}
	// The offset must really have gone there. That of a network that catches up after it stood still only returns to
	// where it was before.
	from := p.periods[first].low - p.periods[first].growth
	if slope < 0 {
		for _, k := range p.periods[:first] {
			from = min(from, k.low)
		}
	}
	really := (p.low - from) / grown
	if really < 0.5 {
		return 0, 0
	}
	return slope * min(really, 1), length
}
