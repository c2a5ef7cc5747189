package playout_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
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
			"replication: Playout.Advance while Client.Frame is going on")
		return nil
	})
	other = playout.New(client)
	require.NoError(t, client.Frame(0))
	require.Equal(t, 1, calls)
	other.Advance(0)
}

// loops calls Apply in one goroutine, and Advance in another one, until one of them panics or so many frames are over.
// They take a microsecond each, and the loops some milliseconds. It returns what one of them panicked with, if any.
func loops(frames int, lock sync.Locker) (panicked any) {
	schema, world := replication.NewSchema(), ecs.NewWorld()
	replication.Register[place](schema)
	client := replication.NewClient(&world, schema, func([]byte) error { return nil })
	p := playout.New(client)
	var stop atomic.Bool
	var both sync.WaitGroup
	loop := func(call func(), every time.Duration) {
		defer both.Done()
		defer func() {
			if r := recover(); r != nil {
				panicked = r
			}
			stop.Store(true)
		}()
		for n := 0; n < frames && !stop.Load(); n++ {
			lock.Lock()
			call()
			lock.Unlock()
			time.Sleep(every)
		}
	}
	both.Add(2)
	go loop(func() { _ = client.Frame(0) }, 5*time.Millisecond)
	go loop(func() { p.Advance(0) }, 7*time.Millisecond)
	both.Wait()
	return panicked
}

type noLock struct{}

func (noLock) Lock()   {}
func (noLock) Unlock() {}

// TestAdvanceOnAnotherGoroutineIsFoundSoon: also where the calls are so short that they hardly ever overlap. With a mutex
// around each call it is right.
func TestAdvanceOnAnotherGoroutineIsFoundSoon(t *testing.T) {
	if replicationtest.RaceDetector {
		t.Skip("it finds the mistake before the guard does")
	}
	t.Parallel()
	require.Contains(t, loops(2000, noLock{}), "make all calls on one, or hold a mutex around each")
	require.Nil(t, loops(200, &sync.Mutex{}))
}
