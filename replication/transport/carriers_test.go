package transport_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/transport"
	"github.com/arche-replicate/arche-replicate/replication/transport/quic"
	"github.com/arche-replicate/arche-replicate/replication/transport/udp"
)

// A carrier is a transport as the plays of this package need it.
type carrier struct {
	name     string
	remote   string // Peer.Remote
	mtu      int    // of its peers, if the server's is 9,000
	checksum bool
	listen   func(t *testing.T, address string, s *replication.Server, n *netsim.Network) *listener
	dial     func(t *testing.T, address string, c *replication.Client, n *netsim.Network) conn
	relay    func(t *testing.T, to string) relay
	taken    func(address string, s *replication.Server) error // listens at a port in use
}

type listener struct {
	address string
	poll    func()
	stats   func() transport.Stats
	close   func() error
}

type conn interface {
	Poll()
	Close() error
}

var carriers = []carrier{
	{"udp", "udp", 9000, true, listenUDP, dialUDP, relayDatagrams, takenUDP},
	{"quic", "quic", 1200, false, listenQUIC, dialQUIC, relayDatagrams, takenQUIC},
}

func listenUDP(t *testing.T, address string, s *replication.Server, n *netsim.Network) *listener {
	opts := []udp.Option{}
	if n != nil {
		opts = append(opts, udp.WithNetwork(n))
	}
	l, err := udp.Listen(address, s, opts...)
	require.NoError(t, err)
	return &listener{l.Addr().String(), l.Poll, func() transport.Stats { return l.Stats().Stats }, l.Close}
}

func dialUDP(t *testing.T, address string, c *replication.Client, n *netsim.Network) conn {
	opts := []udp.Option{}
	if n != nil {
		opts = append(opts, udp.WithNetwork(n))
	}
	end, err := udp.Dial(address, c, opts...)
	require.NoError(t, err)
	return end
}

func listenQUIC(t *testing.T, address string, s *replication.Server, n *netsim.Network) *listener {
	opts := []quic.Option{}
	if n != nil {
		opts = append(opts, quic.WithNetwork(n))
	}
	l, err := quic.Listen(address, s, opts...)
	require.NoError(t, err)
	return &listener{l.Addr().String(), l.Poll, func() transport.Stats { return l.Stats().Stats }, l.Close}
}

func dialQUIC(t *testing.T, address string, c *replication.Client, n *netsim.Network) conn {
	opts := []quic.Option{}
	if n != nil {
		opts = append(opts, quic.WithNetwork(n))
	}
	end, err := quic.Dial(address, c, opts...)
	require.NoError(t, err)
	return end
}

func takenUDP(address string, s *replication.Server) error {
	_, err := udp.Listen(address, s)
	return err
}

func takenQUIC(address string, s *replication.Server) error {
	_, err := quic.Listen(address, s)
	return err
}
