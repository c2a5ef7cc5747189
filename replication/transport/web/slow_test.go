//go:build !js

package web

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/transport/internal/link"
)

// TestASlowReader: others don't notice one that does not read, little is kept for it, and when it reads again it gets
// the present.
func TestASlowReader(t *testing.T) {
	h := serve(t)
	h.spawn(1500)
	var pause atomic.Bool
	slow := newPlayer()
	slow.conn = &Conn{link.NewConn("web", h.url(), slow.client, nil, func(ctx context.Context) (link.ClientSocket, error) {
		s, err := (&dialer{where: h.url()}).dial(ctx)
		if err != nil {
			return nil, err
		}
		return &paused{ClientSocket: s, pause: &pause}, s.(*socket).net.(*net.TCPConn).SetReadBuffer(40 << 10) // more than a segment on loopback
	})}
	defer func() { _ = slow.conn.Close() }()
	quick := dial(t, h.url())
	until(t, h, func() bool { return slow.client.Complete() && quick.client.Complete() }, slow, quick)
	until(t, h, slow.advances(60), slow, quick)
	pause.Store(true)
	begin, start, full := time.Now(), h.server.Tick(), h.handler.Stats().OutboxFull
	until(t, h, func() bool { return h.handler.Stats().OutboxFull > full }, quick)
	until(t, h, quick.advances(30), quick)
	require.EqualValues(t, 1, quick.conn.Stats().Dials)
	received := slow.client.Stats().Bytes
	pause.Store(false)
	paused := time.Since(begin)
	now := h.server.Tick()
	until(t, h, func() bool { return int32(slow.client.Tick()-now) > 0 }, slow, quick)
	late := slow.client.Stats().Bytes - received
	until(t, h, slow.advances(30), slow, quick)
	if paused < 8*time.Second { // on a very slow machine it takes the server for dead
		require.EqualValues(t, 1, slow.conn.Stats().Dials)
	}
	t.Logf("%d ticks in %v; %d bytes arrived late", h.server.Tick()-start, time.Since(begin), late)
	require.Less(t, late, uint64(512<<10), "all that was kept for it")
}

// paused is a socket that is not read for a while.
type paused struct {
	link.ClientSocket
	pause  *atomic.Bool
	closed atomic.Bool
}

func (p *paused) Read() ([]byte, error) {
	for p.pause.Load() && !p.closed.Load() {
		time.Sleep(time.Millisecond)
	}
	return p.ClientSocket.Read()
}

func (p *paused) Close(why error) {
	p.closed.Store(true)
	p.ClientSocket.Close(why)
}
