//go:build !js

package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/webtransport-go"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/transport/internal/link"
)

// webTransport is a UDP socket for WebTransport.
type webTransport struct {
	handler   *Handler
	socket    *net.UDPConn
	transport *quic.Transport
	listener  *quic.EarlyListener
	server    *webtransport.Server
	pinned    *pinned // nil: certificates of the game's own
	port      uint16
	peer      []replication.PeerOption
	work      sync.WaitGroup
}

const (
	webTransportMTU = 1200
	packetSize      = 1252 // of QUIC; a path with packets of 1,280 bytes takes them
)

// WebTransport offers WebTransport as well, at an address for UDP such as ":9000".
// Browsers that have it connect there, as lost packets delay no others; the script
// finds the port by itself, so it has to be the same for clients.
//
// With a nil configuration, certificates are self-made, and the script gives their
// hash to the browser, which then trusts no others: they are as safe as the
// connection over which the page itself arrives. Otherwise the configuration has a
// certificate that browsers trust, such as the one of the [http.Server]. Browsers
// have WebTransport only in pages over HTTPS, or from localhost and 127.0.0.1.
//
// The error reports a wrong address, a port that is taken, a configuration without
// a certificate, and a handler that is closed.
func (h *Handler) WebTransport(address string, config *tls.Config) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errors.New("web: WebTransport: the handler is closed: make another one")
	}
	if h.quic != nil {
		panic("web: WebTransport was called before: a handler has one port for it")
	}
	t := &webTransport{handler: h}
	if err := t.listen(address, config); err != nil {
		return fmt.Errorf("web: WebTransport at %q: %w", address, err)
	}
	h.quic = t
	return nil
}

func (t *webTransport) listen(address string, config *tls.Config) error {
	if config == nil {
		t.pinned = &pinned{now: time.Now}
		if _, err := t.pinned.current(); err != nil {
			return err
		}
		config = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return t.pinned.current()
		}}
	}
	if len(config.Certificates) == 0 && config.GetCertificate == nil && config.GetConfigForClient == nil {
		return errors.New("the tls.Config has no certificate: set Certificates or GetCertificate, " +
			"or give nil for self-made ones")
	}
	at, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return err
	}
	if t.socket, err = net.ListenUDP("udp", at); err != nil {
		return link.ListenError(err)
	}
	t.port = t.socket.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	t.transport = &quic.Transport{
		Conn:                t.socket,
		VerifySourceAddress: func(net.Addr) bool { return true }, // nothing is kept for an address that is not proven
		ConnContext:         t.begin,
	}
	t.server = &webtransport.Server{
		H3: &http3.Server{
			Handler: http.HandlerFunc(t.serve), MaxHeaderBytes: 16 << 10,
			ConnContext: func(ctx context.Context, c *quic.Conn) context.Context {
				return context.WithValue(ctx, connKey{}, c)
			},
		},
		CheckOrigin: func(*http.Request) bool { return true }, // serve has checked it
	}
	webtransport.ConfigureHTTP3Server(t.server.H3)
	t.listener, err = t.transport.ListenEarly(http3.ConfigureTLSConfig(config), &quic.Config{
		HandshakeIdleTimeout:             5 * time.Second,
		MaxIdleTimeout:                   30 * time.Second,
		MaxIncomingStreams:               4, // a session is one
		MaxIncomingUniStreams:            8, // of HTTP/3 itself
		MaxStreamReceiveWindow:           64 << 10,
		MaxConnectionReceiveWindow:       128 << 10,
		InitialPacketSize:                packetSize,
		EnableDatagrams:                  true,
		EnableStreamResetPartialDelivery: true,
	})
	if err != nil {
		return errors.Join(err, t.socket.Close())
	}
	t.peer = []replication.PeerOption{
		replication.WithoutChecksum(),
		replication.WithMTU(min(webTransportMTU, seam.OfServer(t.handler.server).Opts.MTU)),
		replication.WithCoding(t.handler.coding),
	}
	t.work.Go(t.accept)
	return nil
}

func (t *webTransport) hash() []byte {
	if t.pinned == nil {
		return nil
	}
	return t.pinned.hash()
}

