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
// before the first packet of a session. While the round trip is not known, see [ClientStats], it is the time at which
// the packets that arrive now were sent.
//
// It rises with [Client.Frame], faster or more slowly while it is wrong, and never goes back within a session. It
// jumps, forward only, in the first half second of a session, after a pause, and when it is more than half a second
// behind. If no packet arrives for a second, or for four seconds if the round trip is not known, it stands still.
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
// It never goes back. It rises by one per server tick, for a while up to twice as fast when inputs arrive too late, and
// more slowly when they arrive too early. It jumps when ServerTime does.
func (c *Client) InputTick() Tick {
	c.mustExist()
	if c.messages == nil || !c.messages.InputDelay.Known {
		return 0
	}
	return Tick(c.messages.InputDelay.Tick())
}

// PredictionTime returns the time at which to draw what the client predicts, such as its own entity: between the tick
// before [Client.InputTick] and InputTick, evenly at any frame rate. It is zero when InputTick is 0.
//
// It never goes back. When InputTick skips a tick or stays for another one, PredictionTime goes faster or more slowly
// for a while, by a quarter at most, or up to twice as fast when it is more than 4 ticks behind. It jumps, forward
// only, in the first half second of a session, and when it is more than half a second behind.
func (c *Client) PredictionTime() Time {
	c.mustExist()
	if c.messages == nil || !c.messages.InputDelay.Known {
		return Time{}
	}
	return timeOf(Tick(c.clock.Base), c.messages.InputDelay.Drawn())
}

// MessageTick returns the tick of the [Server.Replicate] that the message being handled belongs to, at most 4095 ticks
// before that of the message's packet.
func (c *Client) MessageTick() Tick {
	c.mustExist()
	if c.messages == nil {
		return 0
	}
	return c.messages.Tick
}
