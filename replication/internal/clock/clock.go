// Package clock estimates round trips, the tick of the server, and the delay of inputs: how far ahead
// of the server a client must give them. It owns these estimates. The ticks of arriving packets and
// the time that passes go in, and it reads no clock. The tracker of acks, messages and the client call
// it.
package clock

// This file estimates the server's tick.

import (
	"math"
	"time"
)

// Ticks estimates the present tick of the server. Of the last second or so, the packet that was the
// fastest shows which tick arrives at best, and the shortest round trip how long ago that was sent. So
// packets that are late and frames that are long change nothing. The estimate follows at a bounded speed
// and never goes back.
type Ticks struct {
	pace
	Known  bool
	Newest uint32 // tick of a packet that arrived
	Base   uint32 // time 0 of the client, if the first packet took no time; the estimate counts from here

	ahead    float64 // the estimate, less the client's time
	slewing  bool    // ahead is on its way
	settled  float64 // until this time the estimate may jump forward
	arrived  float64 // when the latest packet did
	recent   recent
	drift    drift
	meter    paceMeter
	trip     float64 // the shortest recent round trip
	lastTrip float64 // the latest one
	Jitter   float64 // mean deviation of late
	late     float64 // how much later packets arrive than the fastest, in the mean

	fresh   []arrival // of the present frame, whose length is not known yet
	begins  bool      // the session begins at the end of the frame
	sentAt  [256]uint8
	Trip    RoundTrip
	anyTrip bool
}

// arrival is what a packet contains.
type arrival struct {
	tick       uint32
	sent, held uint32 // of the newest packet of the client that the server had
	echo       bool   // sent and held are valid
}

const (
	// deadBand is an error that is not corrected, in ticks, beside a third of the jitter: even steps are
	// worth more.
	deadBand = 0.25
	// leastSlew and mostSlew bound the correction, in ticks per tick. The second is below 1, so that the
	// estimate goes on.
	leastSlew, mostSlew = 0.02, 0.75
	// jitterShare smooths delays and jitter: each sample counts one part in jitterShare.
	jitterShare = 16
	// mostLate bounds how late a packet counts for the mean, in seconds: after a pause, some are very late.
	mostLate = 1. / 8
	// maxFresh bounds the arrivals of a frame, of which there are few: a frame of a second has some hundred.
	maxFresh = 512
)

// Begin starts a session of a server with so many ticks per second, whose welcome has a tick. How far the
// present frame has come stays as it is.
func (c *Ticks) Begin(tick, rate uint32) {
	own := c.pace
	own.Now, own.wraps, own.part, own.Rate = 0, 0, 0, rate
	*c = Ticks{pace: own, drift: drift{speed: 1}, begins: true, fresh: c.fresh[:0]}
	c.Arrive(tick)
}

// seconds returns a share of a second in ticks.
func (c *Ticks) seconds(share float64) float64 { return share * float64(c.Rate) }

// StartFrame lets time pass, and takes what arrived meanwhile.
func (c *Ticks) StartFrame(dt time.Duration) {
	parts := uint64(max(min(dt, time.Hour), 0)) * uint64(c.Rate)
	c.pass(min(parts, maxAdvance*tickParts))
	if c.begins { // in this frame, whose length was not known
		c.Now, c.part, c.begins = 0, 0, false
	}
	if c.hitch() {
		c.settle()
	}
	for _, a := range c.fresh {
		c.take(a)
	}
	c.fresh = c.fresh[:0]
}

// Passed returns how many full ticks passed since its last call.
func (c *Ticks) Passed() (ticks uint32) {
	ticks, c.passed = c.passed, 0
	return ticks
}

// EndFrame ends a frame.
func (c *Ticks) EndFrame() {
	if !c.hitch() {
		c.frame = max(c.frame+(c.step-c.frame)/frameShare, min(c.step, c.before))
	}
	if c.step > 0 { // no time, no frame
		c.long.Note(c.share())
	}
	c.step, c.before = 0, c.step
}

