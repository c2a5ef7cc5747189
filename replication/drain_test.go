package replication

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOnDrain: whoever was refused for want of room learns when there is room again, once, at both ends and in both
// orders.
func TestOnDrain(t *testing.T) {
	for name, send := range map[string]func(x *fixture) error{
		"to the client":            func(x *fixture) error { return SendToClient(x.peer, mHit{}) },
		"to the client, immediate": func(x *fixture) error { return SendToClient(x.peer, mChat{}) },
		"to all":                   func(x *fixture) error { return SendToAll(x.server, mHit{}) },
		"to the server":            func(x *fixture) error { return SendToServer(x.client, mHit{}) },
	} {
		t.Run(name, func(t *testing.T) {
			x := connectedWire(t, messageSchema())
			calls := 0
			drained := func() {
				calls++
				for range 512 { // half of the buffer
					require.NoError(t, send(x))
				}
			}
			x.client.OnDrain(drained)
			x.server.OnDrain(func(p *Peer) { require.Equal(t, x.peer, p); drained() })
			for range 3 { // as much as fits is no reason to call
				for range 1024 {
					require.NoError(t, send(x))
				}
				x.rounds(50)
			}
			require.Zero(t, calls)
			for n := range 3 {
				var err error
				for sent := 0; err == nil; sent++ {
					require.LessOrEqual(t, sent, 1024)
					err = send(x)
				}
				require.True(t, errors.Is(err, ErrBufferFull))
				for range 10 {
					x.replicate() // all is lost
					x.apply()
				}
				require.Equal(t, n, calls)
				x.rounds(100)
				require.Equal(t, n+1, calls)
			}
		})
	}
}

// TestOnDrainMayEndTheConnection, or call anything else that a hook may.
func TestOnDrainMayEndTheConnection(t *testing.T) {
	x := connectedWire(t, messageSchema())
	x.server.OnDrain(func(p *Peer) {
		require.Panics(t, x.server.Replicate)
		p.Disconnect(Reason{Code: ReasonKicked})
	})
	x.client.OnDrain(func() {
		require.Panics(t, func() { _ = x.client.Apply() })
		x.client.Disconnect(Reason{})
	})
	for full := false; !full; {
		full = SendToClient(x.peer, mHit{}) != nil
	}
	for full := false; !full; {
		full = SendToServer(x.client, mHit{}) != nil
	}
	for range 20 {
		x.deliver(x.replicate()...)
		_ = x.client.Apply()
		x.answer(x.up...)
		x.up = nil
	}
	require.Error(t, x.peer.Err())
	require.Equal(t, StatusDisconnected, x.client.Status())
	require.PanicsWithValue(t, "replication: OnDrain needs a function", func() { x.client.OnDrain(nil) })
	require.PanicsWithValue(t, "replication: OnDrain needs a function", func() { x.server.OnDrain(nil) })
}
