package clock

// This file adapts the delay of inputs.

import (
	"math"

	"github.com/arche-replicate/arche-replicate/delta"
)

// InputDelay chooses the tick of a client's inputs: so little ahead of the server that most inputs just
// arrive in time, given the present path, loss and jitter. What the path takes is known from round trips.
// What is needed beyond it grows when inputs are late, and shrinks slowly after all were early for a
// while. The tick follows at a bounded speed and never goes back.
type InputDelay struct {
	Known  bool    // Tick is valid
	tick   uint32  // of an input given now
	offset int64   // tick, less the client's time and Base
	given  float64 // the delay: on its way to what is wanted
	drawn  float64 // the time of predictions, in ticks since Base
	steady bool    // the delay does not jump any more
	at     float64 // when it was adapted

	path float64 // ticks that inputs take to the server
	learnt
	loan    float64 // by so much extra grew lately, since path was loanOf: path may have to grow instead
	loanOf  float64
	loanEnd float64
	usual   learnt  // before that
	exact   learnt  // when the server last held its rate
	keeps   float64 // until then, what was learnt since is not forgotten for that
	speed   float64 // of the server, as the delay last followed it

	from   delta.Tick // inputs from this tick on were given with this delay
	before delta.Tick // and those between with one that was shorter by raised
	raised int32
	since  uint32 // the time since which least is measured
	least  int32  // the smallest margin of an input
	any    bool   // least is valid

	judged []judged // since the delay was adapted
}

// judged is the smallest margin of a client's latest inputs.
type judged struct {
	margin int32
	of     delta.Tick // the input that had it
}

// learnt is what late and early inputs have taught.
type learnt struct {
	extra  float64 // ticks beyond the path
	stable uint32  // ticks for which inputs must be early before the delay shrinks
	margin int32   // the margin to keep
}

const (
	// spareTicks is the initial delay beyond the path, a frame and twice the jitter.
	spareTicks = 1.5
	// leastMargin is the margin to keep. It becomes moreMargin when the delay was too small: if
	// packets are lost, late inputs are late by several ticks.
	leastMargin, moreMargin = 1, 2
	// stableTicks is the time for which margins must be larger than necessary before the delay
	// shrinks. It doubles each time that the delay is too small, up to maxStable.
	stableTicks, maxStable = 256, 4096
	// muchMargin is a margin beyond the one to keep with which the delay shrinks after a second, but not
	// below what it was before inputs were late.
	muchMargin = 4
	// maxRaise bounds the growth of the delay at a time.
	maxRaise = 16
	// guessedTrip is the round trip before one was measured, in ticks.
	guessedTrip = 6
	// samePath is a difference of paths that does not count, beside the jitter.
	samePath = 1
	// The speeds of the delay, in ticks per tick.
	leastRaise, mostRaise = 0.25, 1
	leastLower, mostLower = 0.1, 0.5
	// deadTicks is by how much the delay of Tick may be off. More than a half, so that it is steady.
	deadTicks = 0.75
	// Predictions make up for what they are off within about drawnTicks, by going faster or more slowly by up to
	// mostHaste. They brake from fewBeyond ticks beyond the goal on, stop at mostBeyond, and hurry where they
	// are far behind.
	drawnTicks, mostHaste = 8, 0.25
	fewBeyond, mostBeyond = -2, -4
)

// wanted returns the delay that is aimed at. An input is given up to a frame after its tick begins.
func (l *InputDelay) wanted(c *Ticks) float64 {
	return l.path + l.extra - l.repaid() + c.frame
}

// repaid returns how much of the loan the path has taken over since.
func (l *InputDelay) repaid() float64 { return min(max(l.path-l.loanOf, 0), l.loan) }

// endLoan makes up for what the path has taken over.
func (l *InputDelay) endLoan() { l.extra, l.loan = l.extra-l.repaid(), 0 }

// most bounds what is needed beyond the path: more would help only against what passes.
func most(c *Ticks) float64 { return max(c.RoundTrip(), 4) + 4*c.Jitter + 4 }

// Follow adapts the delay when time has passed.
func (l *InputDelay) Follow(c *Ticks) {
	l.follow(c)
	if len(l.judged) > 0 {
		for _, j := range l.judged {
			l.judge(j.margin, j.of, c)
		}
		l.judged = l.judged[:0]
		l.follow(c)
	}
}

func (l *InputDelay) follow(c *Ticks) {
	if !c.Known {
		return
	}
	path := float64(guessedTrip) // the server's tick is that of arriving packets
	if c.anyTrip {
		path = c.trip / 2
	}
	now := c.time()
	ticks := now - l.at
	l.at = now
	if !l.steady {
		l.path, l.extra = path, spareTicks+2*c.Jitter
		l.given, l.stable, l.margin = l.wanted(c), stableTicks, leastMargin
		l.steady = c.anyTrip && now >= c.settled
		l.renew(c)
	}
	if math.Abs(path-l.path) > samePath+c.Jitter {
		l.path = path
	}
	if now > l.loanEnd {
		l.endLoan()
	}
	if l.speed != c.drift.speed {
		l.followSpeed(c)
	}
	off := l.wanted(c) - l.given
	raise := ticks * min(max(off/2, leastRaise), mostRaise)
	lower := ticks * min(max(-off/16, leastLower), mostLower)
	l.given += max(min(off, raise), -lower)

	if goal := c.ahead + l.given; math.Abs(float64(l.offset)-goal) > deadTicks {
		l.offset = int64(math.Round(goal))
	}
	tick := c.Base + c.Now + uint32(l.offset)
	if !l.Known || int32(tick-l.tick) > 0 {
		l.tick, l.Known = tick, true
	}
	l.draw(c, ticks*c.drift.speed)
	if now < c.settled || math.Abs(c.off()) > 1+c.Jitter {
		l.renew(c) // what is late or early because of a pause is no guide
	}
}

