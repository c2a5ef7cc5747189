// Package clock estimates round trips, the tick of the server, and how far ahead of it inputs must
// be given. It reads no clock: it counts ticks and calls of Apply.
package clock

import (
	"math"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
)

// A Ticks is what a client makes out of the ticks of packets that come: where the server is now. It reads no other clock, but
// counts calls of Apply, and finds out how many ticks of the server go by from one to the next.
type Ticks struct {
	Now uint32 // calls of Apply since the server's welcome

	Known  bool
	Base   uint32  // est counts from there
	est    float64 // the tick of which a packet can be expected to have come now
	Jitter float64 // how far off est mostly is
	far    int     // so many samples in a row were far off, and are ignored

	fresh bool // since the last Apply a packet came,
	tick  uint32

	rates    [3]float64 // ticks from one Apply to the next, in the last spans of time
	span     uint32     // the length of the present one, in calls of Apply
	from     uint32     // when it began
	fromTick uint32

	Trip RoundTrip // in calls of Apply
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

// Arrive notes that a packet of the server's tick came.
func (c *Ticks) Arrive(tick uint32) {
	if !c.fresh || int32(tick-c.tick) > 0 {
		c.fresh, c.tick = true, tick
	}
}

// Step ends an Apply.
func (c *Ticks) Step() {
	if c.fresh {
		c.fresh = false
		c.measure(c.tick)
		c.sample(c.tick)
	}
	c.Now++
	c.est += c.Rate()
	if c.est >= 1<<16 { // so that it stays exact
		c.Base, c.est = c.Base+1<<16, c.est-1<<16
	}
}

// sample compares the newest tick that came with what was expected.
func (c *Ticks) sample(tick uint32) {
	off := float64(int32(tick-c.Base)) - c.est
	switch {
	case !c.Known:
		c.Known, c.Base, c.est = true, tick, 0
	case math.Abs(off) > farOff+4*c.Jitter: // it came very late
		if c.far++; c.far == clockShare { // or one of the two ends stood still for a while
			c.far, c.Base, c.est = 0, tick, 0
		}
	default:
		c.far = 0
		c.est += off / clockShare
		c.Jitter += (math.Abs(off) - c.Jitter) / clockShare
	}
}

// measure finds the rate.
func (c *Ticks) measure(tick uint32) {
	took := c.Now - c.from
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
	c.from, c.fromTick = c.Now, tick
}

// Rate returns the ticks from one Apply to the next: the median of what was measured, so that a pause, or a way that has become
// longer, is not taken for another rate.
func (c *Ticks) Rate() float64 {
	r := c.rates
	slices.Sort(r[:])
	if math.Abs(r[1]-1) < steadyRate || c.span == 0 {
		return 1
	}
	return r[1]
}

// NoteReceived notes that a packet sent at the given time was answered, by a server that had held the answer for some ticks.
func (c *Ticks) NoteReceived(sent, held uint32) {
	if took := c.Now - sent; took <= 1<<16 {
		c.Trip.Sample(delta.Tick(max(float64(took)-float64(held)/c.Rate(), 0)))
	}
}

// RoundTrip returns the round trip in ticks.
func (c *Ticks) RoundTrip() float64 { return float64(c.Trip.Smooth) / 8 * c.Rate() }

// ServerTick returns where the server is, counted from base.
func (c *Ticks) ServerTick() float64 { return c.est + c.RoundTrip()/2 }
