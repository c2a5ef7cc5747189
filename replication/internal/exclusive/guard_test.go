package exclusive

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUnknownFunctionsAreNotJudged: in a program whose functions have other names, such as one that an
// obfuscator has renamed, the stack does not show which call is on it. This test is such a program.
func TestUnknownFunctionsAreNotJudged(t *testing.T) {
	var g Guard
	was := g.Enter(Replicate)
	require.NotPanics(t, func() { g.Leave(g.Enter(SetOwner)) })
	require.NotPanics(t, g.Check)
	require.PanicsWithValue(t, "replication: Server.Replicate while Server.Replicate is going on: a server with its "+
		"peers, or a client, is for one goroutine at a time; make all calls on one, or hold a mutex around each",
		func() { g.EnterAlone(Replicate) })
	g.Leave(was)
	require.NotPanics(t, func() { g.Leave(g.EnterAlone(Replicate)) })
}
