package ratecontrol

import (
	"math"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/stretchr/testify/require"
)

// A controlledPath plays a rate control against a link without packets: bytes go into a queue that
// the link empties at some bytes per tick, and each tick's bytes are acknowledged as one packet.
type controlledPath struct {
	control  *Control
	now      delta.Tick
	trip     delta.Tick // round trip without queue
	line     float64    // bytes per tick
	queue    float64    // bytes
	unspent  float64
	inFlight []controlledPacket
	wanted   float64                              // bytes per tick that the game wants to send
	answer   func(c *Control, k controlledPacket) // instead of the usual
	greatest int64
}

type controlledPacket struct {
	sent, back delta.Tick
	bytes      int
}

const controlledRate = 60

func newControlledPath(least, most int64) *controlledPath {
	x := &controlledPath{trip: 6, line: 500, wanted: math.Inf(1)}
	x.control = New(least, most, controlledRate, x.now)
	return x
}

func (x *controlledPath) run(ticks int) {
	for range ticks {
		x.now++
		n := 0
		for _, k := range x.inFlight {
			switch {
			case k.back != x.now:
				x.inFlight[n] = k
				n++
			case x.answer != nil:
				x.answer(x.control, k)
			default:
				x.control.Sample(k.sent, k.back-k.sent, k.bytes)
				x.control.Acknowledge(k.back, k.bytes, false)
			}
		}
		x.inFlight = x.inFlight[:n]
		rate := x.control.Tick(x.now, 1)
		x.greatest = max(x.greatest, rate)
		x.unspent = min(x.unspent+float64(rate)/controlledRate, x.wanted)
		if bytes := int(min(x.unspent, 1200)); bytes > 0 {
			x.unspent -= float64(bytes)
			x.control.Spend(bytes)
			x.queue += float64(bytes)
			x.inFlight = append(x.inFlight, controlledPacket{x.now, x.now + x.trip + delta.Tick(x.queue/x.line), bytes})
		}
		x.queue = max(x.queue-x.line, 0)
	}
}

// mean returns the mean rate over some ticks.
func (x *controlledPath) mean(ticks int) (mean float64) {
	for range ticks {
		x.run(1)
		mean += float64(x.control.Budget()) / float64(ticks)
	}
	return mean
}

func TestRateFollowsTheLinkCapacity(t *testing.T) {
	x := newControlledPath(1000, 1_000_000)
	require.EqualValues(t, 1000, x.control.Budget())
	for _, line := range []float64{500, 1000, 250, 100, 600} { // bytes per tick
		x.line = line
		x.run(6 * controlledRate)
		require.InEpsilon(t, line*controlledRate, x.mean(6*controlledRate), 0.25, "of %v bytes per tick", line)
	}
}

func TestRateStaysWithinItsRange(t *testing.T) {
	x := newControlledPath(9000, 12_000)
	x.run(600)
	require.EqualValues(t, 12_000, x.control.Budget())
	x.line = 50
	x.run(600)
	require.EqualValues(t, 9000, x.control.Budget())
	require.EqualValues(t, 12_000, x.greatest)
	x.control.Within(20_000, 30_000)
	require.EqualValues(t, 20_000, x.control.Budget())
	x.control.Within(100, 200)
	require.LessOrEqual(t, x.control.Budget(), int64(200))
}

// TestRateOfAGameThatNeedsLess: unused rate proves nothing about the link, so the rate stays near
// what was used, or where it was.
func TestRateOfAGameThatNeedsLess(t *testing.T) {
	x := newControlledPath(1000, 1_000_000)
	x.wanted = 100
	x.run(60 * controlledRate)
	require.Less(t, x.control.Budget(), int64(3*100*controlledRate), "it never rises far beyond what is sent")
	x.wanted = math.Inf(1)
	x.run(10 * controlledRate)
	before := x.control.Budget()
	require.Greater(t, before, int64(20_000))
	x.wanted = 50
	x.run(60)
	before = x.control.Budget()
	x.run(120 * controlledRate)
	require.Equal(t, before, x.control.Budget(), "nor does it fall")
}

