package netsim

import (
	"errors"
	"fmt"
	"math"
)

// defaultQueueLimit is the number of bytes that may wait for Bandwidth when
// [Config.QueueLimit] is zero.
const defaultQueueLimit = 64 << 10

// maxTicks limits every duration in a Config: about 4.6 hours at 60 Hz, far below the overflow of
// fixed-point time.
const maxTicks = 1_000_000

// maxBytes limits MTU, Bandwidth and QueueLimit, so that sums of them fit into an int on 32-bit
// machines.
const maxBytes = 1 << 28

// Config describes one direction of a link. The zero value is a perfect link: instant, complete, in
// order, unlimited. Shares and chances are probabilities between 0 and 1; durations are in ticks,
// see [Ticks].
type Config struct {
	// Latency is the time from one end to the other, in ticks, 0 to 1,000,000.
	// It is one way: a round trip takes twice that.
	Latency float64

	// Jitter varies the latency of each packet uniformly by up to that many ticks in both
	// directions; the latency never falls below zero. Jitter may reorder packets.
	Jitter float64

	// Loss is the share of packets that vanish, each independently.
	Loss float64

	// Burst describes outages that take everything for a while.
	Burst Burst

	// Duplicate is the share of the surviving packets that arrive twice. The
	// copy has its own jitter, reordering and corruption.
	Duplicate float64

	// Reorder is the share of packets that are delayed by 1 to ReorderBy more ticks (an integer,
	// uniform), so that packets sent later overtake them.
	Reorder   float64
	ReorderBy int

	// Corrupt is the share of packets that arrive damaged: half of them with 1
	// to 8 bits flipped, a quarter cut short, a quarter with 1 to 16 random
	// bytes appended. A damaged packet always differs from what was sent.
	Corrupt float64

	// Bandwidth is the number of bytes that may enter the line each tick; 0 is unlimited. Excess
	// packets wait in a queue. Unused bandwidth is lost, not saved up. A packet larger than
	// Bandwidth takes several ticks.
	Bandwidth int

	// QueueLimit is the number of bytes that may wait for Bandwidth; 0 means
	// 65,536. A packet that would exceed it is dropped, unless it
	// finds the queue empty. It has no effect without Bandwidth.
	QueueLimit int

	// Through, if not nil, is a line that the pipe shares with others: packets wait for its
	// bandwidth, in its queue. Bandwidth and QueueLimit must be 0.
	Through *Bottleneck

	// MTU is the size in bytes of the largest packet; 0 is no limit. Send
	// refuses larger packets, as a socket would.
	MTU int
}

// Burst makes a link fail now and then for a while, during which every packet is lost: the two-state Markov chain of
// Gilbert, "Capacity of a Burst-Noise Channel", Bell System Technical Journal 39 (1960), stepped once per tick. In the
// long run the link is down for a share of Start·Length / (1 + Start·Length) of the time.
type Burst struct {
	// Start is the chance that an outage begins, in each tick without one.
	Start float64

	// Length is the mean length of an outage in ticks, at least 1 where Start
	// is not 0. Lengths are geometrically distributed.
	Length float64
}

// Validate returns an error that names the first invalid field, its value and the allowed range. [NewPipe], [NewLink]
// and [Pipe.SetConfig] panic with it; callers that take a Config from a person should call Validate first.
func (c Config) Validate() error {
	for _, f := range []struct {
		name string
		val  float64
		max  float64
	}{
		{"Latency", c.Latency, maxTicks},
		{"Jitter", c.Jitter, maxTicks},
		{"Loss", c.Loss, 1},
		{"Burst.Start", c.Burst.Start, 1},
		{"Burst.Length", c.Burst.Length, maxTicks},
		{"Duplicate", c.Duplicate, 1},
		{"Reorder", c.Reorder, 1},
		{"Corrupt", c.Corrupt, 1},
		{"ReorderBy", float64(c.ReorderBy), maxTicks},
		{"Bandwidth", float64(c.Bandwidth), maxBytes},
		{"QueueLimit", float64(c.QueueLimit), maxBytes},
		{"MTU", float64(c.MTU), maxBytes},
	} {
		if math.IsNaN(f.val) || f.val < 0 || f.val > f.max {
			return fmt.Errorf("netsim: Config.%s is %v, but must be between 0 and %v", f.name, f.val, f.max)
		}
	}
	if c.Burst.Start > 0 && c.Burst.Length < 1 {
		return fmt.Errorf("netsim: Config.Burst.Length is %v, but must be at least 1 tick as Burst.Start is %v",
			c.Burst.Length, c.Burst.Start)
	}
	if c.Through != nil && (c.Bandwidth != 0 || c.QueueLimit != 0) {
		return errors.New("netsim: Config.Bandwidth and Config.QueueLimit must be 0 with Through, " +
			"which has a bandwidth and a queue of its own")
	}
	if c.Reorder > 0 && c.ReorderBy < 1 {
		return fmt.Errorf("netsim: Config.ReorderBy is %d, but must be at least 1 tick as Reorder is %v",
			c.ReorderBy, c.Reorder)
	}
	return nil
}

// odds is a Config converted to integers, so that no decision depends on floating point, whose
// multiply-adds Go may fuse on some machines and not on others.
type odds struct {
	latency, jitter instant

	loss, duplicate, reorder, corrupt chance

	burstStart, burstEnd chance

	reorderBy, bandwidth, queueLimit, mtu int
}

// compile validates and converts.
//
// Panics if the configuration is not valid.
func (c Config) compile() odds {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	o := odds{
		latency:    instantOf(c.Latency),
		jitter:     instantOf(c.Jitter),
		loss:       chanceOf(c.Loss),
		duplicate:  chanceOf(c.Duplicate),
		reorder:    chanceOf(c.Reorder),
		corrupt:    chanceOf(c.Corrupt),
		burstStart: chanceOf(c.Burst.Start),
		burstEnd:   chanceOf(1),
		reorderBy:  c.ReorderBy,
		bandwidth:  c.Bandwidth,
		queueLimit: c.QueueLimit,
		mtu:        c.MTU,
	}
	if c.Burst.Start > 0 {
		o.burstEnd = chanceOf(1 / c.Burst.Length)
	}
	if o.queueLimit == 0 {
		o.queueLimit = defaultQueueLimit
	}
	return o
}
