package playout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/playout"
)

// newIntervalGame returns a game of 60 ticks per second with an entity that moves in the ticks chosen.
func newIntervalGame(t *testing.T, moves func(n int) bool) (*game, *view) {
	g := newGame(t, 3, profile{oneWay: 0.03, jitter: 0.002}, 60)
	e := g.spawn(place{})
	g.onTick = func(n int) {
		if moves(n) {
			g.place(e).X = float32(n)
		}
	}
	v := newView(g)
	playout.Interpolate[place](v.Playout)
	return g, v
}

// TestSparseChangesAreNoInterval: a world in which something changes a few times a second is not shown with a longer
// delay, neither then nor when everything begins to move.
func TestSparseChangesAreNoInterval(t *testing.T) {
	for _, every := range []int{5, 20, 40} {
		g, v := newIntervalGame(t, func(n int) bool { return n > 1800 || n%every == 0 })
		g.run(29)
		require.Equal(t, 1, g.client.SendInterval(), "every %d ticks", every)
		require.Less(t, v.Stats().Delay, 45*time.Millisecond, "every %d ticks", every)
		g.run(3)
		require.Equal(t, 1, g.client.SendInterval(), "every %d ticks", every)
		require.Less(t, v.Stats().Delay, 35*time.Millisecond, "every %d ticks", every)
	}
}

// TestAShorterIntervalShortensTheDelay at once, and not after thousands of states.
func TestAShorterIntervalShortensTheDelay(t *testing.T) {
	g, v := newIntervalGame(t, func(int) bool { return true })
	g.peer.SetSendInterval(12)
	g.run(30)
	require.Greater(t, v.Stats().Delay, 200*time.Millisecond)
	g.peer.SetSendInterval(2)
	g.run(5) // time runs faster by 5 % at most
	require.Equal(t, 2, g.client.SendInterval())
	require.Less(t, v.Stats().Delay, 60*time.Millisecond)
	g.peer.SetSendInterval(12)
	g.run(25)
	require.Equal(t, 12, g.client.SendInterval())
	require.Greater(t, v.Stats().Delay, 200*time.Millisecond)
}

// TestIntervalsChangeInASparseWorld: a new interval changes the delay no more than it must where something changes twice
// a second.
func TestIntervalsChangeInASparseWorld(t *testing.T) {
	for _, to := range []int{2, 3, 5, 7} {
		g, v := newIntervalGame(t, func(n int) bool { return n%30 == 0 })
		g.peer.SetSendInterval(3)
		g.run(20)
		g.peer.SetSendInterval(to)
		g.run(20)
		require.Equal(t, to, g.client.SendInterval())
		require.Less(t, v.Stats().Delay, 100*time.Millisecond+time.Duration(to)*time.Second/60, "an interval of %d", to)
	}
}
