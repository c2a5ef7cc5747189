package replication

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

// Tick returns the newest server tick of which a packet has arrived.
func (c *Client) Tick() Tick {
	c.mustExist()
	return Tick(c.recv.NearTick)
}

// ServerTime estimates the server's present: a packet that arrives now was sent half a round trip before. It is zero
// before the first packet of a session.
//
// It rises with [Client.Frame], at any frame rate, and never goes back within a session. While it is wrong it rises
// faster or more slowly. It jumps, forward only, in the first half second of a session, after a pause, and when it is
// more than half a second behind. If no packet arrives for a second, or for four seconds if the round trip is not
// known, it stands still, because the server may have paused. While the round trip is not known, see [ClientStats], it
// is the time at which the packets that arrive now were sent.
func (c *Client) ServerTime() Time {
	c.mustExist()
	if !c.clock.Known {
		return Time{}
	}
	return timeOf(Tick(c.clock.Base), c.clock.ServerTick())
}

// InputTick returns the newest tick for which [OnInput] was asked: just far enough ahead of [Client.ServerTime] for the
// input to arrive in time, even if some packets are lost. It is 0 before the server has accepted the client, and if the
// schema has no inputs.
//
// It rises by one per server tick, at any frame rate, and never goes back. When inputs arrive too late it rises faster
// for a while, at most twice as fast; when they arrive too early, more slowly. It jumps, forward only, when ServerTime
// does.
func (c *Client) InputTick() Tick {
	c.mustExist()
	if c.messages == nil || !c.messages.InputDelay.Known {
		return 0
	}
	return Tick(c.messages.InputDelay.Tick())
}

// PredictionTime returns the time at which to draw what the client predicts, such as its own entity. It goes on between
// the tick before [Client.InputTick] and InputTick, evenly at any frame rate. It is zero when InputTick is 0.
//
// When the input delay changes, InputTick skips a tick or stays for another one. PredictionTime does neither: it makes
// up for that by going faster or more slowly for a while, by an eighth at first and a quarter at most. Only if it is
// more than 4 ticks behind, as after a long burst of loss, does it go faster still, and twice as fast from 16 ticks on.
// While the server is silent InputTick stands still, and PredictionTime stops within 4 ticks. It never goes back. It
// jumps, forward only, in the first half second of a session, and when it is more than half a second behind.
func (c *Client) PredictionTime() Time {
	c.mustExist()
	if c.messages == nil || !c.messages.InputDelay.Known {
		return Time{}
	}
	return timeOf(Tick(c.clock.Base), c.messages.InputDelay.Drawn())
}

// MessageTick returns the tick of the [Server.Replicate] that the message being handled belongs to. If that is more
// than 4095 ticks before the message's packet, it returns the tick 4095 ticks before the packet.
func (c *Client) MessageTick() Tick {
	c.mustExist()
	if c.messages == nil {
		return 0
	}
	return c.messages.Tick
}
