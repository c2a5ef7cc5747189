package quic

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	quicgo "github.com/quic-go/quic-go"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/transport"
	"github.com/arche-replicate/arche-replicate/replication/transport/internal/link"
)

// ListenerStats counts the connections of a listener and what became of them.
type ListenerStats struct {
	transport.Stats
	Refused           uint64 // handshakes refused, since as many as Limits allow clients were under way
	NoDatagrams       uint64 // connections closed, since the other end takes no datagrams
	Moved             uint64 // how often the address of a client has changed
	CertificateErrors uint64 // renewed certificates that could not be read; the former one stays in use
}

// Listener is a QUIC socket of a server. Its methods are for the goroutine of the server's loop.
type Listener struct {
	socket    *net.UDPConn
	transport *quicgo.Transport
	listener  *quicgo.Listener
	hub       *link.Hub
	source    source
	work      sync.WaitGroup // the goroutines
	closing   atomic.Bool

	refused, noDatagrams, moved atomic.Uint64
}

// Listen opens a socket at an address such as ":9000" or "127.0.0.1:0", whose clients become peers of the server
// in Poll. Peers have no checksum, since QUIC guards packets, and an MTU of 1,200 bytes or the server's if that is
// less. Without [WithCertificate], [WithSelfSigned] or [WithTLS], the certificate is self-made and new each time.
//
// The error reports a certificate that can't be used, a wrong address or a port that is taken.
func Listen(address string, server *replication.Server, opts ...Option) (*Listener, error) {
	o := settings("", opts)
	source, err := o.certificate()
	if err != nil {
		return nil, fmt.Errorf("quic: listen at %q: %w", address, err)
	}
	at, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, fmt.Errorf("quic: listen at %q: %w", address, err)
	}
	socket, err := net.ListenUDP("udp", at)
	if err != nil {
		return nil, fmt.Errorf("quic: listen at %q: %w", address, link.ListenError(err))
	}
	l := &Listener{socket: socket, source: source, hub: link.NewHub("quic", server, o.limits, o.network)}
	l.transport = &quicgo.Transport{
		Conn:                socket,
		VerifySourceAddress: func(net.Addr) bool { return true }, // nothing is kept for an address that is not proven
		ConnContext:         l.begin,
	}
	config := source.config()
	config.MinVersion, config.NextProtos = tls.VersionTLS13, []string{protocol}
	if l.listener, err = l.transport.Listen(config, o.config()); err != nil {
		l.hub.Close()
		return nil, errors.Join(fmt.Errorf("quic: listen at %q: %w", address, err), socket.Close())
	}
	peer := []replication.PeerOption{
		replication.WithoutChecksum(),
		replication.WithMTU(min(mtu, seam.OfServer(server).Opts.MTU)),
	}
	l.work.Go(func() { l.accept(peer) })
	return l, nil
}

// Addr returns the address of the socket.
func (l *Listener) Addr() netip.AddrPort { return link.AddrPort(l.socket.LocalAddr()) }

// Fingerprint returns the SHA-256 of the certificate, for [WithFingerprint]: 64 hexadecimal digits, or nothing if the
// tls.Config of [WithTLS] chooses a certificate for each connection.
func (l *Listener) Fingerprint() string {
	c := l.source.current()
	if c == nil {
		return ""
	}
	return fingerprint(c.Certificate[0])
}

// Stats returns what the listener has counted.
func (l *Listener) Stats() ListenerStats {
	return ListenerStats{
		Stats: l.hub.Stats(), Refused: l.refused.Load(), NoDatagrams: l.noDatagrams.Load(), Moved: l.moved.Load(),
		CertificateErrors: l.source.errors(),
	}
}

// Poll gives the server what has arrived. It never waits. Call it before the systems of a tick.
func (l *Listener) Poll() { l.hub.Poll() }

// Close disconnects the peers of the listener, whose clients wait for the next server
// and join that by themselves, and closes the socket. The server and its other peers
// go on. Call [replication.Server.Close] first if the game has ended for the clients.
func (l *Listener) Close() error {
	if l.closing.Swap(true) {
		return nil
	}
	l.hub.Close()
	err := errors.Join(l.listener.Close(), l.transport.Close(), l.socket.Close())
	l.work.Wait()
	return err
}

type endKey struct{}

// begin bounds the handshakes under way.
func (l *Listener) begin(ctx context.Context, info *quicgo.ClientInfo) (context.Context, error) {
	end, ok := l.hub.Begin(link.AddrPort(info.RemoteAddr))
	if !ok {
		l.refused.Add(1)
		return nil, errors.New("too many handshakes")
	}
	context.AfterFunc(ctx, end) // when it fails
	return context.WithValue(ctx, endKey{}, end), nil
}

func (l *Listener) accept(peer []replication.PeerOption) {
	for {
		conn, err := l.listener.Accept(context.Background())
		if err != nil {
			return // closed
		}
		l.work.Go(func() { l.serve(conn, peer) })
	}
}

// serve carries packets of a client until its connection ends.
func (l *Listener) serve(conn *quicgo.Conn, peer []replication.PeerOption) {
	if !conn.ConnectionState().SupportsDatagrams.Remote {
		l.noDatagrams.Add(1)
		_ = conn.CloseWithError(codeNoDatagrams, "QUIC datagrams are needed") // its error is always nil
		return
	}
	address := conn.RemoteAddr()
	to, err := l.hub.Open(link.Socket{
		Address: link.AddrPort(address),
		Send:    conn.SendDatagram,
		Blocks:  true,
		Close:   func() { l.end(conn) },
		Peer:    peer,
	})
	conn.Context().Value(endKey{}).(func())()
	if err != nil {
		_ = conn.CloseWithError(codeOf(err), err.Error())
		return
	}
	for {
		packet, err := conn.ReceiveDatagram(context.Background())
		if err != nil {
			to.HangUp()
			return
		}
		if now := conn.RemoteAddr(); now != address {
			address = now
			l.moved.Add(1)
			to.Moved(link.AddrPort(now))
		}
		if len(packet) > 0 {
			to.Deliver(packet)
		}
	}
}

func (l *Listener) end(conn *quicgo.Conn) {
	link.Flush(conn.SendDatagram, conn.Context().Done())
	if l.closing.Load() {
		_ = conn.CloseWithError(codeShut, link.ErrShut.Error())
		return
	}
	_ = conn.CloseWithError(codeClosed, "")
}

func codeOf(err error) quicgo.ApplicationErrorCode {
	switch {
	case errors.Is(err, link.ErrFull):
		return codeFull
	case errors.Is(err, link.ErrFullIP):
		return codeFullIP
	default:
		return codeShut
	}
}
