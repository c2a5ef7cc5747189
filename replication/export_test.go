package replication

import (
	"sync"
	"time"
)

// Advance and Apply are Frame in two parts, between which tests receive packets: time passes in the first one.
// Without it, Apply takes a tick.

var advanced sync.Map // clients

func (c *Client) Advance(dt time.Duration) {
	c.advance(dt)
	advanced.Store(c, true)
}

func (c *Client) Apply() error {
	if _, ok := advanced.LoadAndDelete(c); ok {
		return c.Frame(0)
	}
	rate := time.Duration(c.clock.Rate)
	return c.Frame((time.Second + rate - 1) / rate)
}
