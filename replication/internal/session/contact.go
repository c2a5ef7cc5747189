package session

import (
	"time"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
)

// contact measures the silence of the server. A server that receives nothing of the client counts as silent, though
// its packets arrive: the client may have another address by now. All other times are in ticks of the server.
type contact struct {
	silent  uint32        // since its last packet
	unacked bool          // its latest state packet shows that it has no recent ack of the client
	usual   uint32        // longest silence of late
	timeout time.Duration // longest silence that the user does not see: 0 for no limit, -1 for config.ClientTimeout
	rate    uint32        // ticks in a second
}

// quiet reports whether the server is silent for longer than usual: it may have started anew, or the client may have
// another address. A server sends at least one packet per second, or per send interval.
func (c *contact) quiet() bool { return c.limit() > 0 && c.silent > 2*c.usual+c.rate+c.rate/2 }

// lost reports whether the server is silent for so long that the user should know.
func (c *contact) lost() bool { return c.limit() > 0 && c.silent > c.limit() }

func (c *contact) limit() uint32 {
	timeout := c.timeout
	if timeout < 0 {
		timeout = config.ClientTimeout
	}
	return uint32(config.Ticks(timeout, int(c.rate)))
}

// made notes a packet of a server that receives those of the client. outage reports whether contact was lost;
// how long that took is not usual.
func (c *contact) made(outage bool) {
	if c.silent > 0 && !outage && !c.unacked {
		c.usual = max(c.silent, c.usual-(c.usual+7)/8)
	}
	c.silent, c.unacked = 0, false
}
