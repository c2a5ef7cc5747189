// Package ratecontrol estimates the bytes per second that the path to a client carries. It takes
// what was sent, acknowledged and lost, and round trips, and yields the rate to send at. Package
// sender asks it in each tick for peers whose budget adapts.
package ratecontrol

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
)

// A Control estimates the bytes per second that the path to a client carries, from the client's
// acknowledgements. It is driven by delay, as LEDBAT is (RFC 6817): while round trips are about as
// short as the shortest recent one, the rate rises; when even the shortest round trip of a round is
// longer, a queue has formed, and the rate falls until the queue is gone. As in BBR, the delivery
// rate while there is a queue is what the path carries.
//
// Two clients behind one bottleneck converge to equal rates: all rates rise by the same number of
// bytes and fall by a share of themselves (Chiu and Jain, "Analysis of the Increase and Decrease
// Algorithms", 1989), and the larger rate is the first to fall, since each client may keep the same
// number of bytes in the queue, as in TCP Vegas.
//
// Time is counted in ticks, which are coarse, and round trips also vary for other reasons. So
// nothing depends on a single round trip: decisions are made once per round of a fifth of a second.
type Control struct {
	min, max int64 // bytes per second
	tickRate int64

	Rate  int64 // estimated bytes per second of the path
	drain int64 // share of the rate that is left unused so that the queue shrinks

	round round
	base  [17]shortest // round trips without a queue, by the bit length of the packet's size; 0: all packets
	aged  delta.Tick   // when the base was last aged

	starting  bool       // no sign of congestion yet
	quiet     int64      // ticks for which the rate has risen since it last fell
	cutAt     delta.Tick // when the rate last fell: earlier packets do not count for the present rate
	delivered int64      // bytes per second, smoothed; 0: not known
	marked    bool       // lastAck is valid
	lastAck   delta.Tick // tick of the last acknowledgement in the rounds before
	loss      int64      // share of lost packets, smoothed
	spread    int64      // of round trips in a round, smoothed, in 1/16 ticks
	queue     int64      // in the last round, in ticks
	peak      int64      // longest queue since there is one, in ticks
	least     int64      // shortest one since then
	stuck     int        // rounds since that was measured
}

// A round is what was measured since the last decision.
type round struct {
	begun   delta.Tick
	sent    int64      // bytes
	acked   int64      // bytes
	lastAck delta.Tick // tick of the last acknowledgement, if some is set
	some    bool
	lost    int   // packets
	trips   int64 // number of round trips
	stale   bool  // some of them are of packets sent before the rate last fell
	queue   int64 // the least number of ticks by which one exceeds its base
	sum     int64 // of these excesses
}

// A shortest is the shortest round trip of the present and of the previous period, in ticks; 0 if
// there was none.
type shortest struct{ now, before uint16 }

const (
	roundsPerSecond = 5
	minTrips        = 3  // round trips for a decision; without them a round is four times as long
	baseSeconds     = 10 // period of shortest; a round trip counts as base for twice that at most
	stuckRounds     = 10 // rounds without progress, after which the queue is not of our making

	rateUnit = 1 << 16 // of shares
	muchLoss = rateUnit / 10
	someLoss = rateUnit / 20

	ownBytes    = 900  // that a client may keep in the queue
	riseBytes   = 4000 // per second: rise of the rate in each second after it fell
	riseDoubles = 1500 // milliseconds without a queue in which the rise doubles
)

// New returns a control that keeps the rate between two bounds, in bytes per second. It
// begins with the lower bound.
func New(least, most int64, tickRate int, now delta.Tick) *Control {
	c := &Control{min: least, max: most, tickRate: int64(tickRate)}
	c.Restart(now)
	return c
}

// Restart drops all estimates, as the path may have changed.
func (c *Control) Restart(now delta.Tick) {
	*c = Control{
		min: c.min, max: c.max, tickRate: c.tickRate, Rate: c.min,
		starting: true, cutAt: now, aged: now, round: round{begun: now},
	}
}

// Within changes the bounds.
func (c *Control) Within(least, most int64) {
	c.min, c.max = least, most
	c.Rate = min(max(c.Rate, least), most)
}

// Budget returns the bytes per second to send now.
func (c *Control) Budget() int64 { return max(c.Rate-c.Rate*c.drain/rateUnit, c.min) }

// Spend counts sent bytes.
func (c *Control) Spend(bytes int) { c.round.sent += int64(bytes) }

// Deliver counts bytes that arrived, or are never acknowledged and therefore count as delivered.
func (c *Control) Deliver(bytes int) { c.round.acked += int64(bytes) }

// Acknowledge counts a packet that was acknowledged before tick now. lost is set if it had been
// taken for lost.
func (c *Control) Acknowledge(now delta.Tick, bytes int, lost bool) {
	c.Deliver(bytes)
	c.round.lastAck, c.round.some = now, true
	if lost {
		c.loss -= rateUnit / 32
	}
	c.loss = max(c.loss-c.loss/32, 0)
}

// Lose counts a packet that is taken for lost.
func (c *Control) Lose() {
	c.loss += (rateUnit - c.loss) / 32
	c.round.lost++
}

// Sample takes the round trip of a packet, in ticks.
func (c *Control) Sample(sentAt, ticks delta.Tick, bytes int) {
	r, took := &c.round, int64(min(ticks, 1<<15))
	queue := took - c.shortest(took, bytes)
	if r.trips == 0 || queue < r.queue {
		r.queue = queue
	}
	r.sum += queue
	r.trips++
	r.stale = r.stale || sentAt.Before(c.cutAt)
}

