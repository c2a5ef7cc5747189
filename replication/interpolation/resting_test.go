package interpolation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// TestTimeGoesOnInAWorldAtRest: nothing changes, so states come once a second. Other packets show that the server goes
// on, so time goes on, too. Without them it can only be guessed.
func TestTimeGoesOnInAWorldAtRest(t *testing.T) {
	replicationtest.OneGoroutine(t)
	for _, rate := range []float64{20, 60} {
		for loss, most := range map[float64]int{0: 0, 0.02: 100, 0.2: 400} { // frames of 10,000
			g := &game{t: t, rand: newRand(t), rate: rate, frames: 144, wobble: 0.1}
			g.profile = profile{oneWay: 0.075, jitter: 0.008, loss: loss}
			g.prepare(g.rand.Uint64(), func() { replication.RegisterMessage[shout](g.schema) })
			e := g.spawn(place{})
			g.onTick = func(n int) {
				if float64(n) < 5*rate || float64(n) > 65*rate {
					g.place(e).X = float32(n)
				}
			}
			v := newView(g)
			frames, uneven := 0, 0
			v.after = func(dt float64) {
				if g.now < 4 {
					return
				}
				if step := (v.time - v.before) / rate; step < 0.7*dt-0.001 || step > 1.1*dt+0.001 {
					uneven++
				}
				frames++
			}
			g.run(70)
			t.Logf("%v ticks a second, %v loss: %d of %d frames uneven", rate, loss, uneven, frames)
			require.LessOrEqual(t, uneven, frames*most/10_000)
		}
	}
}
