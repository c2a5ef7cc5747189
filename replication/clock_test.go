package replication

import (
	"math"
	"testing"
	stdtime "time"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// TestTheClockFollowsTheServer: the estimate stays near the server's tick, whatever the network
// does and however often Apply is called.
func TestTheClockFollowsTheServer(t *testing.T) {
	oneGoroutine(t)
	for _, c := range []struct {
		name  string
		link  netsim.Config
		rate  float64 // ticks from one Apply to the next
		first uint32
	}{
		{"perfect", netsim.Config{}, 1, 0},
		{"ticks wrap", netsim.Config{Latency: 3}, 1, 1<<32 - 700},
		{"jitter", netsim.Config{Latency: 5, Jitter: 3}, 1, 0},
		{"lossy", netsim.Config{Latency: 5, Jitter: 1, Loss: 0.3, Reorder: 0.2, ReorderBy: 5}, 1, 0},
		{"clocks drift", netsim.Config{Latency: 5}, 1.002, 0},
		{"clocks drift the other way", netsim.Config{Latency: 5}, 0.998, 0},
		{"144 frames at 60 ticks", netsim.Config{Latency: 5, Jitter: 1}, 60. / 144, 0},
		{"60 frames at 20 ticks", netsim.Config{Latency: 2}, 20. / 60, 0},
		{"30 frames at 60 ticks", netsim.Config{Latency: 5}, 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newInputRig(7, c.link, replicationtest.FirstTick(c.first))
			time, frames, n := 0.0, 0.0, 0
			frame := stdtime.Duration(c.rate * float64(stdtime.Second) / 60)
			var off, worst, jumps float64
			last := uint32(0)
			for r.server.stats.Tick = 0; n < 3000; {
				if frames <= time {
					if c.rate < 0.9 || c.rate > 1.1 {
						r.client.Advance(frame)
					}
					r.link.Down.Receive(func(p []byte) { _ = r.client.Receive(p) })
					require.NoError(t, r.client.Apply())
					if tick := r.client.InputTick(); r.client.Connected() {
						if step := float64(int32(tick - Tick(last))); n > 1500 && math.Abs(step-c.rate) >= 1.01 {
							jumps++
						}
						last = uint32(tick)
					}
					frames += c.rate
					continue
				}
				_, ok := Input[mMove](r.peer, r.server.Tick()+1)
				r.server.Replicate()
				r.link.Step()
				r.link.Up.Receive(func(p []byte) { _ = r.peer.Receive(p) })
				time++
				n++
				if n > 1500 {
					r.asked++
					if ok {
						r.exact++
					}
					d := r.client.ServerTick() - float64(r.server.Tick())
					if d < -1<<31 {
						d += 1 << 32
					}
					off += d / 1500
					worst = max(worst, math.Abs(d))
				}
			}
			t.Logf("off by %.2f in the mean, %.2f at worst; input delay %.1f; input ticks jumped %.0f times; in time %d of %d",
				off, worst, r.client.InputDelay(), jumps, r.exact, r.asked)
			require.InDelta(t, 0, off, 2)
			require.Less(t, worst, 5.0)
			if c.rate < 1.5 { // otherwise there are ticks without a frame
				require.Greater(t, float64(r.exact), 0.99*float64(r.asked))
			}
		})
	}
}
