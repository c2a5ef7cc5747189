package quic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"

	quicgo "github.com/quic-go/quic-go"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/transport"
	"github.com/arche-replicate/arche-replicate/replication/transport/internal/link"
)

// Conn is the connection of a client to a server: one QUIC connection after the other, if need be. Its methods are
// for the goroutine of the client's loop.
type Conn struct{ link *link.Conn }

// Dial gives a client a connection to the server at an address such as "game.example:9000", and its send function.
// It does not wait for the server: Client.Frame connects, and Client.Err reports how that goes.
//
// The server's certificate has to be for its host name, from an authority that the system trusts, unless
// [WithFingerprint] or [WithRoots] is given. At a loopback address, such as 127.0.0.1, any certificate
// will do, as nobody is in between.
//
// The error reports an address or a fingerprint that can't be one. What a person has to mend, such as a
// certificate that is not trusted, is returned by Client.Frame, as long as the client was never connected.
func Dial(address string, client *replication.Client, opts ...Option) (*Conn, error) {
	if client == nil {
		panic("quic: Dial needs a client: replication.NewClient makes one")
	}
	host, number, err := net.SplitHostPort(address)
	port, noNumber := strconv.ParseUint(number, 10, 16)
	if err != nil || noNumber != nil || host == "" || port == 0 {
		return nil, fmt.Errorf("quic: dial %q: give a host and a port, such as game.example:9000", address)
	}
	o := settings(address, opts)
	if o.chosen == "WithFingerprint" {
		if o.fingerprint, err = normal(o.fingerprint); err != nil {
			return nil, fmt.Errorf("quic: dial %q: %w", address, err)
		}
	}
	d := &dialer{options: o, host: host, port: uint16(port), config: o.config()}
	d.config.TokenStore = quicgo.NewLRUTokenStore(1, 4)
	c := &Conn{link.NewConn("quic", address, client, o.network, d.dial)}
	c.link.SetMTU(mtu)
	return c, nil
}

// Poll gives the client what has arrived. It never waits. Call it before Client.Frame.
func (c *Conn) Poll() { c.link.Poll() }

// Stats returns what the connection has counted.
func (c *Conn) Stats() transport.ConnStats { return c.link.Stats() }

// Close disconnects the client, which notifies the server, and closes the connection. The client's world stays as
// it is. It may wait for half a second.
func (c *Conn) Close() error { return c.link.Close() }

type dialer struct {
	*options
	host   string
	port   uint16
	config *quicgo.Config
	tries  atomic.Uint32
}

func (d *dialer) dial(ctx context.Context) (link.ClientSocket, error) {
	to, err := d.resolve(ctx)
	if err != nil {
		return nil, err
	}
	pc, err := net.ListenUDP("udp", nil) // not connected: the machine's own address may change
	if err != nil {
		return nil, err
	}
	// This connection has the socket for itself, so the client has connection IDs of length 0. With others,
	// quic-go v0.61 runs out of them when the client moves for the third time.
	conn, err := quicgo.Dial(ctx, pc, net.UDPAddrFromAddrPort(to), d.trust(d.host, to.Addr().IsLoopback()), d.config)
	if err != nil {
		_ = pc.Close()
		return nil, explain(err, d.options.dial)
	}
	s := &socket{conn: conn, pc: pc, where: d.options.dial}
	if !s.conn.ConnectionState().SupportsDatagrams.Remote {
		s.Close(errNoDatagrams)
		return nil, link.Final(errNoDatagrams)
	}
	return s, nil
}

// resolve returns an address of the server, at each try the next one.
func (d *dialer) resolve(ctx context.Context) (netip.AddrPort, error) {
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", d.host)
	if unknown := new(net.DNSError); errors.As(err, &unknown) && unknown.IsNotFound {
		return netip.AddrPort{}, link.Final(fmt.Errorf("there is no host %q: is it spelled right?", d.host))
	}
	if err != nil {
		return netip.AddrPort{}, err
	}
	slices.SortStableFunc(found, func(a, b netip.Addr) int { // IPv4 first: it is there nearly always
		return a.Unmap().BitLen() - b.Unmap().BitLen()
	})
	n := int(d.tries.Add(1)-1) % len(found)
	return netip.AddrPortFrom(found[n].Unmap(), d.port), nil
}

// A socket is one connection of a client.
type socket struct {
	conn  *quicgo.Conn
	pc    *net.UDPConn
	where string
}

func (s *socket) Read() ([]byte, error) {
	for {
		packet, err := s.conn.ReceiveDatagram(context.Background())
		if err != nil {
			return nil, explain(err, s.where)
		}
		if len(packet) > 0 {
			return packet, nil
		}
	}
}

func (s *socket) Write(packet []byte) error {
	if err := s.conn.SendDatagram(packet); err != nil {
		return explain(err, s.where)
	}
	return nil
}

func (s *socket) Close(why error) {
	if why == nil {
		link.Flush(s.conn.SendDatagram, s.conn.Context().Done())
	}
	_ = s.conn.CloseWithError(codeClosed, "") // its error is always nil
	_ = s.pc.Close()                          // it is of no use any more, whatever the error
}
