package clock

import (
	"math"

	"github.com/arche-replicate/arche-replicate/delta"
)

// An InputDelay says for which tick a client gives its inputs: so little ahead of the server that they just come in time, most of
// them, when packets are lost and late as they are. It goes up at once when inputs come too late, and down by and by when all
// came earlier than need be for a while.
type InputDelay struct {
	estimate uint32  // a tick that goes on with the server's
	fraction float64 // of the next one
	rate     float64 // that it was set for
	drift    float64 // how far the beat is off, smoothed
	ahead    uint32  // the tick of an input less beat
	Guess    bool    // beat and ahead are valid
	set      bool    // and the round trip was known

	from   delta.Tick // inputs from this tick on were given with this lead
	since  uint32     // the time since when least is the least margin
	least  int32
	any    bool   // least is valid
	stable uint32 // for how long all has to be early before the lead shrinks
	margin int32  // the margin that is not given up
}

const (
	// spareTicks is what a lead begins with beyond the round trip, and twice the jitter.
	spareTicks = 3
	// leastMargin is the margin that is not given up, more when the lead has proven too small: where packets get lost, what
	// comes late does so by several ticks.
	leastMargin, moreMargin = 1, 2
	// stableTicks is for how long margins must be larger than need be before the lead shrinks; each time that it proves too
	// small, that becomes twice as long, up to maxStable.
	stableTicks, maxStable = 256, 4096
	// muchMargin is so much that the lead shrinks after stableTicks anyway.
	muchMargin = 4
	// maxRaise is how far the lead goes up at a time.
	maxRaise = 16
	// maxDrift is how far the lead may get from what round trip and jitter suggest.
	maxDrift = 32
	// maxEstimateDrift is how far the beat may get from where the server seems to be, if there are not as many Applies as ticks.
	maxEstimateDrift = 2
	// driftShare is how slowly stray follows.
	driftShare = 1024
	// guessedTrip is the round trip before one was measured, in ticks.
	guessedTrip = 6
)

// Begin makes a first guess, when the server's tick is all that is known. The first input is given before the first Apply.
func (l *InputDelay) Begin(tick uint32) {
	l.estimate, l.ahead, l.Guess = tick, guessedTrip+spareTicks, true
}

// Step ends an Apply.
func (l *InputDelay) Step(c *Ticks) {
	if !c.Known {
		return
	}
	if rate := c.Rate(); math.Abs(rate-l.rate) > steadyRate*l.rate {
		l.rate, l.set = rate, false // what was is no guide
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

// follow lets the beat go on as the server does. It does so evenly: not every little error of the estimate makes a tick come
// twice or not at all.
func (l *InputDelay) follow(c *Ticks) {
	off := func() float64 { return float64(int32(l.estimate-c.Base)) + l.fraction - c.ServerTick() + 0.5 }
	if rate := c.Rate(); rate == 1 {
		l.estimate++
		l.fraction = 0
		l.drift += (off() - l.drift) / driftShare // the two ends' clocks differ by a little
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

// renew starts to watch margins anew, those of inputs not given yet.
func (l *InputDelay) renew(c *Ticks) {
	l.from, l.since, l.any = delta.Tick(l.Tick()), c.Now, false
}

// Judge takes the least margin of some inputs, which that of the given tick had.
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
	case waited >= l.stable: // the next while
		if l.stable == maxStable {
			l.margin = leastMargin
		}
		l.since, l.any, l.from = c.Now, false, of
	}
}