// pass lets time pass. If the server has been silent for long, the estimate stands still: it may have
// paused, and if it has not, its packets will show that.
func (c *Ticks) pass(parts uint64) {
	ticks := c.pace.pass(parts)
	if !c.Known {
		return
	}
	patience := c.seconds(1) // with round trips, the server sends several packets in that time
	if !c.anyTrip {
		patience = c.seconds(4) // and one per second otherwise
	}
	if stop := min(c.time()-c.arrived-patience, ticks); stop > 0 {
		c.ahead -= stop
		c.recent.shift(stop)
		c.arrived += stop
		c.settle()
		ticks -= stop
	}
	drifted := (c.drift.speed - 1) * ticks
	c.ahead += drifted
	c.recent.shift(-drifted)
	c.slew(ticks + drifted)
}

// slew moves the estimate on for some ticks, towards what recent packets show.
func (c *Ticks) slew(ticks float64) {
	off := c.off()
	size := math.Abs(off)
	if size > deadBand+c.Jitter/3 || c.slewing {
		step := min(size, ticks*min(max(size/c.seconds(1./8), leastSlew), mostSlew))
		c.ahead += math.Copysign(step, off)
		c.slewing = size-step > deadBand/4
	}
}

// settle lets the estimate jump forward for a while, since a pause may have made it wrong.
func (c *Ticks) settle() {
	c.settled = max(c.settled, c.time()+c.seconds(1./4))
	c.drift.restart()
}

// jump moves the estimate forward at once if it has just begun or is far off.
func (c *Ticks) jump() {
	if off := c.off(); off > c.seconds(1./2) || off > 0 && c.time() < c.settled {
		c.ahead += off
	}
}

// off returns by how much the estimate is less than what recent packets show.
func (c *Ticks) off() float64 { return c.trip/2 - c.recent.delay() - c.ahead }

// Arrive notes that a packet of the given tick arrived.
func (c *Ticks) Arrive(tick uint32) { c.note(arrival{tick: tick}) }

// NoteReceived notes that a packet of the given tick arrived, which acknowledges one that was sent at the
// given time, by a server that had held the acknowledgement for some ticks.
func (c *Ticks) NoteReceived(tick, sent, held uint32) { c.note(arrival{tick, sent, held, true}) }

// note keeps an arrival until it is known how long the frame is. If there are too many, the last ones become one.
func (c *Ticks) note(a arrival) {
	if len(c.fresh) < maxFresh {
		c.fresh = append(c.fresh, a)
		return
	}
	last := &c.fresh[maxFresh-1]
	if int32(a.tick-last.tick) < 0 {
		a.tick = last.tick
	}
	if last.echo && (!a.echo || int32(a.sent-last.sent) < 0) {
		a.sent, a.held, a.echo = last.sent, last.held, true
	}
	*last = a
}

func (c *Ticks) take(a arrival) {
	c.takeTick(a.tick)
	if a.echo {
		c.takeTrip(a.sent, a.held)
	}
	c.jump()
}

// takeTick takes the tick of a packet that arrives now.
func (c *Ticks) takeTick(tick uint32) {
	now := c.time()
	c.meter.note(tick, now, c.Rate)
	if !c.Known {
		c.Known, c.Newest, c.Base, c.settled = true, tick, tick-c.Now, now+c.seconds(1./2)
		c.ahead = -c.fraction()
	}
	if int32(tick-c.Newest) > 0 {
		c.Newest = tick
	}
	delay := float64(int32(c.Now-(tick-c.Base))) + c.fraction()
	if late := delay - c.recent.delay(); now-c.arrived > c.seconds(1./4) && late > c.seconds(1./8) {
		c.recent.restart(delay)              // the server has paused
		if now-c.arrived > c.seconds(1./2) { // a few packets of a slow server got lost otherwise
			c.drift.restart()
		}
	}
	c.arrived = now
	c.recent.noteDelay(delay, now, c.seconds(3./4))
	if least, another := c.drift.note(delay, c.lastTrip, now, c.Jitter, c.seconds(driftSpan)); another {
		c.recent.restart(least)
	}
	c.trip = c.recent.trip(c.trip)
	if c.hitch() {
		return
	}
	deviation := min(delay-c.recent.delay(), c.seconds(mostLate)) - c.late
	c.late += deviation / jitterShare
	c.Jitter += (math.Abs(deviation) - c.Jitter) / jitterShare
}

