package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ByteArena/box2d"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/predict"
	"github.com/mlange-42/arche/ecs"
)

func TestBodiesArePredicted(t *testing.T) {
	for _, loss := range []float64{0, 0.05, 0.2} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			rollbacks, missed := uint64(0), uint64(0)
			for seed := range uint64(3) {
				s, furthest, apart := play(1200, loss, seed, nil)
				t.Logf("%d rollbacks for %d inputs, corrected by %.3f m, apart %g m", s.Rollbacks, s.Missed, furthest, apart)
				require.Equal(t, count, s.Predicted)
				require.Less(t, apart, 0.003)
				rollbacks, missed = rollbacks+s.Rollbacks, missed+s.Missed
				if loss == 0 {
					require.Zero(t, furthest)
				}
			}
			if loss == 0 {
				require.Zero(t, rollbacks, "those missed were of a player who rested")
				return
			}
			require.NotZero(t, rollbacks)
			require.LessOrEqual(t, rollbacks, missed)
		})
	}
}

// The server kicks a box, which the client can't foresee: its bodies follow the components.
func TestBodiesFollowTheServer(t *testing.T) {
	kicks := 0
	s, furthest, apart := play(1800, 0, 1, func(w *ecs.World, tick int) {
		n, v := ecs.ComponentID[Body](w), ecs.ComponentID[Velocity](w)
		for q := w.Query(ecs.All(n, v)); q.Next(); {
			if int((*Body)(q.Get(n)).N) == 1+tick/100%16 && tick%100 == 50 && tick < 1600 {
				(*Velocity)(q.Get(v)).X += 20
				kicks++
			}
		}
	})
	t.Logf("%d rollbacks for %d kicks, corrected by %.3f m, apart %g m", s.Rollbacks, kicks, furthest, apart)
	require.Less(t, apart, 0.003)
	require.Equal(t, 16, kicks)
	require.GreaterOrEqual(t, s.Rollbacks, uint64(kicks))
	// Bodies that do not follow are corrected in every frame, 1,700 times.
	require.LessOrEqual(t, s.Rollbacks, uint64(8*kicks))
}

func TestTicksAreTheSameAgain(t *testing.T) {
	for _, depth := range []int{1, 7, 24} {
		_, model, bodies := newGame()
		rng, push := rand.New(rand.NewPCG(3, 4)), Push{}
		predict.SyncTest(t, model, depth, 600, func(w *ecs.World) []ecs.Entity {
			return []ecs.Entity{bodies.spawn(w)}
		}, func(int, replication.Tick) Push {
			if rng.IntN(20) == 0 {
				push = Push{float32(rng.IntN(3) - 1), float32(rng.IntN(3) - 1)}
			}
			return push
		})
		require.Greater(t, box2d.B2Vec2Distance(stateOf(bodies.bodies[6]).at, stateOf(newStage().bodies[6]).at), 0.1)
	}
}

// What the copies have is all of a body, but a world of box2d has more than its bodies: the forces of the last step,
// which the next one begins with, and the order of contacts.
func TestReplaysAreEqual(t *testing.T) {
	for _, c := range []struct {
		warm, renew bool
		stack       bool // at rest, so that no contact begins or ends
		differs     bool
	}{
		{stack: true},
		{stack: true, warm: true, differs: true},
		{stack: true, renew: true},
		{differs: true},
		{warm: true, differs: true},
		{renew: true},
		{renew: true, warm: true},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			s := newStage()
			s.world.M_warmStarting = c.warm
			rng, force := rand.New(rand.NewPCG(1, 2)), box2d.B2Vec2{}
			if c.stack {
				s.world.SetGravity(box2d.B2Vec2{Y: -10})
			}
			run := func(forces []box2d.B2Vec2) {
				for _, f := range forces {
					s.bodies[0].ApplyForceToCenter(f, true)
					if c.renew {
						s.renew()
					}
					s.world.Step(1./rate, 8, 3)
				}
			}
			differ, furthest := 0, 0.
			const replays, back = 100, 24
			for range replays {
				forces := make([]box2d.B2Vec2, 60)
				for i := range forces {
					if rng.IntN(20) == 0 && !c.stack {
						sin, cos := math.Sincos(2 * math.Pi * rng.Float64())
						force = box2d.B2Vec2{X: 40 * cos, Y: 40 * sin}
					}
					forces[i] = force
				}
				run(forces[:60-back])
				before := s.states()
				run(forces[60-back:])
				first := s.states()
				for i := range before {
					put(s.bodies[i], before[i])
				}
				run(forces[60-back:])
				if again := s.states(); again != first {
					differ++
					for i := range again {
						furthest = max(furthest, box2d.B2Vec2Distance(again[i].at, first[i].at))
					}
				}
			}
			t.Logf("%d of %d replays differ, by %g m", differ, replays, furthest)
			require.Equal(t, c.differs, differ > 0)
		})
	}
}

func (s *stage) states() (all [count]state) {
	for i := range all {
		all[i] = stateOf(s.bodies[i])
	}
	return all
}
