package predict

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// remote is a play with a bot's ship, whose inputs are replicated.
func remote(t *testing.T, s setting, steer func(tick replication.Tick) Move) (p *play, bot, mirrored ecs.Entity) {
	r := &rules{extra: func(s *replication.Schema, _ *Model[Move]) {
		replication.Register[Move](s, replication.Name("Steering"))
	}}
	r.step = func(tick *Tick) {
		if tick.end.predictor() == nil {
			*get[Move](&p.world, bot) = steer(tick.Number)
		}
	}
	p = newPlay(t, s, r)
	bot = p.spawnShip()
	p.run(3)
	id, _ := p.server.NetID(bot)
	mirrored, ok := p.client.Entity(id)
	require.True(t, ok)
	return p, bot, mirrored
}

func TestARemoteShipRollsBackOncePerChangeOfItsInput(t *testing.T) {
	for _, loss := range []float64{0, 0.05} {
		changes := uint64(0)
		now := Move{X: 1}
		var p *play
		count := false
		p, _, e := remote(t, setting{seed: 3, oneWay: 75, loss: loss}, func(replication.Tick) Move {
			if p != nil && count && p.rng.IntN(30) == 0 {
				next := Move{X: float32(p.rng.IntN(3) - 1), Y: float32(p.rng.IntN(3) - 1)}
				if next != now {
					changes++
				}
				now = next
			}
			return now
		})
		p.predict.Predict(e, 0)
		p.run(2)
		count = true
		begin := p.predict.Stats().Rollbacks
		p.run(60)
		s := p.predict.Stats()
		t.Logf("%g: %d changes, %d rollbacks; %+v", loss, changes, s.Rollbacks-begin, s)
		require.Greater(t, changes, uint64(50))
		require.LessOrEqual(t, s.Rollbacks-begin, changes)
	}
}
