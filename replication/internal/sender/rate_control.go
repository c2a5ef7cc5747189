package sender

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
)

// A RateControl estimates how many bytes per second the path to a client carries, from the
// client's acknowledgements. It is driven by delay, as LEDBAT is (RFC 6817): while round trips are
// about as short as the shortest of late, the rate rises; when even the shortest of a round is
// longer, a queue has formed, and the rate falls until the queue is gone. As in BBR, what was
// delivered while there was a queue is what the path carries.
//
// Two clients behind one bottleneck converge to equal rates: all rates rise by the same number of
// bytes and fall by a share of themselves (Chiu and Jain, "Analysis of the Increase and Decrease
// Algorithms", 1989), and the larger rate is the first to fall, since each client may keep the same
// number of bytes in the queue, as in TCP Vegas.
//
// Time is counted in ticks, which are coarse, and round trips vary for other reasons than queues.
// So nothing depends on a single one: decisions are made once per round of a fifth of a second.
type RateControl struct {
	min, max int64 // bytes per second
	tickRate int64

	Rate  int64 // bytes per second that the path is taken to carry
	drain int64 // share of it that is left unused, so that the queue shrinks

	round round
	base  [17]shortest // round trips without a queue, by the bits that a packet's size takes; 0: all packets
	aged  delta.Tick   // when they were last aged

	starting  bool       // no sign of congestion yet
	quiet     int64      // ticks for which the rate has risen since it last fell
	cutAt     delta.Tick // packets sent before tell nothing about the present rate
	delivered int64      // bytes per second, smoothed; 0: not known
	marked    bool       // lastAck is valid
	lastAck   delta.Tick // when an acknowledgement came last, in the rounds before
	loss      int64      // share of packets that get lost, smoothed
	spread    int64      // of round trips within a round, smoothed, in 1/16 ticks
	queue     int64      // in the round before, in ticks
	least     int64      // the shortest since there is one, in ticks
	stuck     int        // rounds since then
}

// A round is what was seen since the last decision.
type round struct {
	begun   delta.Tick
	sent    int64      // bytes
	acked   int64      // bytes
	lastAck delta.Tick // valid if some is set
	some    bool
	lost    int   // packets
	trips   int64 // round trips seen
	stale   bool  // some of them are of packets sent before the rate last fell
	queue   int64 // the least number of ticks by which they exceed their base
	sum     int64 // of all these numbers
}

// A shortest is the shortest round trip of two spans of time, in ticks; 0 if there was none.
type shortest struct{ now, before uint16 }

const (
	roundsPerSecond = 5
	minTrips        = 3  // for a decision, unless they take four times as long as a round
	baseSeconds     = 10 // round trips count as base for that long, and at most twice as long
	stuckRounds     = 10 // after so many without progress a queue is not ours

	rateUnit = 1 << 16 // of shares
	muchLoss = rateUnit / 10
	someLoss = rateUnit / 20

	ownBytes    = 600  // that a client may keep in the queue
	riseBytes   = 4000 // per second, by which a rate rises in each second after it fell
	riseDoubles = 1500 // milliseconds without a queue after which it rises twice as fast
)

// NewRateControl returns a control that keeps the rate between two bounds, in bytes per second. It begins with the lower one.
func NewRateControl(least, most int64, tickRate int, now delta.Tick) *RateControl {
	c := &RateControl{min: least, max: most, tickRate: int64(tickRate)}
	c.restart(now)
	return c
}

// restart forgets the estimates: the path is another one.
func (c *RateControl) restart(now delta.Tick) {
	*c = RateControl{min: c.min, max: c.max, tickRate: c.tickRate, Rate: c.min, starting: true, cutAt: now, aged: now, round: round{begun: now}}
}

// Within changes the range.
func (c *RateControl) Within(least, most int64) {
	c.min, c.max = least, most
	c.Rate = min(max(c.Rate, least), most)
}

// Budget returns the bytes per second to send now.
func (c *RateControl) Budget() int64 { return max(c.Rate-c.Rate*c.drain/rateUnit, c.min) }

// Spend notes that bytes were sent.
func (c *RateControl) Spend(bytes int) { c.round.sent += int64(bytes) }

// deliver notes that bytes arrived, or have to be taken for delivered since they are not acknowledged.
func (c *RateControl) deliver(bytes int) { c.round.acked += int64(bytes) }

// Acknowledge notes that a packet was acknowledged in time for tick now, perhaps after it was taken for lost.
func (c *RateControl) Acknowledge(now delta.Tick, bytes int, lost bool) {
	c.deliver(bytes)
	c.round.lastAck, c.round.some = now, true
	if lost {
		c.loss -= rateUnit / 32
	}
	c.loss = max(c.loss-c.loss/32, 0)
}

