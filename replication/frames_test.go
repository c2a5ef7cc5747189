package replication_test

import (
	"fmt"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/timetest"
	"github.com/stretchr/testify/require"
)

// TestTimeAtAllFrameRates: smoothness must not depend on 60 frames per second. The client's estimate of the
// server's tick and its input delay are right at any frame rate, when it changes, after pauses of either
// end, and on paths that change. The delay does not jump: an input that is left out is one that the server
// repeats, in the middle of a movement.
func TestTimeAtAllFrameRates(t *testing.T) {
	t.Parallel()
	replicationtest.OneGoroutine(t)
	worst := timetest.Play(t, timetest.Seed)
	t.Logf("clock off by %.2f ticks after 2 s", worst.ClockErrorTicks)
	t.Logf("input delay settled after %.2f s", worst.DelaySettledSeconds)
	t.Logf("at the start %.2f s", worst.StartedSeconds)
	require.Less(t, worst.ClockErrorTicks, 1.0)
	require.Less(t, worst.DelaySettledSeconds, 3.0)
	require.Less(t, worst.StartedSeconds, 1.0)
}

// TestServersThatDoNotHoldTheirRate: what a client knows of the server's time, and when it gives its inputs, follows the
// ticks that the server makes, not those that it should make. Three seconds after the rate is right again, all is as
// before.
func TestServersThatDoNotHoldTheirRate(t *testing.T) {
	t.Parallel()
	replicationtest.OneGoroutine(t)
	const plays = 4
	for _, rate := range []int{20, 60} {
		tick := 1 / float64(rate)
		for _, share := range []float64{0.5, 0.75, 0.95, 0.98, 1.02, 1.05, 1.2} {
			var before, off, again timetest.Rate
			for i := range uint64(plays) {
				b, o, a := timetest.PlayServerRate(t, timetest.Seed+i, rate, share, 6)
				before.Add(b, plays)
				off.Add(o, plays)
				again.Add(a, plays)
			}
			what := fmt.Sprintf("%d ticks per second, %v of them made", rate, share)
			t.Logf("%s: inputs wait %.0f ms before, then %.0f ms, %.1f %% missed, clock off by %.1f ticks; "+
				"3 s after it is right again %.0f ms, %.1f %%, %.1f", what, 1000*before.Wait,
				1000*off.Wait, 100*off.Missed, off.Error, 1000*again.Wait, 100*again.Missed, again.Error)
			require.Less(t, off.Wait, before.Wait*max(1, 1/share)+1.25*tick/share, what)
			require.Less(t, off.Missed, 0.005, what)
			require.Less(t, off.Error, 2.0, what)
			require.InDelta(t, before.Wait, again.Wait, tick, what)
			require.Less(t, again.Missed, 0.005, what)
			require.Less(t, again.Error, 1.5, what)
		}
	}
}

// TestQueuesAreNoOtherRate: a queue that fills or drains makes packets come more slowly or faster, as another rate of the
// server does.
func TestQueuesAreNoOtherRate(t *testing.T) {
	t.Parallel()
	replicationtest.OneGoroutine(t)
	exact, _, _ := timetest.PlayServerRate(t, timetest.Seed, 60, 1, 5)
	for _, q := range []struct{ most, grows, drains float64 }{{200, 1, 1}, {300, 3, 1}, {1000, 1.2, 1.2}} {
		m := timetest.PlayQueue(t, timetest.Seed, q.most, q.grows, q.drains)
		t.Logf("%v ms in %v s: inputs wait %.0f ms, %.1f %% missed, clock off by %.1f ticks", q.most, q.grows,
			1000*m.Wait, 100*m.Missed, m.Error)
		require.Less(t, m.Missed, 0.005)
		require.Less(t, m.Wait, exact.Wait+0.03)
	}
}

// TestServersThatStall and catch up, or are slow now and then, are not followed each time.
func TestServersThatStall(t *testing.T) {
	t.Parallel()
	replicationtest.OneGoroutine(t)
	for _, c := range []struct {
		seconds, missed float64
		shares          []float64
	}{
		{1, 0.01, []float64{1, 0.5}},
		{2, 0.06, []float64{1, 0.5}}, // until that is known to pass
		{1, 0.08, []float64{1, 0.5, 1.5}},
		{10, 0.01, []float64{1, 0.8}},
	} {
		m := timetest.PlayUnsteadyRate(t, timetest.Seed, c.seconds, c.shares...)
		t.Logf("%v of the rate for %v s each: inputs wait %.0f ms, %.1f %% missed", c.shares, c.seconds, 1000*m.Wait, 100*m.Missed)
		require.Less(t, m.Missed, c.missed)
	}
}

// TestInputsOfSlowClients arrive in time, too, but for those of frames whose packet is lost.
func TestInputsOfSlowClients(t *testing.T) {
	t.Parallel()
	replicationtest.OneGoroutine(t)
	require.Less(t, timetest.PlaySlow(t, timetest.Seed), 0.05)
}
