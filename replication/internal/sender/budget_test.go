package sender

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// budgetOf returns a budget of a peer with packets of at most mtu bytes.
func budgetOf(mtu, tickRate int, tokens int64) budget {
	return budget{peer: &peer{opts: &config.ServerOptions{EndOptions: config.EndOptions{MTU: mtu}, TickRate: tickRate}}, Tokens: tokens}
}

// TestABudgetPaysForHeadersToo: what remains for entries is less than the tokens by the headers of
// all packets, the last of which is full unless it is the only one.
func TestABudgetPaysForHeadersToo(t *testing.T) {
	const mtu, tickRate = 1000, 30
	for _, c := range []struct{ bytes, entries int }{
		{0, 0},
		{100, 100 - 14},
		{mtu, mtu - 14},
		{mtu + 1, mtu - 14},
		{2*mtu - 1, mtu - 14},
		{2 * mtu, 2 * (mtu - 14)},
		{7*mtu + 500, 7 * (mtu - 14)},
	} {
		b := budgetOf(mtu, tickRate, int64(c.bytes*tickRate))
		require.Equal(t, 8*c.entries, b.affordable(), "%d bytes", c.bytes)
	}
}

// TestTokensAreBytesTimesTheTickRate: a peer is sent the bytes per second that it has.
func TestTokensAreBytesTimesTheTickRate(t *testing.T) {
	b := budgetOf(1000, 30, 5000)
	b.spend(100)
	require.EqualValues(t, 5000, b.Tokens, "there is no limit")
	b.Rate = 3000
	b.spend(100)
	require.EqualValues(t, 5000-100*30, b.Tokens)
	require.False(t, b.short())
	b.spend(100)
	require.True(t, b.short())
}

// TestFullStatesArePricedBySamples: a sample is good enough in any tick, whether entities of several kinds spawned by
// turns or one kind after the other.
func TestFullStatesArePricedBySamples(t *testing.T) {
	b := budgetOf(1000, 30, 0)
	b.snap = &snapshot.Snapshot{}
	s := &b.snap.Slots
	s.InitClasses(0)
	for range 128 {
		s.Add(ecs.Entity{}, 1)
	}
	for run := 1; run <= 32; run *= 2 {
		for kinds := 1; kinds <= 16 && (run == 1 || run*kinds <= 64); kinds++ {
			sum := 0
			for slot := range 64 {
				s.Info[64+slot].Width = 100 + 200*(slot/run%kinds)
				sum += s.Info[64+slot].Width
			}
			for tick := range delta.Tick(64) {
				b.snap.Tick = tick
				require.InEpsilon(t, sum, b.width(1, ^uint64(0)), 0.25, "%d kinds, runs of %d, tick %d", kinds, run, tick)
				few := uint64(0b1011) << (tick % 61)
				want := 0
				for slot := range bitset.Slots(1, few) {
					want += s.Info[slot].Width
				}
				require.Equal(t, want, b.width(1, few), "of few, all count")
			}
		}
	}
	require.Zero(t, b.width(1, 0))
}