// TestRateOfHostileAcks: whatever a client acknowledges, its rate stays below the maximum, and a
// client that acknowledges nothing gets the minimum.
func TestRateOfHostileAcks(t *testing.T) {
	for name, answer := range map[string]func(c *Control, k controlledPacket){
		"at once": func(c *Control, k controlledPacket) {
			c.Sample(k.back, 0, k.bytes)
			c.Acknowledge(k.back, k.bytes, true)
		},
		"again and again": func(c *Control, k controlledPacket) {
			for range 100 {
				c.Sample(k.sent, 1, k.bytes)
				c.Acknowledge(k.back, math.MaxUint16, false)
			}
		},
		"as from the future": func(c *Control, k controlledPacket) {
			c.Sample(k.sent, math.MaxUint32, k.bytes)
			c.Acknowledge(k.sent-1000, k.bytes, false)
		},
	} {
		x := newControlledPath(1000, 50_000)
		x.answer = answer
		x.run(1000)
		require.LessOrEqual(t, x.greatest, int64(50_000), name)
		require.GreaterOrEqual(t, x.control.Budget(), int64(1000), name)
	}
	x := newControlledPath(1000, 50_000)
	x.run(600)
	require.Greater(t, x.control.Budget(), int64(20_000))
	x.answer = func(c *Control, _ controlledPacket) { c.Lose() }
	x.run(10 * controlledRate)
	require.EqualValues(t, 1000, x.control.Budget(), "silence")
}

// TestRateRecoversFromALongerWay: a lasting increase of latency is not a queue, and the rate
// recovers.
func TestRateRecoversFromALongerWay(t *testing.T) {
	x := newControlledPath(1000, 1_000_000)
	x.run(10 * controlledRate)
	x.trip = 14
	x.run(10 * controlledRate)
	require.Greater(t, x.mean(10*controlledRate), 0.75*x.line*controlledRate)
}

// TestRateOfAPolicer: a link without a queue drops the excess. The rate settles where little is
// dropped.
func TestRateOfAPolicer(t *testing.T) {
	x := newControlledPath(1000, 1_000_000)
	x.line = math.Inf(1)
	allowed := 0.0 // bytes
	x.answer = func(c *Control, k controlledPacket) {
		if allowed < float64(k.bytes) {
			c.Lose()
			return
		}
		allowed -= float64(k.bytes)
		c.Sample(k.sent, k.back-k.sent, k.bytes)
		c.Acknowledge(k.back, k.bytes, false)
	}
	var rates float64
	for tick := range 30 * controlledRate {
		allowed = min(allowed+500, 2000)
		x.run(1)
		if tick >= 15*controlledRate {
			rates += float64(x.control.Budget()) / (15 * controlledRate)
		}
	}
	require.InEpsilon(t, 500*controlledRate, rates, 0.25)
}

func TestRateControlAllocatesNothing(t *testing.T) {
	x := newControlledPath(1000, 1_000_000)
	x.run(2000)
	require.Zero(t, testing.AllocsPerRun(500, func() { x.run(1) }))
}

// TestQueueDrainsAfterADrop: a link that gets much slower at once has a queue of seconds. That it takes seconds to
// drain does not make it a longer way.
func TestQueueDrainsAfterADrop(t *testing.T) {
	for _, trip := range []delta.Tick{2, 6, 12} {
		for _, line := range []float64{270, 133, 67} {
			x := newControlledPath(1000, 1_000_000)
			x.trip, x.line = trip, 533
			x.run(20 * controlledRate)
			x.line = line
			x.run(30 * controlledRate)
			mean := 0.0
			for range 30 * controlledRate {
				x.run(1)
				mean += x.queue / x.line / (30 * controlledRate)
			}
			require.Less(t, mean, 0.4*controlledRate, "ticks in the queue: round trip %d, %v bytes per tick", trip, line)
		}
	}
}

// TestAllowedQueue: the client's own bytes may queue, up to a tenth of a second, or what may be noise, if that is more.
func TestAllowedQueue(t *testing.T) {
	for _, k := range []struct{ rate, spread, queue, excess int64 }{
		{16_000, 0, 4, 16*4 - 54},  // 900 bytes take 3.4 ticks
		{16_000, 0, 3, 0},          //
		{1000, 0, 7, 16*7 - 96},    // a tenth of a second
		{640_000, 0, 1, 0},         // a tick may be noise
		{640_000, 0, 2, 16},        //
		{16_000, 40, 5, 16*5 - 76}, // a tick and 1.5 times the spread
		{16_000, 20, 4, 16*4 - 54},
	} {
		c := New(1000, 1_000_000, controlledRate, 0)
		c.Rate, c.spread, c.round.queue = k.rate, k.spread, k.queue
		require.Equal(t, k.excess, c.excess(), "%+v", k)
	}
}
