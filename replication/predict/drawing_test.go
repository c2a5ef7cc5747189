package predict

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
)

// TestWhatIsAlwaysWrongStaysNear: with a correction in each frame, what is drawn does not drift away.
func TestWhatIsAlwaysWrongStaysNear(t *testing.T) {
	r := &rules{}
	r.step = func(t *Tick) {
		id := ecs.ComponentID[Position](t.World)
		for q := t.Query(id); q.Next(); {
			if (*Position)(q.Get(id)).X += 0.2; t.end.predictor() != nil {
				(*Position)(q.Get(id)).X -= 0.1
			}
		}
	}
	p := newPlay(t, setting{seed: 1, oneWay: 75, interval: 1}, r)
	p.run(3)
	begin := p.predict.Stats().Rollbacks
	p.afterFrame = func() {
		ahead := get[Position](&p.mirror, p.own()).X - get[Position](&p.world, p.ship).X
		require.InDelta(t, 0, ahead, 4)
	}
	p.run(10)
	require.Greater(t, p.predict.Stats().Rollbacks, begin+200)
}

type Drawn Position

func TestTwinsFollowWhatIsPredicted(t *testing.T) {
	p := newPlay(t, setting{seed: 1, oneWay: 75, attach: func(c *replication.Client) {
		interpolation.Into[Position, Drawn](interpolation.Attach(c))
	}}, &rules{})
	p.wander()
	p.run(3)
	p.afterFrame = func() {
		require.EqualValues(t, *get[Position](&p.mirror, p.own()), *get[Drawn](&p.mirror, p.own()))
	}
	p.run(3)
}
