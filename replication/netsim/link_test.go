package netsim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// losses sends one packet per tick and records which are lost.
func losses(t *testing.T, p *netsim.Pipe, n int) []bool {
	lost := make([]bool, n)
	for i := range lost {
		before := p.Stats().Lost
		require.NoError(t, p.Send([]byte{1}))
		lost[i] = p.Stats().Lost > before
		p.Receive(func([]byte) {})
	}
	return lost
}

func agreement(a, b []bool) float64 {
	same := 0
	for i := range a {
		if a[i] == b[i] {
			same++
		}
	}
	return float64(same) / float64(len(a))
}

func TestDirectionsAndNeighbouringSeedsAreIndependent(t *testing.T) {
	const n = 20_000
	cfg := netsim.Config{Loss: 0.5}
	one, two := netsim.NewLink(1, cfg), netsim.NewLink(2, cfg)
	again := netsim.NewLink(1, cfg)
	up, down := losses(t, one.Up, n), losses(t, one.Down, n)
	require.Equal(t, up, losses(t, again.Up, n))
	require.Equal(t, down, losses(t, again.Down, n))
	// Fair coins agree half the time; 0.02 is more than five standard deviations.
	require.InDelta(t, 0.5, agreement(up, down), 0.02)
	require.InDelta(t, 0.5, agreement(up, losses(t, two.Up, n)), 0.02)
	require.InDelta(t, 0.5, agreement(down, losses(t, two.Down, n)), 0.02)
	require.InDelta(t, 0.5, agreement(up, losses(t, netsim.NewPipe(1, cfg), n)), 0.02)
}

func TestLinkStepsAndHealsBothWays(t *testing.T) {
	l := netsim.NewLink(1, netsim.Config{Loss: 1})
	require.NoError(t, l.Up.Send([]byte{1}))
	require.NoError(t, l.Down.Send([]byte{1}))
	require.Zero(t, l.Up.Pending()+l.Down.Pending())

	l.SetConfig(netsim.Config{Latency: 1})
	require.NoError(t, l.Up.Send([]byte{2}))
	require.NotZero(t, l.Up.Pending()+l.Down.Pending())
	require.NoError(t, l.Down.Send([]byte{3}))
	l.Step()
	got, ok := l.Up.Next()
	require.True(t, ok)
	require.Equal(t, []byte{2}, got)
	require.NotZero(t, l.Up.Pending()+l.Down.Pending())
	got, ok = l.Down.Next()
	require.True(t, ok)
	require.Equal(t, []byte{3}, got)
	require.Zero(t, l.Up.Pending()+l.Down.Pending())
}
