package replication

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStreamsCarryWhatRunsDo: where nothing gets lost, a stream has the very entries that
// would be put together one by one, at the same cost by field.
func TestStreamsCarryWhatRunsDo(t *testing.T) {
	seed := seedOf(t)
	play := func(noStreams bool) (stats ServerStats, peers []PeerStats) {
		r := newSharedRig(t, scaleGame(2000), 5, 0, seed)
		r.server.opts.noStreams = noStreams
		for range 200 {
			r.tick()
		}
		r.check(t)
		for _, f := range r.fakes {
			peers = append(peers, f.peer.Stats())
		}
		return r.server.Stats(), peers
	}
	with, peersWith := play(false)
	without, peersWithout := play(true)
	require.NotZero(t, with.SharedPackets)
	require.Zero(t, without.SharedPackets)
	require.Equal(t, without.Fields, with.Fields)
	require.Equal(t, without.BaselineAges, with.BaselineAges)
	require.Equal(t, without.Entries, with.Entries)
	for i := range peersWith {
		a, b := &peersWith[i], &peersWithout[i]
		require.Equal(t, b.Updates, a.Updates)
		require.Equal(t, b.Wholes, a.Wholes)
		require.Equal(t, b.InFlight, a.InFlight)
		require.Equal(t, b.UpToDate, a.UpToDate)
		require.InEpsilon(t, float64(b.EntityBits), float64(a.EntityBits), 0.005, "how much gaps take depends on where packets end")
	}
}

// TestStreamsMixWithTheRest: peers that need more than a stream get its packets, or
// stretches of them, and everything else.
func TestStreamsMixWithTheRest(t *testing.T) {
	seed, shared := seedOf(t), uint64(0)
	for i := range uint64(6) {
		c := randomConfig(seed + i)
		c.streams, c.window, c.n, c.ticks = true, 64, 130, 250
		c.delay, c.jitter, c.loss = min(c.delay, 4), 0, min(c.loss, 0.03)
		msg, a := runStorm(t, c)
		require.Empty(t, msg, "%+v", c)
		shared += a.server.Stats().SharedPackets
	}
	require.NotZero(t, shared)
}
