//go:build !js

package web

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/transport"
	"github.com/arche-replicate/arche-replicate/replication/transport/internal/link"
)

//go:embed page.js
var script []byte

// HandlerStats counts the connections of a handler and what became of them.
type HandlerStats struct {
	transport.Stats
	WebTransports  uint64 // connections so far that are not WebSockets
	ForeignOrigins uint64 // requests refused, since their page is of another host: see WithOrigins
	Refused        uint64 // requests refused, since as many as Limits allow clients were under way
	BadHandshakes  uint64 // requests that become no connection
	BadMessages    uint64 // connections closed, since the client sent text, or more than a packet has
	Moved          uint64 // how often the address of a client has changed, which WebTransport survives
}

// Handler is the server's end of connections to browsers, an [http.Handler]. It
// may be mounted under any path. ServeHTTP is for the goroutines of an
// [http.Server]; the other methods are for the one of the server's loop.
//
// A GET of its URL is a page's WebSocket; with the query "js" it is the script that
// pages load, and with "info" it is where the script looks for WebTransport.
type Handler struct {
	hub     *link.Hub
	server  *replication.Server
	origins []string
	coding  replication.Coding

	foreign, refused, failed, malformed, moved, web atomic.Uint64

	mu     sync.Mutex // guards what follows
	quic   *webTransport
	closed bool
	work   sync.WaitGroup // goroutines
}

// webSocketMTU spares headers, since a WebSocket has no MTU.
const webSocketMTU = 16384

// NewHandler returns a handler whose clients become peers of the server in Poll.
// Peers have no checksum, since WebSocket and WebTransport guard packets, and an MTU of
// 16,384 bytes, over WebTransport 1,200, or the server's if that is less.
func NewHandler(server *replication.Server, opts ...Option) *Handler {
	o := settings(false, opts)
	return &Handler{
		hub: link.NewHub("web", server, o.limits, o.network), server: server, origins: o.origins, coding: o.coding,
	}
}

// Poll gives the server what has arrived. It never waits. Call it before the
// systems of a tick.
func (h *Handler) Poll() { h.hub.Poll() }

// Stats returns what the handler has counted.
func (h *Handler) Stats() HandlerStats {
	return HandlerStats{
		Stats: h.hub.Stats(), WebTransports: h.web.Load(), ForeignOrigins: h.foreign.Load(), Refused: h.refused.Load(),
		BadHandshakes: h.failed.Load(), BadMessages: h.malformed.Load(), Moved: h.moved.Load(),
	}
}

// Close disconnects the peers of the handler, whose clients wait for the next server
// and join that by themselves, and closes their connections and the socket of
// [Handler.WebTransport]. The server and its other peers go on. Call
// [replication.Server.Close] first if the game has ended for the clients. Close the
// [http.Server] afterwards.
func (h *Handler) Close() error {
	h.mu.Lock()
	h.closed = true
	quic := h.quic
	h.quic = nil
	h.mu.Unlock()
	h.hub.Close()
	var err error
	if quic != nil {
		err = quic.close()
	}
	h.work.Wait()
	return err
}

// enter lets Close wait for a goroutine that calls leave, unless it was called.
func (h *Handler) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.work.Add(1)
	}
	return !h.closed
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery == "js" {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = w.Write(script) // lost: the browser asks again
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		w.Header().Set("Access-Control-Allow-Origin", origin) // pages may read why they are refused
		w.Header().Set("Vary", "Origin")
		if !h.allows(origin, r.Host) {
			h.foreign.Add(1)
			http.Error(w, foreign(origin, r.Host), http.StatusForbidden)
			return
		}
	}
	switch {
	case r.URL.RawQuery == "info":
		h.inform(w)
	case !strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		http.Error(w, "Here clients of a game connect. A page does so by the script at "+r.URL.Path+"?js",
			http.StatusUpgradeRequired)
	case !h.enter():
		http.Error(w, link.ErrShut.Error(), http.StatusServiceUnavailable)
	default:
		defer h.work.Done()
		h.accept(w, r)
	}
}

// allows reports whether a page of an origin may connect to a host.
func (h *Handler) allows(origin, host string) bool {
	same := func(allowed string) bool { return allowed == "*" || strings.EqualFold(allowed, origin) }
	if slices.ContainsFunc(h.origins, same) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}

func foreign(origin, host string) string {
	return fmt.Sprintf("pages of %q may not connect to %q: "+
		"at the server, give web.NewHandler the option web.WithOrigins(%q)", origin, host, origin)
}

// inform answers with where WebTransport is.
func (h *Handler) inform(w http.ResponseWriter) {
	var info struct {
		Port uint16 `json:"port,omitempty"`
		Hash []byte `json:"hash,omitempty"`
	}
	h.mu.Lock()
	quic := h.quic
	h.mu.Unlock()
	if quic != nil {
		info.Port = quic.port
		info.Hash = quic.hash()
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(info) // lost: the page asks again
}

// A hijacker knows the connection under a WebSocket.
type hijacker struct {
	http.ResponseWriter
	net net.Conn
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.net = conn
	return conn, rw, err
}

// sendBuffer is what the kernel may keep for a client. Packets that wait there are old when they arrive.
const sendBuffer = 32 << 10

func shrink(c net.Conn) {
	if over, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = over.NetConn()
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // it works without
	}
}

// accept makes a WebSocket of a request, and carries its packets until it ends.
func (h *Handler) accept(w http.ResponseWriter, r *http.Request) {
	at := address(r.RemoteAddr)
	end, ok := h.hub.Begin(at)
	if !ok {
		h.refused.Add(1)
		http.Error(w, "too many clients connect at a time", http.StatusServiceUnavailable)
		return
	}
	defer end()
	under := &hijacker{ResponseWriter: w}
	conn, err := websocket.Accept(under, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // the origin is checked
	if err != nil {
		h.failed.Add(1) // Accept has answered
		return
	}
	shrink(under.net)
	conn.SetReadLimit(mostBytes)
	s := &socket{conn: conn, net: under.net}
	to, err := h.hub.Open(link.Socket{
		Transport: "websocket",
		Address:   at, Send: s.Write, Blocks: true, Close: func() { s.close(h.goodbye()) },
		Peer: []replication.PeerOption{
			replication.WithoutChecksum(), replication.WithMTU(webSocketMTU), replication.WithCoding(h.coding),
		},
	})
	end()
	if err != nil {
		s.close(websocket.StatusTryAgainLater, err.Error())
		return
	}
	for {
		packet, err := s.Read()
		if errors.Is(err, errText) || errors.Is(err, websocket.ErrMessageTooBig) {
			h.malformed.Add(1)
		}
		if err != nil {
			to.HangUp()
			return
		}
		to.Deliver(packet)
	}
}

// goodbye is the reason with which a connection is closed.
func (h *Handler) goodbye() (websocket.StatusCode, string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return websocket.StatusGoingAway, link.ErrShut.Error()
	}
	return websocket.StatusNormalClosure, ""
}

// address parses that of a request, to which a proxy's middleware may have given none of the client's ports.
func address(remote string) netip.AddrPort {
	if at, err := netip.ParseAddrPort(remote); err == nil {
		return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	}
	ip, _ := netip.ParseAddr(remote) // none: it counts as one client's
	return netip.AddrPortFrom(ip.Unmap(), 0)
}
