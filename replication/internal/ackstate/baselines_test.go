package ackstate

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/stretchr/testify/require"
)

// TestBaselinesOfASendInterval: with a send interval, both baselines are ticks of the peer's sends.
func TestBaselinesOfASendInterval(t *testing.T) {
	for interval := delta.Tick(2); interval <= snapshot.MaxPeriod; interval++ {
		for phase := range 2 * interval {
			p := bases{acks: &AckTable{}, Interval: interval, Phase: phase}
			for at := delta.Tick(100); at < 100+2*interval; at++ {
				p.acks.Through = at
				last := at
				for (last+phase)%interval != 0 {
					last--
				}
				require.Equal(t, last, p.LastSend(at), "interval %d, phase %d, tick %d", interval, phase, at)
				p.chooseLikely(0)
				require.Equal(t, snapshot.BasePair{Base: last, Second: last - interval}, p.Likely)
			}
		}
	}
}

// TestBaselinesOnAGrid: peers without a send interval share a grid of ticks.
func TestBaselinesOnAGrid(t *testing.T) {
	snap := &snapshot.Snapshot{}
	snap.Bases.Fix(4)
	p := bases{acks: &AckTable{Through: 107}, snap: snap, Interval: 1, Phase: 3}
	require.EqualValues(t, 107, p.LastSend(107))
	require.EqualValues(t, 104, p.Base())
	require.Equal(t, delta.Second(104), p.Second(104))
}
