package clock

import "math"

// A drift follows how fast the server really ticks. A loop that sleeps for full milliseconds or is short of time makes
// fewer ticks than it should; one with a coarse clock may make more. The server's time passes as its ticks come.
//
// The sign of another speed is that the least delays of spans of time lie on a slope. Jitter and loss hardly change a
// least delay, and a change of the path is a step, which no slope fits. A queue that fills or drains makes such a
// slope, too, but round trips become longer or shorter with it.
type drift struct {
	speed   float64 // ticks of the server in a tick of the client
	since   float64 // when it became that
	refines bool    // too few points are of since then to know it well
	found   float64 // when it was found
	holds   float64 // until then the speed stays 1, since those that were found did not last
	hold    float64 // for how long that was so last

	least  point // the delay of the present span
	from   float64
	seen   int // delays in it; 0: there is no present span
	points [mostPoints]point
	n      int
}

// A point is a delay at a time and the round trip then, in ticks of the client.
type point struct{ at, delay, trip float64 }

const (
	mostPoints  = 24
	fewPoints   = 12     // show a speed well
	leastPoints = 6      // show that the server does not hold its rate
	soonPoints  = 4      // show that it does so at another speed, or no more
	linePoints  = 3      // show what it is
	driftSpan   = 1. / 4 // seconds
	leastSeen   = 4      // delays of which one is the least
	// leastGrowth is by how many ticks the delay grows, or shrinks, between the first and the last point if the speed
	// is another one; for each point less than fewPoints, it is moreGrowth more, and for each tick of jitter
	// jitterGrowth.
	leastGrowth, moreGrowth, jitterGrowth = 1.5, 0.75, 4
	// A slope fits if no point is farther off than leastOff, or than a share of the growth: soonShare if the server did
	// not hold its rate before.
	leastOff, offShare, soonShare = 0.5, 0.05, 0.1
	pathShare                     = 0.5 // of the growth: if round trips grow by more, the path does
	// A speed is exactly 1, or needs no refinement, if that makes a difference of less than sameGrowth ticks, or of
	// less than sameOff times what the farthest point is off.
	sameGrowth, sameOff = 0.25, 2
	// The speed may be exactly 1 again if the present one is off by more than exactGrowth ticks, more than a tick that
	// was left out, and exactOff times what the farthest point is off.
	exactGrowth, exactOff = 1.25, 3
	// After a server was slow for less than steadySpans, no other speed is believed for leastHold spans, and twice as
	// long each time, up to mostHold.
	steadySpans, leastHold, mostHold = 24, 32, 256
	leastSpeed, mostSpeed            = 0.2, 1.5
	usualSpeed                       = 1.1 // packets that come faster for a moment are those of a queue that drains
)

// restart forgets what was measured, since something else than the server's speed changes delays. The speed stays.
func (d *drift) restart() { d.seen, d.n = 0, 0 }

// note notes a delay, and the latest round trip, or 0 if none is known. jitter is how much delays vary. It returns the
// least delay at present if it has found another speed.
func (d *drift) note(delay, trip, now, jitter, span float64) (least float64, another bool) {
	if d.seen > 0 && (now-d.from < span || d.seen < leastSeen) {
		if d.seen++; delay < d.least.delay {
			d.least = point{now, delay, trip}
		}
		return 0, false
	}
	if d.seen > 0 {
		if d.n == mostPoints {
			d.forget(1)
		}
		d.points[d.n] = d.least
		d.n++
		if another = d.learn(now, jitter, span); another {
			line := fit(d.points[:d.n])
			least = line.at(now)
		}
	}
	d.least, d.from, d.seen = point{now, delay, trip}, now, 1
	return least, another
}

// forget forgets the first n points.
func (d *drift) forget(n int) {
	copy(d.points[:], d.points[n:d.n])
	d.n -= n
}

// learn finds the speed that the latest points show, if they do. One that does not last is none: the server stalls
// and catches up. To follow that would do more harm than to wait until it is over.
func (d *drift) learn(now, jitter, span float64) (another bool) {
	if now < d.holds {
		return false
	}
	least, share := leastPoints, offShare
	if d.speed != 1 {
		least, share = soonPoints, soonShare
	}
	for n := d.n; n >= least; n-- {
		points := d.points[d.n-n : d.n]
		l := fit(points)
		if l.off > max(leastOff+jitter, share*l.grown()) || !d.another(&l, n, jitter) && !d.exact(&l) {
			continue
		}
		if pathGrew(points, l.slope*l.lasted) {
			return false
		}
		d.begin(n, now, span)
		return true
	}
	if !d.refines || d.n < linePoints {
		return false
	}
	l := fit(d.points[:d.n])
	d.refines = d.n < fewPoints
	if d.refines && l.differs(d.speed) < l.same() {
		return false
	}
	was := d.speed
	d.take(l)
	return d.speed != was
}

