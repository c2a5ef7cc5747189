package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/stretchr/testify/require"
)

type mWord struct {
	Text string `repl:"max=200"`
}

// TestShortMessagesReleaseTheirMemory: a channel releases all memory of its messages.
func TestShortMessagesReleaseTheirMemory(t *testing.T) {
	s := testSchema()
	RegisterMessage[mWord](s)
	x := connectedWire(t, s)
	down, up := 0, 0
	OnServerMessage(x.client, func(mWord) { down++ })
	OnClientMessage(x.server, func(*Peer, mWord) { up++ })
	for range 1000 {
		require.NoError(t, SendToClient(x.peer, mWord{"hi"}))
		require.NoError(t, SendToServer(x.client, mWord{}))
		x.round()
	}
	x.rounds(10)
	require.Equal(t, 1000, down)
	require.Equal(t, 1000, up)
	require.Zero(t, x.peer.messages.Out[wire.ChannelState].Size)
	require.Zero(t, x.client.messages.Out[wire.ChannelState].Size)
}
