package replication

import "math"

// ServerTick returns about where the server is now, in ticks with a fraction: what comes at this moment was sent half a round
// trip ago. It wraps at 2^32 as ticks do, and is 0 before the server has accepted the client.
//
// No clock is read, but calls of Apply are counted, which must come at a steady rate; what rate that is the client finds out in
// a second or two. Between two of them the estimate stands still. The half of the round trip is in it as soon as it is
// known, see [Client.RoundTrip].
func (c *Client) ServerTick() float64 {
	c.mustExist()
	if !c.clock.Known {
		return 0
	}
	const all = 1 << 32
	return math.Mod(float64(c.clock.Base)+c.clock.ServerTick()+all, all)
}

// RoundTrip returns how long it takes from sending something to the server's answer, in ticks, smoothed; 0 if it is not known.
// It is measured only if the schema has messages or inputs.
func (c *Client) RoundTrip() float64 {
	c.mustExist()
	return c.clock.RoundTrip()
}

// Jitter returns by how many ticks packets come earlier or later than could be expected, in the mean.
func (c *Client) Jitter() float64 {
	c.mustExist()
	return c.clock.Jitter
}