// begin begins another speed, which the latest n points show, unless the one before has not lasted.
func (d *drift) begin(n int, now, span float64) {
	lasted, was := now-d.found, d.speed
	d.forget(d.turn())
	l := fit(d.points[:d.n])
	d.since, d.found, d.refines = l.from.at, now, true
	d.take(l)
	switch {
	case was < 1 && math.Abs(d.speed-1) < (1-was)/2 && n < fewPoints && lasted < steadySpans*span:
		d.hold = min(max(2*d.hold, leastHold*span), mostHold*span)
		d.speed, d.holds, d.refines = 1, now+d.hold, false
	case lasted > mostHold*span:
		d.hold = 0
	}
}

// pathGrew reports whether round trips grew like the delay.
func pathGrew(points []point, grown float64) bool {
	trips := points[len(points)-1].trip - points[0].trip
	return trips*grown > 0 && math.Abs(trips) > pathShare*math.Abs(grown)
}

// another reports whether the latest n points show another speed than the present one.
func (d *drift) another(l *line, n int, jitter float64) bool {
	least := leastGrowth + moreGrowth*float64(max(fewPoints-n, 0)) + jitterGrowth*jitter
	return l.differs(d.speed) >= least && (n >= fewPoints || 1-l.slope <= usualSpeed)
}

// exact reports whether points show that the server has its rate again. That is so likely that it takes less than
// another speed.
func (d *drift) exact(l *line) bool {
	return l.grown() < l.same() && l.differs(d.speed) >= max(exactGrowth, exactOff*l.off)
}

// take takes the speed that points show.
func (d *drift) take(l line) {
	if d.speed = min(max(1-l.slope, leastSpeed), mostSpeed); l.grown() < l.same() {
		d.speed = 1
	}
}

// turn returns the first point that is of another speed than the present one: points before it fit that best, and those
// from it on any other.
func (d *drift) turn() (best int) {
	least := math.Inf(1)
	for i := 0; i <= d.n-linePoints; i++ {
		l := fit(d.points[i:d.n])
		if off := squares(d.points[:i], 1-d.speed) + squares(d.points[i:d.n], l.slope); off < least {
			least, best = off, i
		}
	}
	return best
}

// squares returns the sum of the squares of what points are off from the line of a slope that fits best.
func squares(points []point, slope float64) (sum float64) {
	mean := 0.
	for _, p := range points {
		mean += (p.delay - slope*p.at) / float64(len(points))
	}
	for _, p := range points {
		off := p.delay - slope*p.at - mean
		sum += off * off
	}
	return sum
}

// A line is the one that fits points best.
type line struct {
	from   point // where the first point should be
	slope  float64
	off    float64 // of the farthest point
	lasted float64 // from the first point to the last one
}

// fit returns the line that fits points best.
func fit(points []point) (l line) {
	first := points[0]
	var x, y, xx, xy float64
	for _, p := range points {
		at, delay := p.at-first.at, p.delay-first.delay
		x, y, xx, xy = x+at, y+delay, xx+at*at, xy+at*delay
	}
	n := float64(len(points))
	l.slope = (n*xy - x*y) / (n*xx - x*x)
	l.from = point{at: first.at, delay: first.delay + (y-l.slope*x)/n}
	l.lasted = points[len(points)-1].at - first.at
	for _, p := range points {
		l.off = max(l.off, math.Abs(p.delay-l.at(p.at)))
	}
	return l
}

// at returns the delay at a time.
func (l *line) at(now float64) float64 { return l.from.delay + l.slope*(now-l.from.at) }

// grown returns by how much the delay changed.
func (l *line) grown() float64 { return math.Abs(l.slope) * l.lasted }

// differs returns by how much it would have changed differently with a speed of the server.
func (l *line) differs(speed float64) float64 { return math.Abs(l.slope-(1-speed)) * l.lasted }

// same returns which difference is none.
func (l *line) same() float64 { return max(sameGrowth, sameOff*l.off) }
