package interpolation_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/interpolation"
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
	return g, v
}

// TestSparseChangesAreNoInterval: a world in which something changes a few times a second is not shown with a longer
// delay, neither then nor when everything begins to move.
func TestSparseChangesAreNoInterval(t *testing.T) {
	for _, every := range []int{5, 20, 40} {
		g, v := newIntervalGame(t, func(n int) bool { return n > 1800 || n%every == 0 })
		g.run(29)
		require.Equal(t, 1, g.client.Stats().SendInterval, "every %d ticks", every)
		require.Less(t, v.Stats().Delay, 45*time.Millisecond, "every %d ticks", every)
		g.run(3)
		require.Equal(t, 1, g.client.Stats().SendInterval, "every %d ticks", every)
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
	require.Equal(t, 2, g.client.Stats().SendInterval)
	require.Less(t, v.Stats().Delay, 60*time.Millisecond)
	g.peer.SetSendInterval(12)
	g.run(25)
	require.Equal(t, 12, g.client.Stats().SendInterval)
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
		require.Equal(t, to, g.client.Stats().SendInterval)
		require.Less(t, v.Stats().Delay, 100*time.Millisecond+time.Duration(to)*time.Second/60, "an interval of %d", to)
	}
}

// TestALongerIntervalLengthensTheDelay within a second or two, until which some frames have nothing to show.
func TestALongerIntervalLengthensTheDelay(t *testing.T) {
	for _, c := range []struct {
		from, to int
		starved  float64 // seconds
	}{{1, 3, 0.3}, {3, 12, 1}, {12, 30, 2}, {2, 4, 0.3}, {1, 20, 1.5}} {
		g, v := newIntervalGame(t, func(int) bool { return true })
		g.peer.SetSendInterval(c.from)
		g.run(40)
		g.peer.SetSendInterval(c.to)
		before := v.Stats()
		g.run(4)
		during := v.Stats()
		g.run(20)
		after := v.Stats()
		starved := func(from, to interpolation.Stats) float64 {
			return 24 * float64(to.Starved-from.Starved) / float64(after.Frames-before.Frames)
		}
		what := fmt.Sprintf("from %d to %d: starved for %.2f s, then %.2f s, delay %v, %v, %v",
			c.from, c.to, starved(before, during), starved(during, after), before.Delay, during.Delay, after.Delay)
		t.Log(what)
		require.Less(t, starved(before, during), c.starved, what)
		require.Less(t, starved(during, after), 0.3, what)
		require.InDelta(t, after.Delay.Seconds(), during.Delay.Seconds(), 0.1, what)
	}
}
