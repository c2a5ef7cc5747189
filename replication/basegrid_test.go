package replication

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestManyRoundTripsShareBaseTicks: with many peers of many round trips the server uses every other tick as a base
// tick, so it encodes about half as much; with few round trips, or few peers, it does as if every tick was asked for.
func TestManyRoundTripsShareBaseTicks(t *testing.T) {
	oneGoroutine(t)
	seed := seedOf(t)
	play := func(peers, trips int, opts ...ServerOption) (encoded float64, bytes uint64) {
		r := newSharedRig(t, scaleGame(600), 0, 0, seed, opts...)
		for i := range peers {
			r.fakes = append(r.fakes, connectFake(t, r.server, uint64(i)+1, 4+i%trips, 0))
			r.acks = append(r.acks, nil)
		}
		for range 60 {
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
