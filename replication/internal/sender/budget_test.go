package sender

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
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
