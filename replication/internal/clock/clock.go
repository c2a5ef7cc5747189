// Package clock estimates round trips, the tick of the server, and the delay of inputs: how far ahead
// of the server a client must give them. It owns these estimates. The ticks of arriving packets and
// calls of Apply go in, and it reads no other clock. The tracker of acks, messages and the client call
// it.
package clock

// This file estimates the server's tick.

import (
	"math"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
)

// Ticks estimates the present tick of the server from the ticks of arriving packets. It counts calls of
// Apply, and measures how many ticks of the server pass between two of them.
type Ticks struct {
	Now uint32 // calls of Apply since the server's welcome

	Known  bool
	Base   uint32  // est counts from here
	est    float64 // the newest tick whose packet should have arrived by now
	Jitter float64 // smoothed error of est
	far    int     // number of successive samples that were ignored because they were far off

	fresh bool   // a packet arrived since the last Apply
	tick  uint32 // the newest tick of such a packet

	rates    [3]float64 // ticks from one Apply to the next, in the last spans of time
	span     uint32     // length of the present span, in calls of Apply
	from     uint32     // its begin
	fromTick uint32

	Trip RoundTrip // in calls of Apply
}

const (
	// clockShare slows est down: each sample corrects one part in clockShare of the error.
	clockShare = 16
	// farOff is the error of a sample, in ticks and beyond the jitter, from which on it is ignored.
	farOff = 8
	// firstSpan and lastSpan are the first and the longest span over which the rate is measured.
	firstSpan, lastSpan = 32, 256
	// steadyRate is the distance from 1 up to which a rate counts as 1.
	steadyRate = 1.0 / 32
	// leastRate and mostRate bound the rate.
	leastRate, mostRate = 1.0 / 64, 8
)

// Arrive notes that a packet of the given tick arrived.
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
	if c.est >= 1<<16 { // so that it remains exact
		c.Base, c.est = c.Base+1<<16, c.est-1<<16
	}
}

// sample corrects the estimate by the newest tick that arrived.
func (c *Ticks) sample(tick uint32) {
	off := float64(int32(tick-c.Base)) - c.est
	switch {
	case !c.Known:
		c.Known, c.Base, c.est = true, tick, 0
	case math.Abs(off) > farOff+4*c.Jitter: // the packet was very late
		if c.far++; c.far == clockShare { // or one of the two ends paused for a while
			c.far, c.Base, c.est = 0, tick, 0
		}
	default:
		c.far = 0
		c.est += off / clockShare
		c.Jitter += (math.Abs(off) - c.Jitter) / clockShare
	}
}

// measure measures the rate at the end of each span.
func (c *Ticks) measure(tick uint32) {
	took := c.Now - c.from
	switch {
	case c.span == 0:
		c.rates, c.span = [3]float64{1, 1, 1}, firstSpan
	case took < c.span:
		return
	default:
		rate := min(max(float64(int32(tick-c.fromTick))/float64(took), leastRate), mostRate)
		if c.span < lastSpan { // the rates before it are guesses
			c.rates = [3]float64{rate, rate, rate}
		} else {
			c.rates = [3]float64{c.rates[1], c.rates[2], rate}
		}
		c.span = min(2*c.span, lastSpan)
	}
	c.from, c.fromTick = c.Now, tick
}

// Rate returns the ticks from one Apply to the next: the median of the latest measurements, so that a
// pause, or a longer way of packets, does not change it.
func (c *Ticks) Rate() float64 {
	r := c.rates
	slices.Sort(r[:])
	if math.Abs(r[1]-1) < steadyRate || c.span == 0 {
		return 1
	}
	return r[1]
}

// NoteReceived notes that a packet sent at the given time was acknowledged, by a server that had held
// the acknowledgement for some ticks.
func (c *Ticks) NoteReceived(sent, held uint32) {
	if took := c.Now - sent; took <= 1<<16 {
		c.Trip.Sample(delta.Tick(max(float64(took)-float64(held)/c.Rate(), 0)))
	}
}

// RoundTrip returns the round trip in ticks.
func (c *Ticks) RoundTrip() float64 { return float64(c.Trip.Smooth) / 8 * c.Rate() }

// ServerTick returns the server's present tick, counted from Base.
func (c *Ticks) ServerTick() float64 { return c.est + c.RoundTrip()/2 }
