package predict

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

// TestHostIsAttacked: what a game does between and within steps.
func TestHostIsAttacked(t *testing.T) {
	r := &rules{}
	var p *play
	var within func(t *Tick)
	r.step = func(t *Tick) {
		if fn := within; t.end.predictor() == nil && fn != nil {
			within = nil
			fn(t)
		}
	}
	p = newPlay(t, setting{seed: 6, oneWay: 30}, r)
	p.wander()
	p.run(3)
	within = func(*Tick) { p.host.Own(p.ship, p.peer); p.host.Own(p.ship, nil); p.host.Own(p.ship, p.peer) }
	p.run(2)
	p.quiet(t, 1)
	within = func(*Tick) { p.world.RemoveEntity(p.ship); p.ship = p.spawnShip(); p.host.Own(p.ship, p.peer) }
	p.run(2)
	p.quiet(t, 1)
	for range 40 { // Replicate without Step
		p.server.Replicate()
	}
	p.run(3)
	p.quiet(t, 1)
	within = func(*Tick) { p.peer.Disconnect(replication.Reason{}) }
	p.tick()
	p.tick()
	require.Nil(t, p.server.Owner(p.ship))
	require.False(t, p.world.Has(p.ship, id[Mine](&p.world)))
	p.host.Own(p.ship, p.peer) // it has ended
	p.tick()
	require.False(t, p.world.Has(p.ship, id[Mine](&p.world)))
	require.Empty(t, p.host.owned)
}

// TestServeTwice is refused: two hosts would simulate each tick twice.
func TestServeTwice(t *testing.T) {
	schema, model := newGame(&rules{})
	w := ecs.NewWorld()
	server := replication.NewServer(&w, schema)
	Serve(server, model)
	require.ErrorContains(t, caught(func() { Serve(server, model) }), "already")
}

// TestHostStepAllocatesNothing in steady state.
func TestHostStepAllocatesNothing(t *testing.T) {
	p := newPlay(t, setting{seed: 3, oneWay: 75}, &rules{})
	p.wander()
	p.run(3)
	require.Zero(t, testing.AllocsPerRun(200, func() {
		p.host.ended = false
		p.host.Step()
	}))
}
