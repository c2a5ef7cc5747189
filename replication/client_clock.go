package replication

import (
	"fmt"
	"math"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
)

// Advance lets time pass in the client: dt is how much there was since the last call, on a clock that does not go back.
// Call it once per frame, before [Client.Receive] and [Client.Apply], at any frame rate:
//
//	for range frames {
//		now := time.Now()
//		client.Advance(now.Sub(last))
//		last = now
//		_ = client.Receive(packet) // what came
//		err := client.Apply()
//	}
//
// An Apply without an Advance since the last one counts as a tick of the server: a loop that has the server's tick rate
// needs none. All that a client does by time is counted in ticks of the server: its timeout, how often it asks for a
// session, how long [Expect] and messages wait, and when messages and inputs are sent, which is once per tick at most.
//
// Pauses do no harm: of the time between two Applies, whatever it was, no more than a second counts as waiting. Where
// the server is now is known again as soon as packets have arrived after it.
//
// Panics if dt is negative, in a hook and in a message handler.
func (c *Client) Advance(dt time.Duration) {
	c.mustExist()
	c.apply.Hooks.NotInHook("Advance")
	if c.messages != nil && c.messages.Handling {
		panic("replication: Advance in a message handler: call it once per frame, before Apply")
	}
	if dt < 0 {
		panic(fmt.Sprintf("replication: Advance by %v: measure time with a clock that does not go back, "+
			"such as time.Now and Sub", dt))
	}
	defer c.guard().Leave(c.guard().Enter(exclusive.ClientAdvance))
	c.clock.Advance(dt)
	c.followClock()
}

// followClock adapts what depends on the clock.
func (c *Client) followClock() {
	if c.messages != nil {
		c.messages.Follow()
	}
}

// TickRate returns how many ticks the server has per second: its [WithTickRate], 1 to 1000. It is 0 before the server
// has accepted the client.
func (c *Client) TickRate() int {
	c.mustExist()
	if c.interval.Ticks == 0 {
		return 0
	}
	return int(c.clock.Rate)
}

// SendInterval returns how many ticks of the server pass from one state packet to the next, 1 to 60: what
// [Peer.SetSendInterval] was set to when the session began or, if packets have come at another interval since, that
// one. A change is noticed within 33 packets. It is 0 before the server has accepted the client.
func (c *Client) SendInterval() int {
	c.mustExist()
	return int(c.interval.Ticks)
}

// Tick returns the newest server tick of which a packet came.
func (c *Client) Tick() uint32 {
	c.mustExist()
	return c.recv.NearTick
}

// ServerTick returns about where the server is now, in ticks with a fraction: what comes at this moment was sent half a
// round trip ago. It wraps at 2^32 as ticks do, and is 0 before the server has accepted the client.
//
// It goes on with [Client.Advance], at any frame rate, and never goes back. Where it is wrong it becomes faster or
// slower; only in the first half second of a session, after a pause, and if it is more than half a second behind, it
// jumps forward. If no packet has come for a second it stands still, because the server may have paused; for four
// seconds if the round trip is not known. The half of the round trip is in it as soon as it is known, see
// [Client.RoundTrip].
func (c *Client) ServerTick() float64 {
	c.mustExist()
	if !c.clock.Known {
		return 0
	}
	const all = 1 << 32
	return math.Mod(float64(c.clock.Base)+c.clock.ServerTick()+all, all)
}

// RoundTrip returns how long it takes from sending something to the server's answer, in ticks, smoothed; 0 if it is not
// known. It is measured only if the schema has messages or inputs.
func (c *Client) RoundTrip() float64 {
	c.mustExist()
	return c.clock.RoundTrip()
}

// Jitter returns by how many ticks packets come earlier or later than most, on average. That packets wait for the next
// frame is part of it.
func (c *Client) Jitter() float64 {
	c.mustExist()
	return c.clock.Jitter
}

// InputTick returns the tick that an input given now, before the next call of [Client.Apply], is best for: so far ahead
// of [Client.ServerTick] that it will come in time though some packets get lost, and not much further. It is 0 before
// the server has accepted the client, and if the schema has no inputs.
//
// It rises by one with every tick of the client's time: of a server with 60 ticks per second, by two in each frame at
// 30 frames per second, and in fewer than half of the frames at 144. Give an input to each tick since the last one:
//
//	newest := client.InputTick()
//	for tick := newest - 7; tick != newest+1; tick++ { // the last 8 are enough for frames, and too late after pauses
//		_ = replication.SetInput(client, tick, input) // ErrInputSet for those that have one
//	}
//
// It never goes back. When inputs come too late it rises faster for a while, at most twice as fast; when they come too
// early, more slowly. It jumps forward only where ServerTick does.
func (c *Client) InputTick() uint32 {
	c.mustExist()
	if c.messages == nil || !c.messages.InputDelay.Known {
		return 0
	}
	return c.messages.InputDelay.Tick()
}

// InputDelay returns how far [Client.InputTick] is ahead of [Client.ServerTick], in ticks, when it rises.
func (c *Client) InputDelay() float64 {
	c.mustExist()
	if c.messages == nil || !c.messages.InputDelay.Known {
		return 0
	}
	return c.messages.InputDelay.Ticks(&c.clock)
}

// MessageTick returns the tick of the [Server.Replicate] that the message being handled belongs to. If it is older than
// 4095 ticks the result is that many ticks before the packet.
func (c *Client) MessageTick() uint32 {
	c.mustExist()
	if c.messages == nil {
		return 0
	}
	return uint32(c.messages.Tick)
}
