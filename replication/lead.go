package replication

// InputTick returns the tick that an input given now, before the next call of [Client.Apply], is best for: so far ahead of
// [Client.ServerTick] that it will come in time though some packets get lost, and not much further. It goes up by one with
// every Apply, if there are as many of them as ticks, but for a step now and then, forth when inputs come too late and back when
// they come too early. It is 0 before the server has accepted the client, and if the schema has no inputs.
func (c *Client) InputTick() uint32 {
	c.mustExist()
	if c.talk == nil || !c.talk.Lead.Guess {
		return 0
	}
	return c.talk.Lead.Tick()
}

// Lead returns how far [Client.InputTick] is ahead of [Client.ServerTick], in ticks.
func (c *Client) Lead() float64 {
	c.mustExist()
	if c.talk == nil || !c.talk.Lead.Guess || !c.clock.Known {
		return 0
	}
	return float64(int32(c.InputTick()-c.clock.Base)) - c.clock.ServerTick()
}
