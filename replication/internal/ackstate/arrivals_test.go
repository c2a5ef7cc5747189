package ackstate

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/arrival"
	"github.com/stretchr/testify/require"
)

// TestAnEndIsKnownAfterTheNewestArrival: an entity rests for longer than the window and then leaves the view. That it
// is no longer held then is known at once, before anything else arrives.
func TestAnEndIsKnownAfterTheNewestArrival(t *testing.T) {
	p, entity, packets := newMovingPeer(1)
	p.Snap.Opts.KeepArrivals = true
	p.acknowledge(packets[0])
	var other uint64
	p.acknowledge(p.tick(func(delta.Tick) { other = p.spawn() }, func() uint64 { return other }))
	for range 3 * p.Snap.Opts.Window {
		p.acknowledge(p.tick(p.touch(other), sends(other)))
	}
	end := p.Snap.Tick + 1
	p.tick(func(delta.Tick) {}, func() uint64 {
		p.leave(0, entity)
		return 0
	})
	for range 4 {
		p.tick(func(delta.Tick) {}, sends(0))
	}
	for after := range delta.Tick(3) {
		var r arrival.Around
		p.Around(&r, 0, 1, end+after)
		require.False(t, r.Before, "%d ticks later", after)
	}
}
