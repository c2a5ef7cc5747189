package interpolation_test

import (
	"math"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// fine is a place with a tenth of the step.
type fine struct {
	X float32 `repl:"range=-100:100,step=0.001"`
}

// barrel turns.
type barrel struct {
	Angle float32 `repl:"angle,bits=8"`
	Shots uint8
}

// moved is what an entity of the test has.
type moved struct {
	place  *place
	fine   *fine
	barrel *barrel
}

// TestSlowMotionIsNamed: what goes less than a step a tick stands still in most frames, and statistics name it. The step
// that docs/interpolation.md advises shows it evenly, and other motion is not named.
func TestSlowMotionIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		profile  profile
		interval int
		move     func(n int, m *moved)
		want     string
		still    float64 // share of frames at least, in which the place stands still
		even     float64 // the same at most
	}{
		"slow": {
			profile: quiet, want: "place", still: 0.5, even: 1,
			move: func(n int, m *moved) { m.place.X = 5 + 0.004*float32(n); m.barrel.Shots++ },
		},
		"slower": {
			profile: quiet, want: "place", still: 0.7, even: 1,
			move: func(n int, m *moved) { m.place.Z = 0.0025 * float32(n) },
		},
		"slow, D": {
			profile: profileD, want: "place", still: 0.2, even: 1,
			move: func(n int, m *moved) { m.place.X = 5 - 0.004*float32(n) },
		},
		"slow, every three ticks": {
			profile: profileB, interval: 3, want: "place", still: 0.2, even: 1,
			move: func(n int, m *moved) { m.place.X = 0.002 * float32(n); m.fine.X++ },
		},
		"slow turn": {
			profile: quiet, want: "barrel", still: 0, even: 1,
			move: func(n int, m *moved) {
				m.barrel.Angle = float32(math.Remainder(0.01*float64(n), 2*math.Pi))
			},
		},
		"a step of a quarter": {
			profile: quiet, even: 0.01,
			move: func(n int, m *moved) { m.place.X, m.fine.X = 0.04*float32(n), 0.004*float32(n) },
		},
		"a smooth send interval": {
			profile: quiet, interval: 3, even: 0.05,
			move: func(n int, m *moved) { m.place.X = 0.004 * float32(n) },
		},
		"noise": {
			profile: quiet, even: 1,
			move: func(n int, m *moved) { m.place.X = 0.01 * float32(n/2%2) },
		},
		"along an axis": { // the other coordinate is slow
			profile: quiet, even: 0.01,
			move: func(n int, m *moved) { m.place.X, m.place.Y = 0.3*float32(n), 0.003*float32(n) },
		},
		"coming to rest": {
			profile: quiet, even: 1,
			move: func(n int, m *moved) { m.place.X = float32(10 * math.Pow(0.9, float64(n%60))) },
		},
		"a counter": {
			profile: quiet, even: 1,
			move: func(n int, m *moved) { m.barrel.Shots = uint8(n / 2) },
		},
	} {
		interval := max(c.interval, 1)
		g := &game{t: t, rand: newRand(t), profile: c.profile, rate: 20 * float64(interval), frames: 144, wobble: 0.1}
		g.prepare(replicationtest.Seed(t), func() {
			replication.Register[fine](g.schema)
			replication.Register[barrel](g.schema)
		})
		g.peer.SetSendInterval(interval)
		fines, barrels := ecs.ComponentID[fine](&g.world), ecs.ComponentID[barrel](&g.world)
		e := g.spawn(place{})
		g.world.Add(e, fines, barrels)
		v := newView(g)
		g.onTick = func(n int) {
			c.move(n, &moved{g.place(e), (*fine)(g.world.Get(e, fines)), (*barrel)(g.world.Get(e, barrels))})
		}
		g.run(3)
		still, frames, last := 0., 0., place{}
		v.after = func(float64) {
			at, _ := g.shown(e)
			if frames++; at == last {
				still++
			}
			last = at
		}
		g.run(10)
		t.Logf("%s: %2.0f %% of frames stand still, %q", name, 100*still/frames, v.Stats().Coarse)
		require.Equal(t, c.want, v.Stats().Coarse, name)
		require.GreaterOrEqual(t, still/frames, c.still, name)
		require.LessOrEqual(t, still/frames, c.even, name)
	}
}
