package interpolation_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
)

// TestForgedPacketsDoNoLastingHarm: without checksums, a client takes packets of any tick and sequence. The interpolation
// must not panic, nor go back in time, and be as good as before in the next session.
func TestForgedPacketsDoNoLastingHarm(t *testing.T) {
	replicationtest.OneGoroutine(t)
	for i := range uint64(replicationtest.TicksOf(100, 8)) {
		seed := replicationtest.Seed(t) + i
		r := rand.New(rand.NewPCG(seed, 9))
		first := replicationtest.Pick[uint32](r, 1, 0, math.MaxUint32-50, 1<<31-50)
		g := newGame(t, seed, profileB, 20, replication.WithoutChecksum(), replicationtest.FirstTick(first),
			replicationtest.FirstSequence(uint16(first)))
		g.frames = replicationtest.Pick(r, 144., 30, 9)
		v := newView(g, interpolation.Extrapolate(time.Second/4))
		interpolation.Into[teleports, drawnTeleports](v.Interpolation)
		var list []ecs.Entity
		for range 20 {
			list = append(list, g.spawn(place{}))
		}
		g.onTick = func(n int) {
			for j, e := range list {
				g.place(e).X = float32(n % (j + 50))
			}
		}
		var packets [][]byte
		g.onSend = func(p []byte) { packets = append(packets[max(0, len(packets)-30):], bytes.Clone(p)) }
		g.run(3)
		show := g.onFrame
		attack := true
		var shown struct {
			sessions uint64
			tick     uint32
			fraction float32
			ok       bool
		}
		g.onFrame = func(dt float64) {
			for range r.IntN(20) {
				p := bytes.Clone(packets[r.IntN(len(packets))])
				for range 1 + r.IntN(3) {
					bit := r.IntN(min(len(p), replicationtest.Pick(r, 8, 1000)) * 8)
					p[bit/8] ^= 1 << (bit % 8)
				}
				if attack {
					_ = g.client.Receive(p)
				}
			}
			was := shown
			shown.sessions = g.client.Stats().Sessions
			show(dt)
			at, ok := v.Time()
			shown.tick, shown.fraction, shown.ok = uint32(at.Tick), at.Fraction, ok
			if shown.sessions != was.sessions {
				return
			}
			if back := int32(shown.tick - was.tick); shown.ok && was.ok {
				require.True(t, back > 0 || back == 0 && shown.fraction >= was.fraction,
					"seed %d: went back from %+v to %+v", seed, was, shown)
			}
		}
		g.run(10)
		attack = false
		g.client.Reconnect()
		g.run(15)
		starved := v.Stats().Starved
		g.run(5)
		require.Less(t, v.Stats().Starved-starved, uint64(50), "seed %d", seed)
		require.Less(t, v.Stats().Delay, 600*time.Millisecond, "seed %d", seed)
		require.Less(t, v.delay(), 1., "seed %d", seed)
		require.Nil(t, g.client.Verify())
	}
}
