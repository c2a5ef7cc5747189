package predict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// TestRandomGamesAgainstAnOracle: whatever happens, what was simulated for a tick is what the server has, once the
// client can know it.
func TestRandomGamesAgainstAnOracle(t *testing.T) {
	replicationtest.OneGoroutine(t)
	seed := replicationtest.Seed(t)
	n := 12
	if testing.Short() {
		n = 4
	}
	for i := range n {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			set := setting{
				seed: rng.Uint64(), oneWay: rng.Float64() * 120, loss: rng.Float64() * 0.2, lossUp: rng.Float64() * 0.3,
				fps: []float64{25, 60, 144}[rng.IntN(3)], interval: 1 + rng.IntN(4),
				options: []replication.ServerOption{replicationtest.FirstTick(startTicks[rng.IntN(3)])},
			}
			if rng.IntN(2) == 0 {
				set.attach = func(c *replication.Client) { interpolation.Attach(c) }
			}
			damping := []float32{0.9, 0.97, 1}[rng.IntN(3)]
			p := newPlay(t, set, &rules{damping: damping, wall: 5 + 100*rng.Float32()})
			p.wander()
			steer := p.input
			p.input = func() Move {
				in := steer()
				if p.rng.IntN(15) == 0 {
					in.Fire = uint8(1 + p.rng.IntN(3))
				}
				return in
			}
			p.run(3)
			truth := map[replication.Tick]Position{}
			p.afterTick = func() {
				truth[p.server.Tick()] = *get[Position](&p.world, p.ship)
				if p.rng.IntN(150) == 0 {
					p.blocked = !p.blocked
				} else if p.rng.IntN(10) == 0 {
					p.blocked = false
				}
			}
			checked, wrong := 0, 0
			p.afterFrame = func() {
				s := p.predict.sim
				if !p.predicted() {
					return
				}
				row, _ := s.rowOf(p.own())
				k := s.known[row] // its newest state
				want, ok := truth[k.tick]
				if !k.any || !ok || k.tick.After(s.newest) || k.tick.Before(s.oldest()) {
					return
				}
				got := (*Position)(s.columns[0].at(k.tick, row))
				checked++
				if math.Abs(float64(got.X-want.X)) > 0.04 || math.Abs(float64(got.Y-want.Y)) > 0.04 {
					wrong++
				}
			}
			p.run(60)
			require.Greater(t, checked, 300)
			require.Zero(t, wrong, "of %d; %+v", checked, p.predict.Stats())
			p.afterTick, p.blocked, p.input = nil, false, func() Move { return Move{} }
			p.link.SetConfig(netsim.Config{Latency: set.oneWay})
			p.run(6)
			s := p.predict.Stats()
			require.Equal(t, 1, s.Predicted, "%+v", s)
			if damping < 1 { // it has come to rest
				a, b := get[Position](&p.mirror, p.own()), get[Position](&p.world, p.ship)
				require.InDelta(t, b.X, a.X, 0.05)
				require.InDelta(t, b.Y, a.Y, 0.05)
			}
		})
	}
}
