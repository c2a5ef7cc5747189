package replication

import (
	"bytes"
	"testing"

	"github.com/mlange-42/arche/ecs"

	"github.com/stretchr/testify/require"
)

// TestManyRoundTripsShareBaseTicks: with many peers of many round trips the server uses every other tick as a base
// tick, so it encodes about half as much; with few round trips, or few peers, it does as if every tick was asked for.
func TestManyRoundTripsShareBaseTicks(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	seed := seedOf(t)
	play := func(peers, trips int, opts ...ServerOption) (encoded float64, bytes uint64) {
		r := newSharedRig(t, scaleGame(600), 0, 0, seed, opts...)
		for i := range peers {
			r.fakes = append(r.fakes, connectFake(t, r.server, uint64(i)+1, 4+i%trips, 0))
			r.acks = append(r.acks, nil)
		}
		for range 120 {
			r.tick()
		}
		before, sent := r.server.Stats(), r.sent()
		for range 60 {
			r.tick()
		}
		r.check(t)
		after := r.server.Stats()
		return float64(after.Encoded-before.Encoded) / float64(after.Entries-before.Entries), r.sent() - sent
	}
	every := WithBaselineInterval(1)
	for _, c := range []struct{ peers, trips int }{{36, 8}, {24, 12}} {
		encoded, bytes := play(c.peers, c.trips)
		encodedEvery, bytesEvery := play(c.peers, c.trips, every)
		require.Equal(t, encodedEvery, encoded)
		require.Equal(t, bytesEvery, bytes)
	}
	encoded, bytes := play(36, 12)
	encodedEvery, bytesEvery := play(36, 12, every)
	encodedSecond, bytesSecond := play(36, 12, WithBaselineInterval(2))
	require.Equal(t, encodedSecond, encoded)
	require.Equal(t, bytesSecond, bytes)
	require.Less(t, encoded, 0.6*encodedEvery)
	require.Less(t, float64(bytes), 1.06*float64(bytesEvery))
}

// TestBaseTicksDoNotDependOnWhatIsHidden: while an entity moves, those that see it are sent something in every tick,
// and have other base ticks than in a game in which it rests. That shows in no packet to a peer that does not see it.
func TestBaseTicksDoNotDependOnWhatIsHidden(t *testing.T) {
	oneGoroutine(t)
	play := func(hides, moves bool) (sent [][]byte, step int) {
		w := ecs.NewWorld()
		s := NewServer(&w, scaleSchema(), WithSeed(1))
		position, marker := ecs.ComponentID[scalePosition](&w), ReplicatedID(&w)
		seen, hidden := w.NewEntity(position, marker), w.NewEntity(position, marker)
		var fakes []*fakeClient
		for i := range 40 {
			f := connectFake(t, s, uint64(i)+1, 4+i%12, 0)
			if fakes = append(fakes, f); !hides {
				continue
			}
			shown := hidden
			if i == 0 {
				send := f.peer.out.Send
				f.peer.out.Send = func(p []byte) error { sent = append(sent, bytes.Clone(p)); return send(p) }
				shown = seen
			}
			f.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return e == shown }})
		}
		for tick := range 200 {
			(*scalePosition)(w.Get(seen, position)).X = float32(tick*tick*7919%1000) / 3
			if moves {
				(*scalePosition)(w.Get(hidden, position)).X += 0.5
			}
			for _, f := range fakes {
				if ack := f.answer(tick + 17); ack != nil {
					_ = f.peer.Receive(ack)
				}
			}
			s.Replicate()
			step = max(step, int(s.snap.Bases.Step()))
		}
		return sent, step
	}
	rests, _ := play(true, false)
	moves, _ := play(true, true)
	require.Equal(t, rests, moves)
	require.Greater(t, len(moves), 100)
	_, step := play(false, true)
	require.Equal(t, 2, step, "where all see everything")
}
