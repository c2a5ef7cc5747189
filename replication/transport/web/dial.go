//go:build !js

package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"github.com/arche-replicate/arche-replicate/replication/loop"
	"github.com/arche-replicate/arche-replicate/replication/transport/internal/link"
)

// Frames yields the time since the last frame, which Client.Frame takes, whenever
// the screen is redrawn: in a browser, before the page is drawn; elsewhere 60 times
// a second. In a page that is hidden, where nothing is drawn, frames go on when
// packets arrive, at most ten times a second, so that the client stays connected.
func Frames(ctx context.Context) iter.Seq[time.Duration] { return loop.Frames(ctx, 60) }

type dialer struct {
	where  string
	tls    *tls.Config // nil: the system's
	setMTU func(bytes int)
}

func newDialer(where string) (*dialer, error) {
	u, err := url.Parse(where)
	if err != nil {
		return nil, fmt.Errorf("%w: give a URL such as https://game.example/play", err)
	}
	switch u.Scheme {
	case "http", "https", "ws", "wss":
	default:
		return nil, errors.New("give the URL of the server's handler, such as https://game.example/play; " +
			"only pages in a browser can leave out its beginning")
	}
	if u.Host == "" {
		return nil, errors.New("the host is missing: give a URL such as https://game.example/play")
	}
	u.Fragment = ""
	return &dialer{where: u.String()}, nil
}

func (d *dialer) dial(ctx context.Context) (link.ClientSocket, error) {
	s := &socket{where: d.where}
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: d.tls, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, address)
			s.net = c
			return c, err
		},
	}
	conn, answer, err := websocket.Dial(ctx, d.where, &websocket.DialOptions{HTTPClient: &http.Client{Transport: t}})
	if err != nil {
		if answer != nil && answer.StatusCode != http.StatusSwitchingProtocols {
			text, _ := io.ReadAll(answer.Body) // all that there is
			return nil, refusal(answer.StatusCode, string(text), d.where)
		}
		return nil, explain(err, d.where)
	}
	conn.SetReadLimit(mostBytes)
	s.conn = conn
	return s, nil
}

// explain makes a sentence of an error of dialing. Where waiting does not mend it, it is final.
func explain(err error, where string) error {
	var (
		untrusted *tls.CertificateVerificationError
		unknown   *net.DNSError
	)
	switch {
	case errors.As(err, &untrusted):
		return link.Final(fmt.Errorf("the certificate of %s is not trusted: %w", where, untrusted.Err))
	case errors.Is(err, http.ErrSchemeMismatch):
		return link.Final(fmt.Errorf("%s speaks no TLS: "+
			"begin the URL with http or ws, or give the server a certificate", where))
	case errors.As(err, &unknown) && unknown.IsNotFound:
		return link.Final(fmt.Errorf("there is no host %q: is it spelled right?", unknown.Name))
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no server answers at %s: is it running?", where)
	}
	return err
}

// mostBytes is more than a packet has.
const mostBytes = 1 << 16

const (
	writeTime = 10 * time.Second       // for which a packet may wait for the network
	closeTime = 300 * time.Millisecond // for which the other end may take to close a connection
)

// A socket is a WebSocket.
type socket struct {
	conn  *websocket.Conn
	net   net.Conn // under it
	where string
	buf   []byte

	closing atomic.Bool // by close
}

func (s *socket) Read() ([]byte, error) {
	typ, r, err := s.conn.Reader(context.Background())
	if err == nil && typ != websocket.MessageBinary {
		err = errText
	}
	if err == nil {
		err = s.fill(r)
	}
	if err != nil {
		return nil, ended(err)
	}
	return s.buf, nil
}

// ended makes a sentence of the error of a connection that the other end has closed.
func ended(err error) error {
	var closed websocket.CloseError
	switch {
	case errors.As(err, &closed) && closed.Reason != "":
		return errors.New(closed.Reason)
	case errors.As(err, &closed), errors.Is(err, io.EOF):
		return errors.New("the server has closed the connection")
	}
	return err
}

var errText = errors.New("a message is text, and packets are binary")

// fill reads a message.
func (s *socket) fill(r io.Reader) error {
	for s.buf = s.buf[:0]; ; {
		if len(s.buf) == cap(s.buf) {
			s.buf = append(s.buf, make([]byte, 2048)...)[:len(s.buf)]
		}
		n, err := r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *socket) Write(packet []byte) error {
	// A deadline, as a context for each packet would be allocated. Its error is that of the write.
	_ = s.net.SetWriteDeadline(time.Now().Add(writeTime))
	if s.closing.Load() { // whose deadline counts
		_ = s.net.SetWriteDeadline(time.Now().Add(closeTime))
		return errClosing
	}
	return s.conn.Write(context.Background(), websocket.MessageBinary, packet)
}

var errClosing = errors.New("the connection is being closed")

func (s *socket) Close(error) { s.close(websocket.StatusNormalClosure, "") }

// close lets the other end know, unless that takes long.
func (s *socket) close(code websocket.StatusCode, reason string) {
	s.closing.Store(true)
	_ = s.net.SetDeadline(time.Now().Add(closeTime))
	_ = s.conn.Close(code, reason) // it is of no use any more, whatever the error
}
