package udp

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// As when a router forgets the client's port: nobody calls Reconnect.
func TestAClientWhoseAddressChangesUnnoticed(t *testing.T) {
	h := serve(t, "127.0.0.1:0")
	p := dial(t, h)
	until(t, h, p.connected, p)
	require.NoError(t, p.conn.conn.Close())
	<-p.conn.done
	var err error
	p.conn.conn, err = net.ListenUDP("udp4", nil)
	require.NoError(t, err)
	p.conn.done = make(chan struct{})
	go p.conn.read()
	frames := 0
	port := p.conn.conn.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	until(t, h, func() bool {
		frames++
		for peer := range h.server.Peers() {
			if peer.Connected() && strings.HasSuffix(peer.Remote().Address, fmt.Sprint(":", port)) {
				return true
			}
		}
		return false
	}, p)
	t.Logf("connected again after %d frames", frames)
	require.Less(t, frames, 20*60)
}
