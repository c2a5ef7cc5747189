package main

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAnOldPortDoesNotCutOffANewOne at the same address.
func TestAnOldPortDoesNotCutOffANewOne(t *testing.T) {
	s, err := listenUDP("127.0.0.1:0")
	require.NoError(t, err)
	defer s.close()
	client, err := net.Dial("udp", s.address().String())
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	from := client.LocalAddr().(*net.UDPAddr).AddrPort()
	reaches := func(p *udpPort) {
		n := 0
		require.Eventually(t, func() bool {
			_, err := client.Write([]byte("x"))
			p.read(func([]byte) { n++ })
			return err == nil && n > 0
		}, 5*time.Second, time.Millisecond)
	}
	old := s.port(from, 0)
	reaches(old)
	present := s.port(from, 0)
	old.close()
	reaches(present)
}
