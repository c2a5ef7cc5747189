package interpolation

import "math"

// A clock decides which moment of the server's past is shown. It weighs delay against frames that have nothing to
// show: the delay covers all but a few of the gaps between states. When that takes another delay, time goes a little
// slower or faster until it is reached.
//
// All times and durations are in ticks. Times of the client are the sum of what it was advanced by, at the server's
// pace; times of the server count from the first state. An offset is a time of the client less a time of the server.
type clock struct {
	rate     float64 // ticks per second
	interval float64 // between states, as the server sends them
	limits   limits
	ahead    float64 // for how long entities are extrapolated

	now     float64 // of the client
	time    float64 // of the server: what should be shown
	shown   float64 // what is shown: the same, unless that is too far ahead of what came or would be a step back
	running bool    // they are valid

	newest float64 // the newest state
	any    bool    // there is one
	dry    uint64  // frames that showed a later time than that, since it came
	alive  float64 // the newest packet of any kind: from a server whose world rests, others come more often than states

	silence float64 // before the newest state, in which the server had nothing to send

	unsettled    int     // states in a row before which it had, or may have, left something unsent
	unsettledFor float64 // from the first of them to the last one

	pace     pace
	server   float64 // its speed, as the client last knew it
	gaps     gaps
	losses   losses
	path     path
	required float64 // the offset that covers the gaps
	computed float64 // when required was computed
	slew

	counts counts
}

// slew is why time goes slower or faster than the server's.
type slew struct {
	slewing bool // it does
	hurry   bool // the path changed, so that required is far off and certain
	catches bool // the same of the server's speed: time may pass as fast or slowly as that makes states come
}

// limits are what the user may choose.
type limits struct {
	margin           float64 // share of gaps that the delay covers
	slowest, fastest float64 // speed of time
}

// counts are for [Stats].
type counts struct {
	frames, starved, jumps uint64
	speed                  float64 // in the last frame
}

const (
	firstIntervals             = 2.4    // delay in intervals until enough gaps were seen
	enoughGaps                 = 64     // to trust them
	deadBand                   = 0.1    // intervals: smaller errors are left alone
	recompute                  = 0.1    // seconds between computations of the required offset
	snapAfter                  = 0.4    // seconds: a larger error is not worked off, time jumps
	longestGap                 = 0.7    // seconds: to cover longer ones is not worth the delay
	maxAhead                   = 0.25   // seconds: how far time goes on without a newer state
	maxAlive                   = 1      // seconds: the same without a packet, if the world rests
	manyUnsettled              = 32     // states: losses are hardly the reason for so many in a row
	slowestCatch, fastestCatch = 0.5, 2 // speeds of time while it catches up with another speed of the server
	muchSpeed                  = 0.005  // a difference of speeds that changes what was learnt of gaps
	mostSaving                 = 0.125  // seconds: a server saves up for so long at most, longer with all that rests
	longFrame                  = 0.1    // seconds: when packets arrived in a longer one is unknown, unless most are
)

// setInterval sets the interval between states to what it is now. If it changed, so do the gaps.
func (c *clock) setInterval(interval float64) {
	if interval == c.interval {
		return
	}
	longer := interval > c.interval
	c.gaps.stretch(interval)
	if c.interval > 0 {
		c.silence *= interval / c.interval
	}
	if c.interval = interval; c.running {
		c.required, c.computed = c.want(), c.now
		c.slewing, c.hurry = longer || c.slewing, longer // until the delay is as long, most frames have nothing to show
	}
}

// perSecond returns how many ticks the server makes in a second, as far as known.
func (c *clock) perSecond() float64 { return c.rate * (1 + c.pace.ahead) }

// follow makes the client's clock run at the server's speed, in ticks per tick that it should make, when the client
// finds that it is another one, for some ticks already, or knows it better.
func (c *clock) follow(speed, lasts float64) {
	was, old := c.server, 1+c.pace.ahead
	if c.server = speed; speed == was || was == 0 {
		return
	}
	c.pace.begin(speed - 1)
	if slope := 1 - speed/old; math.Abs(slope) < muchSpeed {
		c.straighten(slope, lasts*old)
		return
	}
	c.path.straighten(c.interval * (old/speed - 1))
	c.path.restart()
	c.gaps.restart((lasts+c.rate)*speed, c.path.base())
	c.required, c.computed, c.slewing, c.hurry, c.catches = c.want(), c.now, true, true, true
}

// straighten makes offsets what they would have been if they had not grown by a slope per tick for so long.
func (c *clock) straighten(slope, lasted float64) {
	c.gaps.straighten(slope, lasted, mostSpread*c.rate)
	c.path.restart()
	c.required, c.computed = c.want(), c.now
}