// followSpeed takes back what was learnt from inputs that were late because of another speed of the server.
func (l *InputDelay) followSpeed(c *Ticks) {
	if l.loan > 0 {
		l.learnt, l.loan = l.usual, 0
	}
	switch {
	case l.speed == 1:
		l.exact = l.learnt
	case c.drift.speed == 1 && l.speed != 0 && l.at >= l.keeps: // a rate that changes all the time needs what it taught
		l.learnt, l.keeps = l.exact, l.at+c.seconds(60)
	}
	l.speed = c.drift.speed
	l.renew(c)
}

// draw lets the time of predictions go on by some ticks. It goes from the tick before Tick to Tick, evenly,
// while a tick of the client passes. When the delay changes, Tick skips a tick or stays for another one,
// which this makes up for over several ticks.
func (l *InputDelay) draw(c *Ticks, ticks float64) {
	goal := c.time() + float64(int32(l.tick-c.Base-c.Now)) - 1
	off := goal - l.drawn - ticks
	if !l.steady || off > c.seconds(1./2) {
		l.drawn = max(l.drawn, goal)
		return
	}
	step := ticks * haste(off)
	if off > 0 {
		step = min(step, off)
	} else {
		step = max(step, off)
	}
	l.drawn += ticks + step
}

// haste returns by how much faster than time predictions go on that are off by some ticks.
func haste(off float64) float64 {
	switch usual := min(max(off/drawnTicks, -mostHaste), mostHaste); {
	case off > 0:
		return min(max(usual, off/(2*drawnTicks)), 1)
	case off > fewBeyond:
		return usual
	default:
		return max(-mostHaste+(off-fewBeyond)/(fewBeyond-mostBeyond)*(1-mostHaste), -1)
	}
}

// Drawn returns the time at which to draw predictions, in ticks since Base. It does not wrap.
func (l *InputDelay) Drawn() float64 { return l.drawn }

// Tick returns the tick of an input given now.
func (l *InputDelay) Tick() uint32 { return l.tick }

// Ticks returns how far inputs are ahead of the server, when their tick begins.
func (l *InputDelay) Ticks(c *Ticks) float64 {
	return float64(int32(l.tick-c.Base-c.Now)) - c.ahead
}

// renew starts to measure margins again, of inputs that are given with the wanted delay.
func (l *InputDelay) renew(c *Ticks) {
	more := max(math.Ceil(l.wanted(c)-l.given), 0)
	l.from, l.since, l.any, l.raised = delta.Tick(l.tick+1+uint32(more)), c.Now, false, 0
}

// borrow keeps what was learnt before a loan, and reports whether one begins.
func (l *InputDelay) borrow() (begins bool) {
	if begins = l.loan == 0; begins {
		l.loanOf, l.usual = l.path, l.learnt
	}
	return begins
}

// raise makes the delay larger for inputs that were late.
func (l *InputDelay) raise(margin int32, c *Ticks) {
	more := int32(max(min(float64(min(1-margin, maxRaise)), most(c)-l.extra), 0))
	l.extra, l.loan, l.loanEnd = l.extra+float64(more), l.loan+float64(more), l.at+c.seconds(2)
	raised := l.raised + more
	l.renew(c)
	l.raised = raised
}

// Judge notes the smallest margin of the latest inputs, which the input of the given tick had.
func (l *InputDelay) Judge(margin int32, of delta.Tick) {
	if len(l.judged) < maxFresh {
		l.judged = append(l.judged, judged{margin, of})
	}
}

// judge adapts the delay to a margin.
func (l *InputDelay) judge(margin int32, of delta.Tick, c *Ticks) {
	if !l.steady {
		return
	}
	if of.Before(l.from) {
		if margin += l.raised; l.raised == 0 || of.Before(l.before) || margin >= 0 {
			return
		}
		l.borrow()
		l.raise(margin, c) // the raise was too small
		return
	}
	if margin < 0 {
		if l.borrow() {
			l.stable = min(2*l.stable, maxStable)
		}
		l.before, l.raised, l.margin = l.from, 0, moreMargin
		l.raise(margin, c)
		return
	}
	if !l.any || margin < l.least {
		l.least, l.any = margin, true
	}
	spare, waited := l.least-l.margin, c.Now-l.since
	switch {
	case spare >= muchMargin && waited >= c.Rate && l.extra-l.repaid() > l.usual.extra:
		l.endLoan()
		l.extra = max(l.extra-float64(spare-1), l.usual.extra)
		l.renew(c)
	case spare > 0 && waited >= l.stable:
		l.endLoan()
		l.extra = max(l.extra-float64(max(spare/2, 1)), -l.path) // no path takes less than no time
		l.renew(c)
	case waited >= l.stable: // the next period
		if l.stable == maxStable {
			l.margin = leastMargin
		}
		l.since, l.any, l.from = c.Now, false, of
	}
}
