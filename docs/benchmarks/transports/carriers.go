package main

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/transport"
	"github.com/arche-replicate/arche-replicate/replication/transport/quic"
	"github.com/arche-replicate/arche-replicate/replication/transport/udp"
)

// A carrier is a transport that is measured.
type carrier struct {
	name   string
	listen func(*replication.Server) (*listener, error)
	dial   func(address string, c *replication.Client) (end, error)
	relay  func(c *counter, to string) (address string, err error)
}

type listener struct {
	address string
	poll    func()
	close   func() error
}

// end is that of a client.
type end interface {
	Poll()
	Close() error
}

// limits are no limits here: all clients have one address.
var limits = transport.Limits{Peers: 10_000, PeersPerIP: 10_000}

// The first one is what others are compared with, the second one what their factors refer to.
var carriers = []carrier{
	{name: "memory", listen: listenInMemory, dial: dialInMemory},
	{"`udp`", listenUDP, dialUDP, relayDatagrams},
	{"`quic`", listenQUIC, dialQUIC, relayDatagrams},
	{"`web`, WebSocket", listenWebSocket, dialWebSocket, relayConnections},
	{"`web`, WebTransport", listenWebTransport, dialWebTransport, relayDatagrams},
}

func listenUDP(s *replication.Server) (*listener, error) {
	l, err := udp.Listen("127.0.0.1:0", s, udp.WithLimits(limits), udp.WithHelloRate(1_000_000))
	if err != nil {
		return nil, err
	}
	return &listener{l.Addr().String(), l.Poll, l.Close}, nil
}

func dialUDP(address string, c *replication.Client) (end, error) { return udp.Dial(address, c) }

func listenQUIC(s *replication.Server) (*listener, error) {
	l, err := quic.Listen("127.0.0.1:0", s, quic.WithLimits(limits))
	if err != nil {
		return nil, err
	}
	return &listener{l.Addr().String(), l.Poll, l.Close}, nil
}

func dialQUIC(address string, c *replication.Client) (end, error) { return quic.Dial(address, c) }

// memory has what ends of clients without a transport send, until the other end polls. One game runs at a time.
var memory struct {
	server *replication.Server
	opened []*inMemory
}

type inMemory struct {
	client   *replication.Client
	peer     *replication.Peer
	up, down [][]byte
}

func listenInMemory(s *replication.Server) (*listener, error) {
	memory.server, memory.opened = s, nil
	return &listener{"", func() {
		for _, m := range memory.opened {
			for _, packet := range m.up {
				_ = m.peer.Receive(packet) // counted in Peer.Stats
			}
			m.up = m.up[:0]
		}
	}, func() error { return nil }}, nil
}

func dialInMemory(_ string, c *replication.Client) (end, error) {
	m := &inMemory{client: c}
	c.SetSend(func(packet []byte) error { m.up = append(m.up, append([]byte(nil), packet...)); return nil })
	m.peer = memory.server.Connect(func(packet []byte) error {
		m.down = append(m.down, append([]byte(nil), packet...))
		return nil
	})
	memory.opened = append(memory.opened, m)
	return m, nil
}

func (m *inMemory) Poll() {
	for _, packet := range m.down {
		_ = m.client.Receive(packet) // counted in Client.Stats
	}
	m.down = m.down[:0]
}

func (m *inMemory) Close() error { return nil }

// A counter counts what its relays carry.
type counter struct {
	bytes, datagrams atomic.Uint64
	closers          []func() error
	work             sync.WaitGroup
}

func (c *counter) close() {
	for _, end := range c.closers {
		_ = end() // the measurement is over
	}
	c.work.Wait()
}

// relayDatagrams carries the datagrams of one client.
func relayDatagrams(c *counter, to string) (address string, err error) {
	server, err := netip.ParseAddrPort(to)
	if err != nil {
		return "", err
	}
	local := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}
	front, err := net.ListenUDP("udp4", local)
	if err != nil {
		return "", err
	}
	back, err := net.ListenUDP("udp4", local)
	if err != nil {
		return "", err
	}
	c.closers = append(c.closers, front.Close, back.Close)
	var client atomic.Pointer[netip.AddrPort]
	carry := func(from, by *net.UDPConn, to func(netip.AddrPort) netip.AddrPort) {
		c.work.Go(func() {
			buf := make([]byte, 1<<16)
			for {
				n, sender, err := from.ReadFromUDPAddrPort(buf)
				if err != nil {
					return
				}
				c.bytes.Add(uint64(n))
				c.datagrams.Add(1)
				_, _ = by.WriteToUDPAddrPort(buf[:n], to(sender)) // lost: networks do that
			}
		})
	}
	carry(front, back, func(sender netip.AddrPort) netip.AddrPort { client.Store(&sender); return server })
	carry(back, front, func(netip.AddrPort) netip.AddrPort { return *client.Load() })
	return front.LocalAddr().String(), nil
}