// Lose notes that a packet is taken for lost.
func (c *RateControl) Lose() {
	c.loss += (rateUnit - c.loss) / 32
	c.round.lost++
}

// Sample notes how many ticks it took until a packet was acknowledged.
func (c *RateControl) Sample(sentAt, ticks delta.Tick, bytes int) {
	r, took := &c.round, int64(min(ticks, 1<<15))
	queue := took - c.shortest(took, bytes)
	if r.trips == 0 || queue < r.queue {
		r.queue = queue
	}
	r.sum += queue
	r.trips++
	r.stale = r.stale || sentAt.Before(c.cutAt)
}

// shortest notes a round trip and returns how long it is without a queue. Large packets take longer
// than small ones: those of about the same size are compared, and if there were none before the
// queue, it is added what the packet takes at the rate of delivery.
func (c *RateControl) shortest(took int64, bytes int) int64 {
	alike, least := c.base[bits.Len16(uint16(bytes))].note(took), c.base[0].note(took)
	if c.delivered == 0 {
		return alike
	}
	return min(alike, least+(int64(bytes)*c.tickRate+c.delivered-1)/c.delivered)
}

// note notes a round trip and returns the shortest one of late.
func (s *shortest) note(ticks int64) int64 {
	if s.now == 0 || ticks < int64(s.now) {
		s.now = uint16(max(ticks, 1))
	}
	if s.before != 0 && s.before < s.now {
		return int64(s.before)
	}
	return int64(s.now)
}

// Tick begins a tick of a peer with the given send interval and returns the bytes per second to send.
func (c *RateControl) Tick(now, interval delta.Tick) int64 {
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

// measure updates what is smoothed over rounds.
func (c *RateControl) measure() {
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

// excess returns by how much the queue of the round is too long, in 1/16 ticks: it may be the bytes
// that a client may keep there, up to a fifteenth of a second, 5 ms, and what is as likely jitter.
func (c *RateControl) excess() int64 {
	allowed := min(ownBytes*16*c.tickRate/c.Rate, 16*c.tickRate/15) + 16*c.tickRate/200 + c.spread*3/2
	return max(16*c.round.queue-allowed, 0)
}

// decide ends a round of so many ticks.
func (c *RateControl) decide(now delta.Tick, span int64) {
	r := &c.round
	full := 4*r.sent*c.tickRate >= 3*c.Budget()*span // else the game had little to send, and that tells little
	if r.trips > 0 {
		if excess := c.excess(); excess > 0 {
			c.congested(now, excess, full)
			return
		}
		c.drain, c.stuck, c.least = 0, 0, 0
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

// congested lowers the rate, as there is a queue.
func (c *RateControl) congested(now delta.Tick, excess int64, full bool) {
	r := &c.round
	c.drain = min(max(2*r.queue*rateUnit/c.tickRate, rateUnit/8), rateUnit/2)
	long := 10*r.queue >= c.tickRate
	if long && full && c.delivered > 0 {
		c.Rate = max(min(c.Rate, c.delivered), c.min) // the path is busy: it carries no more
	}
	switch {
	case r.stale || r.queue < c.queue: // it shrinks, or will
	case long:
		c.cut(now, rateUnit/8)
	case full:
		c.cut(now, min(rateUnit/16+excess*rateUnit/(2*c.tickRate), rateUnit/4))
	}
	if c.stuck++; c.least == 0 || r.queue < c.least {
		c.least, c.stuck = r.queue, 0
	}
	if c.stuck == stuckRounds { // the way has become longer, or others fill the queue whatever we do
		c.base, c.drain, c.stuck, c.least = [17]shortest{}, 0, 0, 0
	}
}

// cut lowers the rate by a share of it.
func (c *RateControl) cut(now delta.Tick, share int64) {
	c.Rate = max(c.Rate-c.Rate*share/rateUnit, c.min)
	c.starting, c.quiet, c.cutAt = false, 0, now
}

// grow raises the rate for so many ticks: at first by half of itself in each round; later by a number
// of bytes that doubles again and again, until there is a queue.
func (c *RateControl) grow(span int64) {
	rise := c.Rate * roundsPerSecond * span / (2 * c.tickRate)
	if !c.starting {
		c.quiet += span
		doublings := min(c.quiet*1000/(riseDoubles*c.tickRate), 20)
		rise = min((riseBytes<<doublings)*span/c.tickRate, rise/4)
	}
	c.Rate = min(c.Rate+max(min(rise, c.Rate), 1), c.max)
}