func (t *webTransport) close() error {
	err := errors.Join(t.server.Close(), t.listener.Close(), t.transport.Close(), t.socket.Close())
	t.work.Wait()
	return err
}

type (
	connKey   struct{}
	makingKey struct{}
)

// making is a connection without a session.
type making struct {
	end   func()
	timer *time.Timer
}

// begin bounds the connections that are being made.
func (t *webTransport) begin(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
	end, ok := t.handler.hub.Begin(link.AddrPort(info.RemoteAddr))
	if !ok {
		t.handler.refused.Add(1)
		return nil, errors.New("too many handshakes")
	}
	context.AfterFunc(ctx, end) // when it fails
	return context.WithValue(ctx, makingKey{}, &making{end: end}), nil
}

// overtaking is how much earlier than datagrams what is sent after them may be noticed.
const overtaking = 100 * time.Millisecond

// sessionTime is how long a connection may have no session.
const sessionTime = 10 * time.Second

func (t *webTransport) accept() {
	for {
		conn, err := t.listener.Accept(context.Background())
		if err != nil {
			return // closed
		}
		m := conn.Context().Value(makingKey{}).(*making)
		m.timer = time.AfterFunc(sessionTime, func() {
			_ = conn.CloseWithError(0, "there is no session") // its error is always nil
		})
		context.AfterFunc(conn.Context(), func() { m.timer.Stop() })
		t.work.Go(func() {
			if err := t.server.ServeQUICConn(conn); err != nil && !errors.Is(err, http.ErrServerClosed) {
				t.handler.failed.Add(1)
				_ = conn.CloseWithError(0, "") // its error is always nil
			}
		})
	}
}

// serve makes a session of a request, and carries its packets until it ends.
func (t *webTransport) serve(w http.ResponseWriter, r *http.Request) {
	h := t.handler
	conn := r.Context().Value(connKey{}).(*quic.Conn)
	switch origin := r.Header.Get("Origin"); {
	case r.Method != http.MethodConnect:
		http.NotFound(w, r)
		return
	case origin != "" && !h.allowsHost(origin, r.Host):
		h.foreign.Add(1)
		http.Error(w, foreign(origin, r.Host), http.StatusForbidden)
		return
	}
	session, err := t.server.Upgrade(w, r)
	if err != nil {
		h.failed.Add(1)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	at := session.RemoteAddr()
	to, err := h.hub.Open(link.Socket{
		Transport: "webtransport",
		Address:   link.AddrPort(at), Send: session.SendDatagram, Blocks: true, Peer: t.peer,
		Close: func() {
			link.Flush(session.SendDatagram, session.Context().Done())
			select { // the end of a session may overtake datagrams
			case <-session.Context().Done():
			case <-time.After(overtaking):
			}
			_, reason := h.goodbye()
			end(conn, session, reason)
		},
	})
	m := conn.Context().Value(makingKey{}).(*making)
	m.timer.Stop()
	m.end()
	if err != nil {
		end(conn, session, err.Error())
		return
	}
	h.web.Add(1)
	for {
		packet, err := session.ReceiveDatagram(context.Background()) // not the session's: what waits comes first
		if err != nil {
			to.HangUp()
			return
		}
		if now := session.RemoteAddr(); now != at {
			at = now
			h.moved.Add(1)
			to.Moved(link.AddrPort(now))
		}
		if len(packet) > 0 {
			to.Deliver(packet)
		}
	}
}

// end closes a session and its connection, with time for the reason to arrive.
func end(conn *quic.Conn, session *webtransport.Session, reason string) {
	_ = session.CloseWithError(0, reason) // it is of no use any more, whatever the error
	select {
	case <-conn.Context().Done():
	case <-time.After(closeTime):
		_ = conn.CloseWithError(0, "") // its error is always nil
	}
}

// allowsHost is allows without ports: the page's is one for TCP, the host's one for UDP.
func (h *Handler) allowsHost(origin, host string) bool {
	u, err := url.Parse(origin)
	own := &url.URL{Host: host}
	return h.allows(origin, host) || err == nil && u.Hostname() != "" && strings.EqualFold(u.Hostname(), own.Hostname())
}