// pass makes time pass for the client, and returns it in ticks.
func (c *clock) pass(seconds float64) (ticks float64) {
	ticks = seconds * c.perSecond()
	c.now += ticks
	c.pace.pass(ticks)
	return ticks
}

// received notes a state that came in this frame. length is how much of the server's time nothing is known about until
// it: the time since the state before, unless the server had nothing to send. known reports whether it came just now,
// and not at some time in a long frame.
func (c *clock) received(at, length float64, known bool) {
	if c.any && at <= c.newest {
		return // late: what is newer is here
	}
	if known {
		offset := c.now - at
		if slope, lasted := c.pace.add(offset, c.rate); slope != 0 {
			c.straighten(slope, lasted)
		}
		if shift := c.path.add(offset, c.rate); shift != 0 {
			c.gaps.shift(shift, c.path.confirmed, c.path.base()+c.path.edge(c.rate))
			c.required, c.computed, c.slewing, c.hurry = c.want(), c.now, true, true
			if shift > 0 && c.time > at { // everything stands still anyway, so time can wait unseen
				c.time = max(at, c.now-c.required)
			}
		}
		if c.any && offset-c.path.base()+length < longestGap*c.rate {
			c.gaps.add(offset, length, c.interval)
		}
	}
	if length >= at-c.newest {
		c.counts.starved += c.dry
	} // otherwise the server had nothing to send
	c.dry = 0
	if c.any {
		c.silence = at - c.newest - length
	}
	c.newest, c.any = at, true
}

// advance makes time pass by dt, after now did and the states of the frame were noted.
func (c *clock) advance(dt float64) {
	if !c.any || c.path.n == 0 {
		return
	}
	if !c.running || c.now-c.computed >= recompute*c.rate {
		c.required, c.computed = c.want(), c.now
	}
	if !c.running {
		c.running = true
		c.time = c.now - c.required
		c.shown = c.time
		return
	}
	was := c.time
	c.time += dt * c.speed(dt)
	c.shown = max(c.shown, min(c.time, c.furthest()))
	c.counts.frames++
	c.counts.speed = 1 + c.pace.ahead
	if dt > 0 {
		c.counts.speed *= (c.time - was) / dt
	}
	if c.shown > c.newest {
		c.dry++
	}
}

// furthest returns the latest time that may be shown. If the server stops, time stops soon after.
func (c *clock) furthest() float64 {
	at := c.newest + maxAhead*c.rate
	if c.rests() {
		at = max(c.newest, c.alive) + maxAlive*c.rate
	}
	return at + c.ahead
}

// rests reports whether no newer state came because the world rests, and not because states got lost, are late, or wait
// for the budget.
func (c *clock) rests() bool {
	return !c.pressed() && (c.alive >= c.newest+c.interval || c.silence > c.interval)
}

// settle notes whether the server had left nothing unsent before a state, for what it knew.
func (c *clock) settle(at float64, settled bool) {
	if settled {
		c.unsettled, c.unsettledFor = 0, 0
		return
	}
	if c.unsettled++; c.unsettled > 1 {
		c.unsettledFor += at - c.newest
	}
}

// pressed reports whether the budget seems to have no room for all that there is to send. Then silence does not mean
// that the world rests: the server saves up for packets that are worth their header.
func (c *clock) pressed() bool {
	return c.unsettled >= manyUnsettled && c.unsettledFor <= float64(c.unsettled)*mostSaving*c.rate
}

// saving returns for how long the server may have saved up.
func (c *clock) saving() float64 {
	if !c.pressed() {
		return 0
	}
	return mostSaving * c.rate
}

// want returns the offset that covers all but a few gaps.
func (c *clock) want() float64 {
	want := c.gaps.quantile(c.limits.margin, &c.losses, c.interval, longestGap*c.rate)
	if c.gaps.n < enoughGaps || c.interval >= longestGap*c.rate { // gaps of such an interval are not among them
		want = max(want, c.path.base()+firstIntervals*c.interval)
	}
	return want
}

// speed returns how fast time goes in this frame. It is 1 almost always: small errors are left alone, and one that grew
// is worked off at a speed that nobody sees.
func (c *clock) speed(dt float64) float64 {
	late := c.required - (c.now - dt - c.time) // how much longer the delay has to become
	off := math.Abs(late)
	if off > snapAfter*c.rate {
		c.time = c.now - dt - c.required
		c.slewing, c.hurry, c.catches = false, false, false
		c.counts.jumps++
		return 1
	}
	if !c.slewing && off < deadBand*c.interval {
		return 1
	}
	if c.slewing = off > 0.02*c.interval; !c.slewing {
		c.hurry, c.catches = false, false
		return 1
	}
	change := max(0.004, 0.05*off/c.interval)
	switch {
	case c.catches:
		change = 1
	case c.hurry:
		change = 0.25
	case off > c.interval:
		change = 1 // as much as the limits allow
	}
	if dt > 0 {
		change = min(change, off/dt) // a long frame must not go too far
	}
	if c.catches {
		return min(max(1-math.Copysign(change, late), slowestCatch), fastestCatch)
	}
	return min(max(1-math.Copysign(change, late), c.limits.slowest), c.limits.fastest)
}

