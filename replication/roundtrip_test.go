package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestRoundTripMayGrowTenfold: all packets are then marked lost, and forgotten, long before they
// are acknowledged. The server has to notice.
func TestRoundTripMayGrowTenfold(t *testing.T) {
	oneGoroutine(t)
	x := connectedWire(t, testSchema())
	position := ecs.ComponentID[tPosition](x.world)
	var entities []ecs.Entity
	for range 500 {
		entities = append(entities, x.spawn(position))
	}
	var down, up [][][]byte
	play := func(delay, ticks int) {
		for range ticks {
			for i, e := range entities {
				p := (*tPosition)(x.world.Get(e, position))
				if p.X += 0.05 * float32(i%5); p.X > 90 {
					p.X = -90
				}
			}
			down = append(down, x.replicate())
			for ; len(down) > delay/2; down = down[1:] {
				x.deliver(down[0]...)
			}
			up = append(up, x.apply())
			for ; len(up) > delay-delay/2; up = up[1:] {
				x.answer(up[0]...)
			}
		}
	}
	play(5, 200)
	require.Zero(t, x.peer.Stats().Lost)
	play(60, 200)
	before := x.peer.Stats()
	play(60, 100)
	after := x.peer.Stats()
	require.InDelta(t, 61, x.peer.RoundTrip(), 3)
	require.Equal(t, before.Lost, after.Lost)
	require.Equal(t, before.RefusedAcks, after.RefusedAcks)
	require.Equal(t, before.FullStates, after.FullStates)
	require.Greater(t, after.Updates, before.Updates)
}
