package sender

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/stretchr/testify/require"
)

// TestABudgetPaysForHeadersToo: what remains for entries is less than the tokens by the headers of
// all packets, the last of which is full unless it is the only one.
func TestABudgetPaysForHeadersToo(t *testing.T) {
	const mtu, tickRate = 1000, 30
	b := budget{peer: &peer{opts: &config.ServerOptions{EndOptions: config.EndOptions{MTU: mtu}, TickRate: tickRate}}}
	for _, c := range []struct{ bytes, entries int }{
		{0, 0},
		{100, 100 - 14},
		{mtu, mtu - 14},
		{mtu + 1, mtu - 14},
		{2*mtu - 1, mtu - 14},
		{2 * mtu, 2 * (mtu - 14)},
		{7*mtu + 500, 7 * (mtu - 14)},
	} {
		b.Tokens = int64(c.bytes * tickRate)
		require.Equal(t, 8*c.entries, b.affordable(), "%d bytes", c.bytes)
	}
}
