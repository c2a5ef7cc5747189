package replication

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoEmptyPackets: where all changes are in groups, shared packets have nothing to carry, and
// the send function is not called.
func TestNoEmptyPackets(t *testing.T) {
	c := newLoadWorld(t, 400, loadSchema()) // more than a packet
	for i := 0; i < 400; i += 2 {
		g := c.server.NewGroup()
		g.Add(c.entities[i])
		g.Add(c.entities[i+1])
	}
	for range 3 {
		m := c.join(4, 0)
		send := m.peer.out.Send
		m.peer.out.Send = func(p []byte) error {
			require.NotEmpty(t, p, "tick %d", c.ticks)
			return send(p)
		}
	}
	for range 50 {
		c.tickAll()
	}
	for _, m := range c.members {
		require.Equal(t, m.peer.Stats().Packets, m.packets)
	}
}
