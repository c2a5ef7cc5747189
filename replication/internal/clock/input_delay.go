package clock

// This file adapts the delay of inputs.

import (
	"math"

	"github.com/arche-replicate/arche-replicate/delta"
)

// InputDelay chooses the tick of a client's inputs: so little ahead of the server that most inputs just
// arrive in time, given the present loss and jitter. The delay grows at once when inputs are late, and
// shrinks slowly after all inputs were early for a while.
type InputDelay struct {
	estimate uint32  // an even estimate of the server's tick
	fraction float64 // of the next tick
	rate     float64 // for which the delay was set
	drift    float64 // smoothed error of the estimate
	ahead    uint32  // the delay: the tick of an input less the estimate
	Guess    bool    // estimate and ahead are valid
	set      bool    // they were set when the round trip was known

	from   delta.Tick // inputs from this tick on were given with this delay
	since  uint32     // the time since which least is measured
	least  int32      // the smallest margin of an input
	any    bool       // least is valid
	stable uint32     // calls of Apply for which inputs must be early before the delay shrinks
	margin int32      // the margin to keep
}

const (
	// spareTicks is the initial delay beyond the round trip and twice the jitter.
	spareTicks = 3
	// leastMargin is the margin to keep. It becomes moreMargin when the delay was too small: if
	// packets are lost, late inputs are late by several ticks.
	leastMargin, moreMargin = 1, 2
	// stableTicks is the time for which margins must be larger than necessary before the delay
	// shrinks. It doubles each time that the delay is too small, up to maxStable.
	stableTicks, maxStable = 256, 4096
	// muchMargin is a margin with which the delay shrinks after stableTicks in any case.
	muchMargin = 4
	// maxRaise bounds the growth of the delay at a time.
	maxRaise = 16
	// maxDrift is the largest distance of the delay from the one that round trip and jitter suggest.
	maxDrift = 32
	// maxEstimateDrift is the largest error of the estimate if the rate of Applies is not that of ticks.
	maxEstimateDrift = 2
	// driftShare smooths the drift.
	driftShare = 1024
	// guessedTrip is the round trip before one was measured, in ticks.
	guessedTrip = 6
)

// Begin makes a first guess when only the server's tick is known: the first input may be given before the
// first Apply.
func (l *InputDelay) Begin(tick uint32) {
	l.estimate, l.ahead, l.Guess = tick, guessedTrip+spareTicks, true
}

// Step ends an Apply.
func (l *InputDelay) Step(c *Ticks) {
	if !c.Known {
		return
	}
	if rate := c.Rate(); math.Abs(rate-l.rate) > steadyRate*l.rate {
		l.rate, l.set = rate, false // start again
	}
	l.follow(c)
	trip := float64(guessedTrip)
	if c.Trip.Known {
		trip = c.RoundTrip()
	}
	best := c.Base + uint32(int32(math.Ceil(c.est+trip+2*c.Jitter))) + spareTicks
	if off := int32(l.Tick() - best); l.set && off >= -maxDrift && off <= maxDrift {
		return
	}
	l.estimate, l.fraction, l.drift = c.Base+uint32(int32(math.Floor(c.ServerTick()))), 0, 0
	l.ahead, l.Guess, l.set = best-l.estimate, true, c.Trip.Known
	l.stable, l.margin = stableTicks, leastMargin
	l.renew(c)
}

// follow moves the estimate on with the server. It does so evenly, so that small errors don't skip or
// repeat a tick.
func (l *InputDelay) follow(c *Ticks) {
	off := func() float64 { return float64(int32(l.estimate-c.Base)) + l.fraction - c.ServerTick() + 0.5 }
	if rate := c.Rate(); rate == 1 {
		l.estimate++
		l.fraction = 0
		l.drift += (off() - l.drift) / driftShare // the two ends' clocks differ slightly
		switch {
		case l.drift > 0.5:
			l.estimate--
			l.drift--
		case l.drift < -0.5:
			l.estimate++
			l.drift++
		}
	} else {
		integer, fraction := math.Modf(l.fraction + rate)
		l.estimate, l.fraction, l.drift = l.estimate+uint32(integer), fraction, 0
		switch off := off(); {
		case off > maxEstimateDrift:
			l.estimate--
		case off < -maxEstimateDrift:
			l.estimate++
		}
	}
}

// Tick returns the tick of an input given now.
func (l *InputDelay) Tick() uint32 { return l.estimate + l.ahead }

// renew starts to measure margins again, of inputs that are not given yet.
func (l *InputDelay) renew(c *Ticks) {
	l.from, l.since, l.any = delta.Tick(l.Tick()), c.Now, false
}

// Judge adapts the delay to the smallest margin of the latest inputs, which the input of the given tick
// had.
func (l *InputDelay) Judge(margin int32, of delta.Tick, c *Ticks) {
	if !l.set || of.Before(l.from) {
		return
	}
	if margin < 0 {
		l.ahead += uint32(min(1-margin, maxRaise))
		l.stable, l.margin = min(2*l.stable, maxStable), moreMargin
		l.renew(c)
		return
	}
	if !l.any || margin < l.least {
		l.least, l.any = margin, true
	}
	spare, waited := l.least-l.margin, c.Now-l.since
	switch {
	case spare > 0 && (waited >= l.stable || waited >= stableTicks && l.least >= muchMargin):
		l.ahead -= uint32(max(spare/2, 1))
		l.renew(c)
	case waited >= l.stable: // the next period
		if l.stable == maxStable {
			l.margin = leastMargin
		}
		l.since, l.any, l.from = c.Now, false, of
	}
}