// shortest takes a round trip and returns how long it would be without a queue. Large packets take
// longer than small ones, so packets of about the same size are compared. There may have been none
// before the queue: then it is the shortest round trip of all packets, plus the time that the
// packet takes at the delivery rate.
func (c *Control) shortest(took int64, bytes int) int64 {
	alike, least := c.base[bits.Len16(uint16(bytes))].note(took), c.base[0].note(took)
	if c.delivered == 0 {
		return alike
	}
	return min(alike, least+(int64(bytes)*c.tickRate+c.delivered-1)/c.delivered)
}

// note takes a round trip and returns the shortest recent one.
func (s *shortest) note(ticks int64) int64 {
	if s.now == 0 || ticks < int64(s.now) {
		s.now = uint16(max(ticks, 1))
	}
	if s.before != 0 && s.before < s.now {
		return int64(s.before)
	}
	return int64(s.now)
}

// Tick starts a tick of a peer with a send interval and returns the bytes per second to send.
func (c *Control) Tick(now, interval delta.Tick) int64 {
	r := &c.round
	span := int64(now - r.begun)
	length := max(c.tickRate/roundsPerSecond, 3*int64(interval), 2)
	if span < length || r.trips < minTrips && span < 4*length {
		return c.Budget()
	}
	c.measure()
	c.decide(now, span)
	if r.trips > 0 {
		c.queue = r.queue
	}
	c.round = round{begun: now}
	if int64(now-c.aged) >= baseSeconds*c.tickRate {
		for i := range c.base {
			c.base[i] = shortest{before: c.base[i].now}
		}
		c.aged = now
	}
	return c.Budget()
}

// measure updates the values that are smoothed over rounds.
func (c *Control) measure() {
	r := &c.round
	if r.some {
		if span := int64(r.lastAck - c.lastAck); c.marked && span > 0 {
			rate := r.acked * c.tickRate / span
			if c.delivered == 0 {
				c.delivered = rate
			}
			c.delivered += (rate - c.delivered) / 2
		}
		c.lastAck, c.marked = r.lastAck, true
	}
	if r.trips > 0 && !r.stale {
		c.spread += (16*(r.sum/r.trips-r.queue) - c.spread) / 8
	}
}

// excess returns by how much the queue of the round is too long, in 1/16 ticks. A queue is allowed
// to hold the client's own bytes, up to a tenth of a second, or if that is more, what may as well
// be jitter and a tick, as round trips are counted in ticks. Only the former makes rates equal: the
// larger rate is allowed the shorter queue.
func (c *Control) excess() int64 {
	own := min(ownBytes*16*c.tickRate/c.Rate, 16*c.tickRate/10)
	return max(16*c.round.queue-max(own, 16+c.spread*3/2), 0)
}

// decide ends a round of so many ticks.
func (c *Control) decide(now delta.Tick, span int64) {
	r := &c.round
	full := 4*r.sent*c.tickRate >= 3*c.Budget()*span // else the game had little to send, which reveals little
	if r.trips > 0 {
		if excess := c.excess(); excess > 0 {
			c.congested(now, excess, full)
			return
		}
		c.drain, c.stuck, c.least, c.peak = 0, 0, 0, 0
	}
	switch {
	case !full:
	case r.lost > 0 && r.acked == 0:
		c.cut(now, rateUnit/2)
	case c.loss > muchLoss:
		c.cut(now, c.loss/2)
		c.loss -= c.loss / 2
	case c.loss <= someLoss && r.trips > 0:
		c.grow(span)
	}
}

// congested lowers the rate because there is a queue.
func (c *Control) congested(now delta.Tick, excess int64, full bool) {
	r := &c.round
	c.drain = min(max(2*r.queue*rateUnit/c.tickRate, rateUnit/8), rateUnit/2)
	long := 10*r.queue >= c.tickRate
	if long && full && c.delivered > 0 {
		c.Rate = max(min(c.Rate, c.delivered), c.min) // the path is busy: it carries no more
	}
	switch {
	case r.stale || r.queue < c.queue: // the queue shrinks, or will
	case long:
		c.cut(now, rateUnit/8)
	case full:
		c.cut(now, min(rateUnit/16+excess*rateUnit/c.tickRate, rateUnit/4))
	}
	switch c.stuck++; {
	case 8*r.queue > 9*c.peak: // it grew: how short it was before shows nothing of how it drains
		c.peak, c.least, c.stuck = r.queue, r.queue, 0
	case r.queue < c.least:
		c.least, c.stuck = r.queue, 0
	}
	passes := int(r.queue * roundsPerSecond / c.tickRate) // rounds until a lower rate shows behind the queue
	if c.stuck >= stuckRounds+passes {                    // the path has become longer, or others keep the queue full
		c.base, c.drain, c.stuck, c.least, c.peak = [17]shortest{}, 0, 0, 0, 0
	}
}

// cut lowers the rate by a share of it.
func (c *Control) cut(now delta.Tick, share int64) {
	c.Rate = max(c.Rate-c.Rate*share/rateUnit, c.min)
	c.starting, c.quiet, c.cutAt = false, 0, now
}

// grow raises the rate for a number of ticks: at first by half of itself in each round; after it
// first fell, by a number of bytes that keeps doubling until there is a queue.
func (c *Control) grow(span int64) {
	rise := c.Rate * roundsPerSecond * span / (2 * c.tickRate)
	if !c.starting {
		c.quiet += span
		doublings := min(c.quiet*1000/(riseDoubles*c.tickRate), 20)
		rise = min((riseBytes<<doublings)*span/c.tickRate, rise/4)
	}
	c.Rate = min(c.Rate+max(min(rise, c.Rate), 1), c.max)
}
