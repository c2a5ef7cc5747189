package replication

import (
	"math"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
)

// A clock is what a client makes out of the ticks of packets that come: where the server is now. It reads no other clock, but
// counts calls of Apply, and finds out how many ticks of the server go by from one to the next.
type clock struct {
	now uint32 // calls of Apply since the server's welcome

	known  bool
	base   uint32  // est counts from there
	est    float64 // the tick of which a packet can be expected to have come now
	jitter float64 // how far off est mostly is
	far    int     // so many samples in a row were far off, and are ignored

	fresh bool // since the last Apply a packet came,
	tick  uint32

	rates    [3]float64 // ticks from one Apply to the next, in the last spans of time
	span     uint32     // the length of the present one, in calls of Apply
	from     uint32     // when it began
	fromTick uint32

	trip roundTrip // in calls of Apply
}

const (
	// clockShare is how slowly est follows: by one part in so many of what it is off, for every Apply in which something came.
	clockShare = 16
	// farOff is how far off a sample is, in ticks, that speaks for a new time.
	farOff = 8
	// firstSpan and lastSpan are for how many calls of Apply the rate is measured, at first and later.
	firstSpan, lastSpan = 32, 256
	// steadyRate is how far from 1 the rate may be to be taken for 1.
	steadyRate = 1.0 / 32
	// leastRate and mostRate bound it.
	leastRate, mostRate = 1.0 / 64, 8
)

// arrive notes that a packet of the server's tick came.
func (c *clock) arrive(tick uint32) {
	if !c.fresh || int32(tick-c.tick) > 0 {
		c.fresh, c.tick = true, tick
	}
}

// step ends an Apply.
func (c *clock) step() {
	if c.fresh {
		c.fresh = false
		c.measure(c.tick)
		c.sample(c.tick)
	}
	c.now++
	c.est += c.rate()
	if c.est >= 1<<16 { // so that it stays exact
		c.base, c.est = c.base+1<<16, c.est-1<<16
	}
}

// sample compares the newest tick that came with what was expected.
func (c *clock) sample(tick uint32) {
	off := float64(int32(tick-c.base)) - c.est
	switch {
	case !c.known:
		c.known, c.base, c.est = true, tick, 0
	case math.Abs(off) > farOff+4*c.jitter: // it came very late
		if c.far++; c.far == clockShare { // or one of the two ends stood still for a while
			c.far, c.base, c.est = 0, tick, 0
		}
	default:
		c.far = 0
		c.est += off / clockShare
		c.jitter += (math.Abs(off) - c.jitter) / clockShare
	}
}

// measure finds the rate.
func (c *clock) measure(tick uint32) {
	took := c.now - c.from
	switch {
	case c.span == 0:
		c.rates, c.span = [3]float64{1, 1, 1}, firstSpan
	case took < c.span:
		return
	default:
		rate := min(max(float64(int32(tick-c.fromTick))/float64(took), leastRate), mostRate)
		if c.span < lastSpan { // what was before it is a guess
			c.rates = [3]float64{rate, rate, rate}
		} else {
			c.rates = [3]float64{c.rates[1], c.rates[2], rate}
		}
		c.span = min(2*c.span, lastSpan)
	}
	c.from, c.fromTick = c.now, tick
}

// rate returns the ticks from one Apply to the next: the median of what was measured, so that a pause, or a way that has become
// longer, is not taken for another rate.
func (c *clock) rate() float64 {
	r := c.rates
	slices.Sort(r[:])
	if math.Abs(r[1]-1) < steadyRate || c.span == 0 {
		return 1
	}
	return r[1]
}

// hear notes that a packet sent at the given time was answered, by a server that had held the answer for some ticks.
func (c *clock) hear(sent, held uint32) {
	if took := c.now - sent; took <= 1<<16 {
		c.trip.sample(delta.Tick(max(float64(took)-float64(held)/c.rate(), 0)))
	}
}

// roundTrip returns the round trip in ticks.
func (c *clock) roundTrip() float64 { return float64(c.trip.smooth) / 8 * c.rate() }

// serverTick returns where the server is, counted from base.
func (c *clock) serverTick() float64 { return c.est + c.roundTrip()/2 }

// ServerTick returns about where the server is now, in ticks with a fraction: what comes at this moment was sent half a round
// trip ago. It wraps at 2^32 as ticks do, and is 0 before the server has accepted the client.
//
// No clock is read, but calls of Apply are counted, which must come at a steady rate; what rate that is the client finds out in
// a second or two. Between two of them the estimate stands still. The half of the round trip is in it as soon as it is
// known, see [Client.RoundTrip].
func (c *Client) ServerTick() float64 {
	c.mustExist()
	if !c.clock.known {
		return 0
	}
	const all = 1 << 32
	return math.Mod(float64(c.clock.base)+c.clock.serverTick()+all, all)
}

// RoundTrip returns how long it takes from sending something to the server's answer, in ticks, smoothed; 0 if it is not known.
// It is measured only if the schema has messages or inputs.
func (c *Client) RoundTrip() float64 {
	c.mustExist()
	return c.clock.roundTrip()
}

// Jitter returns by how many ticks packets come earlier or later than could be expected, in the mean.
func (c *Client) Jitter() float64 {
	c.mustExist()
	return c.clock.jitter
}
