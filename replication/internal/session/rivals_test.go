package session

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/stretchr/testify/require"
)

// TestLateHellosAreNoRivals: hellos of the session before, and of a client that is about to begin one, may be late.
func TestLateHellosAreNoRivals(t *testing.T) {
	const late, former = 60, 7
	for _, start := range []delta.Tick{0, 1000, 1<<32 - 30} {
		r := rivals{}
		r.noteUse(start, true)
		require.False(t, r.meet(&wire.Hello{Session: former, Nonce: 1}, former, start+late, late))
		require.True(t, r.meet(&wire.Hello{Session: former, Nonce: 1}, former, start+late+1, late))

		other := &wire.Hello{Nonce: 9}
		require.False(t, r.meet(other, former, start+100, late), "its first hello")
		r.noteUse(start+100+late, false)
		require.False(t, r.meet(other, former, start+200, late), "late packets of the session that it replaces")
		r.noteUse(start+101+late, false)
		require.True(t, r.meet(other, former, start+200, late))
		require.False(t, r.meet(&wire.Hello{Nonce: 10}, former, start+200, late), "another one, for the first time")

		r.noteUse(start+300, true)
		require.False(t, r.meet(other, former, start+300, late), "a new session")
		require.False(t, r.meet(&wire.Hello{Session: former}, former, start+301, late))
	}
}
