package replication

import "math"

// followClock adapts what depends on the clock.
func (c *Client) followClock() {
	if c.messages != nil {
		c.messages.Follow()
	}
}

// TickRate returns the server's ticks per second, 1 to 1000, as set by [WithTickRate]. It is 0 before the server has
// accepted the client.
func (c *Client) TickRate() int {
	c.mustExist()
	if !c.session.Met {
		return 0
	}
	return int(c.clock.Rate)
}

// SendInterval returns the number of server ticks from one state packet to the next, 1 to 60, as set by
// [Peer.SetSendInterval] when the newest state packet was sent. It is 0 before the client's first one.
func (c *Client) SendInterval() int {
	c.mustExist()
	return int(c.recv.Interval)
}

// Tick returns the newest server tick of which a packet has arrived.
func (c *Client) Tick() uint32 {
	c.mustExist()
	return c.recv.NearTick
}

// ServerTick estimates the server's present tick, with a fraction: a packet that arrives now was sent half a round trip
// before. It wraps at 2^32 as ticks do, and is 0 before the first packet of a session.
//
// It rises with [Client.Frame], at any frame rate, and never goes back within a session. While it is wrong it rises
// faster or more slowly. It jumps, forward only, in the first half second of a session, after a pause, and when it is
// more than half a second behind. If no packet arrives for a second, or for four seconds if the round trip is not
// known, it stands still, because the server may have paused. While the round trip is not known, it is the tick at
// which the packets that arrive now were sent: see [Client.RoundTrip].
func (c *Client) ServerTick() float64 {
	c.mustExist()
	if !c.clock.Known {
		return 0
	}
	const all = 1 << 32
	return math.Mod(float64(c.clock.Base)+c.clock.ServerTick()+all, all)
}

// RoundTrip returns the smoothed time from sending a packet to the server's answer, in server ticks. It is 0 while it
// is not known. It is measured only if the schema has messages or inputs.
func (c *Client) RoundTrip() float64 {
	c.mustExist()
	return c.clock.RoundTrip()
}

// Jitter returns by how many server ticks packets arrive early or late, on average. It includes the time that packets
// wait for the next frame.
func (c *Client) Jitter() float64 {
	c.mustExist()
	return c.clock.Jitter
}

// InputTick returns the best tick for an input that is set now, before the next [Client.Frame]: just far enough ahead
// of [Client.ServerTick] for the input to arrive in time, even if some packets are lost. It is 0 before the server has
// accepted the client, and if the schema has no inputs.
//
// It rises by one per server tick. With 60 ticks per second, it rises by two in each frame at 30 frames per second; at
// 144, it rises by one in fewer than half of the frames. Set an input for each tick since the last one:
//
//	newest := client.InputTick()
//	for tick := newest - 7; tick != newest+1; tick++ { // after a pause, older ones would be too late
//		input.Fire = clicked && tick == newest // what happens once goes into one input
//		if replication.SetInput(client, tick, input) == nil && input.Fire { // else ErrInputSet: it has one
//			clicked = false
//		}
//	}
//
// It never goes back. When inputs arrive too late it rises faster for a while, at most twice as fast; when they arrive
// too early, more slowly. It jumps, forward only, when ServerTick does.
func (c *Client) InputTick() uint32 {
	c.mustExist()
	if c.messages == nil || !c.messages.InputDelay.Known {
		return 0
	}
	return c.messages.InputDelay.Tick()
}

// InputDelay returns how many ticks [Client.InputTick] is ahead of [Client.ServerTick] at the moment at which InputTick
// rises. It is 0 when InputTick is 0.
func (c *Client) InputDelay() float64 {
	c.mustExist()
	if c.messages == nil || !c.messages.InputDelay.Known {
		return 0
	}
	return c.messages.InputDelay.Ticks(&c.clock)
}

// PredictionTick returns the tick, with a fraction, at which to draw what the client predicts, such as its own entity.
// It goes on between the tick before [Client.InputTick] and InputTick, evenly at any frame rate. It is 0 when InputTick
// is 0, and wraps at 2^32 as ticks do. Call it after [Client.Frame].
//
// When the input delay changes, InputTick skips a tick or stays for another one. PredictionTick does neither: it makes
// up for that by going faster or more slowly for a while, by an eighth at first and a quarter at most. Only if it is
// more than 4 ticks behind, as after a long burst of loss, does it go faster still, and twice as fast from 16 ticks on.
// While the server is silent InputTick stands still, and PredictionTick stops within 4 ticks. It never goes back. It
// jumps, forward only, in the first half second of a session, and when it is more than half a second behind.
func (c *Client) PredictionTick() float64 {
	c.mustExist()
	if c.messages == nil || !c.messages.InputDelay.Known {
		return 0
	}
	return math.Mod(float64(c.clock.Base)+c.messages.InputDelay.Drawn(), 1<<32)
}

// MessageTick returns the tick of the [Server.Replicate] that the message being handled belongs to. If that is more
// than 4095 ticks before the message's packet, it returns the tick 4095 ticks before the packet.
func (c *Client) MessageTick() uint32 {
	c.mustExist()
	if c.messages == nil {
		return 0
	}
	return uint32(c.messages.Tick)
}
