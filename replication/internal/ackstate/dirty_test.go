package ackstate

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// newTracker returns a tracker of a peer that sees everything, in a session that begins now.
func newTracker(outcome outcomes) *Tracker {
	snap, opts := &snapshot.Snapshot{}, &config.ServerOptions{Grid: 1, Window: 64}
	snap.Opts = opts
	snap.Slots.InitClasses(0)
	p := &Tracker{}
	p.Init(snap, opts, &interest.Shared{}, &interest.Sight{}, &counters.PeerCounters{}, outcome)
	p.Begin(0, false, false)
	return p
}

// TestWhatThePeerWasSentIsDespawned: an entity that ends is dirty if the peer may show it. One that
// ends before the peer was sent it needs no despawn.
func TestWhatThePeerWasSentIsDespawned(t *testing.T) {
	p := newTracker(nil)
	s := &p.Snap.Slots
	tick := func(play func(now delta.Tick)) {
		p.Snap.Tick++
		s.Begin(p.Snap.Tick)
		s.Reclaim()
		play(p.Snap.Tick)
		s.List()
		p.Grow()
		p.NoteAllChurn()
	}
	var sent, unsent int
	tick(func(now delta.Tick) { sent, unsent = s.Add(ecs.Entity{}, now), s.Add(ecs.Entity{}, now) })
	require.EqualValues(t, 1<<sent|1<<unsent, p.Dirty[0])
	p.Dirty.Remove(sent)
	p.Acks.Shown.Add(sent)
	s.Settle(p.Snap.Tick)

	tick(func(now delta.Tick) {
		s.Remove(sent, now)
		s.Remove(unsent, now)
	})
	live, gone := p.Split(0, p.Dirty[0])
	require.Zero(t, live)
	require.EqualValues(t, 1<<sent, gone)
}
