package sender

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/stretchr/testify/require"
)

// TestABoxKeepsMemoryForLoadsThatVary: peers move from worker to worker, so a box may hold half as much for a while. What
// only a burst took is freed.
func TestABoxKeepsMemoryForLoadsThatVary(t *testing.T) {
	var b packetBox
	now, packet := delta.Tick(0), make([]byte, 600)
	play := func(bytes, packets int) {
		for range 2 * ackstate.ResizeTicks {
			now++
			b.empty(now)
			for range packets {
				b.bytes = append(b.bytes, packet[:bytes/packets]...)
				b.Queued = append(b.Queued, queued{})
			}
		}
	}
	play(6000, 10)
	require.Zero(t, testing.AllocsPerRun(3, func() {
		play(3600, 6)
		play(6000, 10)
	}))
	play(600_000, 1000)
	require.GreaterOrEqual(t, cap(b.bytes), 600_000)
	play(6000, 10)
	require.LessOrEqual(t, cap(b.bytes), 12_000)
	require.LessOrEqual(t, cap(b.Queued), 20)
}
