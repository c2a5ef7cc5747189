package interpolation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// TestPausesAndOutagesOfLargeWorlds: where ticks take many packets, neither a frame of seconds, in which more come than
// are remembered one by one, nor an outage looks like a network that loses packets at random.
func TestPausesAndOutagesOfLargeWorlds(t *testing.T) {
	replicationtest.OneGoroutine(t)
	r := newRand(t)
	for _, pause := range []float64{0, 2} {
		for _, outage := range []float64{0, 1, 10} {
			g := newGame(t, r.Uint64(), profile{oneWay: 0.03, jitter: 0.002}, 20, replication.WithMTU(200))
			v := newView(g)
			all := g.spawnMany(300)
			g.onTick = func(int) {
				for _, e := range all {
					g.place(e).X = 1000 * g.rand.Float32()
				}
			}
			g.run(30)
			before := v.Stats().Delay
			packets := g.client.Stats().Packets
			end := g.now + outage
			g.muted = func(now float64) bool { return now < end }
			g.run(outage)
			g.nextFrame += pause
			g.run(pause + 3)
			if pause > 0 {
				require.Greater(t, g.client.Stats().Packets-packets, uint64(400), "in the long frame")
			}
			require.InEpsilon(t, before, v.Stats().Delay, 0.15, "a frame of %v s, an outage of %v s", pause, outage)
		}
	}
}
