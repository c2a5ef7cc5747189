package replication_test

import (
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

// TestInputsOfSlowClients arrive in time, too, but for those of frames whose packet is lost.
func TestInputsOfSlowClients(t *testing.T) {
	t.Parallel()
	replicationtest.OneGoroutine(t)
	require.Less(t, timetest.PlaySlow(t, timetest.Seed), 0.05)
}
