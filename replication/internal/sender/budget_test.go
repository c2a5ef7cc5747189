package sender

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/stretchr/testify/require"
)

// budgetOf returns a budget of a peer with packets of at most mtu bytes.
func budgetOf(mtu, tickRate int, tokens int64) budget {
	return budget{peer: &peer{acked: &ackstate.Tracker{}, opts: &config.ServerOptions{EndOptions: config.EndOptions{MTU: mtu}, TickRate: tickRate}}, Tokens: tokens}
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

// TestTokensOfManyLargePacketsDoNotOverflow where int has 32 bits.
func TestTokensOfManyLargePacketsDoNotOverflow(t *testing.T) {
	const mtu, tickRate = 65507, 1000
	b := budgetOf(mtu, tickRate, 33*mtu*tickRate)
	require.True(t, b.affords(33))
	require.False(t, b.affords(34))
	require.Greater(t, b.savings(), int64(mtu*tickRate-1))
}

// newLearner returns a budget that has learned nothing yet.
func newLearner() budget {
	b := budgetOf(1200, 60, 0)
	b.stats, b.typical = &counters.PeerCounters{}, firstTypical
	return b
}

// see lets the budget learn from a tick with so many more states, bits of parts and of full states, and bits in all.
func (b *budget) see(updates, fullStates, parts, full, bits int) {
	b.stats.Updates, b.stats.FullStates = b.stats.Updates+uint64(updates), b.stats.FullStates+uint64(fullStates)
	b.parts, b.full, b.stats.EntityBits = int32(parts), int32(full), b.stats.EntityBits+uint64(bits)
	b.learn(true)
}

// TestPartsAreNotLargeUpdates: an entity that is sent in many parts leaves the cost of updates as it was, and the
// overhead of many full states, seen once, does not raise it much.
func TestPartsAreNotLargeUpdates(t *testing.T) {
	b := newLearner()
	for range 100 {
		b.see(50, 0, 0, 0, 50*60)
	}
	require.InDelta(t, 60, b.typical/typicalUnit, 1)
	b.see(3, 0, 28*8*1150, 0, 3*60+28*8*1150)
	require.InDelta(t, 60, b.typical/typicalUnit, 1)
	b.firsts = 500
	b.see(3, 500, 0, 500*250, 500*300)
	require.Less(t, b.typical/typicalUnit, 90)
}

// TestFullStatesForWantOfABaseline: where entities wait for longer than the server remembers states, the full states that
// are sent show that some have lapsed, and nothing about updates.
func TestFullStatesForWantOfABaseline(t *testing.T) {
	b := newLearner()
	b.opts.Window = 64
	for range 100 {
		b.see(10, 50, 0, 50*110, 10*40+50*110)
		require.Positive(t, b.lapsing)
	}
	require.InDelta(t, 40, b.typical/typicalUnit, 1)
	for range b.opts.Window {
		b.see(0, 0, 0, 0, 0) // it may save for a packet for long
		require.Positive(t, b.lapsing)
		b.firsts = 20
		b.see(10, 20, 0, 20*110, 10*40+20*110)
	}
	require.Zero(t, b.lapsing)
}

// TestStateKeepsAQuarter, whatever messages take; what they took is paid later, but not for long.
func TestStateKeepsAQuarter(t *testing.T) {
	const mtu, tickRate, rate = 1200, 60, 9000
	b := budgetOf(mtu, tickRate, 0)
	b.Set(rate)
	sent := 0
	for range 10 * tickRate {
		b.earn()
		if quantum := b.quantum(); b.Tokens >= quantum {
			b.spend(int(quantum / tickRate))
			sent += int(quantum / tickRate)
		}
		b.charge(10 * mtu)
	}
	require.InEpsilon(t, 10*rate/stateShare, sent, 0.05)
	b.Set(rate / 10)
	for range 10 * tickRate {
		b.earn()
		b.spend(int(max(b.Tokens, 0) / tickRate))
	}
	require.Zero(t, b.debt, "it is bounded by the present rate")
}
