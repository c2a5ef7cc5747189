package transport_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	quicgo "github.com/quic-go/quic-go"
	"github.com/quic-go/webtransport-go"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/transport"
	"github.com/arche-replicate/arche-replicate/replication/transport/internal/link"
	"github.com/arche-replicate/arche-replicate/replication/transport/quic"
	"github.com/arche-replicate/arche-replicate/replication/transport/udp"
	"github.com/arche-replicate/arche-replicate/replication/transport/web"
)

// A carrier is a transport as the plays of this package need it.
type carrier struct {
	name     string
	mtu      int // of its peers, if the server's is 9,000
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
	{"udp", 9000, true, listenUDP, dialUDP, relayDatagrams, takenUDP},
	{"quic", 1200, false, listenQUIC, dialQUIC, relayDatagrams, takenQUIC},
	{"websocket", 9000, false, listenWebSocket, dialWebSocket, relayConnections, nil},
	{"webtransport", 1200, false, listenWebTransport, dialWebTransport, relayDatagrams, takenWebTransport},
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

func handler(s *replication.Server, n *netsim.Network) *web.Handler {
	opts := []web.Option{}
	if n != nil {
		opts = append(opts, web.WithNetwork(n))
	}
	return web.NewHandler(s, opts...)
}

func listenWebSocket(t *testing.T, address string, s *replication.Server, n *netsim.Network) *listener {
	h := handler(s, n)
	tcp, err := net.Listen("tcp", address)
	require.NoError(t, err)
	site := &http.Server{Handler: h, ReadHeaderTimeout: time.Second}
	go func() { _ = site.Serve(tcp) }() // ends when it is closed
	return &listener{tcp.Addr().String(), h.Poll, func() transport.Stats { return h.Stats().Stats }, func() error {
		err := h.Close()
		_ = site.Close() // the handler has closed all that are of interest
		return err
	}}
}

func dialWebSocket(t *testing.T, address string, c *replication.Client, n *netsim.Network) conn {
	opts := []web.Option{}
	if n != nil {
		opts = append(opts, web.WithNetwork(n))
	}
	end, err := web.Dial("http://"+address+"/play", c, opts...)
	require.NoError(t, err)
	return end
}

func listenWebTransport(t *testing.T, address string, s *replication.Server, n *netsim.Network) *listener {
	h := handler(s, n)
	require.NoError(t, h.WebTransport(address, nil))
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/play?info", nil))
	var info struct{ Port int }
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &info))
	return &listener{fmt.Sprint("127.0.0.1:", info.Port), h.Poll, func() transport.Stats { return h.Stats().Stats }, h.Close}
}

// dialWebTransport connects as browsers do: outside of them, package web has WebSockets alone.
func dialWebTransport(_ *testing.T, address string, c *replication.Client, n *netsim.Network) conn {
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}} //nolint:gosec // of the test
	return link.NewConn("web", address, c, n, func(ctx context.Context) (link.ClientSocket, error) {
		d := &webtransport.Transport{TLSClientConfig: config, QUICConfig: &quicgo.Config{
			EnableDatagrams: true, EnableStreamResetPartialDelivery: true, MaxIdleTimeout: 10 * time.Second,
			InitialPacketSize: 1252,
		}}
		_, s, err := d.Dial(ctx, "https://"+address+"/play", nil)
		if err != nil {
			return nil, err
		}
		return session{s}, nil
	})
}

type session struct{ *webtransport.Session }

func (s session) Write(packet []byte) error { return s.SendDatagram(packet) }

func (s session) Read() ([]byte, error) {
	for {
		if packet, err := s.ReceiveDatagram(context.Background()); err != nil || len(packet) > 0 {
			return packet, err
		}
	}
}

func (s session) Close(why error) {
	if why == nil {
		link.Flush(s.SendDatagram, s.Context().Done())
	}
	_ = s.CloseWithError(0, "") // it is of no use any more
}

func takenWebTransport(address string, s *replication.Server) error {
	h := web.NewHandler(s)
	defer func() { _ = h.Close() }() // it has no connections
	return h.WebTransport(address, nil)
}