// takeTrip takes a round trip that ends now.
func (c *Ticks) takeTrip(sent, held uint32) {
	took := c.Now - sent
	if took > 1<<16 || c.hitch() && c.anyTrip {
		return
	}
	trip := float64(took) + c.fraction() - float64(held)
	if took < uint32(len(c.sentAt)) {
		trip -= float64(c.sentAt[sent%uint32(len(c.sentAt))]) / 256
	}
	trip = max(trip, 0)
	c.lastTrip = trip
	if c.recent.noteTrip(trip); !c.anyTrip {
		c.anyTrip = true
		c.settle()
	}
	c.trip = c.recent.trip(c.trip)
	c.Trip.sample(int32(math.Round(8 * trip)))
}

// NoteSent notes that a packet is sent now that the server will acknowledge.
func (c *Ticks) NoteSent() { c.sentAt[c.Now%uint32(len(c.sentAt))] = uint8(c.fraction() * 256) }

// FrameTicks returns the length of the present frame in ticks.
func (c *Ticks) FrameTicks() float64 { return c.step }

// RoundTrip returns the round trip in ticks.
func (c *Ticks) RoundTrip() float64 { return float64(c.Trip.Smooth) / 8 }

// Pace returns how many ticks the server made in a tick of the client lately, or 0 if that is not known yet.
func (c *Ticks) Pace() float64 { return c.meter.pace }

// Speed returns how many ticks the server makes in a tick of the client, as far as known: 0.95 if it makes 57 where it
// should make 60. lasts is for how many ticks of the client it has been that already.
func (c *Ticks) Speed() (speed, lasts float64) { return c.drift.speed, c.time() - c.drift.since }

// ServerTick returns the server's present tick, counted from Base.
func (c *Ticks) ServerTick() float64 { return c.time() + c.ahead }

// Tick returns the server's present tick.
func (c *Ticks) Tick() uint32 { return c.Base + uint32(int64(math.Floor(c.ServerTick()))) }

// recent has the shortest delay and the shortest round trip of the present span of time and of the one
// before. They are forgotten together: of a path that gets longer, either both are new or both are old,
// and half the round trip makes up for the delay.
type recent struct {
	delays, trips [2]float64 // infinite if there is none
	since         float64
	any           bool
}

// delay returns the shortest delay.
func (r *recent) delay() float64 { return min(r.delays[0], r.delays[1]) }

// trip returns the shortest round trip, or another one if there is none.
func (r *recent) trip(none float64) float64 {
	if t := min(r.trips[0], r.trips[1]); !math.IsInf(t, 0) {
		return t
	}
	return none
}

// noteDelay notes a delay. A span ends after some time.
func (r *recent) noteDelay(delay, now, span float64) {
	none := math.Inf(1)
	switch {
	case !r.any:
		*r = recent{[2]float64{none, none}, [2]float64{none, none}, now, true}
	case now-r.since >= span:
		r.delays = [2]float64{none, r.delays[0]}
		if !math.IsInf(r.trips[0], 0) {
			r.trips = [2]float64{none, r.trips[0]}
		}
		r.since = now
	}
	r.delays[0] = min(r.delays[0], delay)
}

// noteTrip notes a round trip.
func (r *recent) noteTrip(trip float64) { r.trips[0] = min(r.trips[0], trip) }

// restart forgets all delays for a new one.
func (r *recent) restart(delay float64) { r.delays = [2]float64{delay, delay} }

// shift adds to all delays.
func (r *recent) shift(ticks float64) {
	r.delays[0], r.delays[1] = r.delays[0]+ticks, r.delays[1]+ticks
}
