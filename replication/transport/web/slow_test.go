//go:build !js

package web

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
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

// TestPacketsDoNotHoldClose: one that is written while the socket closes, as its outbox had more, gives it no more time.
func TestPacketsDoNotHoldClose(t *testing.T) {
	stop := make(chan struct{})
	deaf := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err == nil {
			<-stop // and reads nothing
			_ = conn.CloseNow()
		}
	}))
	defer deaf.Close()
	defer close(stop)
	opened, err := (&dialer{where: deaf.URL}).dial(t.Context())
	require.NoError(t, err)
	s := opened.(*socket)
	for n, size := 1, 1<<16; n > 0 || size > 1; size = max(size/4, 1) { // until not even a byte fits
		for err = nil; err == nil; {
			require.NoError(t, s.net.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
			n, err = s.net.Write(make([]byte, size))
		}
	}
	begin := time.Now()
	done := make(chan struct{})
	go func() {
		s.close(websocket.StatusGoingAway, "")
		close(done)
	}()
	time.Sleep(50 * time.Millisecond)
	require.Error(t, s.Write([]byte{1}))
	<-done
	require.Less(t, time.Since(begin), 2*time.Second)
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
