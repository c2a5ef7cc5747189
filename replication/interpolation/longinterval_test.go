package interpolation_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// TestLongIntervalsAreFollowed: motion is stretched over a send interval of up to a second that a server sets during a
// session.
func TestLongIntervalsAreFollowed(t *testing.T) {
	t.Parallel()
	replicationtest.OneGoroutine(t)
	for _, c := range []struct {
		rate     float64
		from, to int
	}{{20, 1, 10}, {20, 1, 18}, {60, 3, 45}, {60, 1, 59}, {5, 1, 4}} {
		t.Run(fmt.Sprintf("%v Hz from %d to %d", c.rate, c.from, c.to), func(t *testing.T) {
			g := newGame(t, 3, profile{oneWay: 0.05}, c.rate, replication.WithTimeout(0))
			g.peer.SetSendInterval(c.from)
			v := newView(g)
			e := g.spawn(place{})
			g.onTick = func(n int) { g.place(e).X = float32(n) }
			g.run(100 / c.rate)
			g.peer.SetSendInterval(c.to)
			g.run(3 * float64(c.to) / c.rate)
			require.Equal(t, c.to, g.client.Stats().SendInterval)
			g.run(42 * float64(c.to) / c.rate) // until the delay is as long
			last, frames, most := float32(0), 0, 0.0
			v.after = func(dt float64) {
				at, _ := g.shown(e)
				if frames++; frames > 1 {
					most = max(most, float64(at.X-last)/(dt*c.rate))
				}
				last = at.X
			}
			g.run(10 * float64(c.to) / c.rate)
			require.Less(t, most, 2.0, "the largest step of a frame, where 1 is even motion")
			require.Greater(t, frames, 100)
		})
	}
}
