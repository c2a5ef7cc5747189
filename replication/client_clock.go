package replication

import "math"

// Tick returns the newest server tick of which a packet came.
func (c *Client) Tick() uint32 {
	c.mustExist()
	return c.recv.NearTick
}

// ServerTick returns about where the server is now, in ticks with a fraction: what comes at this moment was sent half a
// round trip ago. It wraps at 2^32 as ticks do, and is 0 before the server has accepted the client.
//
// The client reads no clock and counts calls of Apply. They must come at a steady rate; the client finds out which in a
// second or two. Between two of them the estimate stands still. The half of the round trip is in it as soon as it is
// known, see [Client.RoundTrip].
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

// Jitter returns by how many ticks packets come earlier or later than expected, on average.
func (c *Client) Jitter() float64 {
	c.mustExist()
	return c.clock.Jitter
}

// InputTick returns the tick that an input given now, before the next call of [Client.Apply], is best for: so far ahead
// of [Client.ServerTick] that it will come in time though some packets get lost, and not much further. It rises by one
// with every Apply if there is one per tick, except for an occasional step: forward when inputs come too late, back
// when they come too early. It is 0 before the server has accepted the client, and if the schema has no inputs.
func (c *Client) InputTick() uint32 {
	c.mustExist()
	if c.messages == nil || !c.messages.InputDelay.Guess {
		return 0
	}
	return c.messages.InputDelay.Tick()
}

// InputDelay returns how far [Client.InputTick] is ahead of [Client.ServerTick], in ticks.
func (c *Client) InputDelay() float64 {
	c.mustExist()
	if c.messages == nil || !c.messages.InputDelay.Guess || !c.clock.Known {
		return 0
	}
	return float64(int32(c.InputTick()-c.clock.Base)) - c.clock.ServerTick()
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
