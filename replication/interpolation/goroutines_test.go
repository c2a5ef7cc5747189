package interpolation_test

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
)

type shout struct{ N uint8 }

// elsewhere makes a call on another goroutine, and returns what it panics with.
func elsewhere(call func()) any {
	panicked := make(chan any)
	go func() {
		defer func() { panicked <- recover() }()
		call()
	}()
	return <-panicked
}

// TestTwoGoroutinesAreFound: while Frame calls a function of the user's, another goroutine must not call the client. The
// function itself may.
func TestTwoGoroutinesAreFound(t *testing.T) {
	g := &game{t: t, rand: newRand(t), profile: quiet, rate: 20, frames: 60}
	g.prepare(1, func() { replication.RegisterMessage[shout](g.schema) })
	g.spawn(place{})
	v := newView(g)
	calls := 0
	interpolation.Custom(v.Interpolation, func(e ecs.Entity, _, _ *place, _ float32) {
		if calls++; calls > 1 {
			return
		}
		require.Contains(t, elsewhere(func() { _ = g.client.Receive(nil) }),
			"replication: Client.Receive while Client.Frame is going on")
		require.Contains(t, elsewhere(func() { _ = replication.SendToServer(g.client, shout{}) }),
			"replication: SendToServer while Client.Frame is going on")
		_, known := g.client.NetID(e)
		require.True(t, known)
		require.NoError(t, replication.SendToServer(g.client, shout{}))
	})
	g.run(2)
	require.Greater(t, calls, 1)
}
