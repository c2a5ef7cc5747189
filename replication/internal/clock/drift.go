package clock

import "math"

// A drift follows how fast the server really ticks. A loop that sleeps for full milliseconds or is short of time makes
// fewer ticks than it should; one with a coarse clock may make more. The server's time passes as its ticks come.
//
// The sign of another speed is that the least delays of spans of time lie on a slope. Jitter and loss hardly change a
// least delay, and a change of the path is a step, which no slope fits. A queue that fills or drains makes such a
// slope, too, but round trips become longer or shorter with it.
type drift struct {
	speed float64 // ticks of the server in a tick of the client
	since float64 // when it became that
	found float64 // when that was found
	holds float64 // until then the speed stays 1, since those that were found did not last
	hold  float64 // for how long that was so last

	least  point // the delay of the present span
	from   float64
	seen   int // delays in it; 0: there is no present span
	points [mostPoints]point
	n      int
}

// A point is a delay at a time and the round trip then, in ticks of the client.
type point struct{ at, delay, trip float64 }

const (
	mostPoints  = 12
	leastPoints = 6
	driftSpan   = 1. / 4 // seconds
	// leastGrowth is by how many ticks the delay grows, or shrinks, between the first and the last of all points if the
	// speed is another one; for each point less, it is moreGrowth more.
	leastGrowth, moreGrowth = 1.5, 0.75
	jitterGrowth            = 4 // and so much more for each tick of jitter
	leastSeen               = 4 // delays of which one is the least
	// A slope fits if no point is farther off than leastOff, or than a share of the growth.
	leastOff, offShare = 0.5, 0.05
	pathShare          = 0.5 // of the growth: if round trips grow by more, the path does
	// A speed that is found less than steadySpans after another one is not believed for leastHold spans, and twice as
	// long each time, up to mostHold.
	steadySpans, leastHold, mostHold = 24, 32, 256
	leastSpeed, mostSpeed            = 0.2, 1.5
)

// restart forgets what was measured, since something else than the server's speed changes delays. The speed stays.
func (d *drift) restart() { d.seen, d.n = 0, 0 }

// note notes a delay, and the latest round trip, or 0 if none is known. jitter is how much delays vary.
func (d *drift) note(delay, trip, now, jitter, span float64) {
	if d.seen > 0 && (now-d.from < span || d.seen < leastSeen) {
		if d.seen++; delay < d.least.delay {
			d.least = point{now, delay, trip}
		}
		return
	}
	if d.seen > 0 {
		if d.n == mostPoints {
			copy(d.points[:], d.points[1:])
			d.n--
		}
		d.points[d.n] = d.least
		d.n++
		d.learn(now, jitter, span)
	}
	d.least, d.from, d.seen = point{now, delay, trip}, now, 1
}

// learn finds the speed that the latest points show, if they do. A speed that does not last is none: the server stalls
// and catches up. To follow that would do more harm than to wait until it is over.
func (d *drift) learn(now, jitter, span float64) {
	if now < d.holds {
		return
	}
	for n := d.n; n >= leastPoints; n-- {
		slope, off, lasted := fit(d.points[d.n-n : d.n])
		grown := math.Abs(slope) * lasted
		another := math.Abs(slope-(1-d.speed)) * lasted // than the speed would have it
		least := leastGrowth + jitterGrowth*jitter
		if off > max(leastOff+jitter, offShare*grown) || another < least+moreGrowth*float64(mostPoints-n) {
			continue
		}
		if d.pathGrew(d.points[d.n-n:d.n], slope*lasted) {
			return
		}
		lasts := now - d.found
		d.since, d.found = d.points[d.n-n].at, now
		if d.speed = min(max(1-slope, leastSpeed), mostSpeed); grown < least {
			d.speed = 1
		}
		switch {
		case n < mostPoints && d.since > 0 && lasts < steadySpans*span:
			d.hold = min(max(2*d.hold, leastHold*span), mostHold*span)
			d.speed, d.holds = 1, now+d.hold
		case lasts > mostHold*span:
			d.hold = 0
		}
		return
	}
}

// pathGrew reports whether round trips grew like the delay.
func (d *drift) pathGrew(points []point, grown float64) bool {
	trips := points[len(points)-1].trip - points[0].trip
	return trips*grown > 0 && math.Abs(trips) > pathShare*math.Abs(grown)
}

// fit returns the slope that fits points best, by how much the farthest one is off, and how long they lasted.
func fit(points []point) (slope, off, lasted float64) {
	first := points[0]
	var x, y, xx, xy float64
	for _, p := range points {
		at, delay := p.at-first.at, p.delay-first.delay
		x, y, xx, xy = x+at, y+delay, xx+at*at, xy+at*delay
	}
	n := float64(len(points))
	slope = (n*xy - x*y) / (n*xx - x*x)
	for _, p := range points {
		off = max(off, math.Abs(p.delay-first.delay-y/n-slope*(p.at-first.at-x/n)))
	}
	return slope, off, points[len(points)-1].at - first.at
}
