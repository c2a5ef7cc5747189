package replication

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSettledTicksAreTrue: whatever the game, the network and the settings do, what a client holds as of a
// settled tick is what the server had, and what rested did.
func TestSettledTicksAreTrue(t *testing.T) {
	claims, states := 0, 0
	seed := seedOf(t)
	for i := range uint64(roundsOf(60, 12, 4)) {
		for _, wild := range []bool{false, true} {
			c := randomChaosConfig(seed + i)
			if wild {
				c = wildChaosConfig(seed + i)
			}
			c.n, c.settled = min(c.n, 130), true
			msg, a := runChaos(t, c)
			require.Empty(t, msg, "seed %d: %+v %+v", seed+i, c, c.wild)
			claims, states = claims+a.settled.claims, states+a.settled.states
		}
	}
	t.Logf("%d settled ticks and %d states were compared", claims, states)
	require.Greater(t, claims, 1000)
}
