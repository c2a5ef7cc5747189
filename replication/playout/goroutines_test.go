package playout_test

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/playout"
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

// TestTwoGoroutinesInAClientAndItsPlayoutAreFound: each while the other one calls a function of the user's. That
// function may call the client.
func TestTwoGoroutinesInAClientAndItsPlayoutAreFound(t *testing.T) {
	g := &game{t: t, rand: newRand(t), profile: quiet, rate: 20, frames: 60}
	g.prepare(1, func() { replication.RegisterMessage[shout](g.schema) })
	g.spawn(place{})
	v := newView(g)
	calls := 0
	playout.Custom(v.Playout, func(e ecs.Entity, _, _ *place, _ float32) {
		if calls++; calls > 1 {
			return
		}
		require.Contains(t, elsewhere(func() { _ = g.client.Receive(nil) }),
			"replication: Client.Receive while Playout.Advance is going on")
		require.Contains(t, elsewhere(func() { v.Advance(0) }), "replication: Playout.Advance while Playout.Advance")
		_, known := g.client.NetID(e)
		require.True(t, known)
		require.NoError(t, replication.SendToServer(g.client, shout{}))
	})
	g.run(2)
	require.Greater(t, calls, 1)

	var other *playout.Playout
	calls = 0
	world := ecs.NewWorld()
	client := replication.NewClient(&world, g.schema, func([]byte) error {
		calls++
		require.Contains(t, elsewhere(func() { other.Advance(0) }),
			"replication: Playout.Advance while Client.Apply is going on")
		return nil
	})
	other = playout.New(client)
	require.NoError(t, client.Apply())
	require.Equal(t, 1, calls)
	other.Advance(0)
}