// A path follows the offset of the fastest packets, and notices when all packets begin to take longer or shorter.
type path struct {
	recent    [confirming]float64 // offsets, a ring
	n         int                 // offsets so far
	low       [2]float64          // the least offset of the present period, and of the one before
	count     int                 // offsets in the present period
	spread    float64             // mean offset above the least
	anchor    float64             // the least offset after the last shift
	raised    float64             // the last shift, if the path became longer
	since     int                 // offsets since then
	jumps     float64             // offsets go to and fro by so much, forgotten slowly
	confirmed int                 // offsets that belong to the new path, when add has returned a shift
}

const (
	confirming  = 6 // offsets that have to agree on a change
	confirmBig  = 3 // the same for a change of half a second or more
	basePeriods = 128
	mostSpread  = 0.1  // seconds: longer delays count as this much for the spread, since they are no jitter
	mostTurn    = 0.25 // seconds: a path that becomes longer and shorter again by less is one with more jitter
)

// base returns the offset of the fastest packets.
func (p *path) base() float64 { return min(p.low[0], p.low[1]) }

// edge is by how much the offsets of another path differ from the least one at least.
func (p *path) edge(rate float64) float64 { return max(0.01*rate+1.5*p.spread, p.jumps) }

// add notes an offset. It returns by how much the path became longer, negative if shorter, and 0 most of the time.
func (p *path) add(offset, rate float64) (shift float64) {
	if p.n == 0 {
		p.low, p.anchor = [2]float64{offset, offset}, offset
	}
	p.recent[p.n%confirming] = offset
	p.n++
	p.since++
	above := max(offset-p.base(), 0)
	p.low[0] = min(p.low[0], offset)
	if p.count++; p.count >= basePeriods {
		p.low[1], p.low[0], p.count = p.low[0], offset, 0
	}
	edge := p.edge(rate)
	switch {
	case p.late(confirmBig, max(edge, rate/2)):
		p.begin(confirmBig)
	case p.late(confirming, edge):
		p.begin(confirming)
	case p.early(edge): // the lower offsets are known already
		p.confirmed = confirming
	default:
		p.spread += (min(above, mostSpread*rate) - p.spread) / 64
		p.jumps -= p.jumps / maxGaps
		return 0
	}
	if shift = p.base() - p.anchor; math.Abs(shift) < edge/2 {
		return 0 // single offsets were lower than the path's
	}
	p.anchor += shift
	p.turn(shift, rate)
	return shift
}

// restart forgets the path, except for its latest offsets, when older ones have lost their meaning.
func (p *path) restart() {
	if p.n >= confirming {
		p.begin(confirming)
		p.anchor, p.confirmed = p.base(), 0
	}
}

// straighten makes the latest offsets what they would have been without some growth from each to the next.
func (p *path) straighten(growth float64) {
	for i := range min(p.n, confirming) {
		p.recent[(p.n-1-i)%confirming] += growth * float64(i)
	}
}

// nth returns the offset before the last i ones.
func (p *path) nth(i int) float64 { return p.recent[(p.n-1-i)%confirming] }

// late reports whether the latest n packets were all late, as they are on a longer path.
func (p *path) late(n int, edge float64) bool {
	for i := range n {
		if p.n < confirming+n || p.nth(i) <= p.base()+edge {
			return false
		}
	}
	return true
}

// begin forgets the path before the latest n offsets.
func (p *path) begin(n int) {
	low := math.Inf(1)
	for i := range n {
		low = min(low, p.nth(i))
	}
	p.low, p.count, p.confirmed = [2]float64{low, low}, 0, n
}

// early reports whether half of the recent packets were early, as most are on a shorter path: jitter makes up for it in
// the others.
func (p *path) early(edge float64) bool {
	n := 0
	for i := range min(p.n, confirming) {
		if p.nth(i) < p.anchor-edge {
			n++
		}
	}
	return 2*n >= confirming
}

// turn learns from a path that becomes longer and soon shorter again: that is jitter.
func (p *path) turn(shift, rate float64) {
	if shift < -p.raised/2 && p.raised > 0 && p.raised < mostTurn*rate && p.since < basePeriods {
		p.jumps = max(p.jumps, 1.25*p.raised)
	}
	p.raised, p.since = max(shift, 0), 0
}
